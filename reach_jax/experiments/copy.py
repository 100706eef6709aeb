"""Where does copying break? Trains each architecture to copy short strings and asks for long ones.

All variants and draws of one shape learn in one program; each is stored with what it copied at every
length, in and far past its training. A model of the zoo can be tuned instead of trained afresh.
"""

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
from ml_collections import ConfigDict

from reach_jax.bounds import floats
from reach_jax.copying import evaluate, program, task, vocabulary
from reach_jax.copying.train import Learner, Lesson
from reach_jax.experiments import copy_report, zoo
from reach_jax.experiments.copy_settings import (
    Settings,
    check_model,
    execution,
    settings,
)
from reach_jax.models import kinds
from reach_jax.models.config import Params
from sweep_jax import lanes, mesh, progress, provenance
from sweep_jax.cells import Cell, shard
from sweep_jax.checkpoint import Checkpoints
from sweep_jax.experiment import Context
from sweep_jax.store import Result

EXCLUDED = ("axes", "execution")
_INITIAL, _ROWS = 0, 1  # keys of a cell
_CHECK, _TEST, _BEFORE = 0xC0, 0xC1, 0xC2  # strings; the tests' are the same for every cell


def validate(config: ConfigDict, cells: Sequence[Cell]) -> None:
    """Refuses what cannot run, with ValueError, before any device work."""
    execution(config)
    for cell in cells:
        settings(cell)


