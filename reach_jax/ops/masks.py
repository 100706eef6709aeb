"""Which key a query may see, as boolean arrays of shape (T, S): True is visible."""

import jax
import jax.numpy as jnp


def causal(valid_T: jax.Array, window: int | None = None) -> jax.Array:
    """Each query sees itself and every earlier position that is not padding.

    With a `window`, only the last `window` positions, itself included, padding counted. A padding
    query sees only what stands before it; a row may be empty. `attention.attend` gives such a row
    finite numbers that nothing valid ever reads.
    """
    order_T = jnp.arange(valid_T.shape[0])
    mask_TT = (order_T[None, :] <= order_T[:, None]) & valid_T[None, :]
    if window is not None:
        mask_TT &= order_T[None, :] > order_T[:, None] - window
    return mask_TT


def cached(position: jax.Array, length: int, window: int | None = None) -> jax.Array:
    """The one query at `position` of a cache with `length` slots sees slots 0..position: (1, S).

    With a `window`, only the last `window` of them.
    """
    slots_S = jnp.arange(length)
    mask_S = slots_S <= position
    if window is not None:
        mask_S &= slots_S > position - window
    return mask_S[None, :]


def prefix(given: int, length: int, full: bool, window: int | None = None) -> jax.Array:
    """The first `given` queries of a cache with `length` slots: (given, S).

    `full`: each sees all of slots 0..given-1; else query t sees slots 0..t, with a `window` only
    the last `window` of them.
    """
    order_T, slots_S = jnp.arange(given), jnp.arange(length)
    if full:
        return jnp.broadcast_to((slots_S < given)[None, :], (given, length))
    mask_TS = slots_S[None, :] <= order_T[:, None]
    if window is not None:
        mask_TS &= slots_S[None, :] > order_T[:, None] - window
    return mask_TS
