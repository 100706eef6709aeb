"""All lanes of a pool in one program: jitted, vmapped over lanes, scanned over a chunk of steps.

One compilation a bucket of target lengths; prompts of every length share it. This is the
`sweep_jax.lanes.Program` of cramming: it knows what a lane computes, not which lanes run when.
"""

import functools
import time
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from reach_jax.cramming import progressive, verify
from reach_jax.cramming.settings import Assignment, CrammingConfig
from reach_jax.models import kinds
from sweep_jax.store import Result

STATUS: dict[int, Literal["ok", "censored", "failed"]] = {
    progressive.STALLED: "ok",
    progressive.AT_END: "censored",
    progressive.OUT_OF_STEPS: "censored",
    progressive.FAILED: "failed",
}


class Pool(NamedTuple):
    """The state of a pool's cells, stacked: what a checkpoint holds."""

    lanes_C: progressive.Lane
    tasks_C: progressive.Task


@functools.partial(
    jax.jit, static_argnames=("model", "config", "bucket", "steps"), donate_argnums=0
)
def advance(
    lanes_C: progressive.Lane,
    tasks_C: progressive.Task,
    frozen: progressive.Frozen,
    rows_B: jax.Array,
    model: kinds.Config,
    config: CrammingConfig,
    bucket: int,
    steps: int,
) -> progressive.Lane:
    """`steps` steps of the cells in `rows_B`, their targets cut to `bucket` tokens.

    An index past the end is an idle lane: it repeats some cell's work and is thrown away.
    """
    lanes_B, tasks_B = jax.tree.map(lambda x: x.at[rows_B].get(mode="clip"), (lanes_C, tasks_C))
    tasks_B = tasks_B._replace(target_N=tasks_B.target_N[:, :bucket])
    one = functools.partial(progressive.step, model, config)
    many = jax.vmap(one, in_axes=(None, 0, 0))

    def body(lanes_B: progressive.Lane, _: None) -> tuple[progressive.Lane, None]:
        return many(frozen, lanes_B, tasks_B), None

    lanes_B, _ = jax.lax.scan(body, lanes_B, length=steps)
    return jax.tree.map(lambda x, y: x.at[rows_B].set(y, mode="drop"), lanes_C, lanes_B)


class CrammingProgram:
    """Crams one pool of cells against one model."""

    def __init__(
        self,
        model: kinds.Config,
        config: CrammingConfig,
        frozen: progressive.Frozen,
        assignments: Sequence[Assignment],
        targets_CN: np.ndarray,
        keys: Sequence[jax.Array],
        slots: int,
        chunk: int,
    ) -> None:
        """Takes the pool's cells: assignment, target tokens and key of each.

        Args:
          model: the model's description.
          config: the protocol.
          frozen: the model's parameters and what goes with them.
          assignments: what each cell crams.
          targets_CN: token ids, N >= `config.max_target`.
          keys: one for each cell; a lane's randomness depends on nothing else.
          slots: padded prompt length M, at least every cell's m.
          chunk: steps between two looks.
        """
        self._model, self._config, self._frozen = model, config, frozen
        self._assignments, self._targets_CN, self._keys = assignments, targets_CN, keys
        self._slots, self._chunk = slots, chunk
        self._compiled: dict[int, Any] = {}  # bucket -> program
        self._compile_seconds_C = np.zeros(len(assignments))
        self._run_seconds_C = np.zeros(len(assignments))

    def start(self) -> Pool:
        """Every lane before its first step."""
        scale = float(self._frozen.scale)
        lanes = [
            progressive.start(self._config, key, self._slots, self._model.width, scale)
            for key in self._keys
        ]
        count = len(lanes)
        tasks_C = progressive.Task(
            jnp.asarray(self._targets_CN, jnp.int32),
            jnp.full(count, self._config.max_target, jnp.int32),
            jnp.array([a.prompt_length for a in self._assignments], jnp.int32),
        )
        return Pool(jax.tree.map(lambda *x: jnp.stack(x), *lanes), tasks_C)

    def advance(self, state: Pool, rows_L: np.ndarray, bucket: int) -> Pool:
        """One chunk of steps; its time is shared by the cells that ran."""
        live = rows_L[rows_L < len(self._assignments)]
        arguments = (*state, self._frozen, jnp.asarray(rows_L))
        if bucket not in self._compiled:
            began = time.perf_counter()
            lowered = advance.lower(
                *arguments,
                model=self._model,
                config=self._config,
                bucket=bucket,
                steps=self._chunk,
            )
            self._compiled[bucket] = lowered.compile()
            self._compile_seconds_C[live] += time.perf_counter() - began
        began = time.perf_counter()
        lanes_C = jax.block_until_ready(self._compiled[bucket](*arguments))
        self._run_seconds_C[live] += (time.perf_counter() - began) / len(live)
        return Pool(lanes_C, state.tasks_C)

    def look(self, state: Pool) -> tuple[np.ndarray, np.ndarray]:
        """Finished flags, and the target tokens that each cell's next step must see."""
        phase_C = np.asarray(state.lanes_C.phase)
        span_C = progressive.span(self._config, state.lanes_C, state.tasks_C)
        return phase_C != progressive.RUNNING, np.asarray(span_C)

    def finish(self, state: Pool, row: int) -> tuple[Result, dict[str, np.ndarray]]:
        """Proves what the lane found by an independent decode, and reports that.

        `threshold` is the length that the decode confirmed; `searched` is what the search believed.
        A lane stopped by a cap is censored: its true threshold is at least the one given.
        """
        lane = jax.tree.map(lambda x: np.asarray(x[row]), state.lanes_C)
        used, phase = self._assignments[row].prompt_length, int(lane.phase)
        prompt_MD, searched = lane.best_MD[-used:], int(lane.reached)
        emitted, margins = self.decode(prompt_MD, searched)
        right = emitted == self._targets_CN[row, :searched]
        threshold = int(np.cumprod(right).sum())
        metrics = {
            "threshold": threshold,
            "searched": searched,
            "confirmed": threshold == searched,
            "least_margin": float(margins.min()) if searched else float("nan"),
            "steps": int(lane.step),
            "grew_at": int(lane.grew_at),
            "reason": progressive.REASONS[phase],
            "prompt_max": float(np.abs(prompt_MD).max()),
            "prompt_rms": float(np.sqrt(np.mean(prompt_MD.astype(np.float64) ** 2))),
        }
        broke = f"loss or gradient not finite at step {lane.step}"
        result = Result(
            status=STATUS[phase],
            metrics=metrics,
            compile_seconds=round(float(self._compile_seconds_C[row]), 3),
            run_seconds=round(float(self._run_seconds_C[row]), 3),
            traceback=broke if phase == progressive.FAILED else None,
        )
        return result, {"prompt": prompt_MD, "target": self._targets_CN[row]}

    def decode(self, prompt_PD: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
        """`verify.greedy_decode` after this model's prefix and the prompt."""
        prefix_D = self._frozen.prefix_D
        before = [] if prefix_D is None else [np.asarray(prefix_D, prompt_PD.dtype)[None]]
        inputs_PD = np.concatenate([*before, prompt_PD])
        slots = self._slots + self._config.max_target
        return verify.greedy_decode(self._model, self._frozen.params, inputs_PD, count, slots)
