"""What `analyze` prints and draws of what it stored: text, page, figures and the docs' table."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from infoflow_jax.figures import flow as flow_figure
from sweep_jax import atomic, drawing
from sweep_jax.cells import Cell
from sweep_jax.experiment import Context
from sweep_jax.report import Section, format_number, markdown, write_report
from sweep_jax.store import table, write_table

Metrics = Mapping[str, Any]
TITLE = "From a target to a transformer that retrieves it"
LEAD = """Predictions of the cost laws and rules in docs/theory_infoflow.md; nothing is trained.
Feasible: parameters grow as eps^-e with an e that does not grow with T, by the rules; infeasible by
the rules is the papers' claim that no other use of the heads is cheap."""
DOCS = """Heads of each layer and least E, T = {T}, d = {d}, positions only where the target
reads one or the row says so.
Least E: decoding then costs no more than a comparison. By the rules of docs/theory_infoflow.md,
within {budget}. "Prediction": not covered by what was published."""
COMMAND = "python launch.py --config=configs/infoflow_analyze.py:all"


def write(cells: Sequence[Cell], context: Context) -> str:
    """Writes table, figures and pages; returns the text to print."""
    write_table(table(context.store, cells), context.workdir)
    records = [(cell, record) for cell in cells if (record := context.store.read(cell))]
    if not records:
        return f"nothing to report yet in {context.workdir}"
    parts, sections = [], []
    if len(cells) > 1:
        frame = overview([record["metrics"] for _, record in records])
        sections.append(Section("All targets", "", [("", frame)]))
        parts.append(frame.to_string(index=False))
        _write_docs(cells, context, frame, records[0][1]["metrics"])
    for cell, record in records:
        metrics = record["metrics"]
        if len(cells) == 1:
            parts.append(as_text(metrics))
        sections += _sections(context, cell, metrics, alone=len(cells) == 1)
    page = context.workdir / "report.html"
    write_report(page, TITLE, LEAD, sections, records[0][1]["provenance"])
    parts.append(f"report: {page}")
    return "\n\n".join(parts)


def overview(found: Sequence[Metrics]) -> pd.DataFrame:
    """A row a target: measures and smallest architectures."""
    rows = [
        {
            "target": m["what"],
            "order": m["order"],
            "dimension": m["dimension"],
            "depth": m["depth"],
            "with": m["beyond"] or "–",
            "fewest layers": m["fewest layers"],
            "fewest heads": m["fewest heads"],
            "why not": "; ".join(f"{node}: {why}" for node, why in m["reasons"][:1]) or "–",
        }
        for m in found
    ]
    return pd.DataFrame(rows)


def as_text(m: Metrics) -> str:
    """The analysis of one target, as it is printed."""
    heads = ", ".join(map(str, m["heads"]))
    size = f"order {m['order']}, dimension {m['dimension']}, depth {m['depth']}"
    lines = [
        f"{m['what']}\n{m['tree']}",
        f"{size}, {m['comparisons']} comparisons at T = {m['T']}",
        f"heads ({heads}), E = {m['E']}, d = {m['d']}, T = {m['T']}, "
        f"{'with' if m['positions'] else 'no'} positional encoding: {_verdict(m)}",
    ]
    for title, frame in _tables(m):
        lines.append(f"{title}\n{frame.to_string(index=False)}")
    lines += [f"note: {note}" for note in m["notes"]]
    lines.append(f"fewest layers: {m['fewest layers']}\nfewest heads:  {m['fewest heads']}")
    return "\n\n".join(lines)


def _verdict(m: Metrics) -> str:
    e, log = format_number(m["exponent"]), format_number(m["log10 parameters"])
    word = "FEASIBLE" if m["feasible"] else "INFEASIBLE"
    source = (
        "by the published rules"
        if m["published"]
        else "a prediction of this project, not published"
    )
    law = next(name for name, exponent, low in m["laws"] if not low and exponent == m["exponent"])
    said = f"{word} ({source}); parameters ~ eps^-{e} by {law}, about 10^{log} at this eps"
    if m["feasible"]:
        return said
    if m["at least"] is not None:
        name = next(name for name, e, low in m["laws"] if low and e == m["at least"])
        least = f"at least eps^-{format_number(m['at least'])} by {name}"
        said += f"; {least if m['at least'] > 0 else f'{name} says nothing at this T'}"
    work = format_number(m["log10 comparisons/eps"])
    return f"{said}, besides T^order/eps = 10^{work} for the comparisons themselves"


