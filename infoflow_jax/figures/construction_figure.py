"""The figure of the explicit networks: errors and bounds. Not a place for statistics."""

from typing import Any

import matplotlib
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sweep_jax.checks import require
from sweep_jax.drawing import BLUE, GREEN, GREY, INK, ORANGE, PINK, SKY, STYLE

_COLOURS = (BLUE, ORANGE, GREEN, PINK, SKY, INK)
_MARKS = {0: "o", 1: "s", 2: "^", 3: "D"}


def errors(cells: pd.DataFrame) -> Figure:
    """Error against the resolution, beta and eps; marks measured, lines the bound.

    Args:
      cells: columns construction, tokens, resolution, beta, error, bound, a row a cell; with a
        column plan, those that have one are compiled and have a column eps. A construction
        whose resolution varies goes to the left, any other that has no plan to the middle.

    Raises:
      ValueError: no row.
    """
    require(len(cells) > 0, "cells", len(cells), "at least one row")
    planned = cells["plan"].notna() if "plan" in cells else cells["error"] < 0
    varied = cells.groupby("construction")["resolution"].transform("nunique") > 1
    with matplotlib.rc_context(STYLE):
        fig = Figure(figsize=(14.0, 4.4), layout="constrained")
        left, middle, right = fig.subplots(1, 3)
        seen = (cells["bound"] > 0) & (cells["error"] > 0)
        _plans(right, cells[seen & planned])
        cells = cells[seen & ~planned]
        _panel(
            left, cells[varied[cells.index]], "resolution", "resolution (K of the interpolant, n)"
        )
        _panel(middle, cells[~varied[cells.index]], "beta", "β of the scores")
        left.set(title="feed-forward resolution", ylabel="sup error; line: proven bound")
        middle.set(title="sharpness of attention")
        middle.set_ylim(1e-7, 10)
        right.set(title="compiled plans; the worst over T")
    return fig


def _panel(axes: Axes, cells: pd.DataFrame, column: str, label: str) -> None:
    for place, (name, part) in enumerate(cells.groupby("construction", sort=False)):
        colour = _COLOURS[place % len(_COLOURS)]
        for mark, (tokens, line) in enumerate(part.groupby("tokens")):
            line = line.sort_values(column)
            axes.plot(line[column], line["bound"], color=colour, lw=0.8, alpha=0.7)
            style: Any = {"color": colour, "ms": 4.5, "ls": "none", "mfc": "white"}
            text = f"{name}, T={tokens}" if mark == 0 else f"T={tokens}"
            axes.plot(line[column], line["error"], _MARKS[mark % 4], label=text, **style)
    axes.set(xlabel=label, xscale="log", yscale="log")
    if len(cells):
        axes.legend(fontsize=6.5, ncols=2, loc="best")


def _plans(axes: Axes, cells: pd.DataFrame) -> None:
    """A mark a plan and eps, side by side; the bound is eps but for rounding."""
    axes.set(xlabel="ε that a plan is compiled for", xscale="log", yscale="log")
    if cells.empty:
        return
    worst = cells.groupby(["plan", "eps"], sort=False)[["error", "bound"]].max().reset_index()
    line = worst.groupby("eps")["bound"].max()
    axes.plot(line.index, line, color=GREY, lw=0.8)
    for place, (name, part) in enumerate(worst.groupby("plan", sort=False)):
        style: Any = {"color": _COLOURS[place % len(_COLOURS)], "ms": 4.5, "ls": "none"}
        aside = part["eps"] * 1.08 ** (place - worst["plan"].nunique() / 2)
        axes.plot(aside, part["error"], _MARKS[place % 4], label=name, mfc="white", **style)
    axes.legend(fontsize=6.5, loc="lower right", title="target, D, heads", title_fontsize=6.5)
