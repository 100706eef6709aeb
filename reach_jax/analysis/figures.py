"""The figures of a reachability result: success, the line beside its bounds, the reachable share.

Each function returns a `matplotlib.figure.Figure` made without pyplot, so there is no global state;
`sweep_jax.drawing.save` writes it. Not a place for statistics: all numbers come in.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, NullLocator, ScalarFormatter, StrMethodFormatter
from numpy.typing import ArrayLike

from reach_jax.analysis.summary import NamedSlope
from reach_jax.analysis.thresholds import SuccessCurve
from sweep_jax.checks import require
from sweep_jax.drawing import BLUE, GREEN, GREY, INK, ORANGE, PINK, SKY, STYLE

Colour = tuple[float, float, float]
COLOURS = {"text": BLUE, "random": ORANGE}
SPARE_COLOURS = (GREEN, PINK, SKY)


def success_curves(
    curves: Mapping[str, Mapping[int, SuccessCurve]],
    published: Mapping[str, Mapping[int, tuple[ArrayLike, ArrayLike]]] | None = None,
) -> Figure:
    """The share of targets reached against length: a panel a source, a curve for each m.

    This is the survival curve of the thresholds. The bands are pointwise intervals, over the fall
    from 1 to 0. Beyond the least censored threshold a dashed line is the share that is sure, and a
    tick each censored target.

    Args:
      curves: source -> m -> curve.
      published: source -> m -> (lengths in tokens, shares), drawn dotted; None for none.

    Raises:
      ValueError: no source.
    """
    require(len(curves) > 0, "curves", curves, "at least one source")
    published = published or {}
    with matplotlib.rc_context(STYLE):
        fig = Figure(figsize=(4.7 * len(curves), 3.3), layout="constrained")
        axes = fig.subplots(1, len(curves), sharex=True, sharey=True, squeeze=False)[0]
        for place, (ax, (source, by_m)) in enumerate(zip(axes, curves.items(), strict=True)):
            for m, colour in shades(colour_of(source, place), by_m).items():
                if m in published.get(source, {}):
                    ax.plot(*published[source][m], color=colour, lw=1.1, ls=(0, (1, 1.3)))
                _success(ax, m, by_m[m], colour)
            if source in published:
                ax.plot([], [], color=GREY, lw=1.1, ls=(0, (1, 1.3)), label="published")
            if any(curve.capped.size for curve in by_m.values()):
                ax.plot([], [], color=GREY, lw=1, ls="--", marker="|", label="at least; censored")
            ax.plot([], [], "o", color=GREY, ms=9, label="prompt vectors m")
            ax.legend(loc="upper right")
            ax.set(title=f"{source} targets", xlabel="output length n (tokens)")
        reached = [_end(curve) for by_m in curves.values() for curve in by_m.values()]
        for source, by_m in published.items():
            for m, (lengths, shares) in by_m.items():
                if m in curves.get(source, {}):
                    reached.append(np.max(np.asarray(lengths)[np.asarray(shares) > 0], initial=0))
        axes[0].set(ylabel="share of targets reached", xlim=(0, 1.3 * max(reached)))
    return fig


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


def reachable_fraction(
    curves: Mapping[int, SuccessCurve], bound: NamedSlope, vocabulary: int
) -> Figure:
    """The measured share of random targets reached, above the bound on all outputs.

    The bound is `V^(C m - n)` (arXiv 2605.22223, Corollary 4.6), drawn as its log10. Targets of
    uniformly random tokens alone sample all outputs evenly, so only theirs may stand beside it.

    Args:
      curves: m -> curve of random targets.
      bound: slope C in tokens per prompt vector.
      vocabulary: V >= 2.
    """
    decades = np.log10(vocabulary)
    last = 1.3 * bound.slope * max(curves)
    with matplotlib.rc_context(STYLE):
        fig = Figure(figsize=(6.8, 4.6), layout="constrained")
        top, bottom = fig.subplots(2, 1, sharex=True)
        for m, colour in shades(COLOURS["random"], curves).items():
            _success(top, m, curves[m], colour)
            n = np.concatenate([[1.0], np.linspace(bound.slope * m, last, 400)])
            bottom.plot(n, np.minimum(0, (bound.slope * m - n) * decades), color=colour)
            _badge(bottom, m, bound.slope * m, 0, colour)
        top.plot([], [], "o", color=GREY, ms=9, label="prompt vectors m")
        top.legend(loc="upper right")
        top.set(ylabel="share reached", title="measured: random targets")
        kind = "rigorous" if bound.rigorous else "heuristic"
        bottom.set(title=f"bound: {bound.name} ({kind})", ylabel="log₁₀ share of all outputs")
        bottom.set(xscale="log", xlabel="output length n (tokens)", xlim=(1, last))
        note = f"beyond C m the share falls\nby {decades:.1f} decades with each token"
        bottom.text(0.03, 0.1, note, transform=bottom.transAxes, color=GREY)
        for axis in (bottom.xaxis, bottom.yaxis):
            axis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    return fig


def colour_of(source: str, place: int) -> str:
    """The colour of a source; `place` is for one that has none of its own."""
    return COLOURS.get(source, SPARE_COLOURS[place % len(SPARE_COLOURS)])


def shades(colour: str, by_m: Mapping[int, Any]) -> dict[int, Colour]:
    """m -> the colour, from a light tint at the least m to a dark shade at the greatest."""
    base = np.array(to_rgb(colour))
    mixes = np.linspace(-0.4, 0.35, len(by_m)) if len(by_m) > 1 else np.zeros(1)
    tones = [base - x * (1 - base if x < 0 else base) for x in mixes]
    return {m: (tone[0], tone[1], tone[2]) for m, tone in zip(sorted(by_m), tones, strict=True)}


def _fall(curve: SuccessCurve) -> np.ndarray:
    """The lengths from the last at which all targets are reached to the first at which none is."""
    first = np.flatnonzero(curve.share == 1)[-1]
    return curve.n[first : np.count_nonzero(curve.share > 0) + 1]


def _end(curve: SuccessCurve) -> float:
    """The last length that is drawn for a reason: the fall's end, or a censored target."""
    return float(max(_fall(curve)[-1], curve.capped.max(initial=0)))


def _success(ax: Axes, m: int, curve: SuccessCurve, colour: Colour) -> None:
    ax.plot(curve.n, curve.share, color=colour, drawstyle="steps-pre")
    n = _fall(curve)
    ax.fill_between(n, curve.low[n], curve.high[n], step="pre", color=colour, alpha=0.14, lw=0)
    if curve.capped.size:
        beyond = curve.n >= curve.capped[0]
        sure = {"color": colour, "lw": 1, "ls": "--", "drawstyle": "steps-pre"}
        ax.plot(curve.n[beyond], curve.floor[beyond], **sure)
        at = curve.capped[curve.capped <= curve.n[-1]].astype(int)
        ax.plot(at, curve.floor[at], "|", color=colour, ms=7, mew=1.2)
    half = np.count_nonzero(curve.share >= 0.5) - 1
    falls = half + 1 < curve.n.size and curve.share[half + 1] < 0.5
    _badge(ax, m, curve.n[half], 0.5 if falls else curve.share[half], colour)
    ax.set_ylim(-0.03, 1.06)


def _badge(ax: Axes, m: int, x: float, y: float, colour: Colour) -> None:
    ax.plot(x, y, "o", ms=11, color=colour, mec="white", mew=0.8, zorder=3)
    text = ax.text(x, y, str(m), color="white", fontsize=7, fontweight="bold", zorder=4)
    text.set(ha="center", va="center_baseline")


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
