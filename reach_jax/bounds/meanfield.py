"""The bound for prompts of any length: how many outputs all of them together can reach.

A layer maps the prompt's empirical measure to another, so prompts that are near in the Wasserstein
distance share their output whatever their length (arXiv 2605.22223, Theorem 4.9, Corollary 4.10).
The counts are exponentials of exponentials, hence the ln of a ln here. Not a slope: it does not
depend on the number of prompt vectors.
"""

from dataclasses import dataclass
from typing import ClassVar

import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from reach_jax.bounds.inputs import checked, nonnegative, positive, whole
from reach_jax.bounds.packing import ln_packing_ball
from sweep_jax.float64 import in_float64


@dataclass(frozen=True)
class Horizon:
    """The length beyond which almost no output is reachable by any prompt.

    Attributes:
      name: what a table or figure calls it.
      ln_length: ln N; N itself is far above the largest float.
      rigorous: whether it holds for float prompts as they are.
      theorem: where it comes from.
      assumptions: what must be true for it to hold.
    """

    name: str
    ln_length: float
    rigorous: bool
    theorem: str
    assumptions: str
    units: ClassVar[str] = "ln of tokens"


@in_float64
def ln_ln_reachable(d: ArrayLike, r: ArrayLike, eps: ArrayLike, q: ArrayLike = 1.0) -> Array:
    """ln ln of the bound on the number of reachable outputs, of any prompt length (Theorem 4.9).

    The bound is `(e + e (2r/eps)^q)^P` with `P = (1 + 2r/eps)^d`, so this is
    `d ln(1 + 2r/eps) + ln(1 + ln(1 + (2r/eps)^q))`.

    Args:
      d: embedding dimension >= 0.
      r: radius of the support >= 0, in the unit of the embedding and the norm of eps.
      eps: precision > 0, of one vector and of measures in the Wasserstein-q distance.
      q: order of the distance, >= 1.

    Returns:
      float64 of the common shape; the arguments are scalars or of that shape.

    Raises:
      ValueError: an argument is out of its range or not finite.
    """
    ln_ratio = jnp.log(2.0 * nonnegative("r", r) / positive("eps", eps))
    order = checked("q", q, lambda x: np.isfinite(x) & (x >= 1), "a finite number >= 1")
    ln_transport = jnp.logaddexp(0.0, order * ln_ratio)
    return ln_packing_ball(d, 1, r, eps) + jnp.log1p(ln_transport)


@in_float64
def ln_horizon(
    d: ArrayLike, vocabulary: ArrayLike, r: ArrayLike, eps: ArrayLike, q: ArrayLike = 1.0
) -> Array:
    """ln N of `N = (1 + 2r/eps)^d ln(e + e (2r/eps)^q) / ln V` tokens (Corollary 4.10).

    Arguments, shapes and errors as for `ln_ln_reachable`; vocabulary V >= 2.
    """
    ln_vocabulary = jnp.log(whole("vocabulary", vocabulary, 2))
    return ln_ln_reachable(d, r, eps, q) - jnp.log(ln_vocabulary)


@in_float64
def ln_minus_ln_fraction(ln_n: ArrayLike, ln_horizon: ArrayLike, vocabulary: ArrayLike) -> Array:
    """`ln(-ln f)` of the bound f on the reachable share at length n: `f = V^(N - n)`.

    Up to the horizon the bound says nothing: f = 1 and this is -inf.

    Args:
      ln_n: ln of the output length in tokens.
      ln_horizon: ln N, from `ln_horizon`.
      vocabulary: V >= 2.

    Returns:
      float64 of the common shape; the arguments are scalars or of that shape.

    Raises:
      ValueError: an argument is NaN, or V is not a whole number >= 2.
    """
    ln_n = checked("ln_n", ln_n, lambda x: ~np.isnan(x), "a number")
    horizon = checked("ln_horizon", ln_horizon, lambda x: ~np.isnan(x), "a number")
    ln_vocabulary = jnp.log(whole("vocabulary", vocabulary, 2))
    beyond = ln_n > horizon
    ln_share_left = jnp.log(-jnp.expm1(jnp.where(beyond, horizon - ln_n, -1.0)))
    return jnp.where(beyond, ln_n + ln_share_left + jnp.log(ln_vocabulary), -jnp.inf)


def mean_field(d: int, vocabulary: int, r: float, eps: float, q: float = 1.0) -> Horizon:
    """The horizon of one model with what it assumes; arguments, errors as for `ln_horizon`."""
    return Horizon(
        name=f"mean field, q = {q:g}",
        ln_length=float(ln_horizon(d, vocabulary, r, eps, q)),
        rigorous=False,
        theorem="Corollary 4.10",
        assumptions=(
            f"every vector in the ball of radius {r:g}; prompts within {eps:g} in the"
            f" Wasserstein-{q:g} distance decode alike; no position enters but through attention"
        ),
    )
