"""Small models whose every parameter is noise, norm weights too: nothing is 1 or 0 by luck."""

import jax
import jax.numpy as jnp
import numpy as np

from reach_jax.models import kinds
from reach_jax.models.config import DecoderConfig, MambaConfig, Params

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
MAMBA = MambaConfig(
    vocab_size=13,
    layers=2,
    width=16,
    inner=20,
    state_size=5,
    conv_width=4,
    step_rank=3,
    norm_eps=1e-2,
    tied=False,
    dtype="float32",
    projection_bias=True,
)


def make_params(config: kinds.Config, seed: int = 0) -> Params:
    """Parameters ~ N(0, 1): norm weights and embeddings as they are, kernels over sqrt(fan in)."""
    shapes = jax.eval_shape(lambda: kinds.init(config, jax.random.key(0)))
    rng = np.random.default_rng(seed)
    fan_in = dict.fromkeys(("q", "k", "v", "gate", "up", "head"), config.width)
    if isinstance(config, MambaConfig):
        fan_in |= {"down": config.inner, "select": config.inner, "dt": config.step_rank}
    else:
        fan_in |= {"down": config.mlp_width, "o": config.heads * config.head_width}

    def fill(path, leaf):
        scale = fan_in.get(path[-1].key, 1) ** -0.5
        return jnp.asarray(scale * rng.standard_normal(leaf.shape), leaf.dtype)

    return jax.tree_util.tree_map_with_path(fill, shapes)
