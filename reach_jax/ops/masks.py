"""Which key a query may see, as boolean arrays of shape (T, S): True is visible."""

import jax
import jax.numpy as jnp


def causal(valid_T: jax.Array) -> jax.Array:
    """Each query sees itself and every earlier position that is not padding.

    A padding query sees only what stands before it; a row may be empty. `attention.attend` gives
    such a row finite numbers that nothing valid ever reads.
    """
    order_T = jnp.arange(valid_T.shape[0])
    return (order_T[None, :] <= order_T[:, None]) & valid_T[None, :]


def cached(position: jax.Array, length: int) -> jax.Array:
    """The one query at `position` of a cache with `length` slots sees slots 0..position: (1, S)."""
    return (jnp.arange(length) <= position)[None, :]
