"""Gemma-3 text: local and global layers, four norms a layer, QK norms, scaled embeddings.

Not in float16: its residual stream passes 65504, and the model would answer with infinities.
"""

import math
from collections.abc import Mapping
from typing import Any

from reach_jax.hub.families import llama
from reach_jax.hub.reader import Attributes
from reach_jax.hub.rotary import Rope, parse
from reach_jax.hub.rules import Rule, rule
from reach_jax.models import decoder
from reach_jax.models.config import DecoderConfig
from sweep_jax.checks import require

MODEL_TYPES = ("gemma3_text",)
DTYPES = ("float32", "bfloat16")
PREFIX, EMBEDDING, HEAD, IGNORED = llama.PREFIX, llama.EMBEDDING, llama.HEAD, llama.IGNORED

init = decoder.init


def config(hf: Mapping[str, Any]) -> DecoderConfig:
    """The decoder that a config.json of this family describes.

    Raises:
      ValueError: an attribute is missing, unknown, or has a value that is not implemented.
    """
    a = Attributes(hf)
    width, layers = a.take_number("hidden_size"), a.take_number("num_hidden_layers")
    context = a.take_number("max_position_embeddings", 131_072)
    rope, local = _rope(a, context)
    local_layers = _local_layers(a, layers)
    window = a.take("sliding_window", 4096)
    bias = a.take_flag("attention_bias", False)
    found = DecoderConfig(
        vocab_size=a.take_number("vocab_size"),
        layers=layers,
        width=width,
        heads=a.take_number("num_attention_heads"),
        kv_heads=a.take_number("num_key_value_heads"),
        head_width=a.take_number("head_dim", 256),
        mlp_width=a.take_number("intermediate_size"),
        rope_base=rope.base,
        rope_scaling=rope.scaling,
        norm_eps=a.take_number("rms_norm_eps", 1e-6),
        tied=a.take_flag("tie_word_embeddings", True),
        dtype=a.dtype(),
        norm="rms_offset",
        activation=a.activation("hidden_activation", "gelu_pytorch_tanh"),
        qkv_bias=bias,
        o_bias=bias,
        sandwich=True,
        qk_norm=True,
        context=context,
        local_layers=local_layers,
        window=window if any(local_layers) else None,
        local_rope_base=local.base,
        score_scale=a.take_number("query_pre_attn_scalar", 256) ** -0.5,
        embedding_scale=math.sqrt(width),
    )
    for name in ("attn_logit_softcapping", "final_logit_softcapping"):
        a.only(name, None)
    a.only("use_bidirectional_attention", False, None)
    a.close(("Gemma3ForCausalLM", "Gemma3TextModel"))
    return found


def _rope(a: Attributes, context: int) -> tuple[Rope, Rope]:
    """Rotary settings of global and of local layers; only global ones may be scaled."""
    base, local_base = a.take("rope_theta", 1e6), a.take("rope_local_base_freq", 1e4)
    new, old = a.take("rope_parameters", None) or {}, a.take("rope_scaling", None) or {}
    require(not (old and new), "config.rope_scaling", old, "none beside rope_parameters")
    field = "config.rope_parameters" if new else "config.rope_scaling"
    kinds = ("full_attention", "sliding_attention")
    for name in new:
        require(name in kinds, f"{field}.{name}", new[name], f"one of {kinds}")
    everywhere = parse(new.get(kinds[0]) or old, field, base, 1.0, context)
    local = parse(new.get(kinds[1]) or {}, field, local_base, 1.0, context)
    require(local.scaling is None, f"{field}.{kinds[1]}", new.get(kinds[1]), "no scaling")
    for rope in (everywhere, local):
        require(rope.partial == 1, f"{field}.partial_rotary_factor", rope.partial, "1")
    return everywhere, local


def _local_layers(a: Attributes, layers: int) -> tuple[bool, ...]:
    """By `layer_types`, else every layer but each `sliding_window_pattern`-th is local."""
    private = a.take("_sliding_window_pattern", 6)
    every = a.take_number("sliding_window_pattern", private)
    return a.layer_types(layers, tuple((layer + 1) % every != 0 for layer in range(layers)))


def rules(config: DecoderConfig) -> list[Rule]:
    """Parameters from tensors: Llama's, and the norms that this family adds."""
    layer = "model.layers.{layer}."
    return [
        *llama.rules(config),
        rule(layer + "self_attn.q_norm.weight", "layers/attention/q_norm/weight"),
        rule(layer + "self_attn.k_norm.weight", "layers/attention/k_norm/weight"),
        rule(layer + "post_attention_layernorm.weight", "layers/attention_out_norm/weight"),
        rule(layer + "post_feedforward_layernorm.weight", "layers/mlp_out_norm/weight"),
    ]
