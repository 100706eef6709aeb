"""What do states depend on, and is it what the planner says? Networks built and trained.

One cell a network: with explicit weights, whose truth is known, or trained on pairwise maxima, all
trained cells of a shape in one program (`trained`). Stored are precision and recall of every
measure of dependence against the planner's sets, which head does which node, and how well linear
probes read the token that a head looks at.
"""

import dataclasses
import time
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import numpy as np
import pandas as pd
from ml_collections import ConfigDict

from infoflow_jax.calculus import schedule
from infoflow_jax.calculus.architecture import Rules
from infoflow_jax.calculus.measures import measure as measure_tree
from infoflow_jax.calculus.setting import Setting
from infoflow_jax.calculus.tree import Target
from infoflow_jax.experiments import probe_report, trained
from infoflow_jax.networks.config import NetworkConfig, Params
from infoflow_jax.networks.constructions import BUILDERS, compiled, named, planned
from infoflow_jax.probing import agreement, dependence, linear, trace
from infoflow_jax.probing.planned import Planned, plan_inputs
from infoflow_jax.tasks.task import inputs
from infoflow_jax.training import ensemble
from sweep_jax import cells as sweeps
from sweep_jax import provenance, serial
from sweep_jax.cells import Cell
from sweep_jax.checks import require, resolve
from sweep_jax.experiment import Context
from sweep_jax.store import Result

EXCLUDED = ("axes", "execution", "page")
TRAINED = "trained"
_INPUT_KEY = 2**31 - 3  # folded into the task's key; not that of training and validation
report = probe_report.report
Scores = Mapping[str, np.ndarray]


@dataclasses.dataclass(frozen=True)
class Subject:
    """The network of a cell."""

    network: str  # trained, a key of BUILDERS, or a plan as "pairmax 3 in 2 2 1"
    tokens: int  # T of one with explicit weights
    eps: float  # that a plan is compiled for
    beta: float  # of its scores, in place of what eps asks for

    def __post_init__(self) -> None:
        require(4 <= self.tokens <= 256, "tokens", self.tokens, "an integer in 4..256")
        require(1e-4 <= self.eps < 1, "eps", self.eps, "a number in [1e-4, 1)")
        require(0 < self.beta <= 1e12, "beta", self.beta, "a number in (0, 1e12]")
        if self.network not in (TRAINED, *BUILDERS):
            planned(self.network, self.tokens)


@dataclasses.dataclass(frozen=True)
class Probing:
    """What is measured."""

    inputs: int  # on which sets are measured
    draws: int  # in place of each token
    linear_inputs: int  # for linear probes, half of them to fit

    def __post_init__(self) -> None:
        for name, least in (("inputs", 4), ("draws", 1), ("linear_inputs", 4)):
            value = getattr(self, name)
            require(value >= least, name, value, f"an integer >= {least}")


def settings(cell: Cell) -> tuple[Subject, Probing]:
    """Resolves what a cell probes, and how."""
    subject = resolve(Subject, cell.config["subject"], "config.subject")
    return subject, resolve(Probing, cell.config["probing"], "config.probing")


def validate(config: ConfigDict, cells: Sequence[Cell]) -> None:
    """Refuses what cannot be trained, built or planned, with ValueError."""
    trained.validate(config, cells)
    for cell in cells:
        subject, _ = settings(cell)
        if subject.network == TRAINED:
            s = trained.settings(cell)
            known = s.task.target.startswith("pairmax")
            require(known, "config.task.target", s.task.target, "a pairmax, whose plan is known")


def plan(config: ConfigDict, cells: Sequence[Cell]) -> pd.DataFrame:
    """One row a cell; seconds of a CPU core, training and probing without compilation."""
    rows = []
    for cell in cells:
        subject, how = settings(cell)
        name, seconds, T = subject.network, 0.0, subject.tokens
        if name == TRAINED:
            row = trained.plan(config, [cell]).iloc[0]
            s = trained.settings(cell)
            name, seconds, T = f"trained {s.point.heads}", row["seconds"], s.training.tokens[-1]
            passes = how.inputs * T * (2 * how.draws + s.task.d)
            seconds += passes * 2 * s.network.products(T) / trained.FLOPS
        brute = how.inputs * T * T * 2e-5  # the planner's answers, by loops in Python
        rows.append({"network": name, "T": str(T), "seconds": round(seconds + brute + 1, 1)})
    return pd.DataFrame(rows)


