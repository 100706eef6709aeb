"""Table, figure and page of the mean-field stability experiment, from what its workdir holds."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from reach_jax.analysis import meanfield_figure
from sweep_jax import drawing, provenance
from sweep_jax.cells import Cell
from sweep_jax.experiment import Context
from sweep_jax.report import Section, write_report
from sweep_jax.store import table, write_table

LEAD = """Without positions and with full attention a layer carries the measure of a prompt to
another measure. Two prompts that are close, in the Wasserstein distance W_q, come out at most L
times as far apart, where L is an estimate from the norms of the layer's matrices and the radius of
the ball that holds the prompts. Here L stands beside what was seen: the largest ratio of exact
distances over perturbed prompts, and the norm of the layer's derivative at the prompt, which is the
limit of W_2 ratios for small perturbations."""


def write(cells: Sequence[Cell], context: Context) -> str:
    """Writes table.csv, table.parquet, figures/ and report.html; returns the text to print."""
    store, workdir = context.store, context.workdir
    frame = table(store, cells)
    write_table(frame, workdir)
    stored = f"{len(frame)} of {len(cells)} cells are stored"
    if frame.empty:
        return f"{stored} in {workdir}; nothing to report yet"
    frame = frame.assign(estimate=np.exp(frame["ln_estimate"]))
    pairs = []
    for cell in store.done(cells):
        record = store.read(cell)
        metrics = record["metrics"] if record else {}
        part = pd.DataFrame({name: metrics[name] for name in ("in_2", "out_2")})
        pairs.append(part.assign(gain=cell.config["cell"]["gain"]))
    joined = pd.concat(pairs)
    figure = meanfield_figure.stability(joined, frame)
    saved = drawing.save(figure, workdir / "figures" / "stability")[1]
    columns = ["a", "worst_1", "worst_2", "derivative", "estimate"]
    largest = frame.groupby(["gain", "points"], sort=False)[columns].max().reset_index()
    errors = frame[["permutation_error", "duplication_error"]].max()
    checks = (
        f"{len(joined)} pairs of prompts; {int(frame['violations'].sum())} cells exceed the"
        f" estimate. Reordering a prompt moves a point by at most {errors.iloc[0]:.1e},"
        f" writing it twice by {errors.iloc[1]:.1e}"
    )
    write_report(
        workdir / "report.html",
        "Attention between measures: stability",
        LEAD,
        [
            Section(
                "Ratios and the estimate",
                f"{stored}. {checks}.",
                [("Largest over draws; a = ||A|| R^2", largest)],
                [("Distances and ratios", saved)],
            )
        ],
        provenance.collect(),
    )
    shown = largest.to_string(index=False, float_format=lambda x: f"{x:.4g}")
    return "\n\n".join(
        [
            f"largest ratios over draws\n{shown}",
            f"{checks}\n{stored} in {workdir}\nreport: {workdir / 'report.html'}",
        ]
    )
