"""Sizes of the hub models that the configs name, so that a plan needs no network.

What their published config.json files say, as far as it decides shapes. A load never reads this.
"""

from typing import Any

from reach_jax.hub import families
from reach_jax.models import kinds


def _neox(width: int, layers: int, heads: int) -> dict[str, Any]:
    return {
        "model_type": "gpt_neox",
        "vocab_size": 50304,
        "hidden_size": width,
        "intermediate_size": 4 * width,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "rotary_pct": 0.25,
        "dtype": "float16",
    }


def _qwen(width: int, layers: int, heads: int, mlp: int) -> dict[str, Any]:
    return {
        "model_type": "qwen2",
        "vocab_size": 151936,
        "hidden_size": width,
        "intermediate_size": mlp,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "num_key_value_heads": 2,
        "tie_word_embeddings": True,
        "dtype": "bfloat16",
    }


def _gemma(width: int, layers: int, mlp: int) -> dict[str, Any]:
    return {
        "model_type": "gemma3_text",
        "vocab_size": 262144,
        "hidden_size": width,
        "intermediate_size": mlp,
        "num_hidden_layers": layers,
        "num_attention_heads": 4,
        "num_key_value_heads": 1,
        "head_dim": 256,
        "sliding_window": 512,
        "dtype": "bfloat16",
    }


def _mamba(width: int, layers: int) -> dict[str, Any]:
    return {
        "model_type": "mamba",
        "vocab_size": 50280,
        "hidden_size": width,
        "intermediate_size": 2 * width,
        "state_size": 16,
        "num_hidden_layers": layers,
        "time_step_rank": width // 16,
        "dtype": "float32",
    }


_KNOWN = {
    "EleutherAI/pythia-160m": _neox(768, 12, 12),
    "EleutherAI/pythia-410m": _neox(1024, 24, 16),
    "EleutherAI/pythia-1b": _neox(2048, 16, 8),
    "Qwen/Qwen2.5-0.5B": _qwen(896, 24, 14, 4864),
    "Qwen/Qwen2.5-1.5B": _qwen(1536, 28, 12, 8960),
    "meta-llama/Llama-3.2-1B": {
        "model_type": "llama",
        "vocab_size": 128256,
        "hidden_size": 2048,
        "intermediate_size": 8192,
        "num_hidden_layers": 16,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "tie_word_embeddings": True,
        "dtype": "bfloat16",
    },
    "google/gemma-3-270m": _gemma(640, 18, 2048),
    "google/gemma-3-1b-pt": _gemma(1152, 26, 6912),
    "state-spaces/mamba-130m-hf": _mamba(768, 24),
    "state-spaces/mamba-370m-hf": _mamba(1024, 48),
    "state-spaces/mamba-790m-hf": _mamba(1536, 48),
    "state-spaces/mamba-1.4b-hf": _mamba(2048, 48),
}


def config(path: str) -> kinds.Config | None:
    """The frozen configuration of a hub id; None for one that is not listed."""
    if path not in _KNOWN:
        return None
    hf = _KNOWN[path]
    found: kinds.Config = families.find(hf["model_type"]).config(hf)
    return found
