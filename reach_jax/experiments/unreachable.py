"""Which tokens can no state make the argmax? Each decided with a proof that is checked again.

One cell decides a part of the vocabulary, for one output bias and one set of states. All that a
verdict rests on is stored: a witness vector, or the tokens and weights that mix to the row.
"""

import dataclasses
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from ml_collections import ConfigDict

from reach_jax.experiments import sampling, unreachable_report, zoo
from reach_jax.geometry import unreachable
from reach_jax.geometry.separation import Problem, Verdict, problem
from reach_jax.geometry.states import SupportConfig
from reach_jax.geometry.unreachable import UnreachableConfig
from sweep_jax import progress, provenance
from sweep_jax.cells import Cell, shard
from sweep_jax.checks import require, resolve
from sweep_jax.experiment import Context
from sweep_jax.stop import Stopped
from sweep_jax.store import Result

EXCLUDED = ("axes",)
STATUSES = ("reachable", "unreachable", "undecided")
STATES = ("any", "box")


@dataclasses.dataclass(frozen=True)
class Item:
    """What one cell decides."""

    bias: str  # none, unigram, or the path of a .npy file of V numbers
    states: str  # any vector, or those of the measured box
    blocks: int
    block: int

    def __post_init__(self) -> None:
        known = self.bias in ("none", "unigram") or Path(self.bias).is_file()
        require(known, "bias", self.bias, "none, unigram, or a .npy file of V numbers")
        require(self.states in STATES, "states", self.states, f"one of {STATES}")
        require(self.blocks >= 1, "blocks", self.blocks, "an integer >= 1")
        require(0 <= self.block < self.blocks, "block", self.block, f"in [0, {self.blocks})")


@dataclasses.dataclass(frozen=True)
class Settings:
    """Everything the experiment reads."""

    seed: int
    choice: zoo.Choice
    support: SupportConfig
    decide: UnreachableConfig
    text: str


def settings(config: ConfigDict) -> Settings:
    """Resolves `config`.

    Raises:
      ValueError: a field is missing, unknown, of the wrong type, or does not fit the others.
    """
    values = config.to_dict()
    sampling.check_text(values["text"]["path"], "config.text.path")
    return Settings(
        values["seed"],
        zoo.choice(values),
        resolve(SupportConfig, values["support"], "config.support"),
        resolve(UnreachableConfig, values["decide"], "config.decide"),
        values["text"]["path"],
    )


def items(cells: Sequence[Cell]) -> list[Item]:
    """What each cell decides."""
    return [resolve(Item, cell.config["cell"], "config.cell") for cell in cells]


def validate(config: ConfigDict, cells: Sequence[Cell]) -> None:
    """Refuses what cannot run, with ValueError, before any device work."""
    s, found = settings(config), items(cells)
    model = zoo.describe(s.choice)
    if model is not None:
        most = max(item.blocks for item in found)
        require(most <= model.vocab_size, "config.axes.blocks", most, f"<= {model.vocab_size}")
    if any(item.bias == "unigram" for item in found):
        zoo.check_tokenizer(s.choice, "config.axes.biases = unigram")


def plan(config: ConfigDict, cells: Sequence[Cell]) -> pd.DataFrame:
    """One row a cell, with the matrix products of its cheap tries and checks; no linear program."""
    s = settings(config)
    model = zoo.describe(s.choice)
    pair = 0 if model is None else 2 * model.vocab_size * model.width
    rows = []
    for cell, item in zip(cells, items(cells), strict=True):
        tokens = 0 if model is None else model.vocab_size // item.blocks
        row = {"name": cell.name, **dataclasses.asdict(item), "tokens": tokens}
        rows.append({**row, "GFLOP_about": round(4 * tokens * pair / 1e9, 1)})
    return pd.DataFrame(rows)


def run(config: ConfigDict, cells: Sequence[Cell], context: Context) -> None:
    """Decides the parts that are missing.

    Raises:
      Stopped: on request, between two batches; the part at hand is lost.
    """
    s = settings(config)
    mine = shard(cells, context.shard)
    pending = context.store.pending(mine)
    if not pending:
        return
    model = zoo.load(s.choice, context.workdir, context.stop)
    heads = _Heads(s, model)
    origin = provenance.collect() | {"model": sampling.card(model)}
    all_items = items(mine)
    total = sum(len(_part(model.tokens, item)) for item in all_items)
    left = sum(len(_part(model.tokens, item)) for item in items(pending))
    with progress.bar(total, "deciding", "tokens", total - left) as bar:
        for cell, item in zip(pending, items(pending), strict=True):
            began = time.perf_counter()
            metrics, arrays = _decide(s, heads, item, context, bar)
            took = round(time.perf_counter() - began, 3)
            context.store.write(cell, Result("ok", metrics, 0.0, took), origin, arrays)


def report(config: ConfigDict, cells: Sequence[Cell], context: Context) -> str:
    """Writes tables and page from what is stored; returns the text to print."""
    return unreachable_report.write(settings(config).decide.tolerance, items(cells), cells, context)


