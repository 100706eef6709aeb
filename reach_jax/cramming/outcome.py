"""What a finished lane found, proved by a decode that shares nothing with the search but the model.

Only what the model emits from the prompt alone counts as a success. What it answers under teacher
forcing stands beside it, as the published protocols count that.
"""

import functools
import math
from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from reach_jax.cramming import kuratov, lane, verify
from reach_jax.cramming.settings import CrammingConfig
from reach_jax.cramming.state import (
    AT_END,
    FAILED,
    OUT_OF_STEPS,
    REASONS,
    STALLED,
    Frozen,
    Lane,
    Task,
)
from reach_jax.models import kinds
from sweep_jax.store import Result

STATUS: dict[int, Literal["ok", "censored", "failed"]] = {
    STALLED: "ok",
    AT_END: "censored",
    OUT_OF_STEPS: "censored",
    FAILED: "failed",
}


class Finished(NamedTuple):
    """A lane's task with all that is needed to judge it; not an array tree."""

    model: kinds.Config
    config: CrammingConfig
    frozen: Frozen
    used: int  # m
    length: int  # tokens of the target that count
    target_N: np.ndarray
    slots: int  # padded prompt length M: one decode program for all m up to it

    @property
    def given(self) -> int:
        """Target tokens that are an input from the start: 1 with `first_token="given"`."""
        return int(self.config.first_token == "given")


class Answers(NamedTuple):
    """What the model says under teacher forcing, of each target token."""

    right_N: np.ndarray
    nll_N: np.ndarray  # nats, temperature 1


@functools.partial(jax.jit, static_argnames="model")
def _answers(
    model: kinds.Config, frozen: Frozen, prompt_MD: jax.Array, task: Task
) -> tuple[jax.Array, jax.Array]:
    scores = lane.teacher_forced(model, frozen, prompt_MD, task)
    return scores.correct, scores.nll


def answers(task: Finished, prompt_MD: np.ndarray, used: int) -> Answers:
    """The model's answers after the prompt's last `used` vectors; 0 is the model left alone."""
    arrays = Task(jnp.asarray(task.target_N, jnp.int32), jnp.int32(task.length), jnp.int32(used))
    found = _answers(task.model, task.frozen, jnp.asarray(prompt_MD), arrays)
    return Answers(*(np.asarray(x)[: task.length] for x in found))


def decode(task: Finished, prompt_mD: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """`verify.greedy_decode` of `count` target tokens after prefix, prompt and what is given.

    Returns:
      Tokens and margins, (count - given,).
    """
    parts = [prompt_mD]
    if task.frozen.prefix_D is not None:
        parts.insert(0, np.asarray(task.frozen.prefix_D, prompt_mD.dtype)[None])
    if task.given:
        apply = kinds.module(task.model).apply
        first = jnp.asarray(task.target_N[:1], jnp.int32)
        embedded_1D = apply({"params": task.frozen.params}, first, method="embed")
        parts.append(np.asarray(embedded_1D, prompt_mD.dtype))
    slots = task.slots + len(task.target_N)
    inputs_PD = np.concatenate(parts)
    emit = max(count - task.given, 0)
    return verify.greedy_decode(task.model, task.frozen.params, inputs_PD, emit, slots)


def text_bits(task: Finished, alone_N: np.ndarray, count: int, start: int) -> float:
    """Bits that the model alone needs for the first `count` tokens of the target.

    A token that is given costs none. A first token that nothing stands before costs log2 V.

    Args:
      task: whose target it is.
      alone_N: nats of each token after all before it, with no prompt.
      count: tokens.
      start: the first token that the model alone predicts.
    """
    V = task.model.vocab_size if task.frozen.tokens is None else int(task.frozen.tokens)
    unseen = min(max(start - task.given, 0), count)
    return unseen * math.log2(V) + float(alone_N[start:count].sum(dtype=np.float64)) / math.log(2)


def result(task: Finished, found: Lane, seconds: tuple[float, float]) -> Result:
    """The record of a finished lane.

    `threshold` is the length that the decode confirmed; `searched` is what the search believed: a
    prefix's length, or with a fixed length how many tokens were right. `teacher_forced` is the
    share of right answers when every earlier token is the target's: of the prefix that the search
    believed, or of the whole fixed length. A token that is given counts in the lengths and never in
    the shares. A progressive lane stopped by a cap is censored: its true threshold is at least the
    one given. `text_bits` is what the confirmed text costs without the prompt.
    """
    phase, searched = int(found.phase), int(found.best)
    fixed = task.config.is_fixed
    count = task.length if fixed else searched
    prompt_MD = np.asarray(found.best_MD)
    prompt_mD = prompt_MD[-task.used :]
    emitted, margins = decode(task, prompt_mD, count)
    right = emitted == task.target_N[task.given : task.given + len(emitted)]
    sure = int(np.cumprod(right).sum())
    threshold = sure + min(task.given, searched)
    said = answers(task, prompt_MD, task.used)
    judged = said.right_N[task.given : count]
    metrics = {
        "threshold": threshold,
        "searched": searched,
        "confirmed": threshold == searched or (fixed and searched < task.length),
        "teacher_forced": float(judged.mean()) if judged.size else float("nan"),
        "least_margin": float(margins[:sure].min()) if sure else float("nan"),
        "steps": int(found.step),
        "grew_at": int(found.best_at),
        "reason": REASONS[phase],
        "prompt_max": float(np.abs(prompt_mD).max()),
        "prompt_rms": float(np.sqrt(np.mean(prompt_mD.astype(np.float64) ** 2))),
    }
    if fixed:
        metrics["success"] = threshold == task.length
        metrics["teacher_forced_success"] = bool(judged.all())
    # The model alone predicts the first token only from a prefix.
    start = max(task.given, int(task.frozen.prefix_D is None))
    alone = answers(task, prompt_MD, 0)
    metrics["text_bits"] = text_bits(task, alone.nll_N, threshold, start)
    if task.config.protocol == "kuratov":
        metrics |= kuratov.gains(*(x[start:] for x in (*said, *alone)))
    broke = f"loss or gradient not finite at step {found.step}"
    status = STATUS[phase]
    return Result(
        status="ok" if fixed and status == "censored" else status,
        metrics=metrics,
        compile_seconds=round(seconds[0], 3),
        run_seconds=round(seconds[1], 3),
        traceback=broke if phase == FAILED else None,
    )
