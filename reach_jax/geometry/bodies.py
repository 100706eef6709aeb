"""Uniform points in a ball, a box and an ellipsoid, batch by batch.

Not the states of a model (`states`), and not their measurement (`support`, `moments`).
"""

import functools
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from sweep_jax.checks import require


def ball(key: jax.Array, points: int, width: int, radius: float, batch: int) -> Iterator[jax.Array]:
    """Batches (N, D) uniform in the Euclidean ball of `radius` about the origin.

    Raises:
      ValueError: width or batch below 1, points below 0, or a radius that is not > 0.
    """
    require(bool(np.isfinite(radius)) and radius > 0, "radius", radius, "a finite number > 0")
    scale = jnp.float32(radius)
    yield from _batches(key, points, width, batch, lambda unit_ND: unit_ND * scale)


def ellipsoid(
    key: jax.Array, points: int, mean_D: np.ndarray, covariance_DD: np.ndarray, batch: int
) -> Iterator[jax.Array]:
    """Batches uniform in the ellipsoid of inertia: the one with this mean and this covariance.

    It is `{x : (x - mean)^T S^-1 (x - mean) <= D + 2}`, S the covariance, and where S is flat lies
    in the affine subspace that S spans. No coverage of the samples is claimed.

    Raises:
      ValueError: shapes that differ, a covariance that is not finite, or one of rank 0.
    """
    mean, covariance = np.asarray(mean_D, np.float64), np.asarray(covariance_DD, np.float64)
    D = mean.size
    require(covariance.shape == (D, D), "covariance", covariance.shape, f"({D}, {D})")
    require(bool(np.isfinite(covariance).all()), "covariance", "not finite", "finite numbers")
    values_D, vectors_DD = np.linalg.eigh(covariance)
    kept = values_D > values_D[-1] * max(D, 100) * np.finfo(np.float64).eps
    rank = int(kept.sum()) if values_D[-1] > 0 else 0
    require(rank >= 1, "rank of the covariance", rank, "at least 1")
    axes = jnp.asarray((vectors_DD[:, kept] * np.sqrt(values_D[kept] * (rank + 2))).T, jnp.float32)
    centre = jnp.asarray(mean, jnp.float32)
    yield from _batches(key, points, rank, batch, lambda unit: unit @ axes + centre[None, :])


def box(
    key: jax.Array, points: int, lo_D: np.ndarray, hi_D: np.ndarray, batch: int
) -> Iterator[jax.Array]:
    """Batches uniform in the box [lo, hi].

    Raises:
      ValueError: shapes that differ, D = 0, or ends that are not finite and in order.
    """
    lo, hi = (jnp.asarray(np.asarray(end), jnp.float32) for end in (lo_D, hi_D))
    require(lo.ndim == 1 and lo.shape == hi.shape, "lo, hi", (lo.shape, hi.shape), "both (D,)")
    ordered = bool(jnp.isfinite(hi - lo).all()) and bool((lo <= hi).all())
    require(ordered, "lo, hi", "not in order", "finite ends, lo <= hi")

    def place(uniform_ND: jax.Array) -> jax.Array:
        return lo[None, :] + uniform_ND * (hi - lo)[None, :]

    yield from _batches(key, points, lo.size, batch, place, _unit_box)


def _batches(
    key: jax.Array, points: int, width: int, batch: int, place: Any, draw: Any = None
) -> Iterator[jax.Array]:
    require(width >= 1, "width", width, "an integer >= 1")
    require(points >= 0, "points", points, "an integer >= 0")
    require(batch >= 1, "batch", batch, "an integer >= 1")
    draw = draw or _unit_ball
    for number, start in enumerate(range(0, points, batch)):
        part_ND = place(draw(jax.random.fold_in(key, number), batch, width))
        yield part_ND[: points - start]


@functools.partial(jax.jit, static_argnums=(1, 2))
def _unit_ball(key: jax.Array, points: int, width: int) -> jax.Array:
    direction_key, radius_key = jax.random.split(key)
    normal_ND = jax.random.normal(direction_key, (points, width))
    uniform_N = jax.random.uniform(radius_key, (points,))
    radius_N = uniform_N ** (1 / width) / jnp.linalg.norm(normal_ND, axis=1)
    return normal_ND * radius_N[:, None]


@functools.partial(jax.jit, static_argnums=(1, 2))
def _unit_box(key: jax.Array, points: int, width: int) -> jax.Array:
    return jax.random.uniform(key, (points, width))
