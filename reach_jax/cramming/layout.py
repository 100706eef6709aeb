"""Where prefix, prompt and target stand in one padded sequence.

A lane holds `M` prompt slots of which its own m <= M are used; the target has `N` slots:

    index     0 .. M-m-1   M-m      M-m+1 .. M   M+1 .. M+N-1
    holds     padding      prefix   prompt       target[0 .. N-2]
    predicts  -            -        target[0] at M, then target[1 .. N-1]

Positions count from the first thing that is not padding, so a lane's numbers do not depend on M.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp


class Layout(NamedTuple):
    """One lane's sequence, ready for a model's `hidden`; T = M + N."""

    inputs_TD: jax.Array
    positions_T: jax.Array
    valid_T: jax.Array


def arrange(
    prompt_MD: jax.Array,
    used: jax.Array,
    prefix_D: jax.Array | None,
    target_ND: jax.Array,
) -> Layout:
    """Lays one lane out.

    Args:
      prompt_MD: soft prompt in its last `used` rows; the rows above them are never read.
      used: m, the number of prompt vectors in use, 1 <= m <= M.
      prefix_D: embedding of the token before the prompt, or None for nothing there.
      target_ND: embedded target; its last row is predicted only and never an input.
    """
    M, D = prompt_MD.shape
    first = M - used + (1 if prefix_D is None else 0)
    block_MD = jnp.concatenate([jnp.zeros((1, D), prompt_MD.dtype), prompt_MD])
    if prefix_D is not None:
        at_prefix_M = jnp.arange(M + 1) == M - used
        block_MD = jnp.where(at_prefix_M[:, None], prefix_D.astype(prompt_MD.dtype)[None], block_MD)
    inputs_TD = jnp.concatenate([block_MD, target_ND[:-1].astype(prompt_MD.dtype)])
    index_T = jnp.arange(inputs_TD.shape[0])
    return Layout(inputs_TD, jnp.maximum(index_T - first, 0), index_T >= first)
