"""What a head shows to each query: one key by its score, keys at fixed positions, or all keys.

These are the three modes of arXiv 2605.17930. In mode MAX the argmax of a real input decides, of
equal scores the first; a head none of whose keys is allowed shows nothing, in every mode. The last
position is c0. Whether a head can know
what its score uses is not checked here.
"""

import enum

import jax
import jax.numpy as jnp

from infoflow_jax.calculus import sets
from sweep_jax.checks import require


class Mode(enum.IntEnum):
    """How a head treats one query."""

    OFF = 0
    MAX = 1
    POSITIONS = 2
    GLOBAL = 3


def allowed(tokens: int, causal: bool, c0_as_key: bool) -> jax.Array:
    """Which keys each query may look at, [P, P] bool, P = T + 1.

    Args:
      tokens: T >= 1.
      causal: whether a token sees only itself and what is before it; c0, at the end, sees all.
      c0_as_key: whether c0 is a key at all; it is not in layer 1, where it knows nothing.

    Raises:
      ValueError: T < 1.
    """
    require(tokens >= 1, "T", tokens, "an integer >= 1")
    place_P = jnp.arange(tokens + 1)
    keep_PP = jnp.ones((tokens + 1, tokens + 1), bool)
    if causal:
        keep_PP = place_P[None, :] <= place_P[:, None]
    return keep_PP if c0_as_key else keep_PP.at[:, tokens].set(False)


def best_key(scores_PP: jax.Array, allowed_PP: jax.Array) -> jax.Array:
    """The allowed key of greatest score for each query, int32 [P]; -1 where none is allowed."""
    masked_PP = jnp.where(allowed_PP, scores_PP, -jnp.inf)
    # A score of -inf is allowed too, so the mask decides between equal ones.
    top_P1 = jnp.max(masked_PP, axis=1, keepdims=True)
    best_P = jnp.argmax((masked_PP == top_P1) & allowed_PP, axis=1).astype(jnp.int32)
    return jnp.where(jnp.any(allowed_PP, axis=1), best_P, jnp.int32(-1))


def shown(
    mode_HP: jax.Array, key_HP: jax.Array, fixed_HPP: jax.Array, allowed_PP: jax.Array
) -> jax.Array:
    """The keys that a layer's heads show to each query, together: [P, W].

    Args:
      mode_HP: a `Mode` for every head and query, int32.
      key_HP: in mode MAX the key, int32; -1 for none.
      fixed_HPP: in mode POSITIONS the keys, bool.
      allowed_PP: what is not allowed is not shown, in any mode.
    """
    positions = allowed_PP.shape[0]
    one_HPP = key_HP[:, :, None] == jnp.arange(positions, dtype=jnp.int32)[None, None]
    mode_HP1 = mode_HP[:, :, None]
    pick_HPP = (
        ((mode_HP1 == Mode.MAX) & one_HPP)
        | ((mode_HP1 == Mode.POSITIONS) & fixed_HPP)
        | (mode_HP1 == Mode.GLOBAL)
    )
    return sets.pack(jnp.any(pick_HPP, axis=0) & allowed_PP)
