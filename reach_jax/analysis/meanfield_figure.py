"""The figure of the mean-field stability experiment. Not a place for statistics."""

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from reach_jax.analysis.figures import COLOURS, SPARE_COLOURS
from sweep_jax.checks import require
from sweep_jax.drawing import GREY, INK, STYLE

_SHADES = (*SPARE_COLOURS[::-1], COLOURS["text"], COLOURS["random"])


def stability(pairs: pd.DataFrame, cells: pd.DataFrame) -> Figure:
    """Left, W_2 after the layer against before, a dot a pair; right, ratios against ||A|| R^2.

    Args:
      pairs: columns gain, in_2, out_2, both in the unit of the points and > 0.
      cells: columns a, worst_1, worst_2, derivative, ln_estimate.

    Raises:
      ValueError: either has no row.
    """
    require(len(pairs) > 0 and len(cells) > 0, "pairs", len(pairs), "at least one row")
    with matplotlib.rc_context(STYLE):
        fig = Figure(figsize=(9.2, 3.9), layout="constrained")
        left, right = fig.subplots(1, 2)
        for place, (gain, part) in enumerate(pairs.groupby("gain")):
            style = {"color": _SHADES[place % len(_SHADES)], "label": f"gain {gain:g}"}
            left.loglog(part["in_2"], part["out_2"], "o", ms=2.5, alpha=0.5, **style)
        span = np.array([pairs["in_2"].min(), pairs["in_2"].max()])
        left.loglog(span, span, color=INK, lw=1)
        left.set(title="pairs of prompts", xlabel="W₂ before the layer", ylabel="W₂ after it")
        left.legend(fontsize=8, markerscale=2)
        order = cells.sort_values("a")
        estimate = np.exp(order["ln_estimate"])
        right.loglog(order["a"], estimate, ".", color=INK, ms=4, label="estimate L")
        for name, mark, colour, label in (
            ("derivative", "_", GREY, "norm of the derivative at the prompt"),
            ("worst_2", "o", COLOURS["text"], "largest W₂ ratio of the prompt's pairs"),
            ("worst_1", "^", COLOURS["random"], "largest W₁ ratio"),
        ):
            right.loglog(order["a"], order[name], mark, color=colour, ms=5, alpha=0.7, label=label)
        right.set(title="stability", xlabel="largest ‖A‖ R² of a head", ylabel="W out / W in")
        right.set_ylim(0.7, 1e6)  # where the estimate is above, it is of no use
        right.legend(fontsize=8, loc="upper left")
    return fig
