"""All lanes of a pool that learn to copy, in one program: jitted, vmapped, scanned over a chunk.

This is the `sweep_jax.lanes.Program` of copying: lanes are variants of one shape times seeds, and
differ in parameters, data and positions. Over several devices each holds its share of the lanes.
It knows what a lane computes, not which lanes run when, and not how a result is judged.
"""

import functools
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, PartitionSpec

from reach_jax.copying import train
from reach_jax.copying.train import Learner, Lesson, TrainingConfig
from reach_jax.models import kinds
from reach_jax.models.config import Params
from sweep_jax import mesh as meshes
from sweep_jax import rows
from sweep_jax.store import Result


class Shape(NamedTuple):
    """What all lanes of a program share; hashable."""

    model: kinds.Config
    training: TrainingConfig
    context: int  # symbols of a training row


Judge = Callable[[int, Learner, float, float], tuple[Result, dict[str, np.ndarray]]]
Tell = Callable[[int, str], None]


@functools.partial(jax.jit, static_argnames=("shape", "mesh"), donate_argnames="learners_B")
def advance(
    learners_B: Learner, lessons_B: Lesson, shape: Shape, mesh: Mesh | None = None
) -> Learner:
    """A chunk of every lane, on the devices of `mesh` (one device if None)."""
    one = functools.partial(train.advance, shape.model, shape.training, shape.context)
    if mesh is None:
        return jax.vmap(one)(learners_B, lessons_B)
    cut = PartitionSpec(meshes.AXIS)
    split = jax.shard_map(
        jax.vmap(one), mesh=mesh, in_specs=(cut, cut), out_specs=cut, check_vma=False
    )
    return split(learners_B, lessons_B)


def memory(shape: Shape, lessons_B: Lesson) -> int | None:
    """Bytes that `advance` needs for lanes of these lessons, its arguments and all; no run.

    None where the backend does not say.
    """
    lanes = lessons_B.longest.shape[0]

    def fresh() -> Learner:
        params = kinds.init(shape.model, jax.random.key(0))
        one = train.start(shape.training, params)
        return jax.tree.map(lambda x: jnp.broadcast_to(x, (lanes, *x.shape)), one)

    compiled = advance.lower(jax.eval_shape(fresh), lessons_B, shape=shape).compile()
    found = compiled.memory_analysis()
    if found is None:
        return None
    return int(found.temp_size_in_bytes + found.argument_size_in_bytes)


class CopyProgram:
    """Trains one pool of cells."""

    def __init__(
        self,
        shape: Shape,
        lessons: Sequence[Lesson],
        initial: Callable[[int], Params],
        judge: Judge,
        tell: Tell,
        mesh: Mesh | None = None,
    ) -> None:
        """Takes the pool's cells.

        Args:
          shape: of the program.
          lessons: what each cell learns from; of one structure and equal array shapes.
          initial: the parameters that the cell of a row begins with.
          judge: row, its state, seconds of compilation and of running -> what is stored.
          tell: called with steps done since the last call, and a word on how it goes.
          mesh: devices to spread the lanes over, whose number must divide that of the lanes.
        """
        self._shape, self._count, self._initial = shape, len(lessons), initial
        self._lessons_C: Lesson = _stacked(lessons)
        self._judge, self._tell, self._mesh = judge, tell, mesh
        self._told = 0
        self._compile_seconds_C = np.zeros(self._count)
        self._run_seconds_C = np.zeros(self._count)

    def start(self) -> Learner:
        """Every lane before its first step."""
        begin = [train.start(self._shape.training, self._initial(c)) for c in range(self._count)]
        stacked: Learner = _stacked(begin)
        return stacked

    def advance(self, state: Learner, rows_L: np.ndarray, bucket: int) -> Learner:
        """One chunk of steps; its time is shared by the cells that ran."""
        live, rows_B = rows_L[rows_L < self._count], jnp.asarray(rows_L)
        learners_B, lessons_B = rows.take((state, self._lessons_C), rows_B)
        if self._mesh is not None:
            both = (learners_B, lessons_B)
            learners_B, lessons_B = jax.device_put(both, meshes.split(self._mesh))
        compiled, seconds = _compile(self._shape, self._mesh, learners_B, lessons_B)
        self._compile_seconds_C[live] += seconds
        began = time.perf_counter()
        learners_B = jax.block_until_ready(compiled(learners_B, lessons_B))
        self._run_seconds_C[live] += (time.perf_counter() - began) / len(live)
        if self._mesh is not None:
            learners_B = jax.device_put(learners_B, jax.tree.leaves(state)[0].sharding)
        return rows.put(state, learners_B, rows_B)

    def look(self, state: Learner) -> tuple[np.ndarray, np.ndarray]:
        """Finished flags; there is one size of chunk only, 1."""
        finished_C = np.asarray(train.finished(self._shape.training, state))
        done = int(np.where(finished_C, self._shape.training.steps, state.step).sum())
        if done > self._told:
            self._tell(done - self._told, self.words(state))
        self._told = done
        return finished_C, np.ones(self._count, np.int64)

    def words(self, state: Learner) -> str:
        """The least and greatest share copied at the last checks."""
        exact_C = np.asarray(state.exact)
        return f"{exact_C.min():.2f} to {exact_C.max():.2f} copied"

    def finish(self, state: Learner, row: int) -> tuple[Result, dict[str, np.ndarray]]:
        """What `judge` makes of a finished cell."""
        learner = jax.tree.map(lambda x: x[row], state)
        seconds = (self._compile_seconds_C[row], self._run_seconds_C[row])
        return self._judge(row, learner, float(seconds[0]), float(seconds[1]))


_COMPILED: dict[Any, Any] = {}


def _compile(
    shape: Shape, mesh: Mesh | None, learners_B: Learner, lessons_B: Lesson
) -> tuple[Any, float]:
    """The program of this shape and number of lanes, and the seconds that it took, once."""
    size = jax.tree.map(jnp.shape, (learners_B, lessons_B))
    key = (shape, mesh, str(size))
    began = time.perf_counter()
    if key not in _COMPILED:
        lowered = advance.lower(learners_B, lessons_B, shape=shape, mesh=mesh)
        _COMPILED[key] = lowered.compile()
        return _COMPILED[key], time.perf_counter() - began
    return _COMPILED[key], 0.0


def _stacked(trees: Sequence[Any]) -> Any:
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *trees)
