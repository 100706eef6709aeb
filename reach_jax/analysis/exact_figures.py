"""The figures of an exact enumeration: the share of all outputs, and how tight its bound is.

Not a place for statistics: all numbers come in.
"""

from typing import Any

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from reach_jax.analysis.figures import COLOURS, SPARE_COLOURS
from sweep_jax.checks import require
from sweep_jax.drawing import GREY, INK, STYLE

_SHADES = (COLOURS["text"], COLOURS["random"], *SPARE_COLOURS)


def shares(frame: pd.DataFrame) -> Figure:
    """log10 of the share of all V^n outputs against n, a panel each vocabulary and kind of weights.

    Solid: exact, a line each draw. Dashed: Corollary 4.6, `min(1, V^(C m - n))`. A dot stands where
    the bound leaves 1, at n = C m.

    Args:
      frame: columns weights, draw, vocab_size, prompt_length, bound_tokens, and ln_share_N, a list
        over n = 1..N; one row a line.

    Raises:
      ValueError: no row.
    """
    require(len(frame) > 0, "frame", len(frame), "at least one row")
    kinds, sizes = (list(dict.fromkeys(frame[name])) for name in ("weights", "vocab_size"))
    lengths = sorted(set(frame["prompt_length"]))
    colour = {m: _SHADES[place % len(_SHADES)] for place, m in enumerate(lengths)}
    with matplotlib.rc_context(STYLE):
        size = (4.2 * len(kinds) + 0.6, 2.9 * len(sizes) + 0.3)
        fig = Figure(figsize=size, layout="constrained")
        grid = fig.subplots(len(sizes), len(kinds), sharex=True, sharey="row", squeeze=False)
        for row, (vocabulary, axes) in enumerate(zip(sizes, grid, strict=True)):
            for kind, ax in zip(kinds, axes, strict=True):
                part = frame[(frame["weights"] == kind) & (frame["vocab_size"] == vocabulary)]
                for _, line in part.iterrows():
                    ln_share_N = np.concatenate([[0.0], line["ln_share_N"]])
                    n_N, m = np.arange(len(ln_share_N)), line["prompt_length"]
                    start, last = line["bound_tokens"], n_N[-1]
                    ax.plot(n_N, ln_share_N / np.log(10), color=colour[m], lw=1.2)
                    drop = max(0.0, last - start) * np.log10(vocabulary)
                    ax.plot([0, start, last], [0, 0, -drop], color=colour[m], lw=1, ls=(0, (4, 2)))
                    ax.plot(start, 0, "o", color=colour[m], ms=4)
                ax.set(title=f"{kind} weights, V = {vocabulary}")
                ax.xaxis.set_major_locator(MaxNLocator(integer=True))
                if row == len(sizes) - 1:
                    ax.set_xlabel("output length n (tokens)")
            axes[0].set_ylabel("log₁₀ share of all V^n outputs")
        for m in lengths:
            grid[0][-1].plot([], [], color=colour[m], label=f"m = {m}")
        grid[0][-1].plot([], [], color=GREY, lw=1, ls=(0, (4, 2)), label="bound")
        grid[0][-1].legend(loc="lower left", fontsize=8)
    return fig


def tightness(frame: pd.DataFrame) -> Figure:
    """The effective length `ln count / ln V` against the bound C m, both in tokens, a dot a cell.

    Args:
      frame: columns weights, layout, bound_tokens, effective.

    Raises:
      ValueError: no row.
    """
    require(len(frame) > 0, "frame", len(frame), "at least one row")
    kinds, layouts = (list(dict.fromkeys(frame[name])) for name in ("weights", "layout"))
    marks = {kind: mark for kind, mark in zip(kinds, ("o", "^", "s", "v"), strict=False)}
    with matplotlib.rc_context(STYLE):
        fig = Figure(figsize=(5.6, 4.2), layout="constrained")
        ax = fig.subplots()
        top = 1.05 * frame["bound_tokens"].max()
        ax.plot([0, top], [0, top], color=INK, lw=1)
        ax.annotate("bound (Theorem 4.5)", (0.62 * top, 0.64 * top), color=INK, ha="right")
        for place, layout in enumerate(layouts):
            for kind in kinds:
                part = frame[(frame["layout"] == layout) & (frame["weights"] == kind)]
                # Beside each other where they would hide each other.
                x = part["bound_tokens"] + 0.012 * top * (place - (len(layouts) - 1) / 2)
                style: Any = {"color": _SHADES[place % len(_SHADES)], "alpha": 0.75, "ls": "none"}
                label = f"{layout}, {kind}" if len(part) else None
                ax.plot(x, part["effective"], marks[kind], ms=4.5, label=label, **style)
        ax.set(xlim=(0, top), ylim=(0, top))
        ax.set(xlabel="C m (tokens)", ylabel="ln(distinct outputs) / ln V (tokens)")
        ax.legend(loc="upper left", fontsize=7)
    return fig
