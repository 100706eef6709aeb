"""GGUF metadata to the fields of config.json, one function an architecture.

Not a reader of files. Every field of the architecture is taken up or refused by name; what the
metadata leave out, as Gemma's pattern of local layers, is a constant in llama.cpp too.
"""

from collections.abc import Collection, Mapping
from typing import Any

from sweep_jax.checks import require

_ABSENT = object()


class Fields:
    """The metadata of one architecture. Every field must be taken, or `finish` refuses it."""

    def __init__(self, metadata: Mapping[str, Any], architecture: str) -> None:
        self.metadata, self.prefix = metadata, architecture + "."
        self._left = {key for key in metadata if key.startswith(self.prefix)}

    def take(self, key: str, default: Any = _ABSENT) -> Any:
        """The value of `<architecture>.key`; ValueError if it is absent and has no default."""
        name = self.prefix + key
        self._left.discard(name)
        value = self.metadata.get(name, default)
        require(value is not _ABSENT, name, None, "a value in the GGUF metadata")
        return value

    def expect(self, key: str, only: Any) -> None:
        """Refuses any value of the field but `only`; an absent field is `only`."""
        value = self.take(key, only)
        require(value == only, self.prefix + key, value, f"{only!r}, or no such field")

    def finish(self) -> None:
        """Raises ValueError if the file says anything that no configuration here takes up."""
        require(not self._left, "GGUF metadata", sorted(self._left), "only fields known here")


def _common(fields: Fields) -> dict[str, Any]:
    heads = fields.take("attention.head_count")
    kv_heads = fields.take("attention.head_count_kv", heads)
    for key, value in (("head_count", heads), ("head_count_kv", kv_heads)):
        require(isinstance(value, int), f"attention.{key}", value, "one number for all layers")
    width = fields.take("embedding_length")
    head_dim = fields.take("attention.key_length", width // heads)
    fields.expect("attention.value_length", head_dim)
    fields.expect("rope.dimension_count", head_dim)
    return {
        "hidden_size": width,
        "intermediate_size": fields.take("feed_forward_length"),
        "num_hidden_layers": fields.take("block_count"),
        "num_attention_heads": heads,
        "num_key_value_heads": kv_heads,
        "head_dim": head_dim,
        "max_position_embeddings": fields.take("context_length"),
        "rms_norm_eps": fields.take("attention.layer_norm_rms_epsilon"),
        "rope_theta": fields.take("rope.freq_base", 10000.0),
        "rope_scaling": _scaling(fields),
    }


def _scaling(fields: Fields) -> dict[str, Any] | None:
    kind = fields.take("rope.scaling.type", "none")
    expected = "none or linear (the llama3 kind is in rope_freqs.weight)"
    require(kind in ("none", "linear"), "rope.scaling.type", kind, expected)
    factor = fields.take("rope.scaling.factor", 1.0)
    fields.take("rope.scaling.original_context_length", None)  # says nothing to these two
    fields.take("rope.scaling.finetuned", None)
    return {"rope_type": "linear", "factor": factor} if kind == "linear" else None


def _biases(tensors: Collection[str], names: tuple[str, ...]) -> bool:
    """Whether layer 0 has these biases: all of them or none, as one flag says in config.json."""
    there = [f"blk.0.{name}.bias" in tensors for name in names]
    require(len(set(there)) == 1, f"biases of {names}", there, "all or none")
    return there[0]


def llama(fields: Fields, tensors: Collection[str]) -> dict[str, Any]:
    """LlamaForCausalLM, but for the llama3 rope scaling, which is in a tensor."""
    config = _common(fields)
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        **config,
        "hidden_act": "silu",
        "attention_bias": _biases(tensors, ("attn_q", "attn_k", "attn_v", "attn_output")),
        "mlp_bias": _biases(tensors, ("ffn_gate", "ffn_up", "ffn_down")),
    }


def qwen2(fields: Fields, tensors: Collection[str]) -> dict[str, Any]:
    """Qwen2ForCausalLM, which always has q, k and v biases."""
    config = _common(fields)
    head_dim = config.pop("head_dim")  # Qwen2 has no such field
    whole = config["hidden_size"] // config["num_attention_heads"]
    require(head_dim == whole, "qwen2.attention.key_length", head_dim, f"{whole}, width / heads")
    require(_biases(tensors, ("attn_q", "attn_k", "attn_v")), "q, k, v biases", None, "tensors")
    return {
        "architectures": ["Qwen2ForCausalLM"],
        "model_type": "qwen2",
        **config,
        "hidden_act": "silu",
        "use_sliding_window": False,
    }


def gemma3(fields: Fields, tensors: Collection[str]) -> dict[str, Any]:
    """Gemma3ForCausalLM, the text model."""
    config = _common(fields)
    layers = config["num_hidden_layers"]
    scalar = config["head_dim"]
    if layers == 62:  # the 27B model, the one that scales its queries otherwise
        scalar = config["hidden_size"] // config["num_attention_heads"]
    kinds = ["full_attention" if (i + 1) % 6 == 0 else "sliding_attention" for i in range(layers)]
    fields.expect("attention.sliding_window_pattern", 6)
    return {
        "architectures": ["Gemma3ForCausalLM"],
        "model_type": "gemma3_text",
        **config,
        "rope_local_base_freq": fields.take("rope.freq_base_swa", 10000.0),
        "sliding_window": fields.take("attention.sliding_window"),
        "layer_types": kinds,
        "query_pre_attn_scalar": scalar,
        "hidden_activation": "gelu_pytorch_tanh",
        "attention_bias": False,
        "attn_logit_softcapping": None,
        "final_logit_softcapping": fields.take("final_logit_softcapping", None),
        "use_bidirectional_attention": False,
    }


def gpt2(fields: Fields, tensors: Collection[str]) -> dict[str, Any]:
    """GPT2LMHeadModel, whose activation is always the tanh approximation."""
    context = fields.take("context_length")
    return {
        "architectures": ["GPT2LMHeadModel"],
        "model_type": "gpt2",
        "n_embd": fields.take("embedding_length"),
        "n_inner": fields.take("feed_forward_length"),
        "n_layer": fields.take("block_count"),
        "n_head": fields.take("attention.head_count"),
        "n_positions": context,
        "layer_norm_epsilon": fields.take("attention.layer_norm_epsilon"),
        "activation_function": "gelu_new",
    }
