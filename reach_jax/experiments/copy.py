"""Where does copying break? Trains each architecture to copy short strings and asks for long ones.

All variants and draws of one shape learn in one program; each is stored with what it copied at
every length, in and far past its training. A model of the zoo can be tuned instead.
"""

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
from ml_collections import ConfigDict

from reach_jax.copying import evaluate, program, task, vocabulary
from reach_jax.copying.train import Learner, Lesson
from reach_jax.experiments import copy_report, zoo
from reach_jax.experiments.copy_measures import Subject, cost, measure
from reach_jax.experiments.copy_settings import Settings, check_model, execution, settings
from reach_jax.models import kinds
from reach_jax.models.config import Params
from sweep_jax import lanes, mesh, progress, provenance
from sweep_jax.cells import Cell, shard
from sweep_jax.checkpoint import Checkpoints
from sweep_jax.experiment import Context
from sweep_jax.store import Result

EXCLUDED = ("axes", "execution")
_INITIAL, _ROWS = 0, 1  # keys of a cell
_CHECK = 0xC0  # strings that training is checked by


def validate(config: ConfigDict, cells: Sequence[Cell]) -> None:
    """Refuses what cannot run, with ValueError, before any device work."""
    execution(config)
    for cell in cells:
        settings(cell)


def plan(config: ConfigDict, cells: Sequence[Cell]) -> pd.DataFrame:
    """One row a cell: parameters, work at most, memory of a lane and of what is decoded at once."""
    rows, known, at_once = [], {}, execution(config).rows
    for cell in cells:
        s = settings(cell)
        row = {"name": cell.name, **dataclasses.asdict(s.point)}
        if s.model is not None:
            shape = s.shape(s.model)
            if shape not in known:
                lesson = jax.tree.map(lambda x: x[None], _lesson(s, cell, _sizes([s])))
                known[shape] = program.memory(shape, lesson)
            row |= cost(s, s.model, at_once) | {"lane_MB": round((known[shape] or 0) / 1e6, 1)}
        rows.append(row)
    return pd.DataFrame(rows)


def run(config: ConfigDict, cells: Sequence[Cell], context: Context) -> None:
    """Trains and evaluates whatever is not in the workdir yet.

    Raises:
      Stopped: on request, when the last chunk is saved.
    """
    how, origin, devices = execution(config), provenance.collect(), jax.device_count()
    mine = shard(_pools(cells), context.shard)
    steps = {cell.name: settings(cell).training.steps for pool in mine for cell in pool}
    over = [pool for pool in mine if not context.store.pending(pool)]
    # A program tells of the steps that its pool took before it was cut short.
    done = sum(steps[cell.name] for pool in over for cell in pool)
    with progress.bar(sum(steps.values()), "learning to copy", "steps", initial=done) as bar:

        def tell(count: int, state: str) -> None:
            bar.update(count, last=state)

        for pool in mine:
            if pool in over:
                continue
            count = -(-min(how.lanes, len(pool)) // devices) * devices
            make = functools.partial(_program, context, how.rows, tell, _subject(pool[0], context))
            root = context.workdir / "pools"
            how_many = (context.store, root, count, (1,), context.stop, origin)
            lanes.run_pool(
                pool, make, *how_many, on_cell=lambda result: None, on_chunk=lambda words: None
            )


def report(config: ConfigDict, cells: Sequence[Cell], context: Context) -> str:
    """Writes table, figure and page from what is stored; returns the text to print."""
    return copy_report.write(cells, context)


def _pools(cells: Sequence[Cell]) -> list[list[Cell]]:
    """Cells that run as lanes of one program; a tuned model has one to itself."""
    pools: dict[Any, list[Cell]] = {}
    for cell in cells:
        s = settings(cell)
        alone = s.model is None or s.choice is not None
        key = cell.name if alone or s.model is None else s.shape(s.model)
        pools.setdefault(key, []).append(cell)
    return list(pools.values())


def _subject(cell: Cell, context: Context) -> Subject:
    s = settings(cell)
    if s.choice is None:
        assert s.model is not None  # only a source can be unknown
        return Subject(s.shape(s.model).model, None, {})
    loaded = zoo.load(s.choice, context.workdir, context.stop)
    check_model(s, loaded.config)
    encode = None if loaded.tokenizer is None else loaded.encode
    rows = vocabulary.rows_of(encode, loaded.tokens)
    model, params = vocabulary.cut(loaded.config, loaded.params, rows)
    return Subject(model, params, {"source": loaded.name, "rows": rows})


def _program(
    context: Context,
    rows: int,
    tell: program.Tell,
    subject: Subject,
    cells: Sequence[Cell],
) -> program.CopyProgram:
    found = [settings(cell) for cell in cells]
    sizes = _sizes(found)
    lessons = [_lesson(s, cell, sizes) for s, cell in zip(found, cells, strict=True)]
    shape = program.Shape(subject.model, found[0].training, found[0].task.context)

    def initial(row: int) -> Params:
        if subject.params is not None:
            return subject.params
        return kinds.init(subject.model, jax.random.fold_in(_key(found[row], cells[row]), _INITIAL))

    def judge(
        row: int, learner: Learner, compiling: float, running: float
    ) -> tuple[Result, dict[str, np.ndarray]]:
        kept = context.workdir / "models" / cells[row].name
        Checkpoints(kept / "best", keep=1).save(int(learner.best_step), learner.best)
        Checkpoints(kept / "last", keep=1).save(int(learner.step), learner.params)
        metrics, arrays = measure(found[row], subject, learner, rows)
        taken = int(learner.step) * found[row].training.batch * found[row].task.context
        metrics |= {"tokens_per_s": round(taken / running)} if running else {}
        return Result("ok", metrics, round(compiling, 3), round(running, 3)), arrays

    row = mesh.row() if jax.device_count() > 1 else None
    return program.CopyProgram(shape, lessons, initial, judge, tell, row)


def _key(s: Settings, cell: Cell) -> jax.Array:
    return jax.random.fold_in(jax.random.key(s.seed), cell.fold)


def _sizes(found: Sequence[Settings]) -> tuple[int, int]:
    """Symbols of the longest prompt and answer that a check decodes."""
    longest = max(s.task.longest for s in found)
    return longest + 2, longest + 1


def _lesson(s: Settings, cell: Cell, sizes: tuple[int, int]) -> Lesson:
    rng = np.random.default_rng([s.seed, _CHECK, s.task.longest])
    asked = evaluate.questions(task.strings(rng, s.training.check, s.task.longest))
    return Lesson(
        jax.random.key_data(jax.random.fold_in(_key(s, cell), _ROWS)),
        jnp.int32(s.task.shortest),
        jnp.int32(s.task.longest),
        jax.tree.map(jnp.asarray, evaluate.padded(asked, *sizes)),
        s.rules,
    )
