"""How many outputs m prompt vectors of a ball can reach: the packing bound of arXiv 2605.22223.

Holds for outputs reachable with precision eps: the whole ball of radius eps/2 around the prompt
decodes to the same output. Not a statement about prompts outside the ball or finer than eps.
"""

import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from reach_jax.bounds.inputs import nonnegative, positive, whole
from reach_jax.bounds.logmath import ln_grid_points, tokens
from sweep_jax.float64 import in_float64


@in_float64
def ln_packing_ball(d: ArrayLike, m: ArrayLike, r: ArrayLike, eps: ArrayLike) -> Array:
    """ln of the bound on the packing number of B_{dm}(0, r): `d m ln(1 + 2r/eps)` (Theorem 4.5).

    Args:
      d: embedding dimension >= 0.
      m: number of prompt vectors >= 0.
      r: radius of the support >= 0, in the unit of the embedding and the norm of eps.
      eps: precision > 0, same unit and norm.

    Returns:
      float64 of the common shape; the arguments are scalars or of that shape.

    Raises:
      ValueError: an argument is out of its range or not finite.
    """
    return whole("d", d, 0) * whole("m", m, 0) * ln_grid_points(2.0 * nonnegative("r", r), eps)


@in_float64
def ln_packing_cube(d: ArrayLike, m: ArrayLike, r: ArrayLike, eps: ArrayLike) -> Array:
    """ln of the packing number of [-r, r]^(dm) in the l_inf norm: `d m ln(1 + floor(2r/eps))`.

    Exact: so many points of a grid keep distance eps, and no more can, since each interval falls
    into as many pieces shorter than eps. Never above `ln_packing_ball`. The floor is that of the
    float64 quotient, whose last bit decides where 2r is a multiple of eps; no derivative.

    Arguments, shapes and errors as for `ln_packing_ball`.
    """
    steps = jnp.floor(2.0 * nonnegative("r", r) / positive("eps", eps))
    return whole("d", d, 0) * whole("m", m, 0) * jnp.log1p(steps)


@in_float64
def ball_slope(d: ArrayLike, vocabulary: ArrayLike, r: ArrayLike, eps: ArrayLike) -> Array:
    """C = `d ln(1 + 2r/eps) / ln V`, in tokens per prompt vector (Corollary 4.6).

    Arguments, shapes and errors as for `ln_packing_ball` and `tokens`.
    """
    return tokens(ln_packing_ball(d, 1, r, eps), vocabulary)


@in_float64
def threshold(slope: ArrayLike, m: ArrayLike) -> Array:
    """n* = C m: beyond this many tokens almost no output is reachable (Corollary 4.6).

    Args:
      slope: C >= 0, tokens per prompt vector; of any bound, not of the ball alone.
      m: number of prompt vectors >= 0.

    Raises:
      ValueError: an argument is out of its range or not finite.
    """
    return nonnegative("slope", slope) * whole("m", m, 0)


@in_float64
def ln_reachable_fraction(
    slope: ArrayLike, m: ArrayLike, n: ArrayLike, vocabulary: ArrayLike
) -> Array:
    """ln of the bound on the share of outputs of length n that are reachable (Corollary 4.6).

    `min(0, (C m - n) ln V)`: a share never exceeds 1.

    Args:
      slope: C >= 0, tokens per prompt vector; of any bound.
      m: number of prompt vectors >= 0.
      n: output length >= 0 in tokens; any shape.
      vocabulary: V >= 2.

    Raises:
      ValueError: an argument is out of its range or not finite.
    """
    ln_vocabulary = jnp.log(whole("vocabulary", vocabulary, 2))
    return jnp.minimum(0.0, (threshold(slope, m) - whole("n", n, 0)) * ln_vocabulary)