def run(config: ConfigDict, cells: Sequence[Cell], context: Context) -> None:
    """Builds, trains and probes the missing cells of this shard.

    Raises:
      Stopped: on request, between two cells or when the last chunk of training is saved.
    """
    made = [cell for cell in cells if settings(cell)[0].network != TRAINED]
    if made:
        serial.run(made, context, "probing", _constructed)
    mine = sweeps.shard([cell for cell in cells if cell not in made], context.shard)
    for part in trained.programs(context.store.pending(mine), config.execution.most):
        _trained(config, part, context)


def _constructed(cell: Cell) -> dict[str, Any]:
    subject, how = settings(cell)
    seed, T = cell.config["seed"], subject.tokens
    if subject.network in BUILDERS:
        made = named(subject.network, T, 16, subject.beta, seed)
    else:
        made = compiled(subject.network, T, subject.eps, seed)
    network = dataclasses.replace(made.config, beta=subject.beta)
    rng = np.random.default_rng([seed, cell.fold])
    x_NTD = rng.uniform(made.low, made.high, (how.inputs, T, network.d))
    other_NKTD = rng.uniform(made.low, made.high, (how.inputs, how.draws, T, network.d))
    best = plan_of(made.target, network, T)
    answer = plan_inputs(best, made.target, made.weights, x_NTD)
    found = dependence.measure(network, made.params, None, x_NTD, other_NKTD)
    return _agreement(found, answer, cell.fold) | {"heads": _text(network.heads), "T": T}


def plan_of(target: Target, network: NetworkConfig, T: int) -> schedule.Schedule:
    """The planner's schedule of a target in a network's heads; complete or not."""
    placed = network.positions != "none"
    setting = Setting(measure_tree(target), T, network.d, placed, Rules())
    return schedule.best(setting, network.heads)


def _trained(config: ConfigDict, part: Sequence[Cell], context: Context) -> None:
    began = time.perf_counter()
    program = trained.train(config, part, context, "networks to probe")
    with trained.wide(program.shared.network):
        alone = dataclasses.replace(program.shared, mesh=None)
        fresh_R = jax.tree.map(np.asarray, ensemble.start(alone, program.runs_R).params)
    seconds, origin = (time.perf_counter() - began) / len(part), provenance.collect()
    for row, cell in enumerate(part):
        began = time.perf_counter()
        now, fresh = (
            jax.tree.map(lambda leaf_R, row=row: leaf_R[row], tree)
            for tree in (program.found.params_R, fresh_R)
        )
        metrics = _probed(cell, now, fresh)
        metrics |= {"nmse": program.found.history_CR[-1, row]}
        taken = round(seconds + time.perf_counter() - began, 3)
        context.store.write(cell, Result("ok", metrics, 0.0, taken), origin, trained.flat(now))
    program.checkpoints.clear()


def _probed(cell: Cell, params: Params, fresh: Params) -> dict[str, Any]:
    s, (_, how) = trained.settings(cell), settings(cell)
    T, most = s.training.tokens[-1], max(s.network.heads)
    mask_LH = np.array([np.arange(most) < h for h in s.point.heads])
    key = jax.random.fold_in(jax.random.key(s.task.draw), _INPUT_KEY)
    keys = jax.random.split(key, 3)
    shapes = ((how.inputs, T), (how.inputs, how.draws, T), (how.linear_inputs, T))
    with trained.wide(s.network):
        x_NTD, other_NKTD, wide_NTD = (
            np.asarray(inputs(s.task, k, shape, s.network.dtype))
            for k, shape in zip(keys, shapes, strict=True)
        )
    found = dependence.measure(s.network, params, mask_LH, x_NTD, other_NKTD)
    # The planner is asked about heads that suffice: an infeasible network has no complete plan.
    enough = dataclasses.replace(s.network, heads=(s.task.D,) * s.network.layers)
    tree = s.task.tree
    assert tree is not None  # `validate` lets a pairmax pass only
    best = plan_of(tree, enough, T)
    A_IDD = s.task.weights()
    ways = [plan_inputs(best, tree, _weights(A), x_NTD) for A in (A_IDD, A_IDD.swapaxes(1, 2))]
    _, weights_NLHPS = trace.observe(s.network, params, mask_LH, x_NTD)
    turned_I, matched = _matched(weights_NLHPS, ways, s.point.heads, s.task.D)
    if turned_I.any():  # a max over both indices is the same with A_i or its transpose
        A_IDD = np.where(turned_I[:, None, None], A_IDD.swapaxes(1, 2), A_IDD)
        ways[0] = plan_inputs(best, tree, _weights(A_IDD), x_NTD)
    metrics = _agreement(found, ways[0], cell.fold) | {"heads": _text(s.point.heads), "T": T}
    return metrics | matched | _linear(s, mask_LH, params, fresh, wide_NTD)


