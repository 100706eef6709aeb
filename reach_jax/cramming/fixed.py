"""A target of fixed length, all of it in the loss at once: what the published protocols share.

A lane's reach is the number of tokens that are right under teacher forcing, wherever they stand;
it has succeeded when all are. Rules only: `lane.step` applies them.
"""

import jax
import jax.numpy as jnp

from reach_jax.cramming.settings import CrammingConfig
from reach_jax.cramming.state import Lane, Task


def window(config: CrammingConfig, reached: jax.Array, task: Task) -> jax.Array:
    """Which targets the loss looks at, (N,): all."""
    return jnp.arange(task.target_N.shape[0]) < task.length


def reach(right_N: jax.Array) -> jax.Array:
    """How far an answer got: the number of its correct tokens."""
    return jnp.sum(right_N.astype(jnp.int32))


def span(config: CrammingConfig, lane: Lane, task: Task) -> jax.Array:
    """How many target tokens the lane's next step must see."""
    return task.length
