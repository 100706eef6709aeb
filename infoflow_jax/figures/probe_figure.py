"""The figure of probed networks: agreement against the tolerance. Not a place for statistics."""

from collections.abc import Mapping, Sequence

import matplotlib
import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from sweep_jax.checks import require
from sweep_jax.drawing import BLUE, GREEN, GREY, INK, ORANGE, PINK, STYLE

_COLOURS = (BLUE, GREEN, ORANGE, GREY, PINK)
_COLUMNS = 4
Curves = Mapping[str, tuple[Sequence[float], Sequence[float]]]


def against_tolerance(panels: Mapping[str, Curves], tolerances: Sequence[float]) -> Figure:
    """Precision (line) and recall (dashed) of each method, a panel a network.

    Args:
      panels: network -> method -> (precision, recall) at each tolerance, NaN where undefined.
      tolerances: shares of a state's spread.

    Raises:
      ValueError: no panel.
    """
    require(len(panels) > 0, "panels", panels, "at least one")
    rows = -(-len(panels) // _COLUMNS)
    columns = min(len(panels), _COLUMNS)
    with matplotlib.rc_context(STYLE):
        fig = Figure(figsize=(3.0 * columns + 0.3, 2.5 * rows + 0.6), layout="constrained")
        grid = np.atleast_1d(fig.subplots(rows, columns, sharey=True)).ravel()
        for axes in grid[len(panels) :]:
            axes.set_axis_off()
        names = list(dict.fromkeys(name for curves in panels.values() for name in curves))
        for axes, (title, curves) in zip(grid, panels.items(), strict=False):
            for name, (precision, recall) in curves.items():
                colour = _COLOURS[names.index(name) % len(_COLOURS)]
                axes.plot(tolerances, precision, color=colour, lw=1.3)
                axes.plot(tolerances, recall, color=colour, lw=1.3, ls="--")
            axes.set_title(title, fontsize=7.5)
            axes.set(xscale="log", ylim=(-0.03, 1.03), xlabel="tolerance")
        marks = [Line2D([], [], color=_COLOURS[i % 5], label=name) for i, name in enumerate(names)]
        marks += [Line2D([], [], color=INK, label="precision"),
                  Line2D([], [], color=INK, ls="--", label="recall")]  # fmt: skip
        fig.legend(handles=marks, loc="outside lower center", ncols=len(marks), fontsize=8)
    return fig
