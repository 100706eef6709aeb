"""The figure of a model's states by layer. Numbers come in; nothing is computed here."""

from collections.abc import Sequence

import matplotlib
from matplotlib.figure import Figure

from reach_jax.analysis.figures import COLOURS
from sweep_jax.checks import require
from sweep_jax.drawing import STYLE


def state_norms(first_L: Sequence[float], other_L: Sequence[float]) -> Figure:
    """Root mean square of the states by layer, on a log scale.

    Args:
      first_L: at position 0, of each layer's input and of the final state.
      other_L: the mean over the other positions.

    Raises:
      ValueError: sequences of different length.
    """
    require(len(first_L) == len(other_L), "other_L", len(other_L), f"{len(first_L)} layers")
    with matplotlib.rc_context(STYLE):
        fig = Figure(figsize=(5.2, 3.0), layout="constrained")
        ax = fig.subplots()
        ax.plot(range(len(first_L)), first_L, marker="o", ms=3, color=COLOURS["random"])
        ax.plot(range(len(other_L)), other_L, marker="o", ms=3, color=COLOURS["text"])
        ax.legend(["position 0", "other positions, mean"])
        ax.set(yscale="log", xlabel="layer (last: after the final norm)", ylabel="rms of the state")
        ax.set_title("States by layer")
    return fig
