"""What every explicit construction is: a network, its target, and a proven bound on its error.

The theorems' builders are in `pairs`, `scores`, `ordered` and `decoding`; here is what they share.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import jax
import numpy as np

from infoflow_jax.calculus.meaning import Weights
from infoflow_jax.calculus.tree import Target
from infoflow_jax.networks import transformer
from infoflow_jax.networks.config import NetworkConfig, Params
from sweep_jax.checks import require


@dataclass(frozen=True)
class Construction:
    """Explicit weights for `networks.transformer`.

    Attributes:
      config, params: the network; float64.
      target, weights: the function that it approximates, for `calculus.meaning.evaluate`.
      exact: the same function with arrays, (B, T, d) to (B, O).
      low, high: every coordinate of a token lies in [low, high].
      grid: tokens are multiples of 1/grid; 0 if any number will do.
      bound: T -> proven bound of the sup error, rounding left out.
      law: the FFN's hidden width that the theorem's count gives, for comparison.
      shortest, longest: the T that it takes; None is any.
    """

    config: NetworkConfig
    params: Params
    target: Target
    weights: Weights
    exact: Callable[[np.ndarray], np.ndarray]
    low: float
    high: float
    bound: Callable[[int], float]
    law: float
    grid: int = 0
    shortest: int = 1
    longest: int | None = None


def zeros(config: NetworkConfig) -> Params:
    """Parameters that are all 0, as NumPy arrays to be filled in."""
    return jax.tree.map(lambda leaf: np.zeros(leaf.shape), transformer.shapes(config))


def square_knots(radius: float, K: int) -> tuple[np.ndarray, np.ndarray]:
    """Knots and slopes of the interpolant of u^2 on [-radius, radius]: K intervals a side.

    sum_k slope_k (relu(u - knot_k) + relu(-u - knot_k)) lies in [u^2, u^2 + h^2/4], h = radius/K.
    """
    h = radius / K
    slope_K = np.full(K, 2 * h)
    slope_K[0] = h
    return h * np.arange(K), slope_K


def gibbs(items: int, beta: float) -> float:
    """A soft minimum of `items` numbers exceeds the minimum by at most this, ln(items)/beta."""
    return math.log(items) / beta


def draw(made: Construction, rng: np.random.Generator, B: int, T: int) -> np.ndarray:
    """Inputs (B, T, d) to try a construction on; every second one has near ties.

    Those are copies of three tokens, each moved by noise whose size is drawn in logs from 1e-9 to
    1, and T equal tokens of which one is moved, by 1e-5 to 1: soft minima are worst where values
    differ by about 1/beta, and where many are equal.

    Raises:
      ValueError: the construction does not take T tokens.
    """
    limit = made.longest or T
    expected = f"an integer in {made.shortest}..{limit}"
    require(made.shortest <= T <= limit, "T", T, expected)
    d, low, high = made.config.d, made.low, made.high
    x_BTD = rng.uniform(low, high, (B, T, d))
    for row in range(1, B, 2):
        copy_T = rng.integers(min(3, T), size=T)
        noise_TD = rng.standard_normal((T, d)) * 10 ** rng.uniform(-9, 0)
        if row % 4 == 3:
            copy_T[:] = 0
            noise_TD[1:] = 0
            noise_TD[0] *= 10 ** rng.uniform(-5, 0) / np.abs(noise_TD[0]).max()
        x_BTD[row] = np.clip(x_BTD[row, copy_T] + noise_TD, low, high)
    if made.grid:
        x_BTD = np.minimum(np.floor(x_BTD * made.grid), made.grid - 1) / made.grid
    return x_BTD


def sup_error(made: Construction, x_BTD: np.ndarray) -> float:
    """The largest |network - target| over inputs, in float64."""
    with jax.enable_x64(True):
        got_BO = np.asarray(transformer.apply_batch(made.config, made.params, x_BTD))
    return float(np.abs(got_BO - made.exact(x_BTD)).max())
