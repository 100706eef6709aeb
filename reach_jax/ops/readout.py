"""From last-layer states to what the loss and the decoder need of the logits, chunk by chunk.

The array of lanes x length x vocabulary never exists: positions go through in chunks, and the
backward pass computes each chunk's logits again.
"""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp

from reach_jax.ops import products


class Scores(NamedTuple):
    """What a chunk of logits says of its targets; every field float32 (or bool) of shape (N,)."""

    nll: jax.Array  # -log softmax(logits / temperature)[target], nats
    margin: jax.Array  # target's logit minus the best other logit
    correct: jax.Array  # target == argmax, the lowest token id among exact ties


def logits(hidden_ND: jax.Array, head_VD: jax.Array) -> jax.Array:
    """Logits in float32, (N, V)."""
    if hidden_ND.dtype == head_VD.dtype:
        return jnp.einsum("nd,vd->nv", hidden_ND, head_VD, preferred_element_type=jnp.float32)
    return products.product("nd,vd->nv", hidden_ND, head_VD)


def score(
    hidden_ND: jax.Array,
    head_VD: jax.Array,
    targets_N: jax.Array,
    temperature: float = 1.0,
    chunk: int = 16,
) -> Scores:
    """Scores of one sequence's targets.

    Args:
      hidden_ND: last-layer states, after the final norm.
      head_VD: unembedding matrix.
      targets_N: the token each state should emit.
      temperature: divides the logits of `nll`; neither `margin` nor `correct` feels it.
      chunk: positions whose logits are alive at once; N is cut into its greatest divisor <= chunk.

    Returns:
      `Scores` of shape (N,).
    """
    N, D = hidden_ND.shape
    size = next(c for c in range(min(chunk, N), 0, -1) if N % c == 0)

    @jax.checkpoint
    def one(part: tuple[jax.Array, jax.Array]) -> Scores:
        hidden_CD, targets_C = part
        return _score_logits(logits(hidden_CD, head_VD), targets_C, temperature)

    if size == N:
        return one((hidden_ND, targets_N))
    parts = (hidden_ND.reshape(-1, size, D), targets_N.reshape(-1, size))
    return jax.tree.map(lambda x: x.reshape(-1), jax.lax.map(one, parts))


def _score_logits(logits_CV: jax.Array, targets_C: jax.Array, temperature: float) -> Scores:
    hit_CV = jnp.arange(logits_CV.shape[-1])[None, :] == targets_C[:, None]
    target_C = jnp.sum(jnp.where(hit_CV, logits_CV, 0.0), axis=-1)
    rival_C = jnp.max(jnp.where(hit_CV, -math.inf, logits_CV), axis=-1)
    nll_C = jax.nn.logsumexp(logits_CV / temperature, axis=-1) - target_C / temperature
    return Scores(nll_C, target_C - rival_C, jnp.argmax(logits_CV, axis=-1) == targets_C)
