"""Bounds and figures of the page that `reachability_report` writes, from stored results."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from reach_jax.analysis import figures, line_figure, thresholds
from reach_jax.bounds.bound import Bound, first_bounds
from reach_jax.experiments import published_curves, zoo
from sweep_jax import drawing
from sweep_jax.cells import Cell
from sweep_jax.store import Store


def bounds(
    vocabulary: int, store: Store, cells: Sequence[Cell], support: dict[str, Any]
) -> list[Bound]:
    """Every first bound for the box of the prompts found, and ball and box of the states too."""
    done = store.done(cells)
    prompts_PD = np.concatenate([store.arrays(cell)["prompt"] for cell in done])
    lo_D, hi_D = prompts_PD.min(axis=0), prompts_PD.max(axis=0)
    own = first_bounds(lo_D, hi_D, vocabulary, prompts_PD.dtype, "prompts")
    states = first_bounds(support["lo_D"], support["hi_D"], vocabulary, prompts_PD.dtype, "outputs")
    published = [b for b in states if b.name.startswith(("ball", "box"))]
    return list(own) + [dataclasses.replace(b, name=f"{b.name} (states)") for b in published]


def draw(
    known: zoo.Known,
    published: str | None,
    frame: pd.DataFrame,
    n50s: pd.DataFrame,
    lines: pd.DataFrame,
    limits: Sequence[Bound],
    directory: Path,
) -> dict[str, Path]:
    """The SVG of each figure; a PNG is written beside it.

    Args:
      known: the model.
      published: from `published_curves.find`.
      frame: one row a cell.
      n50s: from `summary.n50_frame`.
      lines: from `summary.line_frame`.
      limits: from `bounds`.
      directory: for the files.
    """
    kept = frame[frame["status"] != "failed"]
    longest = int(kept["threshold"].max()) + 4
    curves = {
        str(source): {
            m: thresholds.success_curve(part["threshold"], part["status"] == "censored", longest)
            for m in sorted(set(group["prompt_length"].tolist()))
            for part in [group[group["prompt_length"] == m]]
        }
        for source, group in kept.groupby("source")
    }
    drawn = {source: set(by_m) for source, by_m in curves.items()}
    there = {} if published is None else published_curves.beside(published, drawn)
    beside = [b for b in limits if not b.name.endswith("(states)")]
    made = {
        "success": figures.success_curves(curves, there),
        "line": line_figure.line_beside_bounds(n50s, lines, beside),
    }
    if "random" in curves:
        grid = next(b for b in limits if b.name == "float grid")
        made["fraction"] = figures.reachable_fraction(curves["random"], grid, known.tokens)
    return {name: drawing.save(figure, directory / name)[1] for name, figure in made.items()}
