"""Networks trained on a target: what architectures learn, beside what the planner says they can.

Cells that differ in heads, run and rate alone are one ensemble and one program; every other
difference is another shape, which is compiled and trained after it. All experiments with trained
networks are this one, with their own config.
"""

import contextlib
import dataclasses
import functools
import hashlib
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
from ml_collections import ConfigDict

from infoflow_jax.experiments import published_training, trained_report
from infoflow_jax.networks import transformer
from infoflow_jax.networks.config import NetworkConfig, Params
from infoflow_jax.tasks.task import Scale, TaskConfig, scale
from infoflow_jax.training import fit as fitting
from infoflow_jax.training.ensemble import Ensemble, Run
from infoflow_jax.training.fit import Evaluation
from infoflow_jax.training.settings import BATCHINGS, TrainingConfig
from sweep_jax import cells as sweeps
from sweep_jax import mesh, provenance
from sweep_jax.cells import Cell
from sweep_jax.checks import require, resolve
from sweep_jax.experiment import Context
from sweep_jax.store import Result

EXCLUDED = ("axes", "execution", "page")
FLOPS = 7e10  # a second, of one CPU core: measured over all of pairmax:quick, 524 s
report = trained_report.report
_counts = functools.cache(transformer.parameters)


@dataclasses.dataclass(frozen=True)
class Point:
    """What tells the runs of one program apart, and the shape that they share."""

    heads: tuple[int, ...]  # of each layer
    slots: tuple[int, ...]  # heads that the program has in each layer, some masked
    run: int  # which repetition: initial weights and data
    rate: float

    def __post_init__(self) -> None:
        require(len(self.slots) >= 1, "slots", self.slots, "at least one layer")
        fits = len(self.heads) == len(self.slots)
        fits = fits and all(1 <= h <= s for h, s in zip(self.heads, self.slots, strict=False))
        require(fits, "heads", self.heads, f"for each layer a number in 1..slots {self.slots}")
        require(self.run >= 0, "run", self.run, "an integer >= 0")
        require(0 < self.rate < 1e3, "rate", self.rate, "a number in (0, 1000)")


@dataclasses.dataclass(frozen=True)
class Settings:
    """A cell, resolved."""

    point: Point
    task: TaskConfig
    network: NetworkConfig
    training: TrainingConfig
    evaluation: Evaluation

    @property
    def shape(self) -> tuple[Any, ...]:
        """What cells of one program have in common."""
        return (self.task, self.network, self.training, self.evaluation)

    @property
    def flops(self) -> float:
        """Of the products of matrices of one run: three times those of its forward passes."""
        forward = sum(n * self.network.products(T) for T, n in self.training.stages)
        return 3 * 2.0 * self.training.batch * forward


def settings(cell: Cell) -> Settings:
    """Resolves a cell.

    Raises:
      ValueError: a field that cannot be, heads that do not divide the width, or sequences below
        the target's order.
    """
    config = cell.config
    require(0 <= config["seed"] < 2**31, "config.seed", config["seed"], "an integer in [0, 2^31)")
    point = resolve(Point, config["cell"], "config.cell")
    task = resolve(TaskConfig, config["task"], "config.task")
    given = dict(config["network"])
    if given["head_width"] == 0:
        most = max(point.slots)
        whole = given["width"] % most == 0
        require(whole, "config.network.width", given["width"], f"a multiple of its {most} heads")
        given["head_width"] = given["width"] // most
    if given["beta"] == 0:
        given["beta"] = given["head_width"] ** -0.5
    given |= {"d": task.d, "heads": point.slots, "outputs": task.outputs}
    network = resolve(NetworkConfig, given, "config.network")
    training = resolve(TrainingConfig, config["training"], "config.training")
    evaluation = resolve(Evaluation, config["evaluation"], "config.evaluation")
    for tokens in training.tokens:
        task.require_tokens("config.training.tokens", tokens)
    for tokens in evaluation.tokens:
        task.require_tokens("config.evaluation.tokens", tokens)
    longest = max(*training.tokens, *evaluation.tokens)
    ok = network.positions != "circle" or longest <= network.period
    require(ok, "config.network.period", network.period, f"at least the longest T, {longest}")
    return Settings(point, task, network, training, evaluation)


