"""Table, figures and pages of trained networks; `trained` computes what they show.

Every number comes from the stored cells, the planner, or the published constants of
`published_training`.
"""

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from ml_collections import ConfigDict

from infoflow_jax.calculus.architecture import Architecture
from infoflow_jax.calculus.planner import predict
from infoflow_jax.experiments import published_training, scaling_report
from infoflow_jax.figures import scaling_figure, training_figure
from infoflow_jax.tasks.task import TaskConfig
from sweep_jax import atomic, drawing, provenance
from sweep_jax.cells import Cell
from sweep_jax.checks import resolve
from sweep_jax.experiment import Context
from sweep_jax.report import Section, write_report
from sweep_jax.store import table, write_table

_PANEL = ("D", "heads", "target", "tokens", "rate", "residual")
_ATTENTION = "c0's attention in layer 1 by position, mean ± deviation over inputs"
_LISTS = ("nmse_T", "history", "attention_HT", "attention_spread_HT")
_ONE_RUN = ("cell.run", "cell.slots")  # axes that do not make another architecture


def report(config: ConfigDict, cells: Sequence[Cell], context: Context) -> str:
    """Writes table, figures and pages from what is stored; returns the text to print."""
    frame = table(context.store, cells)
    lists = [name for name in _LISTS if name in frame]
    write_table(frame.drop(columns=lists), context.workdir)
    records = [(cell, record) for cell in cells if (record := context.store.read(cell))]
    stored = f"{len(records)} of {len(cells)} cells are stored in {context.workdir}"
    if not records:
        return f"{stored}; nothing to report yet"
    rows = summary(records)
    tables = [("NMSE by architecture: last of training, over runs", _shown(rows))]
    if (rows["runs"] > 1).any():
        tables.append(("NMSE of every run, least first", every_run(records)))
    if any("attention_HT" in record["metrics"] for _, record in records):
        tables.append((_ATTENTION, by_position(records)))
    if (gaps := neighbours(rows)) is not None:
        tables.append(("(D,D) against its neighbours, least over runs", gaps))
    if config.page.law:
        found = scaling_report.slopes(scaling_report.points(records), config.seed)
        tables.append(("eps = floor + A N^-a over widths, N the parameters of the FFNs", found))
    known = published_training.table(config.page.published)
    if known is not None:
        tables.append(("Published (arXiv 2605.17930 and 2510.06662)", known))
    figures = _figures(config, records, rows, context.workdir / "figures")
    write_page(context.workdir / "docs", config, tables, figures, stored)
    sections = [Section("Trained networks", stored, tables, [(c, s[1]) for c, s in figures])]
    page = context.workdir / "report.html"
    write_report(page, config.page.title, config.page.lead, sections, provenance.collect())
    text = [f"{caption}\n{_text(t)}" for caption, t in tables]
    return "\n\n".join([*text, f"{stored}\nreport: {page}"])


def summary(records: Sequence[tuple[Cell, dict[str, Any]]]) -> pd.DataFrame:
    """One row an architecture: runs, least, median and greatest NMSE, and the prediction.

    `covers` is the chance that the range of the runs holds the true median, 1 - 2^(1 - runs).
    """
    rows = []
    for axes, group in _architectures(records):
        cell, _ = group[0]
        last = np.array([record["metrics"]["nmse"] for _, record in group])
        best = np.array([record["metrics"]["best"] for _, record in group])
        diverged = sum(record["metrics"]["diverged"] >= 0 for _, record in group)
        rows.append({
            "D": cell.config["task"]["D"],
            "heads": "-".join(str(h) for h in cell.config["cell"]["heads"]),
            **{k: v for k, v in axes.items() if k not in ("D", "heads")},
            "runs": len(group),
            "least": last.min(),
            "median": float(np.median(last)),
            "greatest": last.max(),
            "covers": 1 - 2.0 ** (1 - len(group)),
            "best": best.min(),
            "diverged": diverged,
            "parameters": group[0][1]["metrics"]["parameters"],
            "feasible": feasible(cell),
        })  # fmt: skip
    return pd.DataFrame(rows)


