"""The figure of widths: error against parameters, a line an architecture. Numbers in."""

from collections.abc import Mapping

import matplotlib
import numpy as np
from matplotlib.figure import Figure

from sweep_jax.checks import require
from sweep_jax.drawing import BLUE, GREEN, GREY, INK, ORANGE, PINK, SKY, STYLE

_COLOURS = (BLUE, ORANGE, GREEN, PINK, SKY, INK, GREY)


def against_parameters(lines: Mapping[tuple[str, int], tuple[np.ndarray, np.ndarray]]) -> Figure:
    """eps against the parameters of the FFNs, a panel a T.

    Args:
      lines: (heads, T) -> (parameters, eps), as of `scaling_report.points`.

    Raises:
      ValueError: no line.
    """
    require(len(lines) > 0, "lines", lines, "at least one")
    lengths = sorted({T for _, T in lines})
    names = list(dict.fromkeys(heads for heads, _ in lines))
    with matplotlib.rc_context(STYLE):
        fig = Figure(figsize=(3.3 * len(lengths) + 0.6, 3.2), layout="constrained")
        panels = np.atleast_1d(fig.subplots(1, len(lengths), sharey=True))
        for axes, T in zip(panels, lengths, strict=True):
            for place, heads in enumerate(names):
                if (heads, T) not in lines:
                    continue
                colour = _COLOURS[place % len(_COLOURS)]
                axes.plot(*lines[heads, T], "o-", color=colour, ms=3.5, label=f"heads {heads}")
            axes.set(title=f"T = {T}", xscale="log", yscale="log", xlabel="parameters of the FFNs")
            axes.legend(fontsize=7)
        panels[0].set_ylabel("eps, root mean square")
    return fig
