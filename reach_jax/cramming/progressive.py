"""The progressive protocol: a target that grows by itself as its prefix comes right.

A lane's reach is the longest correct prefix. The loss sees the tokens up to `lookahead` past it.
Rules only: `lane.step` applies them.
"""

import jax
import jax.numpy as jnp

from reach_jax.cramming.settings import CrammingConfig
from reach_jax.cramming.state import Lane, Task


def window(config: CrammingConfig, reached: jax.Array, task: Task) -> jax.Array:
    """Which targets the loss looks at, (N,)."""
    index_N = jnp.arange(task.target_N.shape[0])
    return index_N < jnp.minimum(reached + config.lookahead, task.length)


def reach(right_N: jax.Array) -> jax.Array:
    """How far an answer got: the length of its correct prefix."""
    return jnp.sum(jnp.cumprod(right_N.astype(jnp.int32)))


def span(config: CrammingConfig, lane: Lane, task: Task) -> jax.Array:
    """How many target tokens the lane's next step must see: its bucket must hold as many."""
    return jnp.minimum(jnp.maximum(lane.reached + config.lookahead, lane.need), task.length)