def every_run(records: Sequence[tuple[Cell, dict[str, Any]]]) -> pd.DataFrame:
    """One row an architecture: the last NMSE of each of its runs, ascending."""
    rows = []
    for axes, group in _architectures(records):
        last = sorted(record["metrics"]["nmse"] for _, record in group)
        heads = "-".join(str(h) for h in group[0][0].config["cell"]["heads"])
        known = {"D": group[0][0].config["task"]["D"], **axes, "heads": heads}
        rows.append({**known, "runs": " ".join(f"{nmse:.1e}" for nmse in last)})
    return pd.DataFrame(rows)


def by_position(records: Sequence[tuple[Cell, dict[str, Any]]]) -> pd.DataFrame:
    """One row a run and head."""
    rows = []
    for axes, group in _architectures(records):
        for cell, record in group:
            means, spreads = (
                record["metrics"][name] for name in ("attention_HT", "attention_spread_HT")
            )
            for head, (mean_T, spread_T) in enumerate(zip(means, spreads, strict=True)):
                known = {"heads": axes["heads"], "run": cell.config["cell"]["run"], "head": head}
                each = enumerate(zip(mean_T, spread_T, strict=True), 1)
                rows.append(known | {str(t): f"{mean:.3f} ± {sd:.3f}" for t, (mean, sd) in each})
    return pd.DataFrame(rows)


