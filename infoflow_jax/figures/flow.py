"""How information reaches c0, layer by layer, on one input; and the frontier of architectures.

Not a place for statistics or planning: all numbers come in.
"""

from collections.abc import Sequence

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import FancyArrowPatch, Rectangle
from matplotlib.ticker import MaxNLocator

from sweep_jax.checks import require
from sweep_jax.drawing import BLUE, FAINT, GREEN, GREY, INK, ORANGE, PINK, SKY, STYLE

HEADS = (BLUE, ORANGE, GREEN, PINK, SKY)
Move = tuple[int, int, int, int, str]


def flow(known_LPP: np.ndarray, moves: Sequence[Move], readers: Sequence[int]) -> Figure:
    """A row a layer, from below: what each position knows, and which head brought it.

    Every state is a strip of T cells, filled where that position's token is known. An arrow goes
    from a key, as it was before the layer, to the query that a head shows it to; a colour a head.
    What no reader's state comes from is faint.

    Args:
      known_LPP: I(., l), bool, for l = 0..L; P = T + 1, the last position is c0.
      moves: (layer from 1, head from 0, query, key, what for).
      readers: positions that the output is read at.

    Raises:
      ValueError: `known_LPP` is not [L + 1, P, P].
    """
    shape = known_LPP.shape
    ok = known_LPP.ndim == 3 and shape[1] == shape[2] >= 2
    require(ok, "known_LPP", shape, "[L + 1, P, P] with P >= 2")
    layers, P = shape[0] - 1, shape[1]
    heads = 1 + max((head for _, head, *_ in moves), default=0)
    live_LP = _live(layers, P, moves, readers)
    with matplotlib.rc_context(STYLE | {"axes.grid": False}):
        fig = Figure(figsize=(1.05 * P + 1.2, 1.3 * layers + 1.5), layout="constrained")
        ax = fig.subplots()
        for layer, head, query, key, _ in moves:
            alive = bool(live_LP[layer, query])
            aside = 0.06 * (head - 0.5 * (heads - 1))  # so that two heads on one key are seen
            ends = (key + aside, query + aside)
            _arrow(ax, ends, layer, HEADS[head % len(HEADS)], alive)
        for layer in range(layers + 1):
            for p in range(P):
                _strip(ax, p, layer, known_LPP[layer, p, : P - 1], bool(live_LP[layer, p]))
        ax.set_xlim(-0.65, P - 0.35)
        ax.set_ylim(-0.45, layers + 0.4)
        ax.set_xticks(range(P), [*(f"x({t})" for t in range(1, P)), "c0"])
        ax.set_yticks(range(layers + 1), ["input", *(f"layer {n}" for n in range(1, layers + 1))])
        ax.tick_params(length=0)
        for side in ax.spines.values():
            side.set_visible(False)
        used = sorted({head for _, head, *_ in moves})
        marks = [Line2D([], [], color=HEADS[h % len(HEADS)], label=f"head {h + 1}") for h in used]
        if marks:
            fig.legend(handles=marks, loc="outside lower center", ncols=len(marks))
    return fig


def _live(layers: int, P: int, moves: Sequence[Move], readers: Sequence[int]) -> np.ndarray:
    """States that a reader's last state comes from, [L + 1, P]."""
    live_LP = np.zeros((layers + 1, P), bool)
    live_LP[layers, list(readers)] = True
    for layer in range(layers, 0, -1):
        live_LP[layer - 1] |= live_LP[layer]  # by the residual
        for at, _, query, key, _ in moves:
            if at == layer and live_LP[layer, query]:
                live_LP[layer - 1, key] = True
    return live_LP


def _arrow(ax: Axes, ends: tuple[float, float], layer: int, colour: str, alive: bool) -> None:
    patch = FancyArrowPatch(
        (ends[0], layer - 1 + 0.13),
        (ends[1], layer - 0.13),
        arrowstyle="-|>",
        mutation_scale=9 if alive else 6,
        color=colour,
        lw=1.5 if alive else 0.8,
        alpha=1.0 if alive else 0.25,
        shrinkA=0,
        shrinkB=0,
        zorder=3 if alive else 1,
    )
    ax.add_patch(patch)


def _strip(ax: Axes, p: int, layer: int, known_T: np.ndarray, alive: bool) -> None:
    side = 0.8 / len(known_T)
    for t, knows in enumerate(known_T):
        colour = (INK if alive else GREY) if knows else "white"
        ax.add_patch(
            Rectangle(
                (p - 0.4 + t * side, layer - 0.09),
                side,
                0.18,
                facecolor=colour,
                edgecolor=GREY if alive else FAINT,
                lw=0.6,
                alpha=1.0 if alive else 0.6,
                zorder=4,
            )
        )


def frontier(
    points: Sequence[tuple[tuple[int, ...], int]], asked: tuple[int, ...] | None, feasible: bool
) -> Figure:
    """The smallest architectures: layers against heads in all, labelled with heads and width.

    Args:
      points: (heads of each layer, least E).
      asked: the architecture that was asked about, or None.
      feasible: whether that one finds the target.

    Raises:
      ValueError: no point.
    """
    require(len(points) > 0, "points", points, "at least one")
    with matplotlib.rc_context(STYLE):
        fig = Figure(figsize=(5.2, 3.4), layout="constrained")
        ax = fig.subplots()
        labels: dict[tuple[int, int], list[str]] = {}
        for heads, width in points:
            text = f"({', '.join(map(str, heads))}), E ≥ {width}"
            labels.setdefault((sum(heads), len(heads)), []).append(text)
        for (total, layers), texts in labels.items():
            ax.plot(total, layers, "o", color=BLUE, ms=7)
            ax.annotate("\n".join(texts), (total, layers), (7, 3), textcoords="offset points",
                        fontsize=8)  # fmt: skip
        totals, depths = [t for t, _ in labels], [n for _, n in labels]
        if asked is not None:
            colour, word = (GREEN, "finds it") if feasible else (ORANGE, "does not")
            ax.plot(sum(asked), len(asked), "x", color=colour, ms=9, mew=2)
            label = f"({', '.join(map(str, asked))}) {word}"
            at = (sum(asked), len(asked))
            ax.annotate(label, at, (7, -12), textcoords="offset points", fontsize=8, color=colour)
            totals.append(sum(asked))
            depths.append(len(asked))
        ax.set(xlabel="heads in all layers", ylabel="layers")
        ax.set_xlim(min(totals) - 0.7, max(totals) + 2.2)
        ax.set_ylim(min(depths) - 0.6, max(depths) + 0.9)
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        ax.yaxis.set_major_locator(MaxNLocator(integer=True))
    return fig
