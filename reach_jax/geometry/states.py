"""Samples of last-layer embeddings: the state after random ids, as the source paper, or after text.

Not their measurement (`support`, `moments`).
"""

import dataclasses
import functools
from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np

from reach_jax.models import kinds
from reach_jax.models.config import Params
from sweep_jax.checks import require

_BATCH_TOKENS = 32_768  # tokens in flight
_BATCH_SCORES = 2**28  # attention scores of one layer in flight: 1 GiB in float32


@dataclasses.dataclass(frozen=True)
class SupportConfig:
    """Which sequences are sampled."""

    lengths: tuple[int, ...]  # tokens, the begin token not counted
    samples: int  # sequences a length

    def __post_init__(self) -> None:
        require(len(self.lengths) > 0, "lengths", self.lengths, "at least one length")
        require(min(self.lengths, default=0) >= 1, "lengths", self.lengths, "integers >= 1")
        require(self.samples >= 1, "samples", self.samples, "an integer >= 1")


@functools.partial(jax.jit, static_argnames="model")
def _last_states(model: kinds.Config, params: Params, tokens_BT: jax.Array) -> jax.Array:
    apply = functools.partial(kinds.module(model).apply, {"params": params})

    def one(tokens_T: jax.Array) -> jax.Array:
        T = tokens_T.shape[0]
        inputs_TD = apply(tokens_T, method="embed")
        return apply(inputs_TD, jnp.arange(T), jnp.ones(T, bool), method="hidden")[-1]

    return jax.vmap(one)(tokens_BT)


def sample(
    model: kinds.Config,
    params: Params,
    config: SupportConfig,
    begin_id: int | None,
    key: jax.Array,
    stream_S: np.ndarray | None = None,
    vocabulary: int | None = None,
) -> Iterator[np.ndarray]:
    """Batches (B, D) of post-norm states at the last of the tokens of a sequence.

    Every sequence starts with `begin_id` where there is one. Its other tokens are uniformly random
    ids or, with `stream_S`, a piece of that text that starts anywhere; pieces may overlap.

    Args:
      model, params: the decoder.
      config: lengths, and sequences of each.
      begin_id: the token before every sequence, or None.
      key: decides all of it.
      stream_S: tokens of a text, or None for random ids.
      vocabulary: random ids are below it; None is the whole table, padding included.

    Raises:
      ValueError: the text is shorter than the longest sequence.
    """
    if stream_S is not None:
        longest = max(config.lengths)
        require(len(stream_S) >= longest, "tokens of the text", len(stream_S), f">= {longest}")
    for place, length in enumerate(config.lengths):
        length_key = jax.random.fold_in(key, place)
        scores = getattr(model, "heads", 0) * length**2  # of attention, where there is one
        at_once = min(_BATCH_TOKENS // length, _BATCH_SCORES // max(scores, 1))
        batch = max(1, min(config.samples, at_once))
        for start in range(0, config.samples, batch):
            batch_key = jax.random.fold_in(length_key, start)
            if stream_S is None:
                ids = vocabulary or model.vocab_size
                tokens_BT = jax.random.randint(batch_key, (batch, length), 0, ids)
            else:
                last = len(stream_S) - length + 1
                starts_B = np.asarray(jax.random.randint(batch_key, (batch,), 0, last))
                pieces_BT = stream_S[starts_B[:, None] + np.arange(length)]
                tokens_BT = jnp.asarray(pieces_BT, jnp.int32)
            if begin_id is not None:
                begin_B1 = jnp.full((batch, 1), begin_id, tokens_BT.dtype)
                tokens_BT = jnp.concatenate([begin_B1, tokens_BT], axis=1)
            states_BD = _last_states(model, params, tokens_BT)
            yield np.asarray(states_BD)[: config.samples - start]


def last_state(model: kinds.Config, params: Params, tokens_T: np.ndarray) -> np.ndarray:
    """The post-norm state (D,) at the last of the tokens."""
    return np.asarray(_last_states(model, params, jnp.asarray(tokens_T, jnp.int32)[None]))[0]
