"""Figures of the geometry: C against length, shares by rank, and the cells on a plane.

As in `figures`, no statistics here: all numbers come in.
"""

from collections.abc import Mapping, Sequence

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.colors import ListedColormap, to_hex, to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import FixedLocator, NullLocator, ScalarFormatter

from reach_jax.analysis.figures import COLOURS, SPARE_COLOURS
from sweep_jax.checks import require
from sweep_jax.drawing import FAINT, GREY, INK, STYLE

_PALETTE = (*COLOURS.values(), *SPARE_COLOURS, "#F0E442", "#332288", "#882255", "#88CCEE")


def c_against_length(growth: pd.DataFrame) -> Figure:
    """Slopes C of the union of all sets up to a length, a panel a kind of sequence.

    Args:
      growth: columns kind, length, r_inf, and one a bound.
    """
    bounds = [c for c in growth.columns if c not in ("kind", "length", "r_inf")]
    kinds = list(dict.fromkeys(growth["kind"]))
    with matplotlib.rc_context(STYLE):
        fig = Figure(figsize=(4.7 * len(kinds), 3.4), layout="constrained")
        axes = fig.subplots(1, len(kinds), sharey=True, squeeze=False)[0]
        for ax, kind in zip(axes, kinds, strict=True):
            part = growth[growth["kind"] == kind]
            for name, colour in zip(bounds, _PALETTE, strict=False):
                ax.plot(part["length"], part[name], "o-", ms=3.5, color=colour, label=name)
            ax.set(title=f"{kind} tokens", xscale="log", xlabel="greatest length (tokens)")
            ax.xaxis.set_major_locator(FixedLocator(part["length"].tolist()))
            ax.xaxis.set_minor_locator(NullLocator())
            ax.xaxis.set_major_formatter(ScalarFormatter())
            ax.tick_params(axis="x", rotation=60)
        axes[0].set_ylabel("C (tokens per prompt vector)")
        axes[-1].legend(fontsize=8)
    return fig


def shares_by_rank(shares: Mapping[tuple[str, str], Sequence[float]], resolution: float) -> Figure:
    """Shares of the cells from the largest down, on log axes; a panel a rule, a line a region.

    Args:
      shares: (rule, region) -> shares above zero, descending.
      resolution: one point's share; what lies below it was not seen.

    Raises:
      ValueError: no shares.
    """
    require(len(shares) > 0, "shares", shares, "at least one set of shares")
    rules = list(dict.fromkeys(rule for rule, _ in shares))
    regions = list(dict.fromkeys(region for _, region in shares))
    with matplotlib.rc_context(STYLE):
        fig = Figure(figsize=(4.7 * len(rules), 3.4), layout="constrained")
        axes = fig.subplots(1, len(rules), sharex=True, sharey=True, squeeze=False)[0]
        for ax, rule in zip(axes, rules, strict=True):
            for region, colour in zip(regions, _PALETTE, strict=False):
                values = shares.get((rule, region))
                if values is not None:
                    rank = np.arange(1, len(values) + 1)
                    ax.plot(rank, values, color=colour, label=f"{region} ({len(values)} hit)")
            ax.axhline(resolution, color=GREY, lw=0.8, ls=":")
            ax.set(title=f"{rule} cells", xscale="log", yscale="log", xlabel="rank of the token")
            ax.legend(fontsize=8)
        axes[0].set_ylabel("share of the region")
    return fig


def token_plane(
    tokens_YX: np.ndarray,
    extent: tuple[float, float, float, float],
    points_32: np.ndarray,
    prompts: Sequence[str],
    names: Mapping[int, str],
) -> Figure:
    """The plane, each pixel in the colour of its argmax token; tokens without a name are grey.

    Args:
      tokens_YX: token of each pixel, the lowest row first.
      extent: left, right, bottom and top of the plane, in units of the states.
      points_32: where the three prompts' states lie.
      prompts: their texts.
      names: token -> what the legend calls it, the largest area first.
    """
    place_of = {token: place for place, token in enumerate(names)}
    other = len(names)
    image_YX = np.vectorize(lambda token: place_of.get(int(token), other))(tokens_YX)
    colours = [_PALETTE[i % len(_PALETTE)] for i in range(other)]
    for i in range(len(_PALETTE), other):  # the same colours again, lighter
        r, g, b = to_rgb(colours[i])
        colours[i] = to_hex((0.5 + 0.5 * r, 0.5 + 0.5 * g, 0.5 + 0.5 * b))
    with matplotlib.rc_context({**STYLE, "axes.grid": False}):
        fig = Figure(figsize=(7.6, 4.6), layout="constrained")
        ax = fig.subplots()
        ax.imshow(
            image_YX,
            cmap=ListedColormap([*colours, FAINT]),
            vmin=-0.5,
            vmax=other + 0.5,
            origin="lower",
            extent=extent,
            interpolation="nearest",
        )
        for number, ((x, y), prompt) in enumerate(zip(points_32, prompts, strict=True), start=1):
            ax.plot(x, y, "o", ms=14, color="white", mec=INK)
            ax.annotate(str(number), (x, y), ha="center", va="center", fontweight="bold")
            short = prompt if len(prompt) <= 40 else f"…{prompt[-39:]}"
            ax.plot([], [], " ", label=f"{number}: {short}")
        keys = [Patch(color=c, label=n) for c, n in zip(colours, names.values(), strict=True)]
        handles, _ = ax.get_legend_handles_labels()
        fig.legend(handles=[*handles, *keys], loc="outside right upper", fontsize=7)
        ax.set(xlabel="first principal axis", ylabel="second principal axis")
        ax.set_title("argmax token on the plane of three states")
    return fig
