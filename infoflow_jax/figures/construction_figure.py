"""The figure of the explicit networks: errors and bounds. Not a place for statistics."""

from typing import Any

import matplotlib
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sweep_jax.checks import require
from sweep_jax.drawing import BLUE, GREEN, INK, ORANGE, PINK, SKY, STYLE

_COLOURS = (BLUE, ORANGE, GREEN, PINK, SKY, INK)
_MARKS = {0: "o", 1: "s", 2: "^", 3: "D"}


def errors(cells: pd.DataFrame) -> Figure:
    """Left, error against the resolution; right, against beta; marks measured, lines the bound.

    Args:
      cells: columns construction, tokens, resolution, beta, error, bound, a row a cell. One
        whose beta varies goes to the right.

    Raises:
      ValueError: no row.
    """
    require(len(cells) > 0, "cells", len(cells), "at least one row")
    varied = cells.groupby("construction")["resolution"].transform("nunique") > 1
    with matplotlib.rc_context(STYLE):
        fig = Figure(figsize=(10.0, 4.4), layout="constrained")
        left, right = fig.subplots(1, 2)
        seen = (cells["bound"] > 0) & (cells["error"] > 0)
        _panel(left, cells[seen & varied], "resolution", "resolution (K of the interpolant, n)")
        _panel(right, cells[seen & ~varied], "beta", "β of the scores")
        left.set(title="feed-forward resolution", ylabel="sup error; line: proven bound")
        right.set(title="sharpness of attention")
        right.set_ylim(1e-7, 10)
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
