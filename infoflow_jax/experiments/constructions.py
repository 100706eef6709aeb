"""How far are the explicit networks from their targets, and how far may they be?

One cell a construction, number of tokens and resolution or beta: the largest error over drawn
inputs, half of them with near ties, beside the proven bound and the FFN's size. In float64. A sup
over drawn inputs is a lower bound of the true one, so only an error above the bound decides.
"""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from ml_collections import ConfigDict

from infoflow_jax.figures import construction_figure
from infoflow_jax.networks import transformer
from infoflow_jax.networks.construction import draw, sup_error
from infoflow_jax.networks.constructions import BUILDERS, named
from sweep_jax import drawing, provenance, serial
from sweep_jax.cells import Cell
from sweep_jax.checks import require, resolve
from sweep_jax.experiment import Context
from sweep_jax.report import Section, write_report
from sweep_jax.store import table, write_table

EXCLUDED = ("axes",)
ROUNDING = 1e-9  # of float64 in these networks: a bound leaves it out

LEAD = """Every network here is the transformer of networks/transformer.py with weights written
down, not trained. Its largest error over drawn inputs stands beside the bound that is proven where
its weights are built."""


@dataclasses.dataclass(frozen=True)
class Point:
    """What one cell measures."""

    construction: str
    tokens: int  # T
    resolution: int
    beta: float

    def __post_init__(self) -> None:
        require(
            self.construction in BUILDERS,
            "construction",
            self.construction,
            f"one of {list(BUILDERS)}",
        )
        require(4 <= self.tokens <= 4096, "tokens", self.tokens, "an integer in 4..4096")
        least = 2 if self.construction.startswith("packed") else 1
        ok = least <= self.resolution <= 2**14
        require(ok, "resolution", self.resolution, f"an integer in {least}..{2**14}")
        require(0 < self.beta <= 1e12, "beta", self.beta, "a number in (0, 1e12]")
        if self.construction.startswith("packed"):
            codes = self.resolution ** int(self.construction[-1])
            require(codes <= 2**16, "resolution", self.resolution, "at most 2^16 codes")


@dataclasses.dataclass(frozen=True)
class Sampling:
    """The inputs tried."""

    inputs: int

    def __post_init__(self) -> None:
        require(self.inputs >= 2, "inputs", self.inputs, "an integer >= 2")


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
    frame = table(context.store, cells)
    write_table(frame, context.workdir)
    stored = f"{len(frame)} of {len(cells)} cells are stored in {context.workdir}"
    if frame.empty:
        return f"{stored}; nothing to report yet"
    figure = construction_figure.errors(frame)
    saved = drawing.save(figure, context.workdir / "figures" / "constructions")[1]
    worst = _worst(frame)
    above = int(frame["violations"].sum())
    checks = f"{above} of {len(frame)} cells are above their bound"
    sections = [
        Section(
            "Errors and bounds",
            f"{stored}. {checks}.",
            [("By construction and T, over resolutions and betas", worst)],
            [("Measured error and bound", saved)],
        )
    ]
    page = context.workdir / "report.html"
    write_report(page, "Explicit weights", LEAD, sections, provenance.collect())
    shown = worst.to_string(index=False, float_format=lambda x: f"{x:.3g}")
    return f"{shown}\n\n{checks}\n{stored}\nreport: {page}"


def _settings(cell: Cell) -> tuple[Point, Sampling]:
    seed = cell.config["seed"]
    require(0 <= seed < 2**31, "config.seed", seed, "an integer in [0, 2^31)")
    point = resolve(Point, cell.config["cell"], "config.cell")
    return point, resolve(Sampling, cell.config["sampling"], "config.sampling")


def _measure(cell: Cell) -> dict[str, Any]:
    point, sampling = _settings(cell)
    seed = cell.config["seed"]
    made = named(point.construction, point.tokens, point.resolution, point.beta, seed)
    x_BTD = draw(made, np.random.default_rng([seed, cell.fold]), sampling.inputs, point.tokens)
    error, bound = sup_error(made, x_BTD), made.bound(point.tokens)
    counts = transformer.parameters(made.config)
    return {
        "error": error,
        "bound": bound,
        "violations": int(error > bound + ROUNDING),
        "error_K2": error * point.resolution**2,
        "error_beta": error * point.beta,
        "hidden": sum(sum(widths) for widths in made.config.ffn) + sum(made.config.encoder_widths),
        "law": made.law,
        "ffn_parameters": counts["ffn"],
        "encoder_parameters": counts["encoder"],
    }


def _worst(frame: pd.DataFrame) -> pd.DataFrame:
    share = frame.assign(share=frame["error"] / np.maximum(frame["bound"], ROUNDING))
    columns = ["error_K2", "error_beta", "share"]
    found = share.groupby(["construction", "tokens"], sort=False)[columns].agg(["min", "max"])
    found.columns = [f"{column} {what}" for column in columns for what in ("min", "max")]
    return found.reset_index().sort_values(["construction", "tokens"])
