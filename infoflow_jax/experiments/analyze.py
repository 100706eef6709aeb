"""From a target to what an architecture can do with it, and to the smallest one that finds it.

Planning only: nothing is trained, and the one input that is looked at is there to be drawn.
`analyze_report` writes what is stored.
"""

import dataclasses
import math
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from ml_collections import ConfigDict

from infoflow_jax.calculus import costs, targets
from infoflow_jax.calculus.architecture import Architecture, Budget, Rules
from infoflow_jax.calculus.frontier import Point, fewest_heads, fewest_layers, frontier
from infoflow_jax.calculus.meaning import Evaluator, weight_shapes
from infoflow_jax.calculus.measures import Measures, measure
from infoflow_jax.calculus.planner import Prediction, predict, published, setting_of
from infoflow_jax.calculus.realize import realize
from infoflow_jax.calculus.setting import Setting
from infoflow_jax.calculus.text import parse
from infoflow_jax.calculus.tree import Target
from infoflow_jax.experiments import analyze_report
from sweep_jax import serial
from sweep_jax.cells import Cell
from sweep_jax.checks import BadInput, require, resolve
from sweep_jax.experiment import Context

EXCLUDED = ("axes",)
LEAST_EPS = 1e-300  # float64 has few digits below
DRAWN = 10  # T at most of the input that is drawn: its keys are found by brute force


@dataclasses.dataclass(frozen=True)
class Drawing:
    """The input that the flow is drawn for."""

    tokens: int


@dataclasses.dataclass(frozen=True)
class Settings:
    """Everything the experiment reads of one cell; see configs/infoflow_analyze.py."""

    seed: int
    target: str
    D: int
    tree: str
    heads: tuple[int, ...]
    layers: int | None
    width: int
    d: int
    tokens: int
    positions: bool | None
    baseline: float
    eps: float
    lengths: tuple[int, ...]
    rules: Rules
    budget: Budget
    drawing: Drawing

    def __post_init__(self) -> None:
        expected = f"a number in (0, 1), {LEAST_EPS} at least"
        require(LEAST_EPS <= self.eps < 1, "eps", self.eps, expected)
        require(len(self.lengths) >= 1, "lengths", self.lengths, "at least one T")
        if self.layers is not None:
            L = self.layers
            require(L >= 1, "layers", L, "an integer >= 1, or None")
            why = "None when heads are to be found; budget.layers limits the search"
            require(len(self.heads) > 0, "layers", L, why)
            why = f"one number for each of the {L} layers"
            require(len(self.heads) == L, "heads", self.heads, why)
        require(0 <= self.seed < 2**31, "seed", self.seed, "an integer in [0, 2^31)")
        measures = measure(self.question)
        least = measures.shortest
        why = f"an integer >= {least}, the target's order and places"
        require(self.tokens >= least, "tokens", self.tokens, why)
        require(min(self.lengths) >= least, "lengths", self.lengths, f"each {why}")
        drawn = self.drawing.tokens
        require(1 <= drawn <= DRAWN, "drawing.tokens", drawn, f"in 1..{DRAWN}")
        self.architecture(self.heads or (1,), self.width)  # refuses what does not fit
        self.architecture((1,), 1, max(self.lengths))
        weight_shapes(self.question, self.d)

    @cached_property
    def question(self) -> Target:
        """The target itself.

        Raises:
          ValueError: it is not well formed; of a text the error names the field `tree`.
        """
        if not self.tree:
            return targets.named(self.target, self.D)
        try:
            target = parse(self.tree)
            measure(target)
        except ValueError as error:
            said = str(error)
            said = said.removeprefix("target") if said.startswith("target") else f": {said}"
            raise BadInput(f"tree{said}") from None
        return target

    def encoded(self, measures: Measures) -> bool:
        """Whether there is a positional encoding."""
        reads = any(node.kind == "read" for node in measures.nodes)
        return reads if self.positions is None else self.positions

    def architecture(
        self, heads: tuple[int, ...], width: int, tokens: int | None = None
    ) -> Architecture:
        """The setting, with these heads."""
        positions = self.encoded(measure(self.question))
        T = self.tokens if tokens is None else tokens
        return Architecture(heads, width, self.d, T, positions, self.baseline)


def settings(cell: Cell) -> Settings:
    """Resolves a cell's config.

    Raises:
      ValueError: a field is missing, unknown, of the wrong type, or does not fit the others.
    """
    others = ("experiment", "precision")
    values = {name: item for name, item in cell.config.items() if name not in others}
    return resolve(Settings, values, "config")


def validate(config: ConfigDict, cells: Sequence[Cell]) -> None:
    """Refuses what cannot be analysed, with ValueError, before any array is made."""
    for cell in cells:
        settings(cell)


def plan(config: ConfigDict, cells: Sequence[Cell]) -> pd.DataFrame:
    """One row a target; a second each."""
    found = [settings(cell) for cell in cells]
    names = ["text" if s.tree else s.target for s in found]
    return pd.DataFrame({"target": names, "seconds": [1.0] * len(names)})


