"""Tables and figures of the protocols with fixed lengths: n50 by likelihood, capacity, gains."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from reach_jax.analysis import lines, logistic, search_figures
from reach_jax.cramming import kuratov
from reach_jax.experiments import published_curves
from reach_jax.experiments.settings import assignments
from sweep_jax import drawing, provenance
from sweep_jax.cells import Cell
from sweep_jax.experiment import Context
from sweep_jax.report import Section, write_report
from sweep_jax.store import Store

LEAD = """How much of a text of fixed length can m prompt vectors hold? Accuracy is teacher-forced,
as published; `greedy` is the share of texts that the model really emits from the prompt alone. A
text that was not reached was not found within this budget: all numbers are lower bounds."""
LOGISTIC = "n50 by logistic likelihood over the lengths tried, bootstrap over targets, tokens"


def logistic_frame(store: Store, cells: Sequence[Cell], seed: int) -> pd.DataFrame:
    """One row a source, prompt length and way to count success, of the published sweep.

    Returns:
      source, prompt_length, success ("greedy" or "teacher forced"), n50, low, high, width,
      targets, censored ("", "above" or "below": where the true n50 lies).
    """
    rows = []
    for (source, m), group in sorted(_sweeps(store, cells).items()):
        lengths = group[0]["lengths"]
        for name, field in _WAYS.items():
            success = np.array([metrics[field] for metrics in group], bool)
            fit = logistic.bootstrap(lengths, success, seed)
            row = {"source": source, "prompt_length": m, "success": name}
            row |= {"n50": fit.fit.n50, "low": fit.low, "high": fit.high, "width": fit.fit.width}
            rows.append(row | {"targets": len(group), "censored": fit.fit.censored})
    return pd.DataFrame(rows)


def _sweeps(store: Store, cells: Sequence[Cell]) -> dict[tuple[str, int], list[dict]]:
    """The metrics of each source and prompt length, failed cells left out."""
    found: dict[tuple[str, int], list[dict]] = {}
    for cell, item in zip(cells, assignments(cells), strict=True):
        record = store.read(cell)
        if record is not None and record["status"] != "failed":
            found.setdefault((item.source, item.prompt_length), []).append(record["metrics"])
    return found


_WAYS = {"greedy": "successes", "teacher forced": "teacher_forced_successes"}


def line_frame(n50s: pd.DataFrame) -> pd.DataFrame:
    """The straight line through n50(m) of each source and way; censored m are left out."""
    rows = []
    for (source, way), group in n50s.groupby(["source", "success"], sort=True):
        kept = group[group["censored"] == ""]
        row = {"source": source, "success": way, "left_out": len(group) - len(kept)}
        if len(kept) >= 2:
            line = lines.fit_line(kept["prompt_length"], kept["n50"])
            row |= {"slope": line.slope, "intercept": line.intercept, "r2": line.r2_centred}
        rows.append(row)
    return pd.DataFrame(rows)


def capacity_frames(frame: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Means by length, and the capacity of each source and prompt length.

    Args:
      frame: one row a cell of the protocol `kuratov`, failed ones left out.
    """
    keys = ["source", "prompt_length", "length"]
    means = frame.groupby(keys, sort=True).agg(
        accuracy=("teacher_forced", "mean"),
        greedy=("success", "mean"),
        token_gain=("token_gain", "mean"),
        nats=("information_gain_nats", "mean"),
        bits=("information_gain_bits", "mean"),
        texts=("success", "size"),
    )
    rows = []
    for (source, m), group in means.groupby(level=[0, 1]):
        lengths = group.index.get_level_values(2)
        shares = dict(zip(map(int, lengths), map(float, group["accuracy"]), strict=True))
        best = group.sort_values("token_gain").iloc[-1]
        row = {"source": source, "prompt_length": m, "capacity": kuratov.capacity(shares)}
        row |= {"most_tokens_gained": best["token_gain"], "nats_there": best["nats"]}
        rows.append(row | {"lower_bound_only": kuratov.capacity(shares) == max(shares)})
    return means.reset_index(), pd.DataFrame(rows)


def draw_tries(store: Store, cells: Sequence[Cell], published: str | None, directory: Path) -> Path:
    """The shares at every length of the published sweep, the published curve beside them."""
    curves: dict[str, dict[int, dict[str, search_figures.Pair]]] = {}
    for (source, m), group in _sweeps(store, cells).items():
        n = group[0]["lengths"]
        order = np.argsort(n)
        curves.setdefault(source, {})[m] = {
            name: (np.array(n)[order], np.mean([g[field] for g in group], axis=0)[order])
            for name, field in _WAYS.items()
        }
    drawn = {source: set(by_m) for source, by_m in curves.items()}
    beside = {} if published is None else published_curves.beside(published, drawn)
    figure = search_figures.shares_at_lengths(curves, beside)
    return drawing.save(figure, directory / "tried")[1]


def write_capacity(
    frame: pd.DataFrame,
    name: str,
    stored: str,
    context: Context,
    more: Sequence[Section],
    more_tables: Sequence[tuple[str, pd.DataFrame]],
) -> str:
    """The page of the protocol `kuratov`, with further sections; returns the text to print."""
    means, capacities = capacity_frames(frame[frame["status"] != "failed"])
    path = context.workdir / "report.html"
    tables = [("Capacity, tokens", capacities), ("Means by length", means)]
    curves: dict[str, dict[int, dict[str, search_figures.Pair]]] = {}
    for _, group in means.groupby(["source", "prompt_length"]):
        source, m = group.iloc[0][["source", "prompt_length"]]
        curves.setdefault(str(source), {})[int(m)] = {
            "accuracy": (group["length"], group["accuracy"]),
            "whole, greedy": (group["length"], group["greedy"]),
        }
    figure = search_figures.shares_at_lengths(curves, title="mean share")
    drawn = drawing.save(figure, context.workdir / "figures" / "accuracy")[1]
    caption = "Mean teacher-forced accuracy, and the share of texts emitted whole"
    sections = [Section("Capacity and gains", f"{stored}.", tables, [(caption, drawn)]), *more]
    write_report(path, f"Capacity of {name}", LEAD, sections, provenance.collect())
    shown = [*tables, *more_tables]
    parts = [f"{title}\n{table.to_string(index=False)}" for title, table in shown]
    return "\n\n".join([*parts, f"{stored} in {context.workdir}\nreport: {path}"])
