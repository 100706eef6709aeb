"""Distributions of what certificates measured, side by side. All numbers come in.

In the style of `figures`, whose `save` writes it.
"""

from collections.abc import Mapping

import matplotlib
import numpy as np
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from reach_jax.analysis.figures import COLOURS, SPARE_COLOURS
from sweep_jax.checks import require
from sweep_jax.drawing import STYLE

_CYCLE = (COLOURS["text"], COLOURS["random"], *SPARE_COLOURS)


def survival_panels(
    panels: Mapping[str, Mapping[str, ArrayLike]], xlabel: str, log: bool
) -> Figure:
    """A panel a title, a step curve a label: the share of prompts whose value is at least x.

    On a log axis a value of 0 counts among all but has no place: its curve starts below 1. An
    infinite value is beyond the right end.

    Args:
      panels: title -> label -> values, in any order, without NaN.
      xlabel: what the values are, with their unit.
      log: whether the x axis is logarithmic.

    Raises:
      ValueError: no panel, a label without values, or a NaN.
    """
    require(len(panels) > 0, "panels", len(panels), "at least one")
    with matplotlib.rc_context(STYLE):
        fig = Figure(figsize=(4.4 * len(panels), 3.1), layout="constrained")
        axes = fig.subplots(1, len(panels), sharex=True, sharey=True, squeeze=False)[0]
        for ax, (title, curves) in zip(axes, panels.items(), strict=True):
            for place, (label, values) in enumerate(curves.items()):
                x, share = _survival(values, label)
                seen = np.isfinite(x) & (x > 0) if log else np.isfinite(x)
                colour = _CYCLE[place % len(_CYCLE)]
                ax.plot(x[seen], share[seen], drawstyle="steps-pre", color=colour, label=label)
            ax.set(title=title, xlabel=xlabel, ylim=(-0.03, 1.06))
            if log:
                ax.set_xscale("log")
            ax.legend(loc="lower left", fontsize=8)
        axes[0].set_ylabel("share of prompts")
    return fig


def _survival(values: ArrayLike, label: str) -> tuple[np.ndarray, np.ndarray]:
    """Ascending values, and the share that is at least each: the greatest is held by 1 / count."""
    x = np.sort(np.asarray(values, np.float64))
    require(x.size > 0 and not np.isnan(x).any(), label, values, "values, none of them NaN")
    return x, 1 - np.arange(x.size) / x.size
