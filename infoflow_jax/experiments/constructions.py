"""How far are the explicit networks from their targets, and how far may they be?

One cell a construction, number of tokens and resolution, beta or eps: the largest error over drawn
inputs, half of them with near ties, beside the proven bound and the network's size. In float64. A
sup over drawn inputs is a lower bound of the true one, so only an error above the bound decides.
`constructions_report` writes what is stored.
"""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from ml_collections import ConfigDict

from infoflow_jax.experiments import constructions_report
from infoflow_jax.networks import transformer
from infoflow_jax.networks.construction import draw, sup_error
from infoflow_jax.networks.constructions import BUILDERS, compiled, named, planned
from sweep_jax import serial
from sweep_jax.cells import Cell
from sweep_jax.checks import require, resolve
from sweep_jax.experiment import Context

EXCLUDED = ("axes",)
ROUNDING = constructions_report.ROUNDING
COMPILED = "compiled"
LEAST_EPS = 1e-6  # below it the feed-forward networks no longer fit in memory


@dataclasses.dataclass(frozen=True)
class Point:
    """What one cell measures."""

    construction: str
    tokens: int  # T
    resolution: int
    beta: float
    plan: str
    eps: float

    def __post_init__(self) -> None:
        known = [*BUILDERS, COMPILED]
        require(self.construction in known, "construction", self.construction, f"one of {known}")
        require(4 <= self.tokens <= 4096, "tokens", self.tokens, "an integer in 4..4096")
        least = 2 if self.construction.startswith("packed") else 1
        ok = least <= self.resolution <= 2**14
        require(ok, "resolution", self.resolution, f"an integer in {least}..{2**14}")
        require(0 < self.beta <= 1e12, "beta", self.beta, "a number in (0, 1e12]")
        if self.construction.startswith("packed"):
            codes = self.resolution ** int(self.construction[-1])
            require(codes <= 2**16, "resolution", self.resolution, "at most 2^16 codes")
        require(LEAST_EPS <= self.eps < 1, "eps", self.eps, f"a number in [{LEAST_EPS}, 1)")
        if self.construction == COMPILED:
            planned(self.plan, self.tokens)
        else:
            require(not self.plan, "plan", self.plan, f"'' unless the construction is {COMPILED}")


@dataclasses.dataclass(frozen=True)
class Sampling:
    """The inputs tried."""

    inputs: int
    compiled: int  # of a compiled network

    def __post_init__(self) -> None:
        for name in ("inputs", "compiled"):
            require(getattr(self, name) >= 2, name, getattr(self, name), "an integer >= 2")


def validate(config: ConfigDict, cells: Sequence[Cell]) -> None:
    """Refuses unknown constructions and impossible numbers, with ValueError."""
    for cell in cells:
        _settings(cell)


def plan(config: ConfigDict, cells: Sequence[Cell]) -> pd.DataFrame:
    """One row a cell; nearly all of its seconds are compilation."""
    rows = [dataclasses.asdict(_settings(cell)[0]) for cell in cells]
    return pd.DataFrame(rows).assign(seconds=2.0).drop(columns=["resolution", "beta", "tokens"])


def run(config: ConfigDict, cells: Sequence[Cell], context: Context) -> None:
    """Measures the cells that are missing.

    Raises:
      Stopped: between two cells, when asked to.
    """
    serial.run(cells, context, "measuring", _measure)


def report(config: ConfigDict, cells: Sequence[Cell], context: Context) -> str:
    """Writes table, figure and page from what is stored; returns the text to print."""
    return constructions_report.write(cells, context)


def _settings(cell: Cell) -> tuple[Point, Sampling]:
    seed = cell.config["seed"]
    require(0 <= seed < 2**31, "config.seed", seed, "an integer in [0, 2^31)")
    point = resolve(Point, cell.config["cell"], "config.cell")
    return point, resolve(Sampling, cell.config["sampling"], "config.sampling")


def _measure(cell: Cell) -> dict[str, Any]:
    point, sampling = _settings(cell)
    seed = cell.config["seed"]
    if point.construction == COMPILED:
        made, inputs = compiled(point.plan, point.tokens, point.eps, seed), sampling.compiled
    else:
        made = named(point.construction, point.tokens, point.resolution, point.beta, seed)
        inputs = sampling.inputs
    x_BTD = draw(made, np.random.default_rng([seed, cell.fold]), inputs, point.tokens)
    error, bound = sup_error(made, x_BTD), made.bound(point.tokens)
    counts = transformer.parameters(made.config)
    found: dict[str, Any] = {
        "error": error,
        "bound": bound,
        "violations": int(error > bound + ROUNDING),
        "hidden": sum(sum(widths) for widths in made.config.ffn) + sum(made.config.encoder_widths),
        "law": made.law,
        "ffn_parameters": counts["ffn"],
        "encoder_parameters": counts["encoder"],
        "parameters": sum(counts.values()),
        "width": made.config.width,
        "head_width": made.config.head_width,
    }
    if point.construction == COMPILED:
        return found | {"beta_of_eps": made.config.beta}
    scaled = {"error_K2": error * point.resolution**2, "error_beta": error * point.beta}
    return found | scaled
