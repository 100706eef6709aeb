"""A model made ready to be crammed: what stands before a prompt, and how large its inputs are.

All numbers are of input vectors as the model receives them, so a family's embedding scale is in
them, and of real tokens, so the padding of a table is not.
"""

import jax
import jax.numpy as jnp

from reach_jax.cramming.settings import CrammingConfig
from reach_jax.cramming.state import Frozen, Limits, Rounded
from reach_jax.models import kinds
from reach_jax.models.config import Params
from sweep_jax.checks import require


def freeze(
    model: kinds.Config,
    params: Params,
    config: CrammingConfig,
    prefix_id: int | None,
    tokens: int,
) -> Frozen:
    """The model as a lane sees it.

    Args:
      model: the model's description.
      params: its parameters.
      config: names the prefix and the support.
      prefix_id: the token that `prefix="begin"` puts before the prompt: begin, else end of text.
      tokens: V without the table's padding.

    Raises:
      ValueError: a begin token is asked for and the model has none, or an input vector is not
        finite.
    """
    begins = config.prefix == "begin"
    expected = "none, for a model without a begin or end-of-text token"
    require(not begins or prefix_id is not None, "config.cramming.prefix", config.prefix, expected)

    def embed(ids_T: jax.Array) -> jax.Array:
        return kinds.module(model).apply({"params": params}, ids_T, method="embed")

    inputs_VD = embed(jnp.arange(tokens)).astype(jnp.float32)
    # One such row would be in every lane's unit, and no cell could say what broke it.
    bad_V = ~jnp.isfinite(inputs_VD).all(axis=-1)
    broken, first = int(bad_V.sum()), int(jnp.argmax(bad_V))
    expected = f"finite numbers; token {first} is the first without"
    require(broken == 0, "tokens with an input vector that is not finite", broken, expected)
    limits = None
    if config.support != "free":
        radius = jnp.sqrt(jnp.max(jnp.sum(jnp.square(inputs_VD), axis=-1)))
        limits = Limits(radius, inputs_VD.min(axis=0), inputs_VD.max(axis=0))
    prefix_D = embed(jnp.array([prefix_id]))[0] if begins else None
    rounded = rounding(model, params) if config.products == "bfloat16" else None
    return Frozen(params, prefix_D, jnp.std(inputs_VD), limits, jnp.int32(tokens), rounded)


def rounding(model: kinds.Config, params: Params) -> Rounded:
    """The model's matrices in bfloat16: a second copy, half the size of a float32 model."""

    def narrow(path: tuple, weight: jax.Array) -> jax.Array:
        is_matrix = path[-1].key in kinds.MATRICES
        return weight.astype(jnp.bfloat16) if is_matrix else weight

    head_VD = kinds.module(model).apply({"params": params}, method="head")
    narrowed = jax.tree_util.tree_map_with_path(narrow, params)
    return Rounded(narrowed, head_VD.astype(jnp.bfloat16))