def run(config: ConfigDict, cells: Sequence[Cell], context: Context) -> None:
    """Analyses the targets that are missing.

    Raises:
      Stopped: on request, between two targets.
    """
    serial.run(cells, context, "analysing", lambda cell: analyse(settings(cell)))


def report(config: ConfigDict, cells: Sequence[Cell], context: Context) -> str:
    """Writes tables, figures and page from what is stored; returns the text to print."""
    return analyze_report.write(cells, context)


def analyse(s: Settings) -> dict[str, Any]:
    """Everything that is said of a target: numbers, text and lists."""
    target = s.question
    measures = measure(target)
    setting = setting_of(s.architecture((1,), 1), target, s.rules)
    points = frontier(setting, s.budget, s.baseline)
    heads, width = _heads(s, points)
    found = predict(s.architecture(heads, width), target, s.rules)
    growth = [predict(s.architecture(heads, width, T), target, s.rules) for T in s.lengths]
    with_comparisons = float(costs.ln_comparisons(measures.order, s.tokens, s.eps))
    return {
        "what": "given as text" if s.tree else targets.SHIPPED[s.target].what,
        "beyond": _beyond(s),
        "tree": str(target),
        "order": measures.order,
        "dimension": measures.dimension,
        "depth": measures.depth,
        "comparisons": str(measures.number(s.tokens)),
        "T": s.tokens,
        "d": s.d,
        "positions": setting.positions,
        "heads": list(heads),
        "E": width,
        "feasible": found.feasible,
        "published": found.published,
        "exponent": found.exponent,
        "at least": found.at_least,
        "log10 parameters": float(costs.ln_parameters(found.exponent, s.eps)) / math.log(10),
        "log10 comparisons/eps": with_comparisons / math.log(10),
        "laws": [list(dataclasses.astuple(law)) for law in found.laws],
        "reasons": [[reason.node, reason.reason] for reason in found.reasons],
        "notes": [*found.notes, *_widened(s, width)],
        "schedule": [list(dataclasses.astuple(p)) for p in found.schedule.placements],
        "fetched": [list(pair) for pair in found.schedule.fetched],
        "load": found.schedule.load,
        "knows": [
            [layer, host, sorted(known)]
            for layer, hosts in enumerate(found.knows)
            for host, known in hosts.items()
        ],
        "growth": [[T, p.exponent, p.at_least] for T, p in zip(s.lengths, growth, strict=True)],
        "frontier": [
            [list(p.heads), p.width, p.schedule.load, published(setting, p.schedule)]
            for p in points
        ],
        "fewest heads": _named(setting, fewest_heads(points)),
        "fewest layers": _named(setting, fewest_layers(points)),
        **_drawn(s, found),
    }


def _beyond(s: Settings) -> str:
    """What is allowed beyond the target's own reads and the published uses of heads."""
    said = [field.name.replace("_", " ") for field in dataclasses.fields(s.rules)
            if getattr(s.rules, field.name)]  # fmt: skip
    return ", ".join(["positions"] * bool(s.positions) + said)


def _heads(s: Settings, points: tuple[Point, ...]) -> tuple[tuple[int, ...], int]:
    """The architecture that is asked about: the given one, the smallest, or all of the budget."""
    if s.heads:
        return s.heads, s.width
    smallest = fewest_layers(points)
    if smallest is not None:
        step = math.lcm(*smallest.heads)
        return smallest.heads, step * math.ceil(max(s.width, smallest.width) / step)
    return (s.budget.heads,) * s.budget.layers, s.budget.heads * math.ceil(s.width / s.budget.heads)


def _widened(s: Settings, width: int) -> list[str]:
    """What is to be said when E is not the given one; heads that are given never change it."""
    said = f"E = {width} and not {s.width}: a multiple of the heads that holds what they find"
    return [said] if width != s.width else []


def _named(setting: Setting, point: Point | None) -> str:
    if point is None:
        return "none in the budget"
    mark = "" if published(setting, point.schedule) else " (prediction)"
    return f"({', '.join(map(str, point.heads))}), E ≥ {point.width}{mark}"


def _drawn(s: Settings, found: Prediction) -> dict[str, Any]:
    """The flow on a random input, or why there is none."""
    target, T = s.question, s.drawing.tokens
    measures = measure(target)
    empty: dict[str, Any] = {"known": [], "moves": [], "readers": []}
    if measures.shortest > T:
        return empty | {"not drawn": f"the target needs T >= {measures.shortest}, not {T}"}
    heads = found.schedule.heads
    smaller = predict(s.architecture(heads, math.lcm(*heads), T), target, s.rules)
    names = {node.name for node in measures.nodes}
    if any(p.node not in names for p in smaller.schedule.placements):
        return empty | {"not drawn": "pointers that double are no nodes of the target"}
    rng = np.random.default_rng(s.seed)
    weights = targets.draw_weights(target, s.d, rng)
    run = Evaluator(target, rng.standard_normal((T, s.d)), weights)
    flow = realize(smaller.schedule, run)
    return {
        "known": flow.known_LPP.astype(int),
        "moves": [list(move) for move in flow.moves],
        "readers": [T] if target.each is None else list(range(T)),
        "not drawn": "",
    }
