"""Tiny models of every family with random weights, made on the spot: `source.path = random:FAMILY`.

For trying a configuration out in seconds and without network. They answer nonsense, read the quick
corpus's tokens, and have what trips up code that only knows the quick model: padding in the token
table, scaled embeddings, tied heads.
"""

from typing import Any

import jax

from reach_jax.hub import families
from reach_jax.models import kinds
from reach_jax.models.config import Params
from sweep_jax.checks import require

PREFIX = "random:"
PADDING = 8  # rows of the token table that are no token
_KEY = 0x4A

_SMALL = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "max_position_embeddings": 512,
}
# The attributes that a config.json of the family holds, at a small size.
_HF: dict[str, dict[str, Any]] = {
    "llama": {**_SMALL, "model_type": "llama", "num_key_value_heads": 2},
    "qwen": {
        **_SMALL,
        "model_type": "qwen2",
        "num_key_value_heads": 2,
        "tie_word_embeddings": True,
    },
    "pythia": {**_SMALL, "model_type": "gpt_neox", "rotary_pct": 0.25},
    "gpt2": {
        "model_type": "gpt2",
        "n_embd": 32,
        "n_layer": 2,
        "n_head": 4,
        "n_positions": 512,
    },
    "gemma": {
        **_SMALL,
        "model_type": "gemma3_text",
        "num_key_value_heads": 1,
        "head_dim": 8,
        "query_pre_attn_scalar": 8,
        "layer_types": ["sliding_attention", "full_attention"],
        "sliding_window": 8,
    },
    "mamba": {
        "model_type": "mamba",
        "hidden_size": 32,
        "intermediate_size": 48,
        "state_size": 4,
        "num_hidden_layers": 2,
        "time_step_rank": 4,
    },
}


def names() -> list[str]:
    """What may stand after `PREFIX`."""
    return sorted(_HF)


def config(family: str, tokens: int, dtype: str | None) -> kinds.Config:
    """The frozen configuration, read by the family's own reader.

    Args:
      family: one of `names()`.
      tokens: V without the padding.
      dtype: of parameters and activations; None for float32.

    Raises:
      ValueError: an unknown family.
    """
    require(family in _HF, f"{PREFIX}FAMILY", family, f"one of {names()}")
    hf = {"vocab_size": tokens + PADDING, "dtype": dtype or "float32", **_HF[family]}
    found: kinds.Config = families.find(hf["model_type"]).config(hf)
    return found


def params(found: kinds.Config, seed: int) -> Params:
    """Fresh parameters, twice as large as at initialisation: sharper answers."""
    made = kinds.init(found, jax.random.fold_in(jax.random.key(seed), _KEY))
    return jax.tree.map(lambda x: 2 * x, made)
