"""The box that holds the support, coordinate by coordinate, on a uniform grid.

arXiv 2605.22223 calls this its "ellipsoid". Not an ellipsoid, and not the grid of a float type.
"""

import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from reach_jax.bounds.logmath import ln_grid_points, tokens
from sweep_jax.float64 import in_float64


@in_float64
def box_slope(widths_D: ArrayLike, vocabulary: ArrayLike, eps: ArrayLike) -> Array:
    """C = `sum_i ln(1 + w_i/eps) / ln V`, in tokens per prompt vector.

    Args:
      widths_D: [..., D] largest minus smallest value of each coordinate, >= 0.
      vocabulary: V >= 2; scalar or of shape [...].
      eps: side > 0 of the grid's cubes, in the unit of the widths; a scalar.

    Returns:
      [...] float64.

    Raises:
      ValueError: a width is negative, eps is not positive, V < 2, or a value is not finite.
    """
    return tokens(jnp.sum(ln_grid_points(widths_D, eps), axis=-1), vocabulary)
