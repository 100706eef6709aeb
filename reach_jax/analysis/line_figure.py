"""The line through n50(m) beside the bounds on it, as `figures` draws. All numbers come in."""

from collections.abc import Iterable

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, NullLocator, ScalarFormatter, StrMethodFormatter

from reach_jax.analysis.figures import colour_of
from reach_jax.analysis.summary import NamedSlope
from sweep_jax.drawing import GREY, INK, STYLE


def line_beside_bounds(
    n50s: pd.DataFrame, lines: pd.DataFrame, bounds: Iterable[NamedSlope]
) -> Figure:
    """Left, n50 against m with the fitted line; right, the same beside the bounds, on log axes.

    An open circle is an n50 that censored targets decide; an arrow stands for an open upper end.

    Args:
      n50s: from `summary.n50_frame`.
      lines: from `summary.line_frame`; its rows with fit "intercept" are drawn.
      bounds: slopes in tokens per prompt vector, drawn as C m.
    """
    n50s = n50s[n50s["count"] > 0].sort_values(["prompt_length", "n50"], ascending=False)
    lines = lines[lines["fit"] == "intercept"].set_index("source")
    lengths = sorted(set(n50s["prompt_length"]))
    with matplotlib.rc_context(STYLE):
        fig = Figure(figsize=(9.4, 3.9), layout="constrained")
        left, right = fig.subplots(1, 2, width_ratios=(1, 1.15))
        for place, (source, points) in enumerate(n50s.groupby("source", sort=False)):
            colour, line = colour_of(str(source), place), lines.loc[source]
            label = f"{source}: no line, {line['reason']}"
            if np.isfinite(line["slope"]):
                label = f"{source}: {line['slope']:.1f} tokens per vector\n"
                label += f"[{line['low']:.1f}, {line['high']:.1f}], "
                label += f"R² centred {line['r2_centred']:.3f}"
            fitted = [int(m) for m in line["fitted"].split()] or [1]
            m = np.geomspace(fitted[0], fitted[-1], 200)
            on_line = line["intercept"] + line["slope"] * m
            for ax in (left, right):
                _points(ax, points, colour)
                ax.plot(m, np.where(on_line > 0, on_line, np.nan), color=colour, lw=1.4)
            left.plot([], [], "o-", color=colour, ms=4.5, lw=1.4, label=label)
            end = (points["prompt_length"].iloc[0], points["n50"].iloc[0])
            offset = {"xytext": (9, 0), "textcoords": "offset points", "va": "center"}
            right.annotate(str(source), end, color=colour, fontweight="bold", **offset)
        left.set(title="measured", ylabel="n50 (tokens)", xlim=(0, lengths[-1] * 1.06))
        left.set_ylim(0, 1.3 * left.get_ylim()[1])
        left.legend(loc="upper left", fontsize=8)
        lowest = 0.5 * n50s["n50"].clip(lower=1).min()
        # Before the scales: where every n50 is 0 a log axis has nothing to fit itself to.
        right.set_ylim(lowest, max(right.get_ylim()[1], 4 * lowest))
        right.set(title="beside the bounds C m", ylabel="tokens", xscale="log", yscale="log")
        right.set_xlim(lengths[0] * 0.92, lengths[-1] * 1.02)
        _bounds(right, bounds, np.array([lengths[0], lengths[-1]]))
        for ax in (left, right):
            ax.set_xlabel("prompt vectors m")
            ax.xaxis.set_major_locator(FixedLocator(lengths))
            ax.xaxis.set_minor_locator(NullLocator())
            ax.xaxis.set_major_formatter(ScalarFormatter())
        right.yaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    return fig


def _points(ax: Axes, points: pd.DataFrame, colour: str) -> None:
    m, n50 = points["prompt_length"].to_numpy(), points["n50"].to_numpy()
    open_ended = ~np.isfinite(points["high"].to_numpy())
    high = np.where(open_ended, n50, points["high"])
    ax.errorbar(
        m, n50, [n50 - points["low"], high - n50], fmt="none", ecolor=colour, elinewidth=1.2
    )
    exact = ~points["lower_bound_only"].to_numpy(bool)
    ax.plot(m[exact], n50[exact], "o", color=colour, ms=4.5)
    ax.plot(m[~exact], n50[~exact], "o", mec=colour, mfc="white", ms=4.5, mew=1.2)
    for end in zip(m[open_ended], n50[open_ended], strict=True):
        arrow = ax.annotate("▲", end, xytext=(0, 7), textcoords="offset points", color=colour)
        arrow.set(ha="center", va="center", fontsize=6)


def _bounds(ax: Axes, bounds: Iterable[NamedSlope], m: np.ndarray) -> None:
    """Lines C m, each named at its right end; names are pushed apart, with a leader to the line."""
    bounds = sorted(bounds, key=lambda bound: bound.slope)
    if not bounds:
        return
    ax.set_ylim(top=1.6 * bounds[-1].slope * m[-1])
    bottom, top = np.log(ax.get_ylim())
    heights = (np.log([bound.slope * m[-1] for bound in bounds]) - bottom) / (top - bottom)
    for bound, height, label in zip(bounds, heights, _apart(heights, 0.06), strict=True):
        colour, dash, kind = (
            (INK, "-", "rigorous") if bound.rigorous else (GREY, (0, (5, 2)), "heuristic")
        )
        ax.plot(m, bound.slope * m, color=colour, ls=dash, lw=1)
        ax.annotate(
            f"{bound.name} ({kind})",
            (1, height),
            xycoords="axes fraction",
            xytext=(1.08, label),
            textcoords="axes fraction",
            va="center",
            color=colour,
            fontsize=8,
            arrowprops={
                "arrowstyle": "-",
                "color": GREY,
                "lw": 0.5,
                "relpos": (0, 0.5),
                "shrinkA": 0,
                "shrinkB": 0,
            },
        )


def _apart(heights: np.ndarray, gap: float) -> np.ndarray:
    """Ascending heights moved as little as need be to stand `gap` apart (pooled least squares)."""
    steps = gap * np.arange(len(heights))
    blocks: list[list[float]] = []
    for value in heights - steps:
        blocks.append([value])
        while len(blocks) > 1 and np.mean(blocks[-2]) > np.mean(blocks[-1]):
            blocks[-2:] = [blocks[-2] + blocks[-1]]
    return steps + np.concatenate([np.full(len(block), np.mean(block)) for block in blocks])