def validate(config: ConfigDict, cells: Sequence[Cell]) -> None:
    """Refuses what cannot be trained, with ValueError."""
    how = config.execution
    require(
        how.batching in BATCHINGS, "config.execution.batching", how.batching, f"one of {BATCHINGS}"
    )
    known, named = published_training.NAMES, config.page.published
    require(named in known, "config.page.published", named, f"one of {known}")
    require(how.most >= 1, "config.execution.most", how.most, "an integer >= 1")
    for cell in cells:
        settings(cell)


def plan(config: ConfigDict, cells: Sequence[Cell]) -> pd.DataFrame:
    """One row a cell: steps, parameters, and seconds of one CPU core's matrix products."""
    rows = []
    for cell in cells:
        s = settings(cell)
        count = sum(_counts(s.network).values())
        named = {name.split(".")[-1]: str(value) for name, value in cell.axes.items()}
        rows.append({**named, "parameters": str(count), "steps": s.training.total,
                     "seconds": round(s.flops / FLOPS, 1)})  # fmt: skip
    return pd.DataFrame(rows)


def run(config: ConfigDict, cells: Sequence[Cell], context: Context) -> None:
    """Trains the missing cells of this shard, one program after another.

    Raises:
      Stopped: on request, when the last chunk is saved.
    """
    mine = sweeps.shard(cells, context.shard)
    parts = programs(context.store.pending(mine), config.execution.most)
    for place, part in enumerate(parts):
        task = settings(part[0]).task
        name = f"{task.target} D={task.D}, program {place + 1} of {len(parts)}"
        _train(config, part, context, name)


def programs(cells: Sequence[Cell], most: int) -> list[list[Cell]]:
    """The cells by program: of one shape, at most so many."""
    groups: dict[tuple[Any, ...], list[Cell]] = {}
    for cell in cells:
        groups.setdefault(settings(cell).shape, []).append(cell)
    return [g[i : i + most] for g in groups.values() for i in range(0, len(g), most)]


class Program(NamedTuple):
    """A trained one; remove `checkpoints` when all that is wanted of it is stored."""

    shared: Ensemble
    runs_R: Run
    found: fitting.Fitted
    checkpoints: fitting.Checkpoints


def train(config: ConfigDict, part: Sequence[Cell], context: Context, name: str) -> Program:
    """Trains the cells of one program, from its checkpoint if there is one.

    Raises:
      Stopped: on request, when the last chunk is saved.
    """
    every = [settings(cell) for cell in part]
    first = every[0]
    devices = mesh.row() if jax.device_count() > 1 else None
    digest = hashlib.sha256(" ".join(cell.name for cell in part).encode()).hexdigest()[:16]
    directory = context.workdir / "programs" / digest
    with wide(first.network):
        standard = scale(first.task, first.training.tokens[-1])
        how = (first.network, first.task, standard, first.training)
        shared = Ensemble(*how, config.execution.batching, devices)
        runs_R = _runs(config.seed, part, every)
        found = fitting.fit(shared, runs_R, first.evaluation, directory, context.stop, name)
    return Program(shared, runs_R, found, fitting.Checkpoints(directory))


def wide(network: NetworkConfig) -> contextlib.AbstractContextManager[Any]:
    """Where the network's numbers are what its `dtype` says."""
    return jax.enable_x64(True) if network.dtype == "float64" else contextlib.nullcontext()