def plan(config: ConfigDict, cells: Sequence[Cell]) -> pd.DataFrame:
    """One row a cell: parameters, training at most, evaluation, and a lane's memory."""
    rows, known = [], {}
    for cell in cells:
        s = settings(cell)
        row = {"name": cell.name, **dataclasses.asdict(s.point)}
        if s.model is not None:
            shape = s.shape(s.model)
            if shape not in known:
                lesson = jax.tree.map(lambda x: x[None], _lesson(s, cell, _sizes([s])))
                known[shape] = program.memory(shape, lesson)
            row |= _cost(s, s.model) | {"lane_MB": round((known[shape] or 0) / 1e6, 1)}
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
    done = sum(steps[cell.name] for pool in mine for cell in context.store.done(pool))
    with progress.bar(sum(steps.values()), "learning to copy", "steps", initial=done) as bar:

        def tell(count: int, state: str) -> None:
            bar.update(count, last=state)

        for pool in mine:
            if not context.store.pending(pool):
                continue
            count = -(-min(how.lanes, len(pool)) // devices) * devices
            make = functools.partial(_program, context, how.rows, tell, _subject(pool[0], context))
            root = context.workdir / "pools"
            on_cell: Callable[[Result], None] = lambda result: None  # noqa: E731
            lanes.run_pool(
                pool, make, context.store, root, count, (1,), context.stop, origin, on_cell
            )


def report(config: ConfigDict, cells: Sequence[Cell], context: Context) -> str:
    """Writes table, figure and page from what is stored; returns the text to print."""
    return copy_report.write(cells, context)


@dataclasses.dataclass(frozen=True)
class _Subject:
    """What the cells of a pool begin with."""

    model: kinds.Config
    params: Params | None  # None: fresh ones from the cell's key
    card: Mapping[str, Any]


def _pools(cells: Sequence[Cell]) -> list[list[Cell]]:
    """Cells that run as lanes of one program; a tuned model has one to itself."""
    pools: dict[Any, list[Cell]] = {}
    for cell in cells:
        s = settings(cell)
        alone = s.model is None or s.choice is not None
        key = cell.name if alone or s.model is None else s.shape(s.model)
        pools.setdefault(key, []).append(cell)
    return list(pools.values())


def _subject(cell: Cell, context: Context) -> _Subject:
    s = settings(cell)
    if s.choice is None:
        assert s.model is not None  # only a source can be unknown
        return _Subject(s.shape(s.model).model, None, {})
    loaded = zoo.load(s.choice, context.workdir, context.stop)
    check_model(s, loaded.config)
    encode = None if loaded.tokenizer is None else loaded.encode
    rows = vocabulary.rows_of(encode, loaded.tokens)
    model, params = vocabulary.cut(loaded.config, loaded.params, rows)
    return _Subject(model, params, {"source": loaded.name, "rows": rows})


def _program(
    context: Context,
    rows: int,
    tell: program.Tell,
    subject: _Subject,
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
        metrics, arrays = _measure(found[row], subject, learner, rows)
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
        evaluate.Batch(*(jnp.asarray(part) for part in evaluate.padded(asked, *sizes))),
        s.rules,
    )


def _asked(s: Settings) -> evaluate.Batch:
    """Every test question: by examples before it, length, string; the same for all variants."""
    e, batches = s.evaluation, []
    for before in e.before:
        front_BS = np.zeros((e.strings, 0), np.int32)
        rng = np.random.default_rng([s.seed, _BEFORE, before, s.task.longest])
        for _ in range(before):
            example_BS = task.examples(task.strings(rng, e.strings, s.task.longest))
            front_BS = np.concatenate([front_BS, example_BS], axis=1)
        for length in e.lengths:
            rng = np.random.default_rng([s.seed, _TEST, length])
            batches.append(evaluate.questions(task.strings(rng, e.strings, length), front_BS))
    return evaluate.joined(batches)


def _measure(
    s: Settings, subject: _Subject, learner: Learner, rows: int
) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """What the best parameters copy, and how the training went."""
    e, rules = s.evaluation, s.rules
    run = functools.partial(evaluate.model_emitted, subject.model, learner.best, rules)
    scores = evaluate.evaluate(run, _asked(s), rows)
    shape = (len(e.before), len(e.lengths), e.strings)
    copied_PNK, right_PNK, size_PNK = (part.reshape(shape) for part in scores)
    inside = [length <= s.task.longest for length in e.lengths]
    share = float(copied_PNK[0][inside].mean())
    metrics = {
        "steps": int(learner.step),
        "best_step": int(learner.best_step),
        "loss": float(learner.best_loss),
        "check": float(learner.best_exact),
        "inside": share,
        "undertrained": share < e.learnt,
        "parameters": sum(leaf.size for leaf in jax.tree.leaves(learner.best)),
        "lengths": list(e.lengths),
        "before": list(e.before),
        "copied": copied_PNK.sum(axis=2),
        "right": right_PNK.sum(axis=2),
        "symbols": size_PNK.sum(axis=2),
        "strings": e.strings,
        **subject.card,
    }
    if kinds.memory_size(subject.model) is not None:
        metrics |= _memory(s, subject.model, learner.best)
    return metrics, {"copied_PNK": copied_PNK}


def _memory(s: Settings, model: kinds.Config, params: Params) -> dict[str, Any]:
    """Letters that a fixed memory can tell apart, by counting its values; nothing is rounded."""
    e = s.evaluation
    rng = np.random.default_rng([s.seed, _TEST, e.lengths[-1]])
    asked = evaluate.questions(task.strings(rng, e.strings, e.lengths[-1]))
    after_BE = np.asarray(evaluate.memory_after(model, params, jnp.asarray(asked.prompt_BS)))
    ends = (after_BE.min(axis=0), after_BE.max(axis=0))
    grid = floats.float_grid_slope(*ends, task.LETTERS, "float32")
    numbers = after_BE.shape[1]
    return {
        "memory_numbers": numbers,
        "memory_largest": float(np.abs(after_BE).max()),
        "memory_bits_letters": float(floats.trivial_slope(numbers, task.LETTERS, "float32")),
        "memory_grid_letters": float(grid),
    }


def _cost(s: Settings, model: kinds.Config) -> dict[str, Any]:
    """Parameters, and the FLOPs of all steps and of the evaluation, forward 1 and backward 2."""
    if s.choice is not None:
        model = dataclasses.replace(model, vocab_size=task.VOCABULARY)
    shapes = jax.eval_shape(lambda: kinds.init(model, jax.random.key(0)))
    head = 2 * model.width * task.VOCABULARY
    T = s.task.context
    token = model.flops_per_token + head + model.mixing_flops(T // 2)
    steps = s.training.steps
    asked = len(s.evaluation.before) * len(s.evaluation.lengths) * s.evaluation.strings
    decoded = asked * s.most_symbols
    answer = model.flops_per_token + head + model.mixing_flops(s.most_symbols)
    return {
        "parameters": sum(leaf.size for leaf in jax.tree.leaves(shapes)),
        "TFLOP_at_most": round(3 * token * steps * s.training.batch * T / 1e12, 3),
        "evaluation_TFLOP_at_most": round(answer * decoded / 1e12, 3),
    }
