"""All lanes of a pool in one program: jitted, vmapped over lanes, scanned over a chunk of steps.

One compilation a bucket of target lengths; prompts of every length share it. This is the
`sweep_jax.lanes.Program` of cramming: it knows what a lane computes, not which lanes run when.
Over several devices each holds its share of the lanes and a copy of the model, and none talks to
another: the program is cut by `shard_map`, so that no collective can get into it.
"""

import dataclasses
import functools
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, PartitionSpec

from reach_jax.cramming import lane, outcome, trace
from reach_jax.cramming.settings import Assignment, CrammingConfig
from reach_jax.cramming.state import RUNNING, Frozen, Lane, Task
from reach_jax.models import kinds
from sweep_jax import mesh as meshes
from sweep_jax import rows
from sweep_jax.store import Result


class Pool(NamedTuple):
    """The state of a pool's cells, stacked: what a checkpoint holds."""

    lanes_C: Lane
    tasks_C: Task


@functools.partial(jax.jit, static_argnames="bucket")
def _take(pool: Pool, rows_B: jax.Array, bucket: int) -> Pool:
    """The cells in `rows_B`, targets cut to `bucket`."""
    lanes_B, tasks_B = rows.take(pool, rows_B)
    return Pool(lanes_B, tasks_B._replace(target_N=tasks_B.target_N[:, :bucket]))


@functools.partial(
    jax.jit, static_argnames=("model", "config", "steps", "mesh"), donate_argnames="lanes_B"
)
def advance(
    lanes_B: Lane,
    tasks_B: Task,
    frozen: Frozen,
    model: kinds.Config,
    config: CrammingConfig,
    steps: int,
    mesh: Mesh | None = None,
) -> Lane:
    """`steps` steps of every lane, on the devices of `mesh` (one device if None)."""

    def many(frozen: Frozen, lanes_B: Lane, tasks_B: Task) -> Lane:
        one = functools.partial(lane.step, model, config)
        step = jax.vmap(one, in_axes=(None, 0, 0))

        def body(lanes_B: Lane, _: None) -> tuple[Lane, None]:
            before_B = lanes_B._replace(trace=None)
            after_B = step(frozen, before_B, tasks_B)
            if lanes_B.trace is not None:
                note = jax.vmap(functools.partial(trace.note, config.steps))
                traces_B = note(before_B, after_B, tasks_B, lanes_B.trace)
                after_B = after_B._replace(trace=traces_B)
            return after_B, None

        return jax.lax.scan(body, lanes_B, length=steps)[0]

    if mesh is None:
        return many(frozen, lanes_B, tasks_B)
    cut, copied = PartitionSpec(meshes.AXIS), PartitionSpec()
    split = jax.shard_map(
        many, mesh=mesh, in_specs=(copied, cut, cut), out_specs=cut, check_vma=False
    )
    return split(frozen, lanes_B, tasks_B)


@functools.partial(jax.jit, static_argnames=("model", "config", "slots"))
def _start(
    model: kinds.Config,
    config: CrammingConfig,
    frozen: Frozen,
    keys_C: jax.Array,
    tasks_C: Task,
    slots: int,
) -> Lane:
    def one(key: jax.Array, task: Task) -> Lane:
        return lane.start(model, config, frozen, jax.random.wrap_key_data(key), task, slots)

    return jax.vmap(one)(keys_C, tasks_C)


