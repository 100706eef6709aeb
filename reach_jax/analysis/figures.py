"""The figures of a reachability result: success against length, and the reachable share.

Each function returns a `matplotlib.figure.Figure` made without pyplot, so there is no global state;
`sweep_jax.drawing.save` writes it. Not a place for statistics: all numbers come in.
"""

from collections.abc import Mapping
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.ticker import StrMethodFormatter
from numpy.typing import ArrayLike

from reach_jax.analysis.summary import NamedSlope
from reach_jax.analysis.thresholds import SuccessCurve
from sweep_jax.checks import require
from sweep_jax.drawing import BLUE, GREEN, GREY, ORANGE, PINK, SKY, STYLE

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
        for source, printed in published.items():
            for m, (lengths, shares) in printed.items():
                if m in curves.get(source, {}):
                    reached.append(np.max(np.asarray(lengths)[np.asarray(shares) > 0], initial=0))
        axes[0].set(ylabel="share of targets reached", xlim=(0, 1.3 * max(reached)))
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
        sure: Any = {"color": colour, "lw": 1, "ls": "--", "drawstyle": "steps-pre"}
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
