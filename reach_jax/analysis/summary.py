"""From a frame of cells to n50, line and ratio frames, one row each for a table or a figure.

Failed cells are counted and left out: a search that broke says nothing about reach. Not a reader of
stored results, and no statistics of its own.
"""

from collections.abc import Iterable
from typing import Protocol

import numpy as np
import pandas as pd

from reach_jax.analysis.lines import slope_interval
from reach_jax.analysis.thresholds import n50
from sweep_jax.checks import require

CELL_COLUMNS = ("prompt_length", "source", "threshold", "status")
STATUSES = ("ok", "censored", "failed")


class NamedSlope(Protocol):
    """Anything with a name, a slope in tokens per prompt vector, and whether it is rigorous."""

    @property
    def name(self) -> str:
        """What a table calls it."""

    @property
    def slope(self) -> float:
        """Tokens per prompt vector."""

    @property
    def rigorous(self) -> bool:
        """Whether it holds for the measured prompts as they are."""


def n50_frame(cells: pd.DataFrame, confidence: float = 0.95) -> pd.DataFrame:
    """One row for each source and prompt length, sorted.

    Args:
      cells: one row a target with `CELL_COLUMNS`: prompt_length m, source ("text", "random"),
        threshold in tokens, status one of `STATUSES`.
      confidence: of the interval, in (0, 1).

    Returns:
      source, prompt_length, n50, low, high, count, censored, failed, lower_bound_only; a group
      whose cells all failed has count 0 and NaN.

    Raises:
      ValueError: a column is missing, a status is unknown, or a threshold is not a whole number.
    """
    rows = []
    for (source, m), group in _checked(cells).groupby(["source", "prompt_length"], sort=True):
        kept = group[group["status"] != "failed"]
        row = {"source": source, "prompt_length": m}
        row |= {"n50": np.nan, "low": np.nan, "high": np.nan, "count": len(kept), "censored": 0}
        row |= {"failed": len(group) - len(kept), "lower_bound_only": False}
        if len(kept):
            e = n50(kept["threshold"], kept["status"] == "censored", confidence)
            row |= {"n50": e.value, "low": e.low, "high": e.high}
            row |= {"censored": e.censored_count, "lower_bound_only": e.lower_bound_only}
        rows.append(row)
    return pd.DataFrame(rows)


def line_frame(cells: pd.DataFrame, seed: int, confidence: float = 0.95) -> pd.DataFrame:
    """One row for each source and fit, "intercept" and "origin".

    Args:
      cells: as for `n50_frame`.
      seed: of the bootstrap.
      confidence: of the slope's interval, in (0, 1).

    Returns:
      source, fit, slope, low, high (tokens per prompt vector), intercept, r2_centred,
      r2_uncentred, corr2, reason, fitted and left_out (the m, as text).

    Raises:
      ValueError: as for `n50_frame`.
    """
    cells = _checked(cells)
    rows = []
    for source, group in cells[cells["status"] != "failed"].groupby("source", sort=True):
        lengths, capped = group["prompt_length"], group["status"] == "censored"
        by_m = {int(m): lengths == m for m in sorted(set(lengths))}
        thresholds = {m: group["threshold"][at] for m, at in by_m.items()}
        censored = {m: capped[at] for m, at in by_m.items()}
        for fit in ("intercept", "origin"):
            found = slope_interval(thresholds, censored, seed, fit == "origin", confidence)
            line = found.line
            rows.append(
                {
                    "source": source,
                    "fit": fit,
                    "slope": line.slope,
                    "low": found.low,
                    "high": found.high,
                    "intercept": line.intercept,
                    "r2_centred": line.r2_centred,
                    "r2_uncentred": line.r2_uncentred,
                    "corr2": line.corr2,
                    "reason": line.reason,
                    "fitted": " ".join(map(str, found.fitted)),
                    "left_out": " ".join(map(str, found.left_out)),
                }
            )
    return pd.DataFrame(rows)


def ratio_frame(lines: pd.DataFrame, bounds: Iterable[NamedSlope]) -> pd.DataFrame:
    """Theory over measured, one row for each line and bound.

    Args:
      lines: from `line_frame`.
      bounds: bounds on the slope, in tokens per prompt vector.

    Returns:
      source, fit, bound, rigorous, bound_slope, ratio, low, high; the ends are the bound over the
      slope interval's ends. NaN where the measured slope (or end) is not above 0.
    """
    rows, bounds = [], tuple(bounds)
    for line in lines.to_dict("records"):
        for bound in bounds:
            ratio, high, low = (
                bound.slope / line[end] if line[end] > 0 else np.nan
                for end in ("slope", "low", "high")
            )
            rows.append(
                {
                    "source": line["source"],
                    "fit": line["fit"],
                    "bound": bound.name,
                    "rigorous": bound.rigorous,
                    "bound_slope": bound.slope,
                    "ratio": ratio,
                    "low": low,
                    "high": high,
                }
            )
    return pd.DataFrame(rows)


def _checked(cells: pd.DataFrame) -> pd.DataFrame:
    for column in CELL_COLUMNS:
        require(column in cells.columns, f"cells[{column!r}]", list(cells.columns), "a column")
    unknown = sorted(set(cells["status"]) - set(STATUSES))
    require(not unknown, "cells['status']", unknown, f"one of {STATUSES}")
    return cells