class CrammingProgram:
    """Crams one pool of cells against one model."""

    def __init__(
        self,
        model: kinds.Config,
        config: CrammingConfig,
        frozen: Frozen,
        assignments: Sequence[Assignment],
        targets_CN: np.ndarray,
        keys: Sequence[jax.Array],
        slots: int,
        chunk: int,
        mesh: Mesh | None = None,
        path: int = 0,
        compiled: dict[tuple[int, ...], Any] | None = None,
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
          mesh: devices to spread the lanes over, whose number must divide that of the lanes.
          path: snapshots of a prompt's way to keep, a power of two; 0 for none.
          compiled: programs that others of the same model, protocol, chunk, mesh and path compiled
            (bucket, lanes and slots -> program); what this one compiles is put there.
        """
        self._model, self._config, self._frozen = model, config, frozen
        self._assignments, self._targets_CN, self._keys = assignments, targets_CN, keys
        self._slots, self._chunk, self._mesh, self._path = slots, chunk, mesh, path
        self._spread = frozen if mesh is None else jax.device_put(frozen, meshes.copied(mesh))
        self.compiled = {} if compiled is None else compiled
        self._compile_seconds_C = np.zeros(len(assignments))
        self._run_seconds_C = np.zeros(len(assignments))

    def start(self) -> Pool:
        """Every lane before its first step."""
        lengths = [a.length or self._config.max_target for a in self._assignments]
        tasks_C = Task(
            jnp.asarray(self._targets_CN, jnp.int32),
            jnp.array(lengths, jnp.int32),
            jnp.array([a.prompt_length for a in self._assignments], jnp.int32),
        )
        keys_C = jnp.stack([jax.random.key_data(key) for key in self._keys])
        how = (self._model, self._config, self._frozen)
        lanes_C = _start(*how, keys_C, tasks_C, self._slots)
        if self._path:
            size = (len(keys_C), self._path, self._slots, self._model.width)
            lanes_C = lanes_C._replace(trace=trace.empty(*size))
        return Pool(lanes_C, tasks_C)

    def advance(self, state: Pool, rows_L: np.ndarray, bucket: int) -> Pool:
        """One chunk of steps; its time is shared by the cells that ran."""
        live = rows_L[rows_L < len(self._assignments)]
        rows_B = jnp.asarray(rows_L)
        lanes_B, tasks_B = _take(state, rows_B, bucket)
        if self._mesh is not None:
            lanes_B, tasks_B = jax.device_put((lanes_B, tasks_B), meshes.split(self._mesh))
        size = (bucket, len(rows_L), self._slots)
        if size not in self.compiled:
            began = time.perf_counter()
            lowered = advance.lower(
                lanes_B,
                tasks_B,
                self._spread,
                model=self._model,
                config=self._config,
                steps=self._chunk,
                mesh=self._mesh,
            )
            self.compiled[size] = lowered.compile()
            self._compile_seconds_C[live] += time.perf_counter() - began
        began = time.perf_counter()
        lanes_B = jax.block_until_ready(self.compiled[size](lanes_B, tasks_B, self._spread))
        self._run_seconds_C[live] += (time.perf_counter() - began) / len(live)
        if self._mesh is not None:
            lanes_B = jax.device_put(lanes_B, jax.tree.leaves(state.lanes_C)[0].sharding)
        return Pool(rows.put(state.lanes_C, lanes_B, rows_B), state.tasks_C)

    def look(self, state: Pool) -> tuple[np.ndarray, np.ndarray]:
        """Finished flags, and the target tokens that each cell's next step must see."""
        phase_C = np.asarray(state.lanes_C.phase)
        span_C = lane.rules(self._config).span(self._config, state.lanes_C, state.tasks_C)
        return phase_C != RUNNING, np.asarray(span_C)

    def words(self, state: Pool) -> str:
        """How many cells have begun and not ended, their steps, and how far they got."""
        phase_C, step_C, best_C = (
            np.asarray(x) for x in (state.lanes_C.phase, state.lanes_C.step, state.lanes_C.best)
        )
        live = (phase_C == RUNNING) & (step_C > 0)
        if not live.any():
            return "none running"
        steps, best = f"{step_C[live].mean():.0f}", f"{best_C[live].mean():.1f}"
        most = self._config.steps
        return f"{live.sum()} running, at step {steps} of at most {most}, {best} tokens (means)"

    def finish(self, state: Pool, row: int) -> tuple[Result, dict[str, np.ndarray]]:
        """Proves what the lane found by an independent decode, and reports that (`outcome`)."""
        found = jax.tree.map(lambda x: np.asarray(x[row]), state.lanes_C)
        used, length = (int(x[row]) for x in (state.tasks_C.used, state.tasks_C.length))
        target_N = self._targets_CN[row]
        how = (self._model, self._config, self._frozen)
        task = outcome.Finished(*how, used, length, target_N, self._slots)
        seconds = (float(self._compile_seconds_C[row]), float(self._run_seconds_C[row]))
        result = outcome.result(task, found, seconds)
        arrays = {"prompt": found.best_MD[-used:], "target": target_N}
        if found.trace is not None:
            way, shares = trace.measure(found.trace, used, float(self._frozen.scale))
            result = dataclasses.replace(result, metrics={**result.metrics, **way})
            arrays["path_shares"] = shares
        return result, arrays
