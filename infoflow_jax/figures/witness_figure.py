"""The figure of the certified widths. Not a place for statistics beyond a median."""

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from sweep_jax.checks import require
from sweep_jax.drawing import BLUE, GREEN, GREY, INK, ORANGE, PINK, SKY, STYLE

_COLOURS = (BLUE, SKY, ORANGE, GREEN, PINK, INK)
_TITLES = {
    "pairs": "min pairwise inner product",
    "kth": "k-th largest",
    "packing": "packed digits",
}


def growth(cells: pd.DataFrame) -> Figure:
    """Certified width against free tokens, a panel a theorem; dots draws, lines their median.

    Args:
      cells: columns theorem, heads, head_width, free, choices, width, width_0, hidden; of packing
        the last two stand against the base `choices`.

    Raises:
      ValueError: no row.
    """
    require(len(cells) > 0, "cells", len(cells), "at least one row")
    panels = [name for name in _TITLES if name in set(cells["theorem"])]
    with matplotlib.rc_context(STYLE):
        fig = Figure(figsize=(3.6 * len(panels), 3.8), layout="constrained")
        for axes, name in zip(np.atleast_1d(fig.subplots(1, len(panels))), panels, strict=True):
            part = cells[cells["theorem"] == name]
            axes.set(title=_TITLES[name], yscale="log", xlabel="free tokens")
            if name == "packing":
                axes.set(xscale="log", xlabel="base b = 1/ε")
            for place, (_, line) in enumerate(part.groupby(["heads", "head_width"])):
                heads, width = (int(line[column].iloc[0]) for column in ("heads", "head_width"))
                colour = _COLOURS[place % len(_COLOURS)]
                if name == "packing":
                    line = line.sort_values("choices")
                    text = f"{line['free'].iloc[0]} numbers in {heads}"
                    axes.plot(line["choices"], line["width_0"], "o-", color=colour, label=text)
                    axes.plot(line["choices"], line["hidden"], ":", color=GREY)
                    continue
                median = line.groupby("free")["width"].median()
                axes.plot(line["free"], line["width"], "o", color=colour, ms=2.5, alpha=0.5)
                text = f"{heads} heads of {width}" if heads > 1 else f"1 head of {width}"
                axes.plot(median.index, median, color=colour, label=text)
            axes.legend(fontsize=7)
        fig.axes[0].set_ylabel("certified FFN width")
    return fig
