"""Llama and what is saved in its format: Llama 1 to 3.2, SmolLM2, TinyLlama."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from reach_jax.hub.reader import Attributes
from reach_jax.hub.rotary import read_rope
from reach_jax.hub.rules import Rule, from_heads, head_rows, rule, to_heads, transposed
from reach_jax.models import decoder
from reach_jax.models.config import DecoderConfig

MODEL_TYPES = ("llama",)
DTYPES = ("float32", "bfloat16", "float16")
PREFIX = "model."
EMBEDDING = "model.embed_tokens.weight"
HEAD = "lm_head.weight"
IGNORED = (r"model\.layers\.\d+\.self_attn\.rotary_emb\.inv_freq",)

init = decoder.init


def config(hf: Mapping[str, Any]) -> DecoderConfig:
    """The decoder that a config.json of this family describes.

    Raises:
      ValueError: an attribute is missing, unknown, or has a value that is not implemented.
    """
    a = Attributes(hf)
    bias = a.take_flag("attention_bias", False)
    found = dataclasses.replace(
        plain(a, kv_heads=None, context=2048),
        qkv_bias=bias,
        o_bias=bias,
        mlp_bias=a.take_flag("mlp_bias", False),
    )
    a.take("pretraining_tp", 1)  # the same product in slices
    a.only("rope_interleaved", False)
    a.only("is_llama_config", True)
    a.close(("LlamaForCausalLM", "LlamaModel"))
    return found


def plain(a: Attributes, kv_heads: int | None, context: int) -> DecoderConfig:
    """The decoder by the attributes that every family of this kind has, without any bias.

    Args:
      a: the attributes; those read here count as handled.
      kv_heads: what the absence of `num_key_value_heads` means; None is one a query head.
      context: what the absence of `max_position_embeddings` means.
    """
    heads, width = a.take_number("num_attention_heads"), a.take_number("hidden_size")
    context = a.take_number("max_position_embeddings", context)
    rope = read_rope(a, 10_000.0, context)
    head_width = a.take("head_dim", None) or width // heads
    return DecoderConfig(
        vocab_size=a.take_number("vocab_size"),
        layers=a.take_number("num_hidden_layers"),
        width=width,
        heads=heads,
        kv_heads=a.take("num_key_value_heads", kv_heads) or heads,
        head_width=head_width,
        mlp_width=a.take_number("intermediate_size"),
        rope_base=rope.base,
        rope_scaling=rope.scaling,
        rotary_width=int(head_width * rope.partial),
        norm_eps=a.take_number("rms_norm_eps", 1e-6),
        tied=a.take_flag("tie_word_embeddings", False),
        dtype=a.dtype(),
        activation=a.activation("hidden_act", "silu"),
        context=context,
    )


def rules(config: DecoderConfig) -> list[Rule]:
    """Parameters from tensors; serves every family that keeps Llama's names."""
    layer, N = "model.layers.{layer}.", config.head_width
    table = [
        rule(EMBEDDING, "embedding"),
        rule("model.norm.weight", "final_norm/weight"),
        rule(layer + "input_layernorm.weight", "layers/attention_norm/weight"),
        rule(layer + "self_attn.o_proj.weight", "layers/attention/o", from_heads(N)),
    ]
    for name in "qkv":
        tensor = f"{layer}self_attn.{name}_proj."
        table.append(rule(tensor + "weight", f"layers/attention/{name}", to_heads(N)))
        if config.qkv_bias:
            table.append(rule(tensor + "bias", f"layers/attention/{name}_bias", head_rows(N)))
    if config.o_bias:
        table.append(rule(layer + "self_attn.o_proj.bias", "layers/attention/o_bias"))
    for name in ("gate", "up", "down"):
        table.append(rule(f"{layer}mlp.{name}_proj.weight", f"layers/{name}", transposed))
        if config.mlp_bias:
            table.append(rule(f"{layer}mlp.{name}_proj.bias", f"layers/{name}_bias"))
    before_mlp = "pre_feedforward" if config.sandwich else "post_attention"
    table.append(rule(f"{layer}{before_mlp}_layernorm.weight", "layers/mlp_norm/weight"))
    return table
