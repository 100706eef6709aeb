"""Qwen2 and Qwen2.5: Llama's names, biases on q, k and v only, a window in some layers."""

from collections.abc import Mapping
from typing import Any

from reach_jax.hub.families import llama
from reach_jax.hub.reader import Attributes
from reach_jax.hub.rotary import read_rope
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
    heads, width = a.take_number("num_attention_heads"), a.take_number("hidden_size")
    layers = a.take_number("num_hidden_layers")
    context = a.take_number("max_position_embeddings", 32_768)
    rope = read_rope(a, 10_000.0, context)
    head_width = a.take("head_dim", None) or width // heads
    window, first = a.take("sliding_window", 4096), a.take_number("max_window_layers", 28)
    windowed = a.take_flag("use_sliding_window", False) and window is not None
    by_depth = tuple(windowed and layer >= first for layer in range(layers))
    local_layers = a.layer_types(layers, by_depth)
    found = DecoderConfig(
        vocab_size=a.take_number("vocab_size"),
        layers=layers,
        width=width,
        heads=heads,
        kv_heads=a.take("num_key_value_heads", 32) or heads,
        head_width=head_width,
        mlp_width=a.take_number("intermediate_size"),
        rope_base=rope.base,
        rope_scaling=rope.scaling,
        rotary_width=int(head_width * rope.partial),
        norm_eps=a.take_number("rms_norm_eps", 1e-6),
        tied=a.take_flag("tie_word_embeddings", False),
        dtype=a.dtype(),
        activation=a.activation("hidden_act", "silu"),
        qkv_bias=True,
        context=context,
        local_layers=local_layers,
        window=window if any(local_layers) else None,
    )
    a.only("use_mrope", False)
    a.close(("Qwen2ForCausalLM", "Qwen2Model"))
    return found
