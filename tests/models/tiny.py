"""Small decoders whose every parameter is noise, norm weights too: nothing is 1 or 0 by luck."""

import jax
import jax.numpy as jnp
import numpy as np

from reach_jax.models import decoder
from reach_jax.models.config import DecoderConfig

CONFIG = DecoderConfig(
    vocab_size=13,
    layers=2,
    width=16,
    heads=6,
    kv_heads=2,
    head_width=6,
    mlp_width=20,
    rope_base=100.0,
    norm_eps=1e-2,
    tied=False,
    dtype="float32",
)


def make_params(config: DecoderConfig, seed: int = 0) -> decoder.Params:
    """Parameters ~ N(0, 1): norm weights and embeddings as they are, kernels over sqrt(fan in)."""
    shapes = jax.eval_shape(lambda: decoder.init(config, jax.random.key(0)))
    rng = np.random.default_rng(seed)
    fan_in = {"q": config.width, "k": config.width, "v": config.width, "gate": config.width}
    fan_in |= {"up": config.width, "down": config.mlp_width, "head": config.width}
    fan_in |= {"o": config.heads * config.head_width}

    def fill(path, leaf):
        scale = fan_in.get(path[-1].key, 1) ** -0.5
        return jnp.asarray(scale * rng.standard_normal(leaf.shape), leaf.dtype)

    return jax.tree_util.tree_map_with_path(fill, shapes)
