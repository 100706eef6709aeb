"""Table, figures and page of the exact enumeration, from what its workdir holds."""

import math
from collections.abc import Sequence

import pandas as pd

from reach_jax.analysis import exact, exact_figures
from sweep_jax import drawing, provenance
from sweep_jax.cells import Cell
from sweep_jax.experiment import Context
from sweep_jax.report import Section, write_report
from sweep_jax.store import Store, table, write_table

LEAD = """Every prompt of m vectors at k bits a coordinate was decoded greedily, 2^(k m d) of them.
The number of distinct outputs of each length is therefore exact for this program's arithmetic: no
search, no sample. A coordinate's 2^k values reach from -r to r, both ends included, so 1 + 2r/eps
is 2^k and Theorem 4.5's bound on the outputs is exactly the number of prompts."""

ORDERS = """Without positions the order of the leading vectors cannot matter, by theory, when the
prompt attends to itself in full or the model has one layer: "free" says for how many. "classes"
counts prompts without that order, which bounds the outputs too. "unequal" counts prompts that all
the same emit something else than their sorted twin, for which rounding near a tie is the only
excuse, so "unequal_margin", their greatest least-margin, must be tiny. "any_equal" is the share of
prompts with unsorted vectors that emit what all vectors sorted emit, whatever theory says."""

_KEYS = ["weights", "vocab_size", "layout"]
_GRID = ["width", "prompt_length", "bits", "prompts"]


def write(cells: Sequence[Cell], context: Context) -> str:
    """Writes table.csv, table.parquet, figures/ and report.html; returns the text to print."""
    store, workdir = context.store, context.workdir
    frame = table(store, cells)
    write_table(frame, workdir)
    stored = f"{len(frame)} of {len(cells)} cells are stored"
    if frame.empty:
        return f"{stored} in {workdir}; nothing to report yet"
    frame = _described(frame, store, cells)
    lengths = sum(len(line) for line in frame["ln_share_N"])
    checks = (
        f"{lengths} counts were set beside the bound, {int(frame['violations'].sum())} exceed it;"
        f" {int(frame['prompts'].sum()):,} prompts, {int(frame['near_ties'].sum()):,} of them with"
        f" a near tie and {int(frame['exact_ties'].sum()):,} with an exact one"
    )
    tails = ["tail_rate", "tail_over_ln_v", "near_ties", "exact_ties"]
    numbers = ["distinct", "plateau", "half", "effective", "bound_tokens", "entropy_bits"]
    reached = frame[[*_KEYS, "draw", *_GRID, *numbers, *tails]]
    orders = frame[frame["prompt_length"] > 1]
    free = ["free", "classes", "distinct", "moved", "unequal", "unequal_margin", "any_equal"]
    summary = _summary(frame)
    plots = {
        "share": exact_figures.shares(_one_family(frame)),
        "tightness": exact_figures.tightness(frame),
    }
    saved = {
        name: drawing.save(figure, workdir / "figures" / name)[1] for name, figure in plots.items()
    }
    sections = [
        Section(
            "Share of all outputs",
            f"{stored}. {checks}.",
            [("Means over grids and draws; tokens", summary)],
            [("Exact shares and the bound (first layout)", saved["share"])],
        ),
        Section(
            "How tight the bound is",
            "effective = ln(distinct) / ln V at the greatest length: on the diagonal every prompt"
            " would have an output of its own.",
            [("Every cell", reached)],
            [("Effective length against C m", saved["tightness"])],
        ),
        Section("Order of the prompt's vectors", ORDERS, [("m > 1", orders[[*_KEYS, "draw",
                *_GRID, *free]])], []),
    ]  # fmt: skip
    if "loss" in frame:
        learnt = frame[frame["weights"] == "trained"]
        by = [*_KEYS[1:], "width", "draw"]
        losses = learnt.groupby(by, sort=False)[["loss", "entropy_rate"]].first().reset_index()
        text = "Held-out cross entropy beside the chain's entropy rate, nats a token."
        sections.append(Section("Trained models", text, [("Losses", losses)], []))
    title = "Exact number of outputs of a small transformer"
    write_report(workdir / "report.html", title, LEAD, sections, provenance.collect())
    shown = summary.to_string(index=False, float_format=lambda x: f"{x:.4g}")
    ordered = _orders(orders)
    return "\n\n".join(
        [
            f"means over grids and draws (tokens)\n{shown}",
            f"order of the prompt's vectors, m > 1\n{ordered}",
            f"{checks}\n{stored} in {workdir}\nreport: {workdir / 'report.html'}",
        ]
    )


def _described(frame: pd.DataFrame, store: Store, cells: Sequence[Cell]) -> pd.DataFrame:
    """The table with every axis, the layout in words, and each cell's curve."""
    records = {cell.name: (cell, store.read(cell)) for cell in cells}
    points, lines = [], []
    for name in frame["name"]:
        cell, record = records[name]
        point = cell.config["cell"]
        metrics = record["metrics"] if record else {}
        curve = exact.share_curve(
            metrics["distinct_N"], point["vocab_size"], metrics["bound_tokens"]
        )
        points.append(point)
        lines.append(curve.ln_share_N.tolist())
    axes = pd.DataFrame(points, index=frame.index)
    layout = axes["positions"] + " " + axes["attention"] + " " + axes["end"]
    kept = frame.drop(columns=[name for name in axes if name in frame])
    return pd.concat([axes, kept], axis=1).assign(layout=layout, ln_share_N=lines)


def _one_family(frame: pd.DataFrame) -> pd.DataFrame:
    """The first layout's cells of the (d, k) that was enumerated for the most m."""
    first = frame[frame["layout"] == frame["layout"].iloc[0]]
    lengths = first.groupby(["width", "bits"])["prompt_length"].nunique()
    width, bits = lengths.idxmax()
    return first[(first["width"] == width) & (first["bits"] == bits)]


def _summary(frame: pd.DataFrame) -> pd.DataFrame:
    tight = frame.assign(tight=frame["effective"] / frame["bound_tokens"])
    columns = ["bound_tokens", "effective", "half", "plateau", "tight", "tail_rate"]
    means = tight.groupby(_KEYS, sort=False)[columns].mean()
    means["-ln V"] = [-math.log(V) for V in means.index.get_level_values("vocab_size")]
    means["violations"] = tight.groupby(_KEYS, sort=False)["violations"].sum()
    return means.reset_index()


def _orders(frame: pd.DataFrame) -> str:
    if frame.empty:
        return "(no cell has m > 1)"
    grouped = frame.groupby(["weights", "layout"], sort=False)
    sums = grouped[["prompts", "moved", "unequal"]].sum()
    sums["greatest margin of an unequal pair"] = grouped["unequal_margin"].max()
    sums["any_equal, mean"] = grouped["any_equal"].mean()
    return str(sums.reset_index().to_string(index=False, float_format=lambda x: f"{x:.4g}"))
