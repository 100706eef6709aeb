"""Qwen2 and Qwen2.5: Llama's names, biases on q, k and v only, a window in some layers."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from reach_jax.hub.families import llama
from reach_jax.hub.reader import Attributes
from reach_jax.models import decoder
from reach_jax.models.config import DecoderConfig

MODEL_TYPES = ("qwen2",)
DTYPES = ("float32", "bfloat16", "float16")
PREFIX, EMBEDDING, HEAD, IGNORED = llama.PREFIX, llama.EMBEDDING, llama.HEAD, llama.IGNORED

init = decoder.init
rules = llama.rules


def config(hf: Mapping[str, Any]) -> DecoderConfig:
    """The decoder that a config.json of this family describes.

    Raises:
      ValueError: an attribute is missing, unknown, or has a value that is not implemented.
    """
    a = Attributes(hf)
    shape = llama.plain(a, kv_heads=32, context=32_768)
    window, first = a.take("sliding_window", 4096), a.take_number("max_window_layers", 28)
    windowed = a.take_flag("use_sliding_window", False) and window is not None
    by_depth = tuple(windowed and layer >= first for layer in range(shape.layers))
    local_layers = a.layer_types(shape.layers, by_depth)
    found = dataclasses.replace(
        shape,
        qkv_bias=True,
        local_layers=local_layers,
        window=window if any(local_layers) else None,
    )
    a.only("use_mrope", False)
    a.close(("Qwen2ForCausalLM", "Qwen2Model"))
    return found
