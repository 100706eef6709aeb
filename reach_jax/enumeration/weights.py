"""Random weights that make a small decoder say many things: where the bound is best put to use.

Not trained weights: `pretrain.markov` makes those.
"""

import dataclasses
import math

import jax
import jax.numpy as jnp

from reach_jax.models import decoder
from reach_jax.models.config import DecoderConfig
from sweep_jax.checks import require

_NOT_KERNELS = ("embedding", "head", "positions", "weight", "bias")


@dataclasses.dataclass(frozen=True)
class RandomWeights:
    """How random weights are drawn: normal, standard deviation gain / sqrt(fan in)."""

    gain: float  # of the layers' kernels; the larger, the less alike are the states
    unit_head: bool  # rows of an untied head at norm 1: every token is then the argmax somewhere

    def __post_init__(self) -> None:
        ok = math.isfinite(self.gain) and self.gain > 0
        require(ok, "gain", self.gain, "a finite number > 0")


def draw(config: DecoderConfig, weights: RandomWeights, key: jax.Array) -> decoder.Params:
    """Parameters of `config`.

    Raises:
      ValueError: `unit_head` where the head is the embedding.
    """
    require(
        not (weights.unit_head and config.tied), "unit_head", True, "False where the head is tied"
    )

    def scaled(path: tuple, leaf: jax.Array) -> jax.Array:
        name = path[-1].key
        if name.endswith(_NOT_KERNELS):
            return leaf
        return leaf * jnp.asarray(weights.gain, leaf.dtype)

    params = jax.tree_util.tree_map_with_path(scaled, decoder.init(config, key))
    if weights.unit_head:
        head_VD = params["head"]
        params = params | {"head": head_VD / jnp.linalg.norm(head_VD, axis=1, keepdims=True)}
    return params
