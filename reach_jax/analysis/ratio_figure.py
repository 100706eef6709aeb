"""Ratios of bounds to measured slopes: as printed, recomputed, and put right, a panel a bound.

In the style of `figures`, whose `save` writes it. All numbers come in.
"""

from collections.abc import Mapping

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from reach_jax.analysis.figures import COLOURS
from sweep_jax.checks import require
from sweep_jax.drawing import FAINT, GREY, INK, STYLE

_MARKS = {
    "published": {"marker": "o", "mfc": "white", "mec": GREY, "ms": 7.5, "mew": 1.3},
    "recomputed": {"marker": "o", "color": COLOURS["text"], "ms": 3.5},
    "corrected": {"marker": "D", "color": COLOURS["random"], "ms": 4.2},
}


def ratio_panels(
    ratios: pd.DataFrame, ceilings: Mapping[str, tuple[float, float]], ceiling_name: str
) -> Figure:
    """A panel for each `row`, a line for each `model`; 1 would be a tight bound.

    Args:
      ratios: columns row, model, published, recomputed, corrected: numbers, NaN for none.
      ceilings: model -> the ratios above which a corrected and a published bound say nothing, drawn
        as the lower and the upper half of a bar.
      ceiling_name: what the bar is called.

    Raises:
      ValueError: no row.
    """
    require(len(ratios) > 0, "ratios", len(ratios), "at least one row")
    models = list(dict.fromkeys(ratios["model"]))
    height = {model: len(models) - 1 - place for place, model in enumerate(models)}
    panels = list(dict.fromkeys(ratios["row"]))
    with matplotlib.rc_context(STYLE):
        fig = Figure(figsize=(2.05 * len(panels) + 1.3, 0.34 * len(models) + 1.25))
        fig.set_layout_engine("constrained")
        axes = fig.subplots(1, len(panels), sharex=True, sharey=True, squeeze=False)[0]
        for ax, panel in zip(axes, panels, strict=True):
            part = ratios[ratios["row"] == panel]
            y = np.array([height[model] for model in part["model"]])
            ends = part[list(_MARKS)].to_numpy(np.float64)
            ax.hlines(y, np.nanmin(ends, axis=1), np.nanmax(ends, axis=1), color=GREY, lw=0.8)
            for model in part["model"]:
                for ceiling, end in zip(ceilings[model], (-0.38, 0.38), strict=True):
                    ax.plot([ceiling] * 2, [height[model], height[model] + end], color=INK, lw=1.2)
            for kind, mark in _MARKS.items():
                ax.plot(part[kind], y, ls="", label=kind, **mark)
            ax.set(title=panel, ylim=(-0.7, len(models) - 0.3))
            ax.grid(axis="y", color=FAINT)
            ax.tick_params(axis="y", length=0)
        axes[0].set_yticks(list(height.values()), list(height))
        axes[0].set_xlim(0, 1.06 * max(ratios["published"].max(), *map(max, ceilings.values())))
        axes[0].plot([], [], color=INK, lw=1.2, label=ceiling_name)
        fig.supxlabel("slope of the bound / measured slope", fontsize=9)
        handles, labels = axes[0].get_legend_handles_labels()
        fig.legend(handles, labels, loc="outside upper center", ncols=4, fontsize=8)
    return fig
