"""Tables 1 and 2 of arXiv 2605.22223 again, from the constants that they print.

One cell a model: its bounds, as `reach_jax.bounds` computes them, and the slope that the points of
the published figure give. What differs from print, and why, is `published_report`'s. Fits nothing
of its own and loads no model.
"""

import dataclasses
from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
import pandas as pd
from ml_collections import ConfigDict

from reach_jax.analysis.lines import fit_line
from reach_jax.bounds.bound import ABSOLUTE_EPS, RELATIVE_EPS, Bound, first_bounds
from reach_jax.bounds.catalogue import cone_bound, nonuniform_bound
from reach_jax.bounds.cone import ln_cone_fraction
from reach_jax.bounds.floats import DTYPES
from reach_jax.bounds.meanfield import mean_field
from reach_jax.experiments import published_report
from reach_jax.experiments.published_constants import (
    MODELS,
    NOTEBOOK,
    NOTEBOOK_VOCABULARY,
    Model,
    NotebookModel,
)
from sweep_jax import serial
from sweep_jax.cells import Cell
from sweep_jax.checks import require
from sweep_jax.experiment import Context

EXCLUDED = ("axes",)
_BY_NAME: dict[str, Model | NotebookModel] = {m.name: m for m in (*MODELS, *NOTEBOOK)}


def validate(config: ConfigDict, cells: Sequence[Cell]) -> None:
    """Refuses an unknown model, dtype or order, with ValueError."""
    for cell in cells:
        name = cell.config["cell"]["model"]
        require(name in _BY_NAME, "config.axes.models", name, f"one of {list(_BY_NAME)}")
    dtype, order = config.bounds.dtype, config.bounds.order
    require(dtype in DTYPES, "config.bounds.dtype", dtype, f"one of {DTYPES}")
    require(np.isfinite(order) and order >= 1, "config.bounds.order", order, "a number >= 1")


def plan(config: ConfigDict, cells: Sequence[Cell]) -> pd.DataFrame:
    """One row a model; half a second each, nearly all of it compilation."""
    names = [cell.config["cell"]["model"] for cell in cells]
    return pd.DataFrame({"model": names, "seconds": [0.5] * len(names)})


def run(config: ConfigDict, cells: Sequence[Cell], context: Context) -> None:
    """Computes the bounds of the models that are missing.

    Raises:
      Stopped: on request, between two models.
    """

    def measure(cell: Cell) -> dict[str, Any]:
        return _metrics(_BY_NAME[cell.config["cell"]["model"]], config.bounds)

    serial.run(cells, context, "computing", measure)


def report(config: ConfigDict, cells: Sequence[Cell], context: Context) -> str:
    """Writes tables, figure and pages from what is stored; returns the text to print."""
    return published_report.write(cells, context, config.bounds.dtype)


def published_bounds(model: Model | NotebookModel, dtype: str) -> tuple[Bound, ...]:
    """Every bound that the printed constants of a model decide.

    The box is what the printed ratio and slope imply, as its widths were not published, taken from
    the vocabulary that was used to that of the model.
    """
    d, vocabulary, r = model.d, model.vocabulary, float(model.r)
    side_D = np.full(d, r)
    first = first_bounds(-side_D, side_D, vocabulary, jnp.dtype(dtype), "outputs")
    cones = [
        cone_bound(d, vocabulary, r, eps, float(model.theta), label)
        for label, eps in (("2^-10", ABSOLUTE_EPS), ("r/2^11", RELATIVE_EPS * r))
    ]
    used = vocabulary if isinstance(model, Model) else NOTEBOOK_VOCABULARY
    box = Bound(
        name="box",
        slope=float(model.box) * float(model.slope) * np.log(used) / np.log(vocabulary),
        rigorous=False,
        theorem="Corollary 4.6 on a box",
        assumptions="as printed: implied by the ratio and the slope, since no width was published",
    )
    found = [*(b for b in first if not b.name.startswith("box")), *cones, box]
    if isinstance(model, Model):
        found.append(nonuniform_bound(box, vocabulary, float(model.s)))
    return tuple(found)


def _metrics(model: Model | NotebookModel, settings: ConfigDict) -> dict[str, Any]:
    bounds = published_bounds(model, settings.dtype)
    r, d = float(model.r), model.d
    horizon = mean_field(d, model.vocabulary, r, ABSOLUTE_EPS, settings.order)
    found: dict[str, Any] = {b.name: b.slope for b in bounds}
    found["ln f"] = float(ln_cone_fraction(d, float(model.theta)))
    found["ln horizon"] = horizon.ln_length
    if isinstance(model, Model):
        found["slope of the figure"] = fit_line(range(1, len(model.n50) + 1), model.n50).slope
    found["bounds"] = [list(dataclasses.astuple(b)) for b in bounds]
    return found