def feasible(cell: Cell) -> bool | None:
    """What the planner says of a cell's architecture; None where it has no word for the target.

    The planner wants a width that all head counts divide: it gets the next such one.
    """
    task = resolve(TaskConfig, cell.config["task"], "config.task")
    tree = task.tree
    if tree is None:
        return None
    heads = tuple(cell.config["cell"]["heads"])
    step = int(np.lcm.reduce(heads))
    width = step * -(-cell.config["network"]["width"] // step)
    tokens = cell.config["training"]["tokens"][-1]
    placed = cell.config["network"]["positions"] != "none"
    return predict(Architecture(heads, width, task.d, tokens, placed), tree).feasible


def neighbours(rows: pd.DataFrame) -> pd.DataFrame | None:
    """How far the least NMSE of (D,D) lies below those of (D-1,D) and (D,D-1); None if absent."""
    found = []
    for D in sorted({int(D) for D in rows["D"]}):
        part = rows[rows["D"] == D]
        least = part.groupby("heads")["least"].min()
        names = [f"{D}-{D}", f"{D - 1}-{D}", f"{D}-{D - 1}"]
        if all(name in least for name in names):
            here, one, two = (least[name] for name in names)
            found.append((D, here, one, two, one / here, two / here))
    columns = ["D", "(D,D)", "(D-1,D)", "(D,D-1)", "factor 1", "factor 2"]
    return pd.DataFrame(found, columns=columns) if found else None


def _architectures(records: Sequence[tuple[Cell, dict[str, Any]]]) -> list[Any]:
    """(axes by short name, [(cell, record)]) of every architecture, in the order of the sweep."""
    groups: dict[tuple[Any, ...], list[Any]] = {}
    for cell, record in records:
        axes = {k: v for k, v in cell.axes.items() if k not in _ONE_RUN}
        groups.setdefault(tuple(axes.items()), []).append((cell, record))
    short = {key: {k.split(".")[-1]: str(v) for k, v in key} for key in groups}
    return [(short[key], group) for key, group in groups.items()]


def _figures(
    config: ConfigDict,
    records: Sequence[tuple[Cell, dict[str, Any]]],
    rows: pd.DataFrame,
    directory: Path,
) -> list[tuple[str, tuple[Path, Path]]]:
    found = []
    grid = rows[rows["heads"].str.count("-") == 1]
    unique = len(grid) == len(rows) and not rows.duplicated(["D", "heads"]).any()
    if unique and rows["heads"].nunique() > 3 and rows["feasible"].notna().all():
        parts = grid["heads"].str.split("-", expand=True).astype(int)
        figure = training_figure.heat(grid.assign(h1=parts[0], h2=parts[1]), "Least NMSE")
        found.append(("Least NMSE over runs", drawing.save(figure, directory / "heat")))
    if config.page.law:
        lines = scaling_report.points(records)
        figure = scaling_figure.against_parameters(lines)
        caption = "Error of the best run against parameters"
        found.append((caption, drawing.save(figure, directory / "widths")))
        if len({T for _, T in lines}) == 1:
            return found  # nothing to show against T
    trained = max(itertools.chain(*(cell.config["training"]["tokens"] for cell, _ in records)))
    each = config.page.curves == "trained"
    figure = training_figure.against_length(_curves(config, records), 0 if each else trained)
    caption = "each T trained for itself" if each else f"trained up to T = {trained} (dashed)"
    found.append((f"NMSE against T; {caption}", drawing.save(figure, directory / "lengths")))
    return found


def _curves(
    config: ConfigDict, records: Sequence[tuple[Cell, dict[str, Any]]]
) -> dict[str, dict[str, Any]]:
    """Panel -> label -> (lengths, NMSE of every run at each), as the page wants them."""
    curves: dict[str, dict[str, list[Any]]] = {}
    for axes, group in _architectures(records):
        cell, _ = group[0]
        D, heads = cell.config["task"]["D"], cell.config["cell"]["heads"]
        near = {(D, D), (D - 1, D), (D, D - 1)}
        if config.page.curves == "corner" and tuple(heads) not in near:
            continue
        extra = [f"{k} {v}" for k, v in axes.items() if k not in _PANEL]
        label = ", ".join(["heads " + "-".join(map(str, heads)), *extra])
        panel = f"{cell.config['task']['target']}, D = {D}"
        nmse_RT = np.array([record["metrics"]["nmse_T"] for _, record in group])
        lengths = list(cell.config["evaluation"]["tokens"])
        curves.setdefault(panel, {}).setdefault(label, []).append((lengths, nmse_RT))
    merged: dict[str, dict[str, Any]] = {}
    for panel, lines in curves.items():
        for label, parts in lines.items():
            runs = min(len(nmse_RT) for _, nmse_RT in parts)  # a stopped sweep may lack some
            joined = np.concatenate([nmse_RT[:runs] for _, nmse_RT in parts], 1)
            lengths = [T for part, _ in parts for T in part]
            merged.setdefault(panel, {})[label] = (lengths, joined)
    return merged


def _shown(rows: pd.DataFrame) -> pd.DataFrame:
    """Without columns that are the same everywhere and say nothing."""
    quiet = [name for name in ("diverged", "feasible") if rows[name].isin([0, None]).all()]
    return rows.drop(columns=quiet)


def _text(frame: pd.DataFrame) -> str:
    return frame.to_string(index=False, float_format=lambda x: f"{x:.3g}")


def write_page(
    directory: Path,
    config: ConfigDict,
    tables: Sequence[tuple[str, pd.DataFrame]],
    figures: Sequence[tuple[str, tuple[Path, Path]]],
    stored: str,
) -> None:
    """The page for docs/results, with its figures beside it."""
    name, lines = config.page.name, [f"# {config.page.title}", f"```\n{config.page.command}\n```"]
    lines += [config.page.lead, f"{stored.split(' are')[0]} of this command are in the tables."]
    beside = directory / name
    beside.mkdir(parents=True, exist_ok=True)
    for caption, (png, _) in figures:
        atomic.write_bytes(beside / png.name, png.read_bytes())
        lines.append(f"![{caption}]({name}/{png.name})")
    for caption, frame in tables:
        lines += [f"**{caption}**", _table(frame)]
    atomic.write_text(directory / f"{name}.md", "\n\n".join(lines) + "\n")


def _table(frame: pd.DataFrame) -> str:
    def text(value: Any) -> str:
        return (
            f"{value:.2e}"
            if isinstance(value, float) and 0 < abs(value) < 0.01
            else (f"{value:.3g}" if isinstance(value, float) else str(value))
        )

    head = "| " + " | ".join(frame.columns) + " |\n|" + "---|" * len(frame.columns)
    body = ["| " + " | ".join(text(v) for v in row) + " |" for row in frame.itertuples(index=False)]
    return "\n".join([head, *body])
