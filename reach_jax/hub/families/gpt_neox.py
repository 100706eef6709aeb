"""GPT-NeoX (Pythia): layer norms, partial rotary, parallel residual, q, k, v fused head by head."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from reach_jax.hub.reader import Attributes
from reach_jax.hub.rotary import read_rope
from reach_jax.hub.rules import Rule, Transform, from_heads, rule, transposed
from reach_jax.models import decoder
from reach_jax.models.config import DecoderConfig

MODEL_TYPES = ("gpt_neox",)
DTYPES = ("float32", "bfloat16", "float16")
PREFIX = "gpt_neox."
EMBEDDING = "gpt_neox.embed_in.weight"
HEAD = "embed_out.weight"
IGNORED = (  # the causal mask, its value, and the rotary table, as old files store them
    r"gpt_neox\.layers\.\d+\.attention\.(bias|masked_bias|rotary_emb\.inv_freq)",
)

init = decoder.init


def config(hf: Mapping[str, Any]) -> DecoderConfig:
    """The decoder that a config.json of this family describes.

    Raises:
      ValueError: an attribute is missing, unknown, or has a value that is not implemented.
    """
    a = Attributes(hf)
    heads, width = a.take_number("num_attention_heads"), a.take_number("hidden_size")
    context = a.take_number("max_position_embeddings", 2048)
    rope = read_rope(a, 10_000.0, context, "rotary_emb_base", "rotary_pct", 0.25)
    a.only("rope_theta", rope.base)
    a.only("partial_rotary_factor", rope.partial)
    bias = a.take_flag("attention_bias", True)
    found = DecoderConfig(
        vocab_size=a.take_number("vocab_size"),
        layers=a.take_number("num_hidden_layers"),
        width=width,
        heads=heads,
        kv_heads=heads,
        head_width=width // heads,
        mlp_width=a.take_number("intermediate_size"),
        rope_base=rope.base,
        rope_scaling=rope.scaling,
        rotary_width=int(width // heads * rope.partial),
        norm_eps=a.take_number("layer_norm_eps", 1e-5),
        tied=a.take_flag("tie_word_embeddings", False),
        dtype=a.dtype(),
        norm="layer",
        activation=a.activation("hidden_act", "gelu"),
        gated=False,
        qkv_bias=bias,
        o_bias=bias,
        mlp_bias=True,
        parallel=a.take_flag("use_parallel_residual", True),
        context=context,
    )
    a.close(("GPTNeoXForCausalLM", "GPTNeoXModel"))
    return found


def rules(config: DecoderConfig) -> list[Rule]:
    """Parameters from tensors."""
    layer, N = "gpt_neox.layers.{layer}.", config.head_width
    attention = layer + "attention."
    table = [
        rule(EMBEDDING, "embedding"),
        rule(attention + "dense.weight", "layers/attention/o", from_heads(N)),
        Rule(
            attention + "query_key_value.weight",
            {f"layers/attention/{'qkv'[i]}": _kernel(i, N) for i in range(3)},
        ),
    ]
    if config.qkv_bias:
        biases = {f"layers/attention/{'qkv'[i]}_bias": _bias(i, N) for i in range(3)}
        table.append(Rule(attention + "query_key_value.bias", biases))
    if config.o_bias:
        table.append(rule(attention + "dense.bias", "layers/attention/o_bias"))
    for kind in ("weight", "bias"):
        table.append(rule(f"gpt_neox.final_layer_norm.{kind}", f"final_norm/{kind}"))
        table.append(rule(f"{layer}input_layernorm.{kind}", f"layers/attention_norm/{kind}"))
        table.append(rule(f"{layer}post_attention_layernorm.{kind}", f"layers/mlp_norm/{kind}"))
    for tensor, name in (("dense_h_to_4h", "up"), ("dense_4h_to_h", "down")):
        table.append(rule(f"{layer}mlp.{tensor}.weight", f"layers/{name}", transposed))
        table.append(rule(f"{layer}mlp.{tensor}.bias", f"layers/{name}_bias"))
    return table


def _kernel(which: int, width: int) -> Transform:
    """q, k or v of a (H*3*N, D) tensor whose rows are q0 k0 v0 q1 k1 v1 ...: (D, H, N)."""

    def pick(tensor: np.ndarray) -> np.ndarray:
        return tensor.reshape(-1, 3, width, tensor.shape[1])[:, which].transpose(2, 0, 1)

    return pick


def _bias(which: int, width: int) -> Transform:
    return lambda tensor: tensor.reshape(-1, 3, width)[:, which]
