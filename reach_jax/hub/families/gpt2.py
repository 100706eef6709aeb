"""GPT-2: learned positions, layer norms, plain feed-forward, matrices stored as (in, out)."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from reach_jax.hub.reader import Attributes
from reach_jax.hub.rules import Rule, Transform, rule
from reach_jax.models import decoder
from reach_jax.models.config import DecoderConfig

MODEL_TYPES = ("gpt2",)
DTYPES = ("float32", "bfloat16", "float16")
PREFIX = "transformer."
EMBEDDING = "transformer.wte.weight"
HEAD = "lm_head.weight"
IGNORED = (r"transformer\.h\.\d+\.attn\.(bias|masked_bias)",)  # the causal mask and its value

init = decoder.init


def config(hf: Mapping[str, Any]) -> DecoderConfig:
    """The decoder that a config.json of this family describes.

    Raises:
      ValueError: an attribute is missing, unknown, or has a value that is not implemented.
    """
    a = Attributes(hf)
    heads, width = a.take_number("n_head"), a.take_number("n_embd")
    context = a.take_number("n_positions", 1024)
    found = DecoderConfig(
        vocab_size=a.take_number("vocab_size"),
        layers=a.take_number("n_layer"),
        width=width,
        heads=heads,
        kv_heads=heads,
        head_width=width // heads,
        mlp_width=a.take("n_inner", None) or 4 * width,
        rope_base=1.0,  # nothing turns
        rotary_width=0,
        norm_eps=a.take_number("layer_norm_epsilon", 1e-5),
        tied=a.take_flag("tie_word_embeddings", True),
        dtype=a.dtype(),
        norm="layer",
        activation=a.activation("activation_function", "gelu_new"),
        gated=False,
        qkv_bias=True,
        o_bias=True,
        mlp_bias=True,
        learned_positions=True,
        context=context,
        score_scale=None if a.take_flag("scale_attn_weights", True) else 1.0,
    )
    a.only("n_ctx", context)
    a.only("scale_attn_by_inverse_layer_idx", False)
    a.take("reorder_and_upcast_attn", False)  # scores are float32 here either way
    for name in ("resid_pdrop", "embd_pdrop", "attn_pdrop", "summary_first_dropout"):
        a.take(name, 0.0)  # training only
    for name in ("type", "use_proj", "activation", "proj_to_labels"):
        a.take(f"summary_{name}", None)  # of a classifier's head
    a.close(("GPT2LMHeadModel", "GPT2Model"))
    return found


def rules(config: DecoderConfig) -> list[Rule]:
    """Parameters from tensors."""
    layer, N = "transformer.h.{layer}.", config.head_width
    attention = layer + "attn."
    table = [
        rule(EMBEDDING, "embedding"),
        rule("transformer.wpe.weight", "positions"),
        Rule(
            attention + "c_attn.weight",
            {f"layers/attention/{'qkv'[i]}": _kernel(i, N) for i in range(3)},
        ),
        Rule(
            attention + "c_attn.bias",
            {f"layers/attention/{'qkv'[i]}_bias": _bias(i, N) for i in range(3)},
        ),
        rule(attention + "c_proj.weight", "layers/attention/o", _rows_to_heads(N)),
        rule(attention + "c_proj.bias", "layers/attention/o_bias"),
    ]
    for tensor, name in (("c_fc", "up"), ("c_proj", "down")):
        table.append(rule(f"{layer}mlp.{tensor}.weight", f"layers/{name}"))
        table.append(rule(f"{layer}mlp.{tensor}.bias", f"layers/{name}_bias"))
    for kind in ("weight", "bias"):
        table.append(rule(f"transformer.ln_f.{kind}", f"final_norm/{kind}"))
        table.append(rule(f"{layer}ln_1.{kind}", f"layers/attention_norm/{kind}"))
        table.append(rule(f"{layer}ln_2.{kind}", f"layers/mlp_norm/{kind}"))
    return table


def _kernel(which: int, width: int) -> Transform:
    """q, k or v of a (D, 3*H*N) tensor whose columns are all of q, all of k, all of v."""

    def pick(tensor: np.ndarray) -> np.ndarray:
        return tensor.reshape(tensor.shape[0], 3, -1, width)[:, which]

    return pick


def _bias(which: int, width: int) -> Transform:
    return lambda tensor: tensor.reshape(3, -1, width)[which]


def _rows_to_heads(width: int) -> Transform:
    """(H*N, D) to (H, N, D): already (in, out)."""
    return lambda tensor: tensor.reshape(-1, width, tensor.shape[1])
