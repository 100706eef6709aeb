"""One lane: its start, its loss and its step, whatever the protocol.

A step looks at the frozen model's answer to the current prompt, takes note of how far it got, and
moves the prompt. All functions are for one lane; `program.py` runs many of them under `vmap`. A
finished lane is frozen: further steps change nothing in it.
"""

from types import ModuleType

import jax
import jax.numpy as jnp

from reach_jax.cramming import fixed, layout, objectives, progressive, search
from reach_jax.cramming.settings import CrammingConfig
from reach_jax.cramming.state import (
    AT_END,
    FAILED,
    OUT_OF_STEPS,
    RUNNING,
    STALLED,
    Frozen,
    Lane,
    Rounded,
    Task,
)
from reach_jax.models import kinds
from reach_jax.ops import readout

RESTART = 0x7E  # folded into an attempt's key to give the next one's


def rules(config: CrammingConfig) -> ModuleType:
    """The protocol's `window`, `reach` and `span`."""
    return progressive if config.protocol == "progressive" else fixed


def start(
    model: kinds.Config,
    config: CrammingConfig,
    frozen: Frozen,
    key: jax.Array,
    task: Task,
    slots: int,
) -> Lane:
    """A lane before its first step."""
    prompt_MD = search.prompt(model, config, frozen, key, task, slots)
    prompt_MD = search.inside(config, frozen, prompt_MD)
    opt = search.begin(config, prompt_MD)
    zero = jnp.int32(0)
    return Lane(
        prompt_MD=prompt_MD,
        opt=opt,
        best_MD=prompt_MD,
        best=zero,
        best_at=zero,
        reached=zero,
        grew_at=zero,
        step=zero,
        phase=jnp.int32(RUNNING),
        need=zero,
        key=jax.random.key_data(key),
        attempt=zero,
    )


def loss_and_reach(
    model: kinds.Config,
    config: CrammingConfig,
    frozen: Frozen,
    prompt_MD: jax.Array,
    reached: jax.Array,
    task: Task,
) -> tuple[jax.Array, jax.Array]:
    """The objective in the window, and how far the answer got under argmax.

    The first target is predicted from the last prompt vector; with `first_token="given"` it is an
    input only, counts as right and is not in the loss. A token counts as correct when it is the
    argmax, the lowest id among exact ties: the rule of `verify.greedy_decode`; and leads by
    `lead`, which is there to outweigh what `products` rounds.
    """
    scores = teacher_forced(model, frozen, prompt_MD, task, config.temperature, frozen.rounded)
    index_N = jnp.arange(task.target_N.shape[0])
    right_N = scores.correct & (scores.margin >= config.lead)
    in_window_N = rules(config).window(config, reached, task)
    if config.first_token == "given":
        right_N, in_window_N = right_N | (index_N == 0), in_window_N & (index_N > 0)
    right_N = right_N & (index_N < task.length)
    loss = objectives.loss(config, scores, in_window_N, right_N)
    return loss, rules(config).reach(right_N)


def teacher_forced(
    model: kinds.Config,
    frozen: Frozen,
    prompt_MD: jax.Array,
    task: Task,
    temperature: float = 1.0,
    rounded: Rounded | None = None,
) -> readout.Scores:
    """Scores (N,) of each target given the prompt and all targets before it; `used` may be 0."""
    apply = kinds.module(model).apply
    variables = {"params": frozen.params if rounded is None else rounded.params}
    N = task.target_N.shape[0]
    target_ND = apply(variables, task.target_N, method="embed")
    parts = layout.arrange(prompt_MD, task.used, frozen.prefix_D, target_ND)
    hidden_TD = apply(variables, *parts, method="hidden")
    head_VD = apply(variables, method="head") if rounded is None else rounded.head_VD
    return readout.score(hidden_TD[-N:], head_VD, task.target_N, temperature=temperature)


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
    counts the answers judged. A lane that stalls starts anew with another key while it has
    restarts, its best prompt kept; `steps` is the budget of all attempts together. A loss or
    gradient that is not finite ends the lane as FAILED, with its best prompt kept.
    """
    grad_fn = jax.value_and_grad(loss_and_reach, argnums=3, has_aux=True)
    (loss, got), grad_MD = grad_fn(model, config, frozen, lane.prompt_MD, lane.reached, task)
    finite = jnp.isfinite(loss) & jnp.all(jnp.isfinite(grad_MD))
    grew = finite & (got > lane.reached)
    reached = jnp.where(grew, got, lane.reached)
    grew_at = jnp.where(grew, lane.step, lane.grew_at)
    better = finite & (got > lane.best)
    phase = jnp.int32(RUNNING)
    phase = jnp.where(lane.step - grew_at >= config.patience, STALLED, phase)
    again = (phase == STALLED) & finite & (lane.attempt < config.restarts)
    phase = jnp.where(again, RUNNING, phase)
    phase = jnp.where((lane.step + 1 >= config.steps) & (phase == RUNNING), OUT_OF_STEPS, phase)
    phase = jnp.where(reached >= task.length, AT_END, phase)
    phase = jnp.where(finite, phase, FAILED)
    again = again & (phase == RUNNING)
    key = jax.random.wrap_key_data(lane.key)
    prompt_MD, opt = search.move(config, frozen, key, lane.prompt_MD, lane.opt, grad_MD)
    moved = Lane(
        prompt_MD=prompt_MD,
        opt=opt,
        best_MD=jnp.where(better, lane.prompt_MD, lane.best_MD),
        best=jnp.where(better, got, lane.best),
        best_at=jnp.where(better, lane.step, lane.best_at),
        reached=reached,
        grew_at=grew_at,
        step=lane.step + 1,
        phase=phase,
        need=lane.need,
        key=lane.key,
        attempt=lane.attempt,
    )
    if config.restarts:
        fresh = _anew(model, config, frozen, moved, task)
        moved = jax.tree.map(lambda new, old: jnp.where(again, new, old), fresh, moved)
    N = task.target_N.shape[0]
    cut_short = (got == N) & (task.length > N)
    lane_or_ask = lane._replace(need=jnp.where(cut_short, jnp.int32(N + 1), lane.need))
    runs = (lane.phase == RUNNING) & (rules(config).span(config, lane, task) <= N)
    return jax.tree.map(
        lambda new, ask, old: jnp.where(runs, jnp.where(cut_short, ask, new), old),
        moved,
        lane_or_ask,
        lane,
    )


def _anew(
    model: kinds.Config, config: CrammingConfig, frozen: Frozen, lane: Lane, task: Task
) -> Lane:
    """The lane at the start of its next attempt."""
    key = jax.random.fold_in(jax.random.wrap_key_data(lane.key), RESTART)
    fresh = start(model, config, frozen, key, task, len(lane.prompt_MD))
    return lane._replace(
        prompt_MD=fresh.prompt_MD,
        opt=fresh.opt,
        reached=fresh.reached,
        grew_at=lane.step,
        need=fresh.need,
        key=fresh.key,
        attempt=lane.attempt + 1,
    )