class _Heads:
    """The head with each bias and set of states, as problems over rows that all differ."""

    def __init__(self, s: Settings, model: zoo.Model) -> None:
        self._s, self._model = s, model
        self.head_VD = sampling.head(model)

    def bias(self, name: str) -> np.ndarray | None:
        """The bias of that name, (V,)."""
        V = len(self.head_VD)
        if name == "none":
            return None
        if name == "unigram":
            stream_S = sampling.text(self._s.text, self._s.choice, self._model)
            counts_V = np.bincount(stream_S[stream_S < V], minlength=V) + 1  # add-one smoothing
            return np.log(counts_V / counts_V.sum()).astype(np.float32)
        bias_V = np.load(name, allow_pickle=False)
        require(bias_V.shape == (V,), f"bias {name}", bias_V.shape, f"({V},)")
        return bias_V

    def text(self, token: int) -> str:
        """The text of a token."""
        return self._model.text([token])

    def problem(self, item: Item) -> tuple[Problem, np.ndarray]:
        """The problem over the different rows, and each token's lowest equal."""
        bias_V = self.bias(item.bias)
        lowest_V = unreachable.classes(self.head_VD, bias_V)
        kept_U = np.unique(lowest_V)
        box = None
        if item.states == "box":
            support = sampling.measured(self._model, self._s.support, self._s.seed).support
            box = support.lo_D, support.hi_D
        p = problem(self.head_VD[kept_U], None if bias_V is None else bias_V[kept_U], box)
        return p, lowest_V

    def states(self, p: Problem) -> Iterator[np.ndarray]:
        """Random states as the problem has them."""
        for batch_BD in sampling.batches(self._model, self._s.support, self._s.seed):
            x_BD = np.asarray(batch_BD, np.float32)
            if p.rows_VD.shape[1] > x_BD.shape[1]:  # the lifted coordinate of a bias
                x_BD = np.pad(x_BD, ((0, 0), (0, 1)), constant_values=1)
            yield p.project(x_BD)


def _part(tokens: int, item: Item) -> np.ndarray:
    """The tokens of a block: every n-th, so that blocks are alike."""
    return np.arange(item.block, tokens, item.blocks)


def _decide(
    s: Settings, heads: _Heads, item: Item, context: Context, bar: progress.Bar
) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    p, lowest_V = heads.problem(item)
    tokens_N = _part(len(lowest_V), item)
    kept_U = np.unique(lowest_V)
    own_N = tokens_N[lowest_V[tokens_N] == tokens_N]  # the others equal a lower token
    bar.update(len(tokens_N) - len(own_N))
    rows_N = np.searchsorted(kept_U, own_N)
    found = unreachable.decide(
        p,
        rows_N,
        s.decide,
        heads.states(p),
        lambda decided: bar.update(decided, last=f"bias {item.bias}, states {item.states}"),
        lambda: context.stop.requested,
    )
    if found is None:
        raise Stopped("stopped within a part of the vocabulary; the same command begins it again")
    held = unreachable.recheck(p, rows_N, found, s.decide.tolerance)
    assert held.all(), tokens_N[~held]  # a fault of this program, never of the input
    verdicts = dict(zip(own_N.tolist(), found, strict=True))
    for token in sorted(set(tokens_N.tolist()) - set(verdicts)):
        equal = np.array([np.searchsorted(kept_U, lowest_V[token])])
        verdicts[token] = Verdict(
            "unreachable", "equal to a lower token", 0.0, None, equal, np.ones(1)
        )
    ordered = [verdicts[token] for token in tokens_N.tolist()]
    counts = Counter(v.status for v in ordered)
    stages = Counter(f"{v.status}: {v.by}" for v in ordered)
    margins_R = np.array([v.margin for v in ordered if v.status == "reachable"])
    metrics = {
        "tokens": len(ordered),
        **{status: counts[status] for status in STATUSES},
        "met_at_a_state": stages["reachable: state"],
        "rechecked": int(held.sum()),
        "least_margin": float(margins_R.min()) / p.scale if len(margins_R) else None,
        "scale": p.scale,
        "one_signed": int(((p.lo_D >= 0) | (p.hi_D <= 0)).sum()) if item.states == "box" else None,
        "stages": [f"{name}: {n}" for name, n in sorted(stages.items())],
        "texts": [
            repr(heads.text(token))
            for token, v in zip(tokens_N.tolist(), ordered, strict=True)
            if v.status != "reachable"
        ],
    }
    return metrics, _packed(tokens_N, ordered, kept_U)


def _packed(
    tokens_N: np.ndarray, verdicts: Sequence[Verdict], kept_U: np.ndarray
) -> dict[str, np.ndarray]:
    """The verdicts as arrays; certificates one after the other, `starts` their first places."""
    witnesses = [v.witness_D for v in verdicts if v.witness_D is not None]
    witness_RD = np.stack(witnesses) if witnesses else np.zeros((0, 0))
    single_RD = witness_RD.astype(np.float32)
    exact = bool((single_RD == witness_RD).all())
    others = [v.others_J if v.others_J is not None else np.zeros(0, int) for v in verdicts]
    weights = [v.weights_J if v.weights_J is not None else np.zeros(0) for v in verdicts]
    reasons = sorted({v.by for v in verdicts})
    return {
        "tokens": tokens_N,
        "status": np.array([STATUSES.index(v.status) for v in verdicts], np.int8),
        "margin": np.array([v.margin for v in verdicts]),
        "reason": np.array([reasons.index(v.by) for v in verdicts], np.int16),
        "reasons": np.frombuffer("\n".join(reasons).encode(), np.uint8),
        "witness": single_RD if exact else witness_RD,
        "starts": np.cumsum([0, *map(len, others)]),
        "others": kept_U[np.concatenate(others).astype(int)],
        "weights": np.concatenate(weights),
    }
