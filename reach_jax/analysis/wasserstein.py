"""Exact Wasserstein distance of two clouds of equally many, equally heavy points.

Not for other weights, and not an approximation: of all couplings of such clouds a permutation is
among the best (Birkhoff), and an assignment solver finds it.
"""

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

from sweep_jax.checks import require


def wasserstein(x_SD: ArrayLike, y_SD: ArrayLike, q: float) -> float:
    """W_q under the Euclidean distance, in the unit of the points.

    Args:
      x_SD: [S, D] points of weight 1/S, finite.
      y_SD: [S, D] likewise.
      q: order >= 1.

    Raises:
      ValueError: shapes differ or are empty, a value is not finite, or q < 1.
    """
    x, y = np.asarray(x_SD, np.float64), np.asarray(y_SD, np.float64)
    ok = x.ndim == 2 and x.shape == y.shape and x.size > 0
    require(ok, "x_SD, y_SD", (x.shape, y.shape), "both [S, D], S >= 1")
    finite = bool(np.isfinite(x).all() and np.isfinite(y).all())
    require(finite, "x_SD, y_SD", "NaN or inf", "finite values")
    require(1 <= q < np.inf, "q", q, "a finite number >= 1")
    cost_SS = cdist(x, y) ** q
    return float(cost_SS[linear_sum_assignment(cost_SS)].mean() ** (1 / q))
