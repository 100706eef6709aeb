"""The targets of the experiments as array functions, with their weights and token distributions.

One sequence (T, d) to (O,), for `vmap`, `jit` and gradients. `calculus.targets` holds the same
targets as comparison trees; the tests hold each against its tree. Sources: arXiv 2605.17930, and
arXiv 2510.06662 for retrieval.
"""

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from infoflow_jax.calculus import targets
from infoflow_jax.calculus.tree import Target

# Best partners of x_t: against it, mirrored at either diagonal of the plane, and turned by 90 deg.
PLANAR_IDD = np.array(
    [[[-1, 0], [0, -1]], [[1, 0], [0, -1]], [[0, 1], [1, 0]], [[0, 1], [-1, 0]]], np.float64
)


def pairmax(A_IDD: jax.Array, x_TD: jax.Array) -> jax.Array:
    """sum_i max_{s,t} x_s^T A_i x_t."""
    images_ITD = jnp.einsum("ide,te->itd", A_IDD, x_TD)
    scores_IST = jnp.einsum("sd,itd->ist", x_TD, images_ITD)
    return scores_IST.max((1, 2)).sum()[None]


def pairmin(weights: jax.Array, x_TD: jax.Array) -> jax.Array:
    """min_{s,t} <x_s, x_t>, s = t allowed."""
    return jnp.min(x_TD @ x_TD.T)[None]


def triangle_squared(weights: jax.Array, x_TD: jax.Array) -> jax.Array:
    """min_{r,s,t} |x_r + x_s + x_t|^2, equal indices allowed."""
    sums_STD = x_TD[:, None] + x_TD[None]
    norms_ST = jnp.sum(sums_STD**2, -1)
    cross_RST = jnp.einsum("rd,std->rst", x_TD, sums_STD)
    alone_T = jnp.sum(x_TD**2, -1)
    squared_RST = alone_T[:, None, None] + 2 * cross_RST + norms_ST[None]
    return jnp.maximum(jnp.min(squared_RST), 0)[None]


def triangle(weights: jax.Array, x_TD: jax.Array) -> jax.Array:
    """min_{r,s,t} |x_r + x_s + x_t|, equal indices allowed."""
    return jnp.sqrt(triangle_squared(weights, x_TD))


def retrieval(a_ID: jax.Array, x_TD: jax.Array) -> jax.Array:
    """sum_i max_t a_i^T x_t."""
    return jnp.sum(jnp.max(x_TD @ a_ID.T, 0))[None]


def kth(a_ID: jax.Array, x_TD: jax.Array) -> jax.Array:
    """The D-th largest a^T x_t, with multiplicity; D rows of `a`, all equal."""
    return jnp.sort(x_TD @ a_ID[0])[-a_ID.shape[0]][None]


def positions(weights: jax.Array, x_TD: jax.Array) -> jax.Array:
    """x(1) + ... + x(D), (d,); D is the length of the weights."""
    return jnp.sum(x_TD[: weights.shape[0]], 0)


@dataclass(frozen=True)
class Function:
    """A target by name.

    Attributes:
      value: (weights, one sequence) to (O,).
      weights: (D, d, generator) to the weights, float64.
      tree: the target for the planner; None where the language has no word for it.
      order: beta', below which a sequence is too short to mean anything; 0 is D.
      scale: standard deviation of a token's coordinates, normal.
      norms: a token's norm is clamped into this range; None for any.
      vector: O = d and not 1.
      most: D at most.
      plane: d must be 2.
    """

    value: Callable[[jax.Array, jax.Array], jax.Array]
    weights: Callable[[int, int, np.random.Generator], np.ndarray]
    tree: Callable[[int], Target] | None
    order: int
    scale: float = 1.0
    norms: tuple[float, float] | None = None
    vector: bool = False
    most: int = 1
    plane: bool = False


def _nothing(D: int, d: int, rng: np.random.Generator) -> np.ndarray:
    return np.zeros(D)


def _units(D: int, d: int, rng: np.random.Generator) -> np.ndarray:
    a_ID = rng.standard_normal((D, d))
    return a_ID / np.linalg.norm(a_ID, axis=1, keepdims=True)


_TRIANGLE = Function(
    triangle, _nothing, targets.triangle, 3, scale=2**0.5, norms=(0.2, 4.0), plane=True
)
FUNCTIONS = {
    "pairmax_random": Function(
        pairmax, lambda D, d, rng: rng.standard_normal((D, d, d)), targets.pairmax, 2, most=64
    ),
    "pairmax_planar": Function(
        pairmax, lambda D, d, rng: PLANAR_IDD[:D], targets.pairmax, 2, most=4, plane=True
    ),
    "pairmin": Function(pairmin, _nothing, targets.pairmin, 2),
    "triangle": _TRIANGLE,
    "triangle_squared": dataclasses.replace(_TRIANGLE, value=triangle_squared),
    "retrieval": Function(retrieval, _units, targets.retrieval, 1, most=64),
    "kth": Function(
        kth, lambda D, d, rng: np.tile(_units(1, d, rng), (D, 1)), targets.kth, 0, most=64
    ),
    "positions": Function(positions, _nothing, targets.positions, 0, vector=True, most=64),
}