def _train(config: ConfigDict, part: Sequence[Cell], context: Context, name: str) -> None:
    began = time.perf_counter()
    shared, runs_R, found, checkpoints = train(config, part, context, name)
    first = settings(part[0])
    with wide(first.network):
        curve_RT = curves(shared, found, runs_R, first.evaluation)
        looks_R = looks(shared, found, runs_R, first.evaluation)
    seconds = round((time.perf_counter() - began) / len(part), 3)
    origin = provenance.collect()
    for row, cell in enumerate(part):
        metrics = _metrics(settings(cell), shared.scale, found, row, curve_RT[row]) | looks_R[row]
        params = jax.tree.map(lambda leaf_R, row=row: leaf_R[row], found.params_R)
        context.store.write(cell, Result("ok", metrics, 0.0, seconds), origin, flat(params))
    checkpoints.clear()


def _runs(seed: int, part: Sequence[Cell], every: Sequence[Settings]) -> Run:
    """The runs of one program; a run's key depends on its own cell alone."""
    base = jax.random.key(seed)
    keys = [jax.random.key_data(jax.random.fold_in(base, cell.fold)) for cell in part]
    widest = max(every[0].point.slots)
    mask_RLH = [[np.arange(widest) < h for h in s.point.heads] for s in every]
    rates = jnp.array([s.point.rate for s in every], every[0].network.dtype)
    return Run(jnp.stack(keys), jnp.asarray(np.array(mask_RLH)), rates)


def curves(
    shared: Ensemble, found: fitting.Fitted, runs_R: Run, evaluation: Evaluation
) -> np.ndarray:
    """NMSE of every run at each T, on data that chose nothing: (R, lengths)."""
    sets = [fitting.validation(shared, evaluation.examples, T, 1) for T in evaluation.tokens]
    return np.stack([fitting.measure(shared, found.params_R, runs_R, *s) for s in sets], 1)


def looks(
    shared: Ensemble, found: fitting.Fitted, runs_R: Run, evaluation: Evaluation
) -> list[dict[str, Any]]:
    """c0's attention in layer 1 by position, over inputs of the first T; {} where none is encoded.

    `attention_HT` is its mean, `attention_spread_HT` the standard deviation; heads that a run has.
    """
    if shared.network.positions == "none":
        return [{}] * len(runs_R.rate)
    net = transformer.Network(shared.network)
    x_NTD, _ = fitting.validation(shared, evaluation.examples, evaluation.tokens[0], 1)

    def one(params: Params) -> jax.Array:
        def single(x_TD: jax.Array) -> jax.Array:
            return net.apply({"params": params}, x_TD, method="first_terms")[0]

        return jax.nn.softmax(jax.lax.map(single, x_NTD, batch_size=32), 1)

    weight_RNTH = np.asarray(jax.jit(lambda params_R: jax.lax.map(one, params_R))(found.params_R))
    rows = []
    for weight_NTH, mask_LH in zip(weight_RNTH, np.asarray(runs_R.mask_LH), strict=True):
        kept_NHT = weight_NTH.swapaxes(1, 2)[:, mask_LH[0][: weight_NTH.shape[2]]]
        rows.append({"attention_HT": kept_NHT.mean(0), "attention_spread_HT": kept_NHT.std(0)})
    return rows


def flat(params: Any) -> dict[str, np.ndarray]:
    """Parameters by dotted name, as they are stored beside a cell."""
    leaves = jax.tree_util.tree_leaves_with_path(params)
    return {".".join(entry.key for entry in path): np.asarray(leaf) for path, leaf in leaves}


def _metrics(
    s: Settings, standard: Scale, found: fitting.Fitted, row: int, curve_T: np.ndarray
) -> dict[str, Any]:
    history_C = found.history_CR[:, row]
    best = int(np.argmin(history_C))
    counts = _counts(s.network)
    return {
        "nmse": history_C[-1],
        "best": history_C[best],
        "best_step": (best + 1) * s.training.chunk,
        "diverged": int(found.diverged_R[row]),
        "loss": found.loss_R[row],
        "nmse_T": curve_T,
        "history": history_C,
        "parameters": sum(counts.values()),
        "ffn_parameters": counts["ffn"],
        "mean": standard.mean,
        "deviation": standard.deviation,
    }
