"""The pages of the published bounds: an HTML report, and the Markdown page of docs/results.

Writes `docs/bounds_published.md` with its figure and table beside it, made to be copied as they are
into docs/results. Every number in them comes from the stored cells or the printed constants.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from reach_jax.analysis.ratio_figure import ratio_panels
from reach_jax.bounds.floats import float_bits
from reach_jax.experiments import published_comparison
from reach_jax.experiments.published_comparison import Metrics
from reach_jax.experiments.published_constants import (
    MODELS,
    NOTEBOOK,
    OTHER_SEARCHES,
    Model,
    NotebookModel,
)
from sweep_jax import atomic, drawing, provenance
from sweep_jax.cells import Cell
from sweep_jax.experiment import Context
from sweep_jax.report import Section, markdown, write_report
from sweep_jax.store import table, write_table

COMMAND = "python launch.py --config=configs/bounds_published.py"
TITLE = "The published bounds, recomputed and put right"
LEAD = """The ratios theory / measured of arXiv 2605.22223 from the constants that it prints.
Published: as printed. Recomputed: the bound as defined, over the printed slope. Corrected: what we
take to hold, over the slope that the points of the paper's own figure give. A measured slope is a
lower bound, since a failed search proves nothing: the true ratio is at most the corrected one."""
REST = """Not put right by arithmetic, and to be kept in mind. The radius is that of output
embeddings, while the prompts are free vectors in input space. Success was teacher-forced. Some
slopes measure a search, and not a capacity:"""
LABELS = """The corrected ball is the exact float grid, which is rigorous for {0} prompts inside the
ball of radius r; the other corrected bounds are heuristic, and cut to the float grid. The bar in
the figure is the trivial count of {1} bits a number, its upper half over the printed slope, for
what is published, and its lower half over the figure's, for what is corrected: a bound to the right
of it says less than no theory at all."""

Found = Sequence[tuple[Model | NotebookModel, Metrics]]


def write(cells: Sequence[Cell], context: Context, dtype: str) -> str:
    """Writes table.csv, ratios.csv, figures/, report.html and docs/; returns the text to print."""
    workdir = context.workdir
    write_table(table(context.store, cells), workdir)
    stored = {
        cell.config["cell"]["model"]: record["metrics"]
        for cell in context.store.done(cells)
        if (record := context.store.read(cell)) is not None
    }
    count = f"{len(stored)} of {len(cells)} cells are stored in {workdir}"
    found: Found = [(m, stored[m.name]) for m in (*MODELS, *NOTEBOOK) if m.name in stored]
    if not any(isinstance(model, Model) for model, _ in found):
        return f"{count}; no model of the tables to report on yet"
    ratios = published_comparison.compare(found, dtype)
    constants, slopes = _constants(found), _slopes(found)
    reasons = _reasons(ratios)
    notes = _coincidences(found)
    atomic.write_text(workdir / "ratios.csv", ratios.to_csv(index=False, float_format="%.6f"))
    png, svg = drawing.save(
        _figure(found, ratios, float_bits(dtype)), workdir / "figures" / "ratios"
    )
    sections = [
        Section(
            "Table 1: ratios",
            LABELS.format(dtype, float_bits(dtype)),
            [("Theory over measurement", _wide(ratios, "Table 1")), ("Why they differ", reasons)],
            [("Table 1, printed, recomputed and corrected", svg)],
        ),
        Section("Table 2: constants, and the slopes that they give", "", [
            ("As printed", constants),
            ("Slopes C in tokens per prompt vector; ln f; ln of the mean-field horizon", slopes),
        ]),
        Section("The notebook, eps = r/2^11", notes, [("Ratios", _wide(ratios, "notebook"))]),
        Section("What each bound assumes", _rest(found), [("Bounds", _assumptions(found))]),
    ]  # fmt: skip
    write_report(workdir / "report.html", TITLE, LEAD, sections, provenance.collect())
    _write_docs(workdir / "docs", sections, png, ratios)
    parts = [_wide(ratios, "Table 1").to_string(index=False), reasons.to_string(index=False), count]
    pages = f"report: {workdir / 'report.html'}\npage for docs/results: {workdir / 'docs'}"
    return "\n\n".join([*parts, pages])


def _constants(found: Found) -> pd.DataFrame:
    rows = []
    for model, metrics in found:
        if isinstance(model, Model):
            row: dict[str, Any] = {
                "model": model.name,
                "d": str(model.d),
                "V": str(model.vocabulary),
            }
            row |= {key: getattr(model, key) for key in ("r", "theta", "s", "slope")}
            rows.append(row | {"slope of its figure": f"{metrics['slope of the figure']:.2f}"})
    return pd.DataFrame(rows)


def _slopes(found: Found) -> pd.DataFrame:
    rows = []
    for model, metrics in found:
        names = [bound[0] for bound in metrics["bounds"]]
        row = {"model": model.name} | {name: f"{metrics[name]:.1f}" for name in names}
        row |= {"ln f": f"{metrics['ln f']:.4f}", "ln horizon": f"{metrics['ln horizon']:.1f}"}
        rows.append(row)
    return pd.DataFrame(rows).fillna("–")


def _wide(ratios: pd.DataFrame, which: str) -> pd.DataFrame:
    """A column a model; for each row of the paper a line as published, recomputed, corrected."""
    part = ratios[ratios["table"] == which]
    digits = 2 if which == "Table 1" else 6
    lines = []
    for row in dict.fromkeys(part["row"]):
        own = part[part["row"] == row].set_index("model")
        for kind in ("published", "recomputed", "corrected"):
            shown = {m: _shown(value, digits) for m, value in own[kind].items()}
            lines.append({"bound": row, "": kind, **shown})
    return pd.DataFrame(lines)


def _shown(value: Any, digits: int) -> str:
    if isinstance(value, str):
        return value
    return "–" if value != value else f"{value:.{digits}f}"


def _reasons(ratios: pd.DataFrame) -> pd.DataFrame:
    """Each reason once, with the ratios that it concerns."""
    places: dict[str, dict[str, list[str]]] = {}
    for line in ratios.to_dict("records"):
        for reason in filter(None, str(line["reason"]).split("; ")):
            row = f"{line['row']}{' (notebook)' if line['table'] == 'notebook' else ''}"
            places.setdefault(reason, {}).setdefault(row, []).append(str(line["model"]))
    every = ratios.groupby(["table", "row"])["model"].count().to_dict()
    rows = []
    for reason, by_row in places.items():
        parts = []
        for row, models in by_row.items():
            which = "notebook" if row.endswith("(notebook)") else "Table 1"
            whole = len(models) == every[which, row.removesuffix(" (notebook)")]
            parts.append(f"{row}: {'all' if whole else ', '.join(models)}")
        rows.append({"reason": reason, "where": "; ".join(parts)})
    return pd.DataFrame(rows)


def _coincidences(found: Found) -> str:
    """Slopes of the notebook that the figures give for another model."""
    texts = [
        f"It divides {other.name} by {other.slope}, the slope that the points of the figure give"
        f" for {model.name} ({metrics['slope of the figure']:.2f})."
        for other, _ in found
        if isinstance(other, NotebookModel)
        for model, metrics in found
        if isinstance(model, Model)
        and abs(metrics["slope of the figure"] - float(other.slope)) < 0.05
    ]
    return " ".join(texts)


def _rest(found: Found) -> str:
    """What arithmetic does not put right, with the searches that went further."""
    texts = [
        f"{model.name} is given {model.n50[0]:g} tokens for one vector, and {tokens:g} are reached"
        f" in {who}."
        for model, _ in found
        if isinstance(model, Model) and model.name in OTHER_SEARCHES
        for tokens, who in [OTHER_SEARCHES[model.name]]
    ]
    return " ".join([REST, *texts])


def _assumptions(found: Found) -> pd.DataFrame:
    """The bounds of the first model: what they rest on is the same for all but its numbers."""
    columns = ["bound", "slope", "rigorous", "from", "assumes"]
    model, metrics = next((m, x) for m, x in found if isinstance(m, Model))
    frame = pd.DataFrame(metrics["bounds"], columns=columns)
    label = ["rigorous" if flag else "heuristic" for flag in frame["rigorous"]]
    frame = frame.assign(rigorous=label).rename(columns={"rigorous": "label"})
    return frame.drop(columns="slope").rename(columns={"assumes": f"assumes ({model.name})"})


def _figure(found: Found, ratios: pd.DataFrame, bits: int) -> Any:
    part = ratios[ratios["table"] == "Table 1"]
    numbers = part.assign(published=part["published"].astype(float))
    ceilings = {
        model.name: (
            metrics["trivial bits"] / metrics["slope of the figure"],
            metrics["trivial bits"] / float(model.slope),
        )
        for model, metrics in found
        if isinstance(model, Model)
    }
    return ratio_panels(numbers, ceilings, f"{bits} bits a number (trivial)")


def _write_docs(
    directory: Path, sections: Iterable[Section], png: Path, ratios: pd.DataFrame
) -> None:
    beside = directory / "bounds_published"
    beside.mkdir(parents=True, exist_ok=True)
    atomic.write_bytes(beside / "ratios.png", png.read_bytes())
    atomic.write_text(beside / "ratios.csv", ratios.to_csv(index=False, float_format="%.6f"))
    parts = [f"# {TITLE}", f"```\n{COMMAND}\n```", _flowing(LEAD)]
    for section in sections:
        parts.append(f"## {section.title}")
        parts += [_flowing(section.text)] if section.text else []
        for caption, _ in section.figures:
            parts.append(f"![{caption}](bounds_published/ratios.png)")
        for caption, frame in section.tables:
            parts.append(f"{caption}:\n\n{markdown(frame)}")
    parts.append("Every ratio with its reason: [ratios.csv](bounds_published/ratios.csv).")
    atomic.write_text(directory / "bounds_published.md", "\n\n".join(parts) + "\n")


def _flowing(text: str) -> str:
    return " ".join(text.split())