def _weights(A_IDD: np.ndarray) -> dict[str, np.ndarray]:
    return {f"A{i + 1}": A_DD for i, A_DD in enumerate(A_IDD)}


def _matched(
    weights_NLHPS: np.ndarray, ways: Sequence[Planned], heads: Sequence[int], D: int
) -> tuple[np.ndarray, dict[str, Any]]:
    """Heads of both layers against the matrices, and which of these fit better transposed."""
    metrics: dict[str, Any] = {}
    turned_I = np.zeros(D, bool)
    for layer, node in enumerate(("max_s", "max_t")):
        names = [(layer, f"{node}{i + 1}") for i in range(D)]
        picked_NHP = weights_NLHPS[:, layer, : heads[layer]].argmax(-1)
        plain_HI, turned_HI = (
            agreement.shares(picked_NHP, np.stack([way.keys[name] for name in names]))
            for way in ways
        )
        if layer == 0:
            pairs = agreement.match(np.maximum(plain_HI, turned_HI))
            turned_I[[i for h, i in pairs if turned_HI[h, i] > plain_HI[h, i]]] = True
        share_HI = np.where(turned_I, turned_HI, plain_HI)
        pairs = agreement.match(share_HI)
        metrics[f"pairs_{layer + 1}"] = [f"{h + 1}-{i + 1}" for h, i in pairs]
        metrics[f"shares_{layer + 1}"] = [share_HI[h, i] for h, i in pairs]
        rest = np.delete(share_HI, [h * D + i for h, i in pairs])
        metrics[f"rest_{layer + 1}"] = float(rest.mean()) if len(rest) else np.nan
    return turned_I, metrics


def _agreement(scores: Scores, answer: Planned, seed: int) -> dict[str, Any]:
    """Rows (states, sets, method, tolerance, precision and recall with intervals, equal)."""
    _, layers, _, T = answer.known_NLPS.shape
    rows, curves = [], []
    for layer in range(layers):
        for states, queries in (("tokens", slice(0, T)), ("c0", slice(T, T + 1))):
            if states == "tokens" and layer == layers - 1:
                continue  # not computed
            others_QS = ~np.eye(T + 1, T, dtype=bool)[queries]  # itself is no finding
            known_NQS, used_NQS = (
                sets[:, layer, queries] & others_QS
                for sets in (answer.known_NLPS, answer.used_NLPS)
            )
            named = {"known": known_NQS} if known_NQS.any() else {}
            if (known_NQS != used_NQS).any():
                named["used"] = used_NQS
            for sets, wanted_NQS in named.items():
                for method in dependence.METHODS:
                    score_NQS = np.where(others_QS, scores[method][:, layer, queries], 0)
                    got = agreement.agree(score_NQS, wanted_NQS, seed)
                    name = [f"{states} {layer + 1}", sets, method]
                    rows.append([*name, got.tolerance, *got.precision, *got.recall, got.equal])
                    lines = agreement.curve(score_NQS, wanted_NQS)
                    curves.append([*name, *(line.tolist() for line in lines)])
    return {"rows": rows, "curves": curves}


def _linear(
    s: trained.Settings, mask_LH: np.ndarray, params: Params, fresh: Params, x_NTD: np.ndarray
) -> dict[str, Any]:
    """Error of reading the tokens that layer-1 heads look at most, and second most."""
    T, metrics = x_NTD.shape[1], dict[str, Any]()
    for rank, name in ((1, "max"), (2, "second")):
        for when, tree in (("trained", params), ("initial", fresh)):
            states_NLPE, weights_NLHPS = trace.observe(s.network, tree, mask_LH, x_NTD)
            metrics[f"linear_{name}_{when}"] = [
                linear.error(
                    states_NLPE[:, 0, :T],
                    linear.ranked_tokens(weights_NLHPS[:, 0, h, :T], x_NTD, rank),
                )
                for h in range(s.point.heads[0])
            ]
    return metrics


def _text(heads: Sequence[int]) -> str:
    return "-".join(map(str, heads))
