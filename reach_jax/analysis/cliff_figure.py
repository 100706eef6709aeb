"""The figure of copying: shares against length, where they fall, how well a curve describes them.

In the style of `figures`; all numbers come in.
"""

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sweep_jax.checks import require
from sweep_jax.drawing import BLUE, FAINT, GREEN, GREY, INK, ORANGE, PINK, SKY, STYLE

_COLOURS = (BLUE, GREY, GREEN, ORANGE, PINK, SKY, INK)


def cliffs(shares: pd.DataFrame, found: pd.DataFrame, published: Mapping[str, float]) -> Figure:
    """Left, shares copied; middle, lengths at 50 % with their intervals; right, R^2.

    Args:
      shares: a row a variant, longest, draw and length, no example in front: `share`,
        `undertrained`.
      found: a row a cliff: variant, longest, draw, before, length, low, high, r2, censored.
      published: model -> R^2 of its curve.

    Raises:
      ValueError: no share.
    """
    require(len(shares) > 0, "shares", len(shares), "at least one row")
    variants = list(dict.fromkeys(shares["variant"]))
    colour = {name: _COLOURS[i % len(_COLOURS)] for i, name in enumerate(variants)}
    with matplotlib.rc_context(STYLE):
        fig = Figure(figsize=(11.5, 3.7), layout="constrained")
        left, middle, right = fig.subplots(1, 3, width_ratios=(1.5, 1.3, 1))
        _shares(left, shares, colour)
        _lengths(middle, found, variants, colour)
        _r2(right, found, variants, colour, published)
    return fig


def _shares(ax: Axes, shares: pd.DataFrame, colour: Mapping[str, str]) -> None:
    named = set()
    for (variant, _, _), part in shares.groupby(["variant", "longest", "draw"], sort=False):
        name, under = str(variant), bool(part["undertrained"].iloc[0])
        label = f"{name} (undertrained)" if under else name
        style = ":" if under else "-"
        shown = label if label not in named else "_"
        named.add(label)
        ax.plot(part["length"], part["share"], style, color=colour[name], label=shown, lw=1.4)
        ax.axvline(float(part["longest"].iloc[0]), color=FAINT, lw=2.5, zorder=0)
    ax.set(title="copied exactly", xlabel="string (letters)", ylabel="share", ylim=(-0.03, 1.05))
    ax.legend(fontsize=7)


def _lengths(ax: Axes, found: pd.DataFrame, variants: list[str], colour: Mapping[str, str]) -> None:
    befores = sorted(set(found["before"]))
    markers = dict(zip(befores, "osD^v", strict=False))
    greatest = 1.0
    for row in _rows(found):
        spread = 0.16 * (befores.index(row.before) - (len(befores) - 1) / 2)
        y = variants.index(row.variant) + spread + 0.05 * (row.draw % 3)
        high = row.high if np.isfinite(row.high) else row.length
        ax.plot([row.low, high], [y, y], color=colour[row.variant], lw=1)
        empty = "none" if row.censored else colour[row.variant]
        marker = markers.get(row.before, "x")
        ax.plot(row.length, y, marker, color=colour[row.variant], mfc=empty, ms=4.5)
        if row.censored == "above":
            ax.annotate(
                "", (row.length * 1.12, y), (row.length, y), arrowprops={"arrowstyle": "->"}
            )
        greatest = max(greatest, high)
        ax.axvline(row.longest, color=FAINT, lw=2.5, zorder=0)
    for before in befores:
        text = "question alone" if before == 0 else f"{before} examples before it"
        ax.plot([], [], markers.get(before, "x"), color=GREY, ms=4.5, label=text)
    ax.set(title="length at 50 %", xlabel="letters, 95 % interval", xlim=(0, 1.2 * greatest))
    ax.set_yticks(range(len(variants)), variants)
    ax.set_ylim(len(variants) - 0.5, -0.5)
    if befores:
        ax.legend(fontsize=7, loc="best")


def _r2(
    ax: Axes,
    found: pd.DataFrame,
    variants: list[str],
    colour: Mapping[str, str],
    published: Mapping[str, float],
) -> None:
    alone = found[found["before"] == 0]
    for row in _rows(alone):
        place = variants.index(row.variant)
        ax.plot(row.r2, place, "o", color=colour[row.variant], ms=4.5)
    names = [*variants, *published]
    for place, value in enumerate(published.values(), start=len(variants)):
        ax.plot(value, place, "o", color=INK, mfc="none", ms=4.5)
    ax.axhline(len(variants) - 0.5, color=GREY, lw=0.6)
    ax.set_yticks(range(len(names)), names, fontsize=7)
    ax.set_ylim(len(names) - 0.5, -0.5)
    ax.set(title="$R^2$ of the curve", xlabel="below the line: published", xlim=(0, 1.03))


def _rows(frame: pd.DataFrame) -> list[Any]:
    records: list[Any] = frame.to_dict("records")
    return [SimpleNamespace(**row) for row in records]
