"""Reads a config.json attribute by attribute and refuses, by name, what nobody asked for.

A family takes every attribute that it handles; `close` then fails on any other that is not in the
short list below of things that change no output of a causal model at inference.
"""

from collections.abc import Mapping
from typing import Any

from sweep_jax.checks import require

_REQUIRED = object()

# Bookkeeping, generation defaults, special ids (the tokenizer's matter), training-only numbers.
_WITHOUT_EFFECT = frozenset(
    (
        "_name_or_path",
        "name_or_path",
        "transformers_version",
        "transformers.js_config",
        "_commit_hash",
        "use_cache",
        "cache_implementation",
        "bos_token_id",
        "eos_token_id",
        "pad_token_id",
        "sep_token_id",
        "decoder_start_token_id",
        "initializer_range",
        "attention_dropout",
        "hidden_dropout",
        "classifier_dropout",
        "id2label",
        "label2id",
        "num_labels",
        "problem_type",
        "finetuning_task",
        "task_specific_params",
        "output_hidden_states",
        "output_attentions",
        "output_scores",
        "return_dict",
        "return_dict_in_generate",
        "torchscript",
        "use_bfloat16",
        "gradient_checkpointing",
        "tf_legacy_loss",
        "unsloth_fixed",
        "unsloth_version",
    )
)
_ONLY: dict[
    str, tuple[Any, ...]
] = {  # attribute of every family -> the values that mean "a plain causal decoder"
    "is_encoder_decoder": (False,),
    "is_decoder": (False, True),  # transformers' causal classes mask either way
    "add_cross_attention": (False,),
    "cross_attention_hidden_size": (None,),
    "chunk_size_feed_forward": (0,),  # the same numbers in pieces
    "pruned_heads": ({}, None),
    "tie_encoder_decoder": (False,),
    "tie_last_hidden_states": (True, None),
    "quantization_config": (None,),
}


class Attributes:
    """The attributes of one config.json."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values, self._taken = dict(values), {"model_type", "architectures"}

    def take(self, name: str, default: Any = _REQUIRED) -> Any:
        """The value of `name`, from now on handled; `default` is what the file's absence means.

        Raises:
          ValueError: the file lacks an attribute that has no default.
        """
        self._taken.add(name)
        require(name in self._values or default is not _REQUIRED, f"config.{name}", None, "a value")
        return self._values.get(name, default)

    def take_number(self, name: str, default: Any = _REQUIRED) -> Any:
        """The same for a finite number (not a bool, not a string)."""
        value = self.take(name, default)
        ok = isinstance(value, int | float) and not isinstance(value, bool)
        require(ok and abs(value) < float("inf"), f"config.{name}", value, "a number")
        return value

    def take_flag(self, name: str, default: Any = _REQUIRED) -> bool:
        """The same for true or false."""
        value = self.take(name, default)
        require(isinstance(value, bool), f"config.{name}", value, "true or false")
        return value

    def only(self, name: str, *values: Any) -> None:
        """Takes `name`, which must be absent or have one of `values`: no other is implemented."""
        self._taken.add(name)
        if name in self._values:
            value = self._values[name]
            ok = any(value == v and isinstance(value, bool) == isinstance(v, bool) for v in values)
            require(ok, f"config.{name}", value, f"one of {list(values)}, all that is implemented")

    def activation(self, name: str, default: str) -> str:
        """The feed-forward's activation, by the name it has in `reach_jax.ops.mlp`."""
        value = self.take(name, default)
        require(value in _ACTIVATIONS, f"config.{name}", value, f"one of {sorted(_ACTIVATIONS)}")
        return _ACTIVATIONS[value]

    def layer_types(self, layers: int, otherwise: tuple[bool, ...]) -> tuple[bool, ...]:
        """Which layers see only a window: `layer_types` of the file, or else `otherwise`."""
        kinds = {"sliding_attention": True, "full_attention": False}
        value = self.take("layer_types", None)
        if value is None:
            return otherwise
        ok = isinstance(value, list) and len(value) == layers and all(v in kinds for v in value)
        require(ok, "config.layer_types", value, f"{layers} of {sorted(kinds)}")
        return tuple(kinds[v] for v in value)

    def dtype(self) -> str:
        """What the file says of its weights' dtype; float32 where it says nothing."""
        old, new = self.take("torch_dtype", None), self.take("dtype", None)
        return str(new or old or "float32").removeprefix("torch.")

    def close(self, architectures: tuple[str, ...]) -> None:
        """Refuses every attribute that was not taken and is not known to be without effect."""
        for name in self._values.get("architectures") or ():
            require(name in architectures, "config.architectures", name, f"one of {architectures}")
        for name, values in _ONLY.items():
            if name not in self._taken:
                self.only(name, *values)
        for name in sorted(set(self._values) - self._taken - _WITHOUT_EFFECT):
            require(False, f"config.{name}", self._values[name], "no such attribute: not handled")


_ACTIVATIONS = {
    "silu": "silu",
    "swish": "silu",
    "gelu": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_fast": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
}
