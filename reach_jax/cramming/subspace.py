"""A random subspace for each prompt vector: K orthonormal directions of the D there are.

The directions are K rows of the orthonormal cosine transform, drawn without replacement, behind
random signs: orthonormal by construction, made again from the key at each step, and applied in
O(D log D). A stored Gaussian basis would be a thousand times a lane's other state.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

_TAG = 0x5B  # keeps the basis apart from the prompt's own noise


class Basis(NamedTuple):
    """One orthonormal K-frame a prompt vector."""

    signs_MD: jax.Array
    rows_MK: jax.Array  # which cosines


def basis(key: jax.Array, slots: int, width: int, count: int) -> Basis:
    """The frames of a lane; a row's depends on the key and its place from the end only."""
    places_M = jnp.arange(slots - 1, -1, -1)

    def one(place: jax.Array) -> tuple[jax.Array, jax.Array]:
        for_signs, for_rows = jax.random.split(
            jax.random.fold_in(jax.random.fold_in(key, _TAG), place)
        )
        signs_D = jax.random.rademacher(for_signs, (width,), jnp.float32)
        return signs_D, jax.random.permutation(for_rows, width)[:count]

    return Basis(*jax.vmap(one)(places_M))


def down(frames: Basis, x_MD: jax.Array) -> jax.Array:
    """Coordinates (M, K) of the part of x that lies in the subspaces."""
    waves_MD = jax.scipy.fft.dct(frames.signs_MD * x_MD, norm="ortho")
    return jnp.take_along_axis(waves_MD, frames.rows_MK, axis=-1)


def up(frames: Basis, coordinates_MK: jax.Array) -> jax.Array:
    """The vectors (M, D) with these coordinates: the transpose of `down`."""
    M, D = frames.signs_MD.shape
    waves_MD = jnp.zeros((M, D), coordinates_MK.dtype)
    waves_MD = waves_MD.at[jnp.arange(M)[:, None], frames.rows_MK].set(coordinates_MK)
    return frames.signs_MD * jax.scipy.fft.idct(waves_MD, norm="ortho")
