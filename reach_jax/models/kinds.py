"""Every kind of model behind one set of calls, chosen by its configuration.

All modules have `embed`, `head`, `hidden`, `states`, `step` and `__call__`, as documented at
`decoder.Decoder`. Not here: anything that a model does.
"""

from typing import Any

import jax

from reach_jax.models import decoder, mamba
from reach_jax.models.config import DecoderConfig, MambaConfig, Params

Config = DecoderConfig | MambaConfig
# The parameters that multiply activations by `ops.products`, by their last name.
MATRICES = frozenset({"q", "k", "v", "o", "gate", "up", "down"})


def module(config: Config) -> decoder.Decoder | mamba.Mamba:
    """The module, unbound."""
    return mamba.Mamba(config) if isinstance(config, MambaConfig) else decoder.Decoder(config)


def init(config: Config, key: jax.Array) -> Params:
    """Fresh parameters."""
    if isinstance(config, MambaConfig):
        return mamba.init(config, key)
    return decoder.init(config, key)


def empty_cache(config: Config, slots: int) -> Any:
    """What `step` needs before its first position; good for `slots` of them."""
    if isinstance(config, MambaConfig):
        return mamba.empty_memory(config)
    return decoder.empty_cache(config, slots)
