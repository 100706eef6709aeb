"""What a prompt is moved down: one number from the scores of the tokens in the window."""

import jax
import jax.numpy as jnp

from reach_jax.cramming.settings import CrammingConfig
from reach_jax.ops.readout import Scores


def loss(
    config: CrammingConfig, scores: Scores, in_window_N: jax.Array, right_N: jax.Array
) -> jax.Array:
    """Mean over the window of the objective's term, the first wrong token counted 1 + focus times.

    `cross_entropy`: `-log softmax(logits / temperature)[target]`, nats.
    `margin`: `softplus((margin - g) / temperature)` with g the target's logit minus the best other:
    zero pull on tokens that lead by much more than `margin`, and only the best rival is pushed.

    Args:
      config: names the objective.
      scores: of all N targets, their `nll` at the config's temperature.
      in_window_N: which of them count; at least one.
      right_N: which come out right.
    """
    if config.objective == "margin":
        terms_N = jax.nn.softplus((config.margin - scores.margin) / config.temperature)
    else:
        terms_N = scores.nll
    if config.focus == 0:
        return jnp.mean(terms_N, where=in_window_N)
    wrong_N = in_window_N & ~right_N
    first_N = wrong_N & (jnp.cumsum(wrong_N) == 1)
    weights_N = jnp.where(in_window_N, 1 + config.focus * first_N.astype(jnp.float32), 0.0)
    return jnp.sum(weights_N * jnp.where(in_window_N, terms_N, 0.0)) / jnp.sum(weights_N)
