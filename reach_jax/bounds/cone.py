"""The share of a ball that a cone cuts out of it, and the slope of the ball bound cut down to it.

The angle is the widest between two support vectors, and half of it is taken for the cone's half
angle. That is the heuristic of arXiv 2605.22223, not a theorem: such a cone need not contain the
support. The share itself is exact, cone and cap together, and never leaves log space.
"""

import jax
import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from reach_jax.bounds.inputs import checked, known, whole
from reach_jax.bounds.logmath import tokens
from reach_jax.bounds.packing import ln_packing_ball
from sweep_jax.float64 import in_float64

_TERMS = 100  # of the continued fraction; 60 reach the last bit in every d up to 16384
_SHIFT = 16  # the asymptotic series of ln Gamma(z + 1/2) - ln Gamma(z) is read at z + _SHIFT
_SERIES = (-1 / 8, 1 / 192, -1 / 640, 17 / 14336, -31 / 18432)


@in_float64
def ln_cone_fraction(d: ArrayLike, theta: ArrayLike) -> Array:
    """ln f, the part of a ball of R^d within theta/2 of a ray from its centre.

    `f = 1/2 I_x((d - 1)/2, 1/2)` at `x = sin^2(theta/2)`, I the regularized incomplete beta
    function. In R^1 the ray is half of the ball whatever theta; for d >= 2 and theta = 0 the
    cone has no volume (-inf). Differentiable in theta for d >= 2.

    Args:
      d: dimension, a whole number >= 1; any shape.
      theta: full opening angle in radians, in [0, pi]; scalar or of the shape of `d`.

    Raises:
      ValueError: d is not a whole number >= 1, or theta is not in [0, pi].
    """
    angle = checked("theta", theta, lambda x: (x >= 0) & (x <= jnp.pi), "an angle in [0, pi]")
    d, angle = jnp.broadcast_arrays(whole("d", d, 1), angle)
    return _ln_fraction(d, angle / 2)


@in_float64
def cone_slope(
    d: ArrayLike, vocabulary: ArrayLike, r: ArrayLike, eps: ArrayLike, theta: ArrayLike
) -> Array:
    """C = `[d ln(1 + 2r/eps) + ln f] / ln V`, in tokens per prompt vector; d >= 1.

    Negative where the grid is so coarse that less than one of its points falls to the cone.
    Arguments, shapes and errors as for `ball_slope` and `ln_cone_fraction`.
    """
    return tokens(ln_packing_ball(d, 1, r, eps) + ln_cone_fraction(d, theta), vocabulary)


@in_float64
def angle_of_cosine(cosine: ArrayLike) -> Array:
    """theta of the least cosine between two support vectors: `arccos`, in [0, pi].

    Args:
      cosine: in [-1, 1]; any shape.

    Raises:
      ValueError: a cosine is NaN or outside [-1, 1].
    """
    value = checked("cosine", cosine, lambda x: (x >= -1) & (x <= 1), "a cosine in [-1, 1]")
    # XLA's arccos loses digits near 1, where this form of it does not.
    theta = 2 * jnp.arctan2(jnp.sqrt(1 - value), jnp.sqrt(1 + value))
    return jnp.minimum(theta, jnp.pi) if known(value) else theta


@jax.custom_jvp
@jax.jit
def _ln_fraction(d: Array, half: Array) -> Array:
    a = (d - 1) / 2
    sin, cos = jnp.sin(half), jnp.cos(half)
    x, y = sin**2, cos**2
    # x^a (1 - x)^(1/2) / (a B(a, 1/2)), where a B(a, 1/2) = sqrt(pi) Gamma(a+1) / Gamma(a+1/2).
    ln_front = _ln_power(a, half) + jnp.log(cos) - _ln_gamma_step(a + 0.5) - jnp.log(jnp.pi) / 2
    near = x < (a + 1) / (a + 2.5)  # beyond it the fraction of the complement converges faster
    ln_share = ln_front + jnp.log(_fraction(a, jnp.full_like(a, 0.5), jnp.where(near, x, 0.0)))
    rest = 2 * a * jnp.exp(ln_front) * _fraction(jnp.full_like(a, 0.5), a, jnp.where(near, 0.0, y))
    ln_share = jnp.where(near, ln_share, jnp.log1p(-jnp.where(near, 0.0, rest)))
    return jnp.where(d == 1, 0.0, ln_share) - jnp.log(2.0)


@_ln_fraction.defjvp
def _ln_fraction_jvp(
    primals: tuple[Array, Array], tangents: tuple[Array, Array]
) -> tuple[Array, Array]:
    """`df/d half = sin^(d-2)(half) / B((d-1)/2, 1/2)`; d is whole and has no derivative."""
    (d, half), (_, half_dot) = primals, tangents
    out = _ln_fraction(d, half)
    a = (d - 1) / 2
    ln_beta = jnp.log(jnp.pi) / 2 + _ln_gamma_step(a + 0.5) - jnp.log(a)
    ln_rate = _ln_power(a - 0.5, half) - ln_beta - out
    return out, jnp.where(d == 1, 0.0, jnp.exp(ln_rate)) * half_dot


def _ln_power(a: Array, half: Array) -> Array:
    """`2 a ln sin(half)`, without loss where the sine is near 1."""
    upper = half > jnp.pi / 4
    sin = jnp.sin(jnp.where(upper, jnp.pi / 4, half))
    ln_sin = jnp.where(upper, 0.5 * jnp.log1p(-jnp.where(upper, jnp.cos(half) ** 2, 0)), 0.0)
    return jnp.where(a == 0, 0.0, 2 * a * jnp.where(upper, ln_sin, jnp.log(sin)))


def _ln_gamma_step(z: Array) -> Array:
    """`ln Gamma(z + 1/2) - ln Gamma(z)`, whose difference would lose what the two have alike."""
    far = z + _SHIFT
    series = sum(c * far ** -(2.0 * k + 1) for k, c in enumerate(_SERIES))
    whole_steps = jnp.arange(_SHIFT, dtype=jnp.float64).reshape((1,) * z.ndim + (_SHIFT,))
    steps = jnp.log1p(0.5 / (z[..., None] + whole_steps))
    return 0.5 * jnp.log(far) + series - jnp.sum(steps, axis=-1)


def _fraction(a: Array, b: Array, x: Array) -> Array:
    """The continued fraction of `I_x(a, b)` (Abramowitz and Stegun 26.5.8), from its end."""

    def step(k: Array, tail: Array) -> Array:
        m = (_TERMS - k).astype(jnp.float64)
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        return 1 + even / (1 + odd / tail)

    tail = jax.lax.fori_loop(0, _TERMS, step, jnp.ones_like(x))
    return 1 / (1 - (a + b) * x / ((a + 1) * tail))
