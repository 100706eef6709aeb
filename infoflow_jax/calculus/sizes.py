"""Sizes of explicit networks, for a given eps: what the upper bounds' constructions take.

ln of a count where the count may be beyond any integer type, exact Python integers elsewhere. The
networks themselves are not here.
"""

import math
from dataclasses import dataclass

import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from infoflow_jax.calculus.costs import precision
from sweep_jax.checks import require
from sweep_jax.float64 import in_float64


@dataclass(frozen=True)
class PairNetwork:
    """Two layers of one head for min_{s,t} <x_s, x_t> on [0, 1]^d, and its error.

    Attributes:
      knots: K on each side of 0, of each square.
      width: hidden units of the one feed-forward layer, 4 d K.
      beta: of both heads.
      parameters: of that layer, biases included.
      error: at most, in sup norm.
    """

    knots: int
    width: int
    beta: float
    parameters: int
    error: float


def product_error(d: int, knots: int) -> float:
    """d/(4 K^2): at most the error of an inner product of vectors of [0, 1]^d.

    xy = ((x + y)^2 - (x - y)^2)/4, each square linear between K knots on [0, 2] and their mirror
    images: it is too large by at most (2/K)^2/4, and the two errors have one sign. [D]
    """
    return d / (4 * knots**2)


def pair_network(T: int, d: int, eps: float) -> PairNetwork:
    """Theorem 1, upper bound: a third of eps to each of the product and the two heads. [D]

    The width grows as d^1.5 eps^-0.5, whatever T: only beta grows with T.

    Raises:
      ValueError: T < 1, d < 1, or eps outside (0, 1).
    """
    for name, value in (("T", T), ("d", d)):
        require(isinstance(value, int) and value >= 1, name, value, "an integer >= 1")
    precision(eps)
    knots = math.ceil(math.sqrt(3 * d / (4 * eps)))
    beta = 3 * math.log(T) / eps if T > 1 else 1.0
    width = 4 * d * knots
    error = product_error(d, knots) + 2 * math.log(T) / beta
    return PairNetwork(knots, width, beta, width * (2 * d + 2) + 1, error)


def digits(T0: int, d: int, E: int) -> float:
    """m = T0 d/E, the digits of base 1/eps that a coordinate must hold (Theorem 3)."""
    for name, value in (("T0", T0), ("d", d), ("E", E)):
        require(isinstance(value, int) and value >= 1, name, value, "an integer >= 1")
    return T0 * d / E


@in_float64
def ln_last_digit_pieces(m: ArrayLike, eps: ArrayLike) -> Array:
    """ln(2 eps^(1 - m) - 1): linear pieces of the decoder of the last of m digits. [D]

    Each of the eps^(1 - m) values of the digits before gives a ramp, and steps lie between.

    Args:
      m: digits of base 1/eps, at least 1; not always a whole number.
      eps: in (0, 1).
    """
    m = jnp.asarray(m, jnp.float64)
    require(bool(jnp.all(m >= 1)), "m", m.tolist(), "a number >= 1")
    ln_ramps = (1.0 - m) * jnp.log(precision(eps))
    return jnp.log(2.0) + ln_ramps + jnp.log1p(-0.5 * jnp.exp(-ln_ramps))


def memorised_max_units(T: int, eps: float) -> tuple[int, int, int]:
    """ReLU units of each layer of a network that finds the greatest of T numbers in [0, 1]. [C]

    h1(t, i) = relu(x_t - i/n); h2(j) = relu(S_j) - relu(S_j - 1/n), S_j = sum_t h1(t, j); out =
    sum_j h2(j), i and j in 0..n - 1, n = ceil(1/eps): T n, 2 n and 1 units. The result is never too
    small, and too large by less than 1/n.

    Raises:
      ValueError: T < 1, or eps outside (0, 1).
    """
    require(isinstance(T, int) and T >= 1, "T", T, "an integer >= 1")
    precision(eps)
    n = math.ceil(1 / eps)
    return T * n, 2 * n, 1
