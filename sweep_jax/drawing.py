"""How every figure of both packages looks, and how it is written. Makes no data and no axes."""

from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.figure import Figure

# Okabe and Ito's colours, told apart with any colour vision.
BLUE, ORANGE, GREEN, PINK, SKY = "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9"
INK, GREY, FAINT = "#222222", "#6E6E6E", "#E4E4E4"
STYLE: Any = {
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.titlelocation": "left",
    "axes.titleweight": "bold",
    "axes.labelcolor": INK,
    "axes.edgecolor": GREY,
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": FAINT,
    "grid.linewidth": 0.7,
    "text.color": INK,
    "xtick.color": GREY,
    "ytick.color": GREY,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "legend.frameon": False,
    "figure.facecolor": "white",
    "lines.linewidth": 1.7,
    "lines.solid_capstyle": "round",
}


def save(fig: Figure, stem: Path) -> tuple[Path, Path]:
    """Writes `stem`.png (150 dpi) and `stem`.svg; the same figure gives the same bytes.

    Returns:
      The two paths.
    """
    stem.parent.mkdir(parents=True, exist_ok=True)
    png, svg = stem.with_name(stem.name + ".png"), stem.with_name(stem.name + ".svg")
    with matplotlib.rc_context({"svg.hashsalt": "reach"}):
        fig.savefig(png, dpi=150, metadata={"Software": None})
        fig.savefig(svg, metadata={"Date": None})
    return png, svg
