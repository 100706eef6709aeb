"""Logarithms that every bound is made of: ball volumes, grid points on an interval, tokens.

Natural logarithms in float64, so nothing over- or underflows at d = 16384. Not a bound by itself.
"""

import jax.numpy as jnp
from jax import Array
from jax.scipy.special import gammaln, xlogy
from jax.typing import ArrayLike

from reach_jax.bounds.inputs import nonnegative, positive, whole
from sweep_jax.float64 import in_float64


@in_float64
def ln_ball_volume(d: ArrayLike, r: ArrayLike = 1.0) -> Array:
    """ln of the volume of the Euclidean ball of radius r in R^d.

    `(d/2) ln pi + d ln r - ln Gamma(d/2 + 1)`; a point (d = 0) has volume 1, and a ball of radius 0
    in d > 0 dimensions has none (-inf).

    Args:
      d: dimension, a whole number >= 0; any shape.
      r: radius >= 0, in the unit of length; scalar or of the shape of `d`.

    Raises:
      ValueError: d is not a whole number >= 0, or r is negative or not finite.
    """
    d, r = whole("d", d, 0), nonnegative("r", r)
    return 0.5 * d * jnp.log(jnp.pi) + xlogy(d, r) - gammaln(0.5 * d + 1.0)


@in_float64
def ln_grid_points(width: ArrayLike, eps: ArrayLike) -> Array:
    """`ln(1 + width/eps)`: ln of the most points that keep distance eps on an interval.

    Args:
      width: length of the interval, >= 0; any shape.
      eps: precision > 0 in the unit of `width`; scalar or of its shape.

    Raises:
      ValueError: width is negative, eps is not positive, or either is not finite.
    """
    return jnp.log1p(nonnegative("width", width) / positive("eps", eps))


@in_float64
def tokens(ln_count: ArrayLike, vocabulary: ArrayLike) -> Array:
    """`ln_count / ln V`: the length at which the V^n outputs are as many as `exp(ln_count)`.

    With the ln of the number of states of one prompt vector this is the slope C of a bound, in
    tokens per prompt vector.

    Args:
      ln_count: ln of a number of states, any shape; -inf when there is none.
      vocabulary: V >= 2; scalar or of the shape of `ln_count`.

    Raises:
      ValueError: V is not a whole number >= 2.
    """
    return jnp.asarray(ln_count, jnp.float64) / jnp.log(whole("vocabulary", vocabulary, 2))
