"""Every kind of model behind one set of calls, chosen by its configuration.

All modules have `embed`, `head`, `hidden`, `states`, `step` and `__call__`, as documented at
`decoder.Decoder`. Not here: anything that a model does.
"""

import functools
from typing import Any

import jax

from reach_jax.models import decoder, lstm, mamba
from reach_jax.models.config import DecoderConfig, LSTMConfig, MambaConfig, Params

Config = DecoderConfig | MambaConfig | LSTMConfig
# The parameters that multiply activations by `ops.products`, by their last name.
MATRICES = frozenset({"q", "k", "v", "o", "gate", "up", "down"})


def module(config: Config) -> decoder.Decoder | mamba.Mamba | lstm.LSTM:
    """The module, unbound."""
    if isinstance(config, LSTMConfig):
        return lstm.LSTM(config)
    return mamba.Mamba(config) if isinstance(config, MambaConfig) else decoder.Decoder(config)


def init(config: Config, key: jax.Array) -> Params:
    """Fresh parameters."""
    if isinstance(config, LSTMConfig):
        return lstm.init(config, key)
    if isinstance(config, MambaConfig):
        return mamba.init(config, key)
    return decoder.init(config, key)


def empty_cache(config: Config, slots: int) -> Any:
    """What `step` needs before its first position; good for `slots` of them."""
    if isinstance(config, LSTMConfig):
        return lstm.empty_memory(config)
    if isinstance(config, MambaConfig):
        return mamba.empty_memory(config)
    return decoder.empty_cache(config, slots)


def memory_size(config: Config) -> int | None:
    """Numbers that the model keeps of all it has read; None where they grow with the positions."""

    def size(slots: int) -> int:
        shapes = jax.eval_shape(functools.partial(empty_cache, config, slots))
        return sum(leaf.size for leaf in jax.tree.leaves(shapes))

    return size(1) if size(1) == size(2) else None
