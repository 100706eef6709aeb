"""Tables, figure and pages of probed networks, from the stored cells. `probe` measures."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from ml_collections import ConfigDict

from infoflow_jax.experiments.trained_report import write_page
from infoflow_jax.figures import probe_figure
from infoflow_jax.probing import agreement
from sweep_jax import drawing, provenance
from sweep_jax.cells import Cell
from sweep_jax.experiment import Context
from sweep_jax.report import Section, write_report
from sweep_jax.store import table, write_table

_WHAT = "precision / recall; share of states with exactly the set, at which tolerance"
Records = Sequence[tuple[Cell, dict[str, Any]]]


def report(config: ConfigDict, cells: Sequence[Cell], context: Context) -> str:
    """Writes table, figure and pages from what is stored; returns the text to print."""
    write_table(table(context.store, cells), context.workdir)
    records = [(cell, record) for cell in cells if (record := context.store.read(cell))]
    stored = f"{len(records)} of {len(cells)} cells are stored in {context.workdir}"
    if not records:
        return f"{stored}; nothing to report yet"
    every = agreements(records)
    learned = every["network"].str.startswith("trained")
    tables = {
        f"Explicit weights: {_WHAT}": every[~learned],
        f"Trained: {_WHAT}": every[learned],
        "Heads and matrices, matched by the Hungarian method": matched(records),
        "Linear probes of the states after layer 1": probed(records),
    }
    found = [(title, part) for title, part in tables.items() if len(part)]
    figure = probe_figure.against_tolerance(_panels(records), agreement.TOLERANCES)
    caption = "Precision (line) and recall (dashed) of c0's last state against the tolerance"
    figures = [(caption, drawing.save(figure, context.workdir / "figures" / "tolerance"))]
    write_page(context.workdir / "docs", config, found, figures, stored)
    sections = [Section("Dependence", stored, found, [(c, s[1]) for c, s in figures])]
    page = context.workdir / "report.html"
    write_report(page, config.page.title, config.page.lead, sections, provenance.collect())
    text = [f"{title}\n{part.to_string(index=False)}" for title, part in found]
    return "\n\n".join([*text, f"{stored}\nreport: {page}"])


def agreements(records: Records) -> pd.DataFrame:
    """One row a network, kind of states and set; a column a method."""
    found: dict[tuple[str, str, str], dict[str, str]] = {}
    for cell, record in records:
        for states, sets, method, tolerance, *shares, exact in record["metrics"]["rows"]:
            row = found.setdefault((name_of(cell, record), states, sets), {})
            both = f"{_share(*shares[:3])} / {_share(*shares[3:])}"
            row[method] = f"{both}; {exact:.3f} at {tolerance:.0e}"
    columns = ("network", "states", "sets")
    return pd.DataFrame([dict(zip(columns, key, strict=True)) | row for key, row in found.items()])


def matched(records: Records) -> pd.DataFrame:
    """One row a trained network: how often a head looks at its matrix's best partner."""
    rows = []
    for cell, record in records:
        metrics = record["metrics"]
        if "pairs_1" not in metrics:
            continue
        row = {"network": name_of(cell, record), "NMSE": f"{metrics['nmse']:.1e}"}
        for layer in (1, 2):
            pairs = zip(metrics[f"pairs_{layer}"], metrics[f"shares_{layer}"], strict=True)
            row[f"layer {layer}: head-matrix, share"] = ", ".join(f"{p} {s:.3f}" for p, s in pairs)
            row[f"other pairs {layer}"] = f"{metrics[f'rest_{layer}']:.3f}"
        rows.append(row | {"chance": f"{1 / metrics['T']:.3f}"})
    return pd.DataFrame(rows)


def probed(records: Records) -> pd.DataFrame:
    """One row a trained network: NMSE of reading the token that a head looks at, by heads."""
    rows = []
    for cell, record in records:
        metrics = record["metrics"]
        if "linear_max_trained" not in metrics:
            continue
        row = {"network": name_of(cell, record)}
        for rank, said in (("max", "most"), ("second", "second most")):
            now, before = (np.array(metrics[f"linear_{rank}_{w}"]) for w in ("trained", "initial"))
            row[f"looked at {said}: trained"] = ", ".join(f"{v:.3f}" for v in now)
            row[f"{said}: trained / initial"] = ", ".join(f"{v:.2f}" for v in now / before)
        rows.append(row)
    return pd.DataFrame(rows)


def name_of(cell: Cell, record: dict[str, Any]) -> str:
    """A network's name in tables."""
    c, heads = cell.config, record["metrics"]["heads"]
    if c["subject"]["network"] == "trained":
        return f"trained {heads}, D = {c['task']['D']}, run {c['cell']['run']}"
    return f"{c['subject']['network']}, β = {c['subject']['beta']:g}"


def _share(value: float, low: float, high: float) -> str:
    return "–" if np.isnan(value) else f"{value:.2f} [{low:.2f}, {high:.2f}]"


def _panels(records: Records) -> dict[str, dict[str, Any]]:
    """Network -> method -> (precision, recall) at each tolerance; one run of each network."""
    panels: dict[str, dict[str, Any]] = {}
    for cell, record in records:
        if cell.config["cell"]["run"] > 0:
            continue
        curves = record["metrics"]["curves"]
        states = curves[-1][0]  # the last layer's; of its sets the planner's comes first
        lines = [c for c in curves if c[0] == states and c[1] == curves[-1][1]]
        panel = f"{name_of(cell, record).split(', run')[0]}\n{states}, {lines[0][1]}"
        panels[panel] = {method: (p, r) for _, _, method, p, r in lines}
    return panels
