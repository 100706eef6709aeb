"""Linear probes: how well an affine map reads a token out of a state (arXiv 2605.17930).

Least squares on the first half of the inputs, error on the second. What such a map cannot read may
still be there.
"""

import numpy as np

from infoflow_jax.tasks.task import nmse
from sweep_jax.checks import require


def error(states_NPE: np.ndarray, wanted_NPD: np.ndarray) -> float:
    """NMSE of the best affine map from states to tokens, on inputs that it was not fitted to.

    Args:
      states_NPE: states of N inputs at P positions.
      wanted_NPD: the token that each is to give.

    Raises:
      ValueError: too few inputs to fit E + 1 numbers, or tokens that do not vary.
    """
    N, P, E = states_NPE.shape
    half = N // 2
    require(half * P > E + 1, "inputs", N, f"so many that half of {N} x {P} rows exceed {E + 1}")
    rows_NPE = np.concatenate([states_NPE, np.ones((N, P, 1))], 2).astype(np.float64)
    fit, test = (part.reshape(-1, E + 1) for part in (rows_NPE[:half], rows_NPE[half:]))
    wanted = wanted_NPD.reshape(N * P, -1).astype(np.float64)
    found = np.linalg.lstsq(fit, wanted[: half * P], rcond=1e-8)[0]
    return nmse(test @ found, wanted[half * P :])


def ranked_tokens(weights_NPS: np.ndarray, x_NTD: np.ndarray, rank: int) -> np.ndarray:
    """The token with the greatest attention weight (rank 1), the second (2), ...: (N, P, D)."""
    order_NPS = np.argsort(-weights_NPS[:, :, : x_NTD.shape[1]], axis=-1, kind="stable")
    return np.take_along_axis(x_NTD, order_NPS[:, :, rank - 1, None], axis=1)
