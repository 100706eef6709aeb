"""Figures of what a search did and of what its prompts carry; shares at lengths that were given.

In the style of `figures`; all numbers come in.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, NullLocator, ScalarFormatter, StrMethodFormatter
from numpy.typing import ArrayLike

from reach_jax.analysis.figures import colour_of, shades
from reach_jax.analysis.summary import NamedSlope
from sweep_jax.checks import require
from sweep_jax.drawing import GREY, INK, STYLE

Pair = tuple[ArrayLike, ArrayLike]  # lengths in tokens, shares
_DOTTED = (0, (1, 1.3))


class Way(NamedTuple):
    """A prompt's way through its search."""

    source: str
    m: int
    threshold: int  # tokens
    components: float  # that hold 99 % of the variance
    shares: np.ndarray  # of the variance, descending


def shares_at_lengths(
    curves: Mapping[str, Mapping[int, Mapping[str, Pair]]],
    published: Mapping[str, Mapping[int, Pair]] | None = None,
    title: str = "share of targets",
) -> Figure:
    """Shares at the lengths that were tried: a panel a source, a shade an m, a line a way to count.

    Args:
      curves: source -> m -> way -> (lengths, shares); at most two ways, the second dashed.
      published: source -> m -> (lengths, shares), drawn dotted.
      title: of the y axis.

    Raises:
      ValueError: no source.
    """
    require(len(curves) > 0, "curves", curves, "at least one source")
    published = published or {}
    with matplotlib.rc_context(STYLE):
        fig = Figure(figsize=(4.7 * len(curves), 3.3), layout="constrained")
        axes = fig.subplots(1, len(curves), sharex=True, sharey=True, squeeze=False)[0]
        for place, (ax, (source, by_m)) in enumerate(zip(axes, curves.items(), strict=True)):
            tones = shades(colour_of(source, place), by_m)
            for m, ways in by_m.items():
                for (name, (n, share)), dash in zip(ways.items(), ("-", "--"), strict=False):
                    ax.plot(n, share, dash, color=tones[m], marker="o", ms=3, label=f"m={m} {name}")
                if m in published.get(source, {}):
                    label = f"m={m} published, teacher forced"
                    ax.plot(*published[source][m], color=tones[m], ls=_DOTTED, lw=1.2, label=label)
            ax.legend(loc="best", fontsize=7)
            ax.set(title=f"{source} targets", xlabel="output length n (tokens)", ylim=(-0.03, 1.06))
        axes[0].set_ylabel(title)
    return fig


def ways(found: Sequence[Way], share: float) -> Figure:
    """Left, how the principal components of each way add up; right, how many hold `share`.

    Args:
      found: at least one, each with a share of the variance.
      share: the level of the count.

    Raises:
      ValueError: nothing to draw.
    """
    require(len(found) > 0, "found", found, "at least one way")
    sources = list(dict.fromkeys(way.source for way in found))
    lengths = {s: dict.fromkeys(way.m for way in found if way.source == s) for s in sources}
    tones = {s: shades(colour_of(s, place), lengths[s]) for place, s in enumerate(sources)}
    with matplotlib.rc_context(STYLE):
        fig = Figure(figsize=(9.4, 3.5), layout="constrained")
        left, right = fig.subplots(1, 2)
        for way in found:
            tone = tones[way.source][way.m]
            summed = np.cumsum(way.shares)
            left.plot(np.arange(1, len(summed) + 1), summed, color=tone, lw=0.8, alpha=0.7)
            right.plot(way.threshold, way.components, "o", color=tone, ms=4)
        for source in sources:
            for m, tone in tones[source].items():
                right.plot([], [], "o", color=tone, ms=4, label=f"{source}, m = {m}")
        left.axhline(share, color=GREY, lw=0.9, ls="--")
        left.set(title="variance of the way", xscale="log", ylim=(0, 1.03))
        left.set(xlabel="principal components", ylabel="share of the variance")
        left.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
        right.set(title=f"components that hold {100 * share:g} %", ylim=(0, None))
        right.set(xlabel="threshold n (tokens)", ylabel="components")
        right.legend(loc="best", fontsize=7)
    return fig


def bits_per_coordinate(cells: pd.DataFrame, available: Sequence[NamedSlope]) -> Figure:
    """What a coordinate of each prompt carries against m, below what it could carry.

    Args:
      cells: source, prompt_length, bits: one row a target, bits a coordinate, above 0 to be seen.
      available: in bits a coordinate, drawn as named lines.

    Raises:
      ValueError: no row is above 0.
    """
    seen = cells[cells["bits"] > 0]
    require(len(seen) > 0, "cells['bits']", list(cells["bits"]), "one value above 0")
    lengths = sorted(set(seen["prompt_length"]))
    with matplotlib.rc_context(STYLE):
        fig = Figure(figsize=(6.8, 3.9), layout="constrained")
        ax = fig.subplots()
        sources = list(dict.fromkeys(seen["source"]))
        for place, source in enumerate(sources):
            part, colour = seen[seen["source"] == source], colour_of(str(source), place)
            shift = 1.03 ** (place - (len(sources) - 1) / 2)
            at: Any = {"color": colour, "ls": "none"}
            ax.plot(part["prompt_length"] * shift, part["bits"], marker=".", alpha=0.45, **at)
            every = cells[cells["source"] == source].groupby("prompt_length")["bits"].median()
            middle = every[every > 0]
            ax.plot(middle.index * shift, middle, marker="_", ms=13, mew=2, label=source, **at)
        for place, bound in enumerate(sorted(available, key=lambda bound: bound.slope)):
            colour, dash = (INK, "-") if bound.rigorous else (GREY, (0, (5, 2)))
            kind = "rigorous" if bound.rigorous else "heuristic"
            label = f"available: {bound.name} ({kind}), {bound.slope:.3g}"
            ax.axhline(bound.slope, color=colour, ls=dash, lw=1)
            end, side = ((0.01, "left"), (0.99, "right"))[place % 2]  # two of them may be close
            text = ax.annotate(label, (end, bound.slope), xycoords=("axes fraction", "data"))
            text.set(ha=side, va="bottom", fontsize=7, color=colour)
        ax.set(xscale="log", yscale="log", xlabel="prompt vectors m", ylabel="bits a coordinate")
        ax.set_xlim(lengths[0] * 0.85, lengths[-1] * 1.18)
        ax.set_ylim(top=3 * max([*(bound.slope for bound in available), seen["bits"].max()]))
        ax.xaxis.set_major_locator(FixedLocator(lengths))
        ax.xaxis.set_minor_locator(NullLocator())
        ax.xaxis.set_major_formatter(ScalarFormatter())
        ax.legend(loc="center right", fontsize=8)
    return fig
