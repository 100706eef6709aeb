"""The proof of a success: a real greedy decode from the prompt alone, one lane, with a cache.

Nothing here is shared with the search but the model: no padding, no teacher forcing, one position
at a time. Ties go to the lowest token id.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np

from reach_jax.models import kinds
from reach_jax.models.config import Params
from reach_jax.ops import readout
from sweep_jax.checks import BadInput


@functools.partial(jax.jit, static_argnames=("model", "slots"))
def _decode(
    model: kinds.Config,
    params: Params,
    inputs_SD: jax.Array,
    given: jax.Array,
    total: jax.Array,
    slots: int,
) -> tuple[jax.Array, jax.Array]:
    apply = functools.partial(kinds.module(model).apply, {"params": params})
    head_VD = apply(method="head")

    def body(carry: tuple) -> tuple:
        position, token, cache, tokens_S, margins_S = carry
        embedded_D = apply(token[None], method="embed")[0].astype(inputs_SD.dtype)
        input_D = jnp.where(position < given, inputs_SD[position], embedded_D)
        hidden_D, cache = apply(input_D, position, cache, method="step")
        logits_V = readout.logits(hidden_D[None], head_VD)[0]
        top_2, ids_2 = jax.lax.top_k(logits_V, 2)
        token = ids_2[0]
        tokens_S = tokens_S.at[position].set(token)
        margins_S = margins_S.at[position].set(top_2[0] - top_2[1])
        return position + 1, token, cache, tokens_S, margins_S

    empty = (
        jnp.int32(0),
        jnp.int32(0),
        kinds.empty_cache(model, slots),
        jnp.zeros(slots, jnp.int32),
        jnp.zeros(slots, jnp.float32),
    )
    out = jax.lax.while_loop(lambda carry: carry[0] < total, body, empty)
    return out[3], out[4]


def greedy_decode(
    model: kinds.Config,
    params: Params,
    inputs_PD: np.ndarray,
    count: int,
    slots: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Emits `count` tokens, maybe none, after the given input vectors.

    Args:
      model: the model's description.
      params: its parameters.
      inputs_PD: prefix and prompt vectors, P >= 1; the last one predicts the first token.
      count: how many tokens to emit.
      slots: cache size; the program is compiled once for each, whatever P and `count`.

    Returns:
      The tokens (count,) and each one's logit minus the runner-up's (count,).

    Raises:
      ValueError: P + count - 1 positions do not fit into `slots`.
    """
    if count == 0:
        return np.zeros(0, np.int32), np.zeros(0, np.float32)
    given, total = len(inputs_PD), len(inputs_PD) + count - 1
    if total > slots:
        raise BadInput(f"slots = {slots}: expected at least P + count - 1 = {total}")
    padded_SD = np.zeros((slots, inputs_PD.shape[1]), inputs_PD.dtype)
    padded_SD[:given] = inputs_PD
    tokens_S, margins_S = _decode(
        model, params, jnp.asarray(padded_SD), np.int32(given), np.int32(total), slots
    )
    return np.asarray(tokens_S)[given - 1 : total], np.asarray(margins_S)[given - 1 : total]
