"""How llama.cpp renames and rearranges each architecture: GGUF tensor -> Hugging Face tensor.

Not a reader of files, and no weights are touched here. The facts are those of llama.cpp's
converter: Llama's q and k rows are reordered head by head (k by its own number of heads), Qwen2's
and Gemma's are not; Gemma's norms are stored as 1 + weight; GPT-2's matrices are transposed.
"""

from collections.abc import Callable, Collection
from typing import Any, NamedTuple

from reach_jax.hub import gguf_configs
from sweep_jax.checks import require

# From the metadata and the tensors' names: config.json without vocabulary and tying.
Config = Callable[[gguf_configs.Fields, Collection[str]], dict[str, Any]]


class Model(NamedTuple):
    """An architecture of llama.cpp: its configuration and its tensors."""

    config: Config
    outside: dict[str, str]  # tensors outside the layers, GGUF -> Hugging Face
    layer: dict[str, str]  # what follows "blk.<i>." -> what follows the layer's name
    layer_name: str  # with {} for i
    permuted: tuple[str, ...] = ()  # GGUF names whose rows llama.cpp reorders
    transposed: tuple[str, ...] = ()
    norms_plus_one: bool = False

    def name(self, tensor: str) -> str:
        """The Hugging Face name of a tensor of a GGUF file; ValueError if it has none."""
        if tensor in self.outside:
            return self.outside[tensor]
        parts = tensor.split(".", 2)
        known = len(parts) == 3 and parts[0] == "blk" and parts[1].isdigit()
        require(known and parts[2] in self.layer, "GGUF tensor", tensor, "a name known here")
        return self.layer_name.format(int(parts[1])) + "." + self.layer[parts[2]]


def find(architecture: object) -> Model:
    """The table of an architecture; ValueError names the ones that there are."""
    require(architecture in MODELS, "general.architecture", architecture, f"one of {list(MODELS)}")
    return MODELS[str(architecture)]


def _pairs(names: dict[str, str], suffixes: tuple[str, ...]) -> dict[str, str]:
    return {f"{a}.{s}": f"{b}.{s}" for a, b in names.items() for s in suffixes}


_OUTSIDE = {
    "token_embd.weight": "model.embed_tokens.weight",
    "output_norm.weight": "model.norm.weight",
    "output.weight": "lm_head.weight",
}
_PROJECTIONS = {
    **{f"attn_{x}": f"self_attn.{x}_proj" for x in "qkv"},
    "attn_output": "self_attn.o_proj",
    **{f"ffn_{x}": f"mlp.{x}_proj" for x in ("gate", "up", "down")},
}
_LLAMA_LAYER = {
    "attn_norm.weight": "input_layernorm.weight",
    "ffn_norm.weight": "post_attention_layernorm.weight",
    **_pairs(_PROJECTIONS, ("weight", "bias")),
}
_GEMMA_LAYER = {
    "attn_norm.weight": "input_layernorm.weight",
    "post_attention_norm.weight": "post_attention_layernorm.weight",
    "ffn_norm.weight": "pre_feedforward_layernorm.weight",
    "post_ffw_norm.weight": "post_feedforward_layernorm.weight",
    "attn_q_norm.weight": "self_attn.q_norm.weight",
    "attn_k_norm.weight": "self_attn.k_norm.weight",
    **_pairs(_PROJECTIONS, ("weight",)),
}
_GPT2_LAYER = _pairs(
    {
        "attn_norm": "ln_1",
        "ffn_norm": "ln_2",
        "attn_qkv": "attn.c_attn",
        "attn_output": "attn.c_proj",
        "ffn_up": "mlp.c_fc",
        "ffn_down": "mlp.c_proj",
    },
    ("weight", "bias"),
)
_GPT2_OUTSIDE = {
    "token_embd.weight": "transformer.wte.weight",
    "position_embd.weight": "transformer.wpe.weight",
    **_pairs({"output_norm": "transformer.ln_f"}, ("weight", "bias")),
    "output.weight": "lm_head.weight",
}
_PERMUTED = ("attn_q.weight", "attn_q.bias", "attn_k.weight", "attn_k.bias")
_TRANSPOSED = ("attn_qkv.weight", "attn_output.weight", "ffn_up.weight", "ffn_down.weight")

_HF_LAYER, _GPT2_LAYER_NAME = "model.layers.{}", "transformer.h.{}"

MODELS = {
    "llama": Model(gguf_configs.llama, _OUTSIDE, _LLAMA_LAYER, _HF_LAYER, permuted=_PERMUTED),
    "qwen2": Model(gguf_configs.qwen2, _OUTSIDE, _LLAMA_LAYER, _HF_LAYER),
    "gemma3": Model(gguf_configs.gemma3, _OUTSIDE, _GEMMA_LAYER, _HF_LAYER, norms_plus_one=True),
    "gpt2": Model(
        gguf_configs.gpt2, _GPT2_OUTSIDE, _GPT2_LAYER, _GPT2_LAYER_NAME, transposed=_TRANSPOSED
    ),
}
