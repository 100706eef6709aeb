"""The progressive protocol for one lane: a target that grows by itself as its prefix comes right.

One step looks at the frozen model's answer to the current prompt, takes note of the longest
correct prefix so far, and moves the prompt to improve the tokens up to `lookahead` past it. All
functions are for one lane; `program.py` runs many of them under `vmap`. A finished lane is frozen:
further steps change nothing in it.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax

from reach_jax.cramming import layout
from reach_jax.cramming.settings import CrammingConfig
from reach_jax.models import kinds
from reach_jax.models.config import Params
from reach_jax.ops import optimizers, readout

RUNNING, STALLED, AT_END, OUT_OF_STEPS, FAILED = range(5)  # phases of a lane
REASONS = ("running", "patience", "target_end", "max_steps", "not_finite")


class Frozen(NamedTuple):
    """The model that the prompts are for; never changed."""

    params: Params
    prefix_D: jax.Array | None  # embedding of the token before the prompt
    scale: jax.Array  # standard deviation of the input embeddings, the unit of `rate`


class Lane(NamedTuple):
    """All that changes in a lane. Lengths in tokens, times in steps."""

    prompt_MD: jax.Array
    opt: optax.OptState
    best_MD: jax.Array  # the prompt that emitted the longest correct prefix
    reached: jax.Array  # that prefix's length
    grew_at: jax.Array  # the step it was found at
    step: jax.Array
    phase: jax.Array
    need: jax.Array  # target tokens that the next answer must be judged on


class Task(NamedTuple):
    """What a lane works on; constant."""

    target_N: jax.Array  # padded beyond `length`
    length: jax.Array
    used: jax.Array  # prompt vectors in use


def optimizer(config: CrammingConfig) -> optax.GradientTransformation:
    """Adam in units of the embeddings' standard deviation (the lane scales its updates by it)."""
    return optimizers.relaxed(optax.adam(config.rate, b1=config.b1, b2=config.b2))


def start(config: CrammingConfig, key: jax.Array, slots: int, width: int, scale: float) -> Lane:
    """A lane before its first step: prompt rows ~ N(0, scale^2), one key a row from the end."""
    rows = [
        jax.random.normal(jax.random.fold_in(key, slots - 1 - row), (width,), jnp.float32)
        for row in range(slots)
    ]
    prompt_MD = scale * jnp.stack(rows)
    zero = jnp.int32(0)
    opt = optimizer(config).init(prompt_MD)
    return Lane(prompt_MD, opt, prompt_MD, zero, zero, zero, jnp.int32(RUNNING), zero)


def span(config: CrammingConfig, lane: Lane, task: Task) -> jax.Array:
    """How many target tokens the lane's next step must see: its bucket must hold as many."""
    return jnp.minimum(jnp.maximum(lane.reached + config.lookahead, lane.need), task.length)


def loss_and_prefix(
    model: kinds.Config,
    config: CrammingConfig,
    frozen: Frozen,
    prompt_MD: jax.Array,
    reached: jax.Array,
    task: Task,
) -> tuple[jax.Array, jax.Array]:
    """Mean cross entropy in the window, and the length of the correct prefix under argmax.

    The first target is predicted from the last prompt vector. A token counts as correct when it is
    the argmax, the lowest id among exact ties: the rule of `verify.greedy_decode`.
    """
    apply = kinds.module(model).apply
    variables = {"params": frozen.params}
    N = task.target_N.shape[0]
    target_ND = apply(variables, task.target_N, method="embed")
    parts = layout.arrange(prompt_MD, task.used, frozen.prefix_D, target_ND)
    hidden_TD = apply(variables, *parts, method="hidden")
    head_VD = apply(variables, method="head")
    scores = readout.score(hidden_TD[-N:], head_VD, task.target_N, temperature=config.temperature)
    index_N = jnp.arange(N)
    in_window_N = index_N < jnp.minimum(reached + config.lookahead, task.length)
    loss = jnp.mean(scores.nll, where=in_window_N)
    right_N = scores.correct & (index_N < task.length)
    return loss, jnp.sum(jnp.cumprod(right_N.astype(jnp.int32)))


def step(
    model: kinds.Config,
    config: CrammingConfig,
    frozen: Frozen,
    lane: Lane,
    task: Task,
) -> Lane:
    """One step of a running lane whose span fits `task.target_N`; any other lane stands still.

    An answer that is right to the end of a target cut short is not judged here: the lane asks for
    more tokens and stands still, so that no result depends on where its target was cut. `step`
    counts the answers judged. A loss or gradient that is not finite ends the lane as FAILED, with
    the prompt of its best prefix kept.
    """
    grad_fn = jax.value_and_grad(loss_and_prefix, argnums=3, has_aux=True)
    (loss, prefix), grad_MD = grad_fn(model, config, frozen, lane.prompt_MD, lane.reached, task)
    finite = jnp.isfinite(loss) & jnp.all(jnp.isfinite(grad_MD))
    grew = finite & (prefix > lane.reached)
    reached = jnp.where(grew, prefix, lane.reached)
    grew_at = jnp.where(grew, lane.step, lane.grew_at)
    best_MD = jnp.where(grew, lane.prompt_MD, lane.best_MD)
    updates_MD, opt = optimizer(config).update(grad_MD, lane.opt)
    phase = jnp.int32(RUNNING)
    phase = jnp.where(lane.step + 1 >= config.steps, OUT_OF_STEPS, phase)
    phase = jnp.where(lane.step - grew_at >= config.patience, STALLED, phase)
    phase = jnp.where(reached >= task.length, AT_END, phase)
    phase = jnp.where(finite, phase, FAILED)
    prompt_MD = lane.prompt_MD + frozen.scale * updates_MD
    moved = Lane(prompt_MD, opt, best_MD, reached, grew_at, lane.step + 1, phase, lane.need)
    N = task.target_N.shape[0]
    cut_short = (prefix == N) & (task.length > N)
    lane_or_ask = lane._replace(need=jnp.where(cut_short, jnp.int32(N + 1), lane.need))
    runs = (lane.phase == RUNNING) & (span(config, lane, task) <= N)
    return jax.tree.map(
        lambda new, ask, old: jnp.where(runs, jnp.where(cut_short, ask, new), old),
        moved,
        lane_or_ask,
        lane,
    )
