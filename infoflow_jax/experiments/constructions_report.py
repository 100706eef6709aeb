"""Tables, figure and page of the explicit networks, from the stored cells. Measures nothing.

`tables` are also those of docs/results/infoflow_constructions.md, made of its table.csv.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from infoflow_jax.figures import construction_figure
from sweep_jax import atomic, drawing, provenance
from sweep_jax.cells import Cell
from sweep_jax.experiment import Context
from sweep_jax.report import Section, markdown, write_report
from sweep_jax.store import table, write_table

ROUNDING = 1e-9  # of float64 in these networks: a bound leaves it out

LEAD = """Every network here is the transformer of networks/transformer.py with weights written
down, not trained. Its largest error over drawn inputs stands beside the bound that is proven where
its weights are built."""
COMPILED = """A plan is the planner's, for tokens of 3 coordinates and drawn weights. The error at
an eps is the largest over the inputs of all T; widths and parameters are those at the smallest eps
and the largest T. 4 K d is the law of a product in a feed-forward network, over all products."""


def write(cells: Sequence[Cell], context: Context) -> str:
    """Writes table, figure, page and the tables of the docs; returns the text to print."""
    frame = table(context.store, cells)
    write_table(frame, context.workdir)
    stored = f"{len(frame)} of {len(cells)} cells are stored in {context.workdir}"
    if frame.empty:
        return f"{stored}; nothing to report yet"
    saved = drawing.save(
        construction_figure.errors(frame), context.workdir / "figures" / "constructions"
    )[1]
    checks = f"{int(frame['violations'].sum())} of {len(frame)} cells are above their bound"
    found = list(tables(frame).items())
    sections = [
        Section(
            "Errors and bounds",
            f"{stored}. {checks}.\n\n{COMPILED}",
            found,
            [("Measured error and bound", saved)],
        )
    ]
    page = context.workdir / "report.html"
    write_report(page, "Explicit weights", LEAD, sections, provenance.collect())
    text = "\n\n".join(f"{title}\n\n{markdown(part)}" for title, part in found)
    (context.workdir / "docs").mkdir(exist_ok=True)
    atomic.write_text(context.workdir / "docs" / "infoflow_constructions_tables.md", text + "\n")
    shown = [f"{title}\n{part.to_string(index=False)}" for title, part in found]
    return "\n\n".join([*shown, f"{checks}\n{stored}\nreport: {page}"])


def tables(frame: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Title -> every table that has rows."""
    found = {
        "By construction and T, over resolutions and betas": worst(frame),
        "Theorem 1: sup error x K^2 of pairmin": theorem_1(frame),
        "Compiled plans": compiled(frame),
    }
    return {title: part for title, part in found.items() if len(part)}


def worst(frame: pd.DataFrame) -> pd.DataFrame:
    """By construction and T the range of error x K^2, error x beta and error / bound."""
    share = frame if "plan" not in frame else frame[frame["plan"].isna()]
    share = share.assign(share=share["error"] / np.maximum(share["bound"], ROUNDING))
    rows = []
    for (name, T), part in share.groupby(["construction", "tokens"]):
        columns = {"error K^2": "error_K2", "error β": "error_beta", "error / bound": "share"}
        rows.append(
            {"construction": name, "T": T}
            | {said: f"{part[c].min():.3g} to {part[c].max():.3g}" for said, c in columns.items()}
        )
    return pd.DataFrame(rows)


def theorem_1(frame: pd.DataFrame) -> pd.DataFrame:
    """Sup error x K^2 of the least inner product, a row a K and a column a T."""
    part = frame[frame["construction"] == "pairmin"]
    if part.empty:
        return part
    found = part.pivot_table(index="resolution", columns="tokens", values="error_K2")
    rows = found.map(lambda value: f"{value:.2f}".lstrip("0")).reset_index()
    rows.columns = ["K", *(f"T = {T}" for T in found.columns)]
    return rows.assign(K=[f"{K:.0f}" for K in found.index])


def compiled(frame: pd.DataFrame) -> pd.DataFrame:
    """A row a plan: the largest error for each eps, and sizes at the smallest eps, largest T."""
    if "plan" not in frame or frame["plan"].isna().all():
        return pd.DataFrame()
    rows = []
    for plan, part in frame[frame["plan"].notna()].groupby("plan", sort=False):
        target, heads = str(plan).split(" in ")
        row = {"target, D": target, "heads": f"({', '.join(heads.split())})"}
        for eps, same in part.groupby("eps", sort=False):
            row[f"error at eps = {eps:g}"] = f"{same['error'].max():.2g}"
        row["error / eps"] = f"{(part['error'] / part['eps']).max():.2f}"
        last = part.sort_values(["eps", "tokens"], ascending=[False, True]).iloc[-1]
        sizes = ("width", "head_width", "hidden", "law", "parameters")
        names = ("E", "head width", "FFN hidden", "4 K d", "parameters")
        rows.append(
            row | {name: f"{last[size]:.0f}" for name, size in zip(names, sizes, strict=True)}
        )
    return pd.DataFrame(rows)
