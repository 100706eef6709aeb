"""Attention that knows distances only: ALiBi (Press et al. 2022) and its hard form, by head.

ALiBi takes a head's slope times the distance off the score. Hard-ALiBi (Jelassi et al. 2024) lets
head i of the masked ones see the last i + 1 keys and leaves the others without positions.
"""

import jax
import jax.numpy as jnp
import numpy as np

EVERYTHING = 2**30  # the window of a head that sees all keys
_HIDDEN = -1e30  # added to the score of a key outside the window


def slopes(heads: int) -> np.ndarray:
    """2^(-8 i / H) for i = 1..H, float32."""
    return np.float32(2.0) ** (-8 * np.arange(1, heads + 1, dtype=np.float32) / heads)


def windows(heads: int, masked: int) -> np.ndarray:
    """Keys that each head sees, itself included: 1, 2, .., `masked`, then everything; int32."""
    first_H = np.arange(1, heads + 1, dtype=np.int32)
    return np.where(first_H <= masked, first_H, np.int32(EVERYTHING)).astype(np.int32)


def bias(
    queries_T: jax.Array, keys_S: jax.Array, slopes_H: jax.Array, windows_H: jax.Array
) -> jax.Array:
    """What is added to the scores, float32 of shape (H, T, S).

    Args:
      queries_T: positions of the queries, int32.
      keys_S: positions of the keys; one behind its query counts as at distance 0, as the causal
        mask is not made here.
      slopes_H: float32; 0 where a head has no slope.
      windows_H: int32 >= 1; keys that are not among the last so many are hidden.
    """
    distance_TS = jnp.maximum(queries_T[:, None] - keys_S[None, :], 0)
    slope_HTS = slopes_H[:, None, None] * distance_TS[None].astype(jnp.float32)
    seen_HTS = distance_TS[None] < windows_H[:, None, None]
    return jnp.where(seen_HTS, -slope_HTS, jnp.float32(_HIDDEN))
