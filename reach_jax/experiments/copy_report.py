"""Tables, figure and page of copying, from what its workdir holds."""

from collections.abc import Sequence
from typing import Any

import pandas as pd
from scipy import stats

from reach_jax.analysis import cliff, cliff_figure
from reach_jax.experiments.published_constants import COPY_R2
from sweep_jax import atomic, drawing, provenance
from sweep_jax.cells import Cell
from sweep_jax.experiment import Context
from sweep_jax.report import Section, format_number, write_report
from sweep_jax.store import table, write_table

LEAD = """Each model learnt to copy strings of up to the training length and was asked for longer
ones, by greedy decoding from the question alone. A string counts when all its letters and the end
symbol come out. The length at 50 % is the centre of a logistic curve through the shares; the fall
is how many letters it takes from 90 % to 10 %. A model that does not copy what it was trained on is
undertrained, and no cliff is given for it."""
CONFIDENCE = 0.95


def write(cells: Sequence[Cell], context: Context) -> str:
    """Writes the tables, figures/ and report.html; returns the text to print."""
    store, workdir = context.store, context.workdir
    frame = table(store, cells)
    write_table(frame, workdir)
    stored = f"{len(frame)} of {len(cells)} cells are stored"
    if frame.empty:
        return f"{stored} in {workdir}; nothing to report yet"
    done = store.done(cells)
    shares, found = share_frame(done, context), cliff_frame(done, context)
    atomic.write_text(workdir / "shares.csv", shares.to_csv(index=False))
    atomic.write_text(workdir / "cliffs.csv", found.to_csv(index=False))
    alone = shares[shares["before"] == 0]
    figure = cliff_figure.cliffs(alone, found, COPY_R2)
    saved = drawing.save(figure, workdir / "figures" / "cliffs")[1]
    runs, memories = run_frame(done, context), memory_frame(done, context)
    summary = summarise(found)
    under = runs[runs["undertrained"]]
    named = ", ".join(f"{r.variant} (draw {r.draw})" for r in under.itertuples())
    said = f"{len(under)} undertrained: {named}" if named else "none is undertrained"
    tables = [("Training", runs), ("Cliffs", found)]
    if len(memories):
        caption = "Fixed memories: letters that their values could tell apart, and the cliff"
        tables.append((caption, memories))
    write_report(
        workdir / "report.html",
        "Copying: where it breaks",
        LEAD,
        [Section("Result", f"{stored}; {said}.", tables, [("Shares and cliffs", saved)])],
        provenance.collect(),
    )
    texts = [f"training\n{_plain(runs)}", f"cliffs (median over draws)\n{_plain(summary)}"]
    if len(memories):
        texts.append(f"fixed memories, letters\n{_plain(memories)}")
    ends = f"{said}\n{stored} in {workdir}\nreport: {workdir / 'report.html'}"
    return "\n\n".join([*texts, ends])


def share_frame(cells: Sequence[Cell], context: Context) -> pd.DataFrame:
    """A row a cell, examples before and length: counts, shares, Wilson's interval."""
    rows = []
    for point, metrics in _stored(cells, context):
        for p, before in enumerate(metrics["before"]):
            for n, length in enumerate(metrics["lengths"]):
                copied, of = metrics["copied"][p][n], metrics["strings"]
                ends = stats.binomtest(copied, of).proportion_ci(CONFIDENCE, "wilson")
                right, symbols = metrics["right"][p][n], metrics["symbols"][p][n]
                row = {**point, "before": before, "length": length, "copied": copied, "of": of}
                row |= {"share": copied / of, "low": float(ends.low), "high": float(ends.high)}
                row |= {"right": right, "symbols": symbols, "symbol_share": right / symbols}
                rows.append(row | {"undertrained": metrics["undertrained"]})
    return pd.DataFrame(rows)


def cliff_frame(cells: Sequence[Cell], context: Context) -> pd.DataFrame:
    """A row a trained cell and number of examples before the question; none of an undertrained."""
    columns = ["variant", "longest", "draw", "before"]
    columns += ["length", "low", "high", "fall", "r2", "censored"]
    rows = []
    for cell in cells:
        record = context.store.read(cell)
        if record is None or record["metrics"]["undertrained"]:
            continue
        metrics = record["metrics"]
        copied_PNK = context.store.arrays(cell)["copied_PNK"]
        for before, copied_NK in zip(metrics["before"], copied_PNK, strict=True):
            at = cliff.cliff(metrics["lengths"], copied_NK.T, seed=0, confidence=CONFIDENCE)
            row = {**_point(cell), "before": before, "length": at.length, "low": at.low}
            row |= {"high": at.high, "fall": at.fall, "r2": at.r2, "censored": at.censored}
            rows.append(row)
    return pd.DataFrame(rows, columns=columns)


def run_frame(cells: Sequence[Cell], context: Context) -> pd.DataFrame:
    """How each training went."""
    shown = ("parameters", "steps", "best_step", "loss", "check", "inside", "undertrained")
    return pd.DataFrame(
        [
            {**point, **{name: metrics[name] for name in shown}}
            for point, metrics in _stored(cells, context)
        ]
    )


def memory_frame(cells: Sequence[Cell], context: Context) -> pd.DataFrame:
    """A row a recurrent model: its memory's numbers, and the longest string they could hold."""
    rows = []
    for point, metrics in _stored(cells, context):
        if metrics.get("memory_numbers") is None:
            continue
        row = {**point, "numbers": metrics["memory_numbers"]}
        row |= {"largest": metrics["memory_largest"]}
        row |= {"by_32_bits": metrics["memory_bits_letters"]}
        row |= {"by_float_grid": metrics["memory_grid_letters"]}
        rows.append(row)
    return pd.DataFrame(rows)


def summarise(found: pd.DataFrame) -> pd.DataFrame:
    """Medians over draws."""
    by = ["variant", "longest", "before"]
    numbers = found.groupby(by, sort=False)[["length", "low", "high", "fall", "r2"]].median()
    censored = found.groupby(by, sort=False)["censored"].agg(lambda c: ",".join(sorted(set(c))))
    draws = found.groupby(by, sort=False)["draw"].count().rename("draws")
    return pd.concat([draws, numbers, censored], axis=1).reset_index()


def _stored(cells: Sequence[Cell], context: Context) -> list[tuple[dict[str, Any], Any]]:
    records = [(cell, context.store.read(cell)) for cell in cells]
    return [(_point(cell), record["metrics"]) for cell, record in records if record is not None]


def _point(cell: Cell) -> dict[str, Any]:
    point: dict[str, Any] = cell.config["cell"]
    return {name: point[name] for name in ("variant", "longest", "draw")}


def _plain(frame: pd.DataFrame) -> str:
    return frame.map(format_number).to_string(index=False)
