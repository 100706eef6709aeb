"""What one step of cramming costs, in work and memory, without running it."""

import dataclasses
import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from reach_jax.cramming import lane
from reach_jax.cramming.freeze import rounding
from reach_jax.cramming.settings import CrammingConfig
from reach_jax.cramming.state import Frozen, Lane, Limits, Task
from reach_jax.models.kinds import Config


class Memory(NamedTuple):
    """Bytes of a compiled step, by the compiler's account."""

    arguments: int  # parameters, prompts, optimiser state and targets
    temporary: int  # what it needs beyond them while it runs


def step_flops(model: Config, slots: int, bucket: int) -> int:
    """Matrix FLOPs of one lane's step: forward, and back to the prompt but to no weight.

    Twice the forward for the layers' matrices and three times for what has no weights, as
    attention; the readout runs forward twice, as the backward pass computes its logits again.
    Counted from the shapes: a compiler counts the body of the scan over layers only once.

    Args:
      model: the model's description.
      slots: padded prompt length M.
      bucket: padded target length N.
    """
    T = slots + bucket
    readout = 2 * model.width * model.vocab_size
    return T * (2 * model.flops_per_token + 3 * model.mixing_flops(T)) + bucket * 3 * readout


def step_memory(
    model: Config,
    config: CrammingConfig,
    params: Any,
    slots: int,
    bucket: int,
    lanes: int,
) -> Memory | None:
    """Memory of one step of `lanes` lanes: compiled for this backend, never run.

    Args:
      model: the model's description.
      config: the protocol.
      params: parameters, or their shapes.
      slots: padded prompt length M.
      bucket: padded target length N.
      lanes: B.

    Returns:
      None where the backend tells nothing.
    """
    config = dataclasses.replace(config, max_target=bucket)
    shape = jax.ShapeDtypeStruct
    prefix: Any = shape((model.width,), jnp.dtype(model.dtype))
    scale: Any = shape((), jnp.float32)
    bound: Any = shape((model.width,), jnp.float32)
    limits = None if config.support == "free" else Limits(scale, bound, bound)
    rounded = None
    if config.products == "bfloat16":
        rounded = jax.eval_shape(functools.partial(rounding, model), params)
    frozen = Frozen(jax.eval_shape(lambda: params), prefix, scale, limits, rounded=rounded)

    def start(frozen: Frozen, _: jax.Array, task: Task) -> Lane:
        return lane.start(model, config, frozen, jax.random.key(0), task, slots)

    each: Any = shape((lanes,), jnp.int32)
    targets: Any = shape((lanes, bucket), jnp.int32)
    tasks_B = Task(targets, each, each)
    lanes_B = jax.eval_shape(jax.vmap(start, in_axes=(None, 0, 0)), frozen, each, tasks_B)
    one = functools.partial(lane.step, model, config)
    step = jax.jit(jax.vmap(one, in_axes=(None, 0, 0)))
    found: Any = step.lower(frozen, lanes_B, tasks_B).compile().memory_analysis()
    if found is None:
        return None
    return Memory(found.argument_size_in_bytes, found.temp_size_in_bytes)