def _tables(m: Metrics) -> list[tuple[str, pd.DataFrame]]:
    tables = []
    if m["reasons"]:
        tables.append(("why not", pd.DataFrame(m["reasons"], columns=["node", "reason"])))
    if m["schedule"]:
        frame = pd.DataFrame(m["schedule"], columns=["node", "layer", "host", "heads"])
        tables.append(("schedule" if m["feasible"] else "what fits", frame))
    if m["fetched"]:
        tables.append(("c0 takes over", pd.DataFrame(m["fetched"], columns=["node", "layer"])))
    tables.append(("laws", pd.DataFrame(
        [[name, e, "lower bound" if low else "upper bound"] for name, e, low in m["laws"]],
        columns=["law", "exponent", "kind"])))  # fmt: skip
    growth = pd.DataFrame(m["growth"], columns=["T", "exponent", "at least"])
    tables.append(("exponent against T", growth.dropna(axis=1, how="all")))
    if m["frontier"]:
        rows = [
            [len(h), sum(h), width, str(tuple(h)), load, "published" if known else "prediction"]
            for h, width, load, known in m["frontier"]
        ]
        columns = ["layers", "heads", "least E", "heads by layer", "coordinates held", "source"]
        tables.append(("frontier", pd.DataFrame(rows, columns=columns)))
    return tables


def _sections(context: Context, cell: Cell, m: Metrics, alone: bool) -> list[Section]:
    """The parts of the page about one target; only one alone has its tables in full."""
    figures = []
    directory, prefix = context.workdir / "figures", "" if alone else f"{cell.name}-"
    if m["known"]:
        moves = [tuple(move) for move in m["moves"]]
        drawn = flow_figure.flow(np.array(m["known"], bool), moves, m["readers"])
        caption = (
            "A strip a state: its cells are the tokens, filled where known. Arrows: what a head "
            "brings, from the layer below; faint where nothing of it is read in the end."
        )
        figures.append((caption, drawing.save(drawn, directory / f"{prefix}flow")[1]))
    if m["frontier"] and alone:
        points = [(tuple(heads), width) for heads, width, *_ in m["frontier"]]
        drawn = flow_figure.frontier(points, tuple(m["heads"]), m["feasible"])
        path = drawing.save(drawn, directory / f"{prefix}frontier")[1]
        figures.append(("Smallest architectures: none has less of all three.", path))
    if not alone:
        text = f"{m['tree']}\n\nheads ({', '.join(map(str, m['heads']))}): {_verdict(m)}."
        return [Section(m["what"], text, [], figures)]
    knows = pd.DataFrame(
        [[layer, host, ", ".join(known) or "nothing"] for layer, host, known in m["knows"]],
        columns=["layer", "host", "knows"],
    )
    undrawn = [f"The flow is not drawn: {m['not drawn']}."] if m["not drawn"] else []
    answer = "\n\n".join([f"{_verdict(m)}.", *m["notes"], *undrawn])
    return [
        Section(m["what"], f"{m['tree']}\n\nOrder {m['order']}, dimension {m['dimension']}, "
                f"depth {m['depth']}; {m['comparisons']} comparisons at T = {m['T']}."),
        Section("Answer", answer, _tables(m), figures),
        Section("Information sets", "t: the token itself; node(t): what the node found for it.",
                [("", knows)]),
    ]  # fmt: skip


def _write_docs(cells: Sequence[Cell], context: Context, frame: pd.DataFrame, m: Metrics) -> None:
    budget = cells[0].config["budget"]
    said = f"{budget['layers']} layers of {budget['heads']} heads"
    lead = " ".join(DOCS.format(T=m["T"], d=m["d"], budget=said).split())
    dimension = f"D = {cells[0].config['D']}."
    text = f"# All targets\n\n```\n{COMMAND}\n```\n\n{dimension} {lead}\n\n{markdown(frame)}\n"
    directory = context.workdir / "docs"
    directory.mkdir(parents=True, exist_ok=True)
    atomic.write_text(directory / "infoflow_targets.md", text)
