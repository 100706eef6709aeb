"""Mamba, version 1, as `transformers` keeps it: the state-spaces/mamba-*-hf checkpoints.

Not the authors' own layout (config.json with `d_model` alone), not Falcon-Mamba, not Mamba-2. The
published vocabularies are padded: 50280 rows for 50277 tokens, and the spare ids are as
reachable as any other.
"""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from reach_jax.hub.reader import Attributes
from reach_jax.hub.rules import Rule, Transform, rule, transposed
from reach_jax.models import mamba
from reach_jax.models.config import MambaConfig
from sweep_jax.checks import require

MODEL_TYPES = ("mamba",)
DTYPES = ("float32", "bfloat16", "float16")  # states and time steps are float32 in any
PREFIX = "backbone."
EMBEDDING = "backbone.embeddings.weight"
HEAD = "lm_head.weight"
IGNORED = ()

init = mamba.init


def config(hf: Mapping[str, Any]) -> MambaConfig:
    """The model that a config.json of this family describes.

    Raises:
      ValueError: an attribute is missing, unknown, or has a value that is not implemented.
    """
    a = Attributes(hf)
    width, layers = a.take_number("hidden_size"), a.take_number("num_hidden_layers")
    expand = a.take_number("expand", 2)  # the file's own `intermediate_size` comes first
    inner = a.take_number("intermediate_size", int(expand * width))
    rank = a.take("time_step_rank", "auto")
    whole = isinstance(rank, int) and not isinstance(rank, bool)
    require(rank == "auto" or whole, "config.time_step_rank", rank, "'auto' or an integer")
    found = MambaConfig(
        vocab_size=a.take_number("vocab_size"),
        layers=layers,
        width=width,
        inner=inner,
        state_size=a.take_number("state_size", 16),
        conv_width=a.take_number("conv_kernel", 4),
        step_rank=math.ceil(width / 16) if rank == "auto" else rank,
        norm_eps=a.take_number("layer_norm_epsilon", 1e-5),
        tied=a.take_flag("tie_word_embeddings", True),
        dtype=a.dtype(),
        conv_bias=a.take_flag("use_conv_bias", True),
        projection_bias=a.take_flag("use_bias", False),
        float32_residual=a.take_flag("residual_in_fp32", True),
    )
    # Any other is ambiguous: the gate followed it in older versions of the class and is silu now.
    a.only("hidden_act", "silu", "swish")
    for name in ("scale", "min", "max", "init_scheme", "floor"):
        a.take(f"time_step_{name}", None)  # of fresh weights
    a.take("rescale_prenorm_residual", False)  # of fresh weights too
    for name in ("use_mambapy", "use_associative_scan", "fused_add_norm"):
        a.take(name, None)  # the same numbers by another routine
    a.take("pad_vocab_size_multiple", None)  # `vocab_size` is the padded one
    for name, value in (("d_model", width), ("d_inner", inner), ("n_layer", layers)):
        a.only(name, value)  # the authors' names beside the others
    a.only("rms_norm", True)
    a.only("ssm_cfg", {})
    a.close(("MambaForCausalLM", "MambaModel"))
    return found


def rules(config: MambaConfig) -> list[Rule]:
    """Parameters from tensors."""
    layer = "backbone.layers.{layer}."
    mixer = layer + "mixer."
    table = [
        rule(EMBEDDING, "embedding"),
        rule("backbone.norm_f.weight", "final_norm"),
        rule(layer + "norm.weight", "layers/norm"),
        Rule(mixer + "in_proj.weight", {"layers/up": _kernel(0), "layers/gate": _kernel(1)}),
        rule(mixer + "conv1d.weight", "layers/conv", _taps),
        rule(mixer + "x_proj.weight", "layers/select", transposed),
        rule(mixer + "dt_proj.weight", "layers/dt", transposed),
        rule(mixer + "dt_proj.bias", "layers/dt_bias"),
        rule(mixer + "A_log", "layers/a_log"),
        rule(mixer + "D", "layers/d"),
        rule(mixer + "out_proj.weight", "layers/down", transposed),
    ]
    if config.conv_bias:
        table.append(rule(mixer + "conv1d.bias", "layers/conv_bias"))
    if config.projection_bias:
        biases = {"layers/up_bias": _bias(0), "layers/gate_bias": _bias(1)}
        table.append(Rule(mixer + "in_proj.bias", biases))
        table.append(rule(mixer + "out_proj.bias", "layers/down_bias"))
    return table


def _kernel(which: int) -> Transform:
    """The channels or their gates, (D, I), of a (2*I, D) tensor with the channels first."""
    return lambda tensor: tensor.reshape(2, -1, tensor.shape[1])[which].T


def _bias(which: int) -> Transform:
    return lambda tensor: tensor.reshape(2, -1)[which]


def _taps(tensor: np.ndarray) -> np.ndarray:
    """(I, 1, W), as a grouped Conv1d keeps it, to (W, I)."""
    return np.squeeze(tensor, 1).T
