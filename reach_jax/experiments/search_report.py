"""The parts of a cramming page on the search and its prompts: margins, bits, the way there.

Every protocol's page has them, each where the stored results hold what it needs. From stored
results only. No statistics of reach: those are in `reachability_report`.
"""

import dataclasses
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from reach_jax.analysis import search_figures
from reach_jax.analysis.certificate_figure import survival_panels
from reach_jax.bounds.bound import Bound
from reach_jax.cramming.trace import SHARE
from sweep_jax import drawing
from sweep_jax.cells import Cell
from sweep_jax.report import Section
from sweep_jax.store import Store

MARGIN = """The least lead of the right token over the best other along the confirmed text, in
logits, from the independent decode; targets of which no token was reached are left out.
configs/certify.py finds what margin is worth: rounding, and balls around the prompt."""
BITS = """Bits that the confirmed text is worth over the m D numbers of its prompt, beside the bits
that such a number has to offer. A text of uniformly random tokens is worth n log2 V; any other is
worth what the model alone needs for it, after its prefix and without the prompt: less, where it
has learned such text. A given first token is worth nothing. Available is a bound on the slope,
times log2 V over D."""
WAY = """Snapshots of each prompt during its search, evenly spaced over the steps that it took.
Lengths in standard deviations of the model's input vectors, over all numbers of a prompt; `length`
counts every step, `straight` is the distance from first to last snapshot. Components are of the
snapshots about their mean, and can be no more than snapshots less one (published, on other steps:
12 to 100 hold 99 %)."""


def sections(
    frame: pd.DataFrame,
    store: Store,
    cells: Sequence[Cell],
    vocabulary: int,
    given: int,
    bounds: Sequence[Bound],
    directory: Path,
) -> tuple[list[Section], list[tuple[str, pd.DataFrame]]]:
    """The sections, and their tables for the terminal; figures go to `directory`.

    Args:
      frame: one row a cell that did not fail; of several with one target the longest is taken.
      store: holds the cells' arrays.
      cells: of the run.
      vocabulary: V.
      given: tokens of each target that are an input from the start.
      bounds: `bound.first_bounds` of the prompts.
      directory: of the figures.
    """
    key = ["source", "prompt_length", "target"]
    best = frame.sort_values("threshold", kind="stable").groupby(key, sort=True).tail(1)
    best = best.sort_values(key)
    made: list[Section] = []
    shown: list[tuple[str, pd.DataFrame]] = []
    reached = best[best["least_margin"].notna() & (best["threshold"] > given)]
    if len(reached):
        panels = {
            str(source): {
                f"m = {m}": group["least_margin"].to_numpy()
                for m, group in part.groupby("prompt_length")
            }
            for source, part in reached.groupby("source")
        }
        drawn = survival_panels(panels, "least margin (logits)", log=True)
        path = drawing.save(drawn, directory / "margin")[1]
        caption = "Share of prompts with at least this margin"
        made.append(Section("Margins", MARGIN, [], [(caption, path)]))
    D = width(store, cells)
    worth = worths(best, D, vocabulary, given)
    if (worth["bits"] > 0).any():
        available = offers(bounds, D, vocabulary)
        drawn = search_figures.bits_per_coordinate(worth, available)
        path = drawing.save(drawn, directory / "bits")[1]
        summary = _bits(worth, available)
        caption = "Bits a coordinate used (a dot a target, a bar the median) and available"
        made.append(Section("Bits", BITS, [("Bits a coordinate", summary)], [(caption, path)]))
        shown.append(("bits a coordinate", summary))
    ways = _ways(best, store, cells)
    if ways:
        path = drawing.save(search_figures.ways(ways, SHARE), directory / "path")[1]
        summary = _way_frame(best)
        caption = f"Principal components of each prompt's way; {len(ways)} of {len(best)} have one"
        tables = [("Medians over targets", summary)]
        made.append(Section("The way of the search", WAY, tables, [(caption, path)]))
        shown.append(("way of the search", summary))
    return made, shown


def worths(best: pd.DataFrame, width: int, vocabulary: int, given: int) -> pd.DataFrame:
    """source, prompt_length, bits: what a coordinate of each prompt carries; unknown left out.

    A run from before `text_bits` was stored has it of random targets only.
    """
    exact = (best["threshold"] - given).clip(lower=0) * np.log2(vocabulary)
    known = best.get("text_bits", pd.Series(np.nan, best.index)).astype(float)
    bits = exact.where(best["source"] == "random", known)
    rows = best[["source", "prompt_length"]].assign(bits=bits / (best["prompt_length"] * width))
    return rows[bits.notna()]


def offers(bounds: Sequence[Bound], width: int, vocabulary: int) -> list[Bound]:
    """The counts of prompts of the stored type and the published ball, in bits a coordinate."""
    names = ("trivial bits", "float grid", "ball, eps = r/2^11")
    factor = np.log2(vocabulary) / width
    return [dataclasses.replace(b, slope=b.slope * factor) for b in bounds if b.name in names]


def width(store: Store, cells: Sequence[Cell]) -> int:
    """D of the stored prompts."""
    return int(store.arrays(store.done(cells)[0])["prompt"].shape[-1])


def _bits(worth: pd.DataFrame, available: Sequence[Bound]) -> pd.DataFrame:
    grid = next(b.slope for b in available if b.name == "float grid")
    rows = []
    for (source, m), part in worth.groupby(["source", "prompt_length"], sort=True):
        used = part["bits"]
        row = {"source": source, "m": m, "targets": len(part), "used": used.median()}
        row |= {"most": used.max(), "available": grid, "share used": used.median() / grid}
        rows.append(row)
    return pd.DataFrame(rows)


def _ways(best: pd.DataFrame, store: Store, cells: Sequence[Cell]) -> list[search_figures.Way]:
    if "path_components" not in best:
        return []
    by_name = {cell.name: cell for cell in cells}
    found = []
    for row in best[best["path_components"] > 0].to_dict("records"):
        shares = store.arrays(by_name[row["name"]])["path_shares"]
        about = (row["source"], row["prompt_length"], row["threshold"], row["path_components"])
        found.append(search_figures.Way(*about, shares))
    return found


def _way_frame(best: pd.DataFrame) -> pd.DataFrame:
    rows = []
    kept = best[best["path_components"] > 0]
    for (source, m), part in kept.groupby(["source", "prompt_length"], sort=True):
        components = part["path_components"]
        row = {"source": source, "m": m, "targets": len(part)}
        row |= {"snapshots": part["path_snapshots"].median()}
        row |= {"steps between": part["path_stride"].median()}
        row |= {"length": part["path_length"].median(), "straight": part["path_straight"].median()}
        row |= {"components": components.median(), "least": components.min()}
        rows.append(row | {"most": components.max()})
    return pd.DataFrame(rows)
