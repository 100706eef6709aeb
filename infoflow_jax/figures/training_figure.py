"""Figures of trained networks: heat maps over head counts, and NMSE against the length.

Numbers in, a figure out; which seeds are summed up how is said by the caller.
"""

from collections.abc import Mapping, Sequence

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from sweep_jax.checks import require
from sweep_jax.drawing import BLUE, GREEN, GREY, INK, ORANGE, PINK, SKY, STYLE

_COLOURS = (BLUE, ORANGE, GREEN, PINK, SKY, INK, GREY)


def heat(rows: pd.DataFrame, title: str) -> Figure:
    """log10 of the least NMSE over (h1, h2), a panel a dimension D; framed: feasible as predicted.

    Args:
      rows: columns D, h1, h2, least, feasible; one row a cell of the map.
      title: of the figure.

    Raises:
      ValueError: no row, or two rows for one cell.
    """
    require(len(rows) > 0, "rows", len(rows), "at least one row")
    twice = bool(rows.duplicated(["D", "h1", "h2"]).any())
    require(not twice, "rows", "two of the same D, h1, h2", "one row a cell of the map")
    dims = sorted(set(rows["D"]))
    logs = np.log10(rows["least"].clip(lower=1e-12))
    low, high = float(np.floor(logs.min())), 0.0
    with matplotlib.rc_context({**STYLE, "axes.grid": False}):
        fig = Figure(figsize=(2.9 * len(dims) + 0.9, 3.3), layout="constrained")
        panels = np.atleast_1d(fig.subplots(1, len(dims)))
        for axes, D in zip(panels, dims, strict=True):
            part = rows[rows["D"] == D]
            table = part.pivot(index="h1", columns="h2", values="least")
            z = np.log10(table.clip(lower=1e-12))
            image = axes.pcolormesh(z.columns, z.index, z, cmap="cividis_r", vmin=low, vmax=high)
            for h1, h2, least, feasible in part[["h1", "h2", "least", "feasible"]].itertuples(
                index=False
            ):
                dark = np.log10(max(least, 1e-12)) < (low + high) / 2
                colour = "white" if dark else INK
                axes.text(h2, h1, f"{least:.0e}", ha="center", va="center", color=colour, size=7)
                if feasible:
                    frame = Rectangle((h2 - 0.5, h1 - 0.5), 1, 1, fill=False, ec=ORANGE, lw=2)
                    axes.add_patch(frame)
            axes.set(title=f"D = {D}", xlabel="heads in layer 2", aspect="equal")
            axes.set_xticks(table.columns)
            axes.set_yticks(table.index)
        panels[0].set_ylabel("heads in layer 1")
        fig.colorbar(image, ax=list(panels), label="log10 NMSE", shrink=0.8)
        fig.suptitle(f"{title}; framed: feasible by the planner", fontsize=9)
    return fig


def against_length(
    lines: Mapping[str, Mapping[str, tuple[Sequence[int], np.ndarray]]],
    trained: int,
) -> Figure:
    """NMSE against T, a panel a group; thin lines single runs, thick their least at each T.

    Args:
      lines: panel -> label -> (lengths, NMSE of each run at each, (R, lengths)).
      trained: the longest T trained at, marked; 0 for none.

    Raises:
      ValueError: no panel.
    """
    require(len(lines) > 0, "lines", lines, "at least one panel")
    with matplotlib.rc_context(STYLE):
        fig = Figure(figsize=(3.5 * len(lines) + 0.4, 3.5), layout="constrained")
        panels = np.atleast_1d(fig.subplots(1, len(lines), sharey=True))
        for axes, (panel, found) in zip(panels, lines.items(), strict=True):
            for place, (label, (lengths, nmse_RT)) in enumerate(found.items()):
                colour = _COLOURS[place % len(_COLOURS)]
                finite_RT = np.where(np.isfinite(nmse_RT), nmse_RT, np.nan)
                axes.plot(lengths, finite_RT.T, color=colour, lw=0.6, alpha=0.4)
                least_T = np.nanmin(finite_RT, axis=0)
                axes.plot(lengths, least_T, "o-", color=colour, ms=3, label=label)
            if trained:
                axes.axvline(trained, color=GREY, lw=0.8, ls="--")
            axes.set(title=panel, xscale="log", yscale="log", xlabel="T")
            axes.set_xticks(sorted({t for lengths, _ in found.values() for t in lengths}))
            axes.xaxis.set_major_formatter("{x:.0f}")
            axes.minorticks_off()
            axes.legend(fontsize=7)
        panels[0].set_ylabel("NMSE")
    return fig
