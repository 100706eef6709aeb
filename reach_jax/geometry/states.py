"""Samples of last-layer embeddings: the state after random token ids, as the source paper does."""

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
    tokens: int,
    key: jax.Array,
) -> Iterator[np.ndarray]:
    """Batches (B, D) of post-norm states at the last of uniformly random tokens.

    Every sequence starts with `begin_id`, if there is one; its other ids are drawn from the first
    `tokens` of the table: the vocabulary without the table's padding.
    """
    for place, length in enumerate(config.lengths):
        length_key = jax.random.fold_in(key, place)
        batch = max(1, min(config.samples, _BATCH_TOKENS // length))
        for start in range(0, config.samples, batch):
            batch_key = jax.random.fold_in(length_key, start)
            tokens_BT = jax.random.randint(batch_key, (batch, length), 0, tokens)
            if begin_id is not None:
                begin_B1 = jnp.full((batch, 1), begin_id, tokens_BT.dtype)
                tokens_BT = jnp.concatenate([begin_B1, tokens_BT], axis=1)
            states_BD = _last_states(model, params, tokens_BT)
            yield np.asarray(states_BD)[: config.samples - start]
