"""One self-contained HTML page out of text, tables and figures; opens without a network.

Draws no figure and computes no number: an experiment gives both.
"""

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jinja2
import pandas as pd
from markupsafe import Markup

from sweep_jax import atomic
from sweep_jax.checks import require

_TEMPLATE = Path(__file__).with_name("report.html.jinja")
_DIGITS = 4  # significant ones of a number that is no integer


@dataclass(frozen=True)
class Section:
    """A part of the page.

    Attributes:
      title: its heading.
      text: paragraphs, separated by empty lines; plain text, no markup.
      tables: (caption, frame), its index not shown.
      figures: (caption, SVG or PNG as bytes or as the path of a file).
    """

    title: str
    text: str = ""
    tables: Sequence[tuple[str, pd.DataFrame]] = ()
    figures: Sequence[tuple[str, bytes | Path]] = ()


def write_report(
    path: Path, title: str, lead: str, sections: Sequence[Section], provenance: Mapping[str, Any]
) -> None:
    """Replaces `path` by the page; `provenance` is its last lines.

    Raises:
      ValueError: a figure is neither SVG nor PNG.
    """
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined)
    page = environment.from_string(_TEMPLATE.read_text()).render(
        title=title,
        lead=_paragraphs(lead),
        sections=[
            {
                "title": section.title,
                "paragraphs": _paragraphs(section.text),
                "tables": [_table(caption, frame) for caption, frame in section.tables],
                "figures": [
                    {"caption": caption, "uri": _uri(caption, image)}
                    for caption, image in section.figures
                ],
            }
            for section in sections
        ],
        provenance=list(_flat(provenance)),
    )
    atomic.write_text(path, page)


def format_number(value: Any) -> str:
    """A number in sensible digits; no number: a dash."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    if value != value:
        return "–"
    if float(value).is_integer() and abs(value) < 1e15:
        return f"{value:.0f}"
    return f"{value:.{_DIGITS}g}"


def markdown(frame: pd.DataFrame) -> str:
    """A table for a page of the docs; its items as `str` gives them, its index not shown."""
    lines = [list(frame.columns), ["---"] * len(frame.columns), *frame.to_numpy().tolist()]
    return "\n".join("| " + " | ".join(str(item) for item in line) + " |" for line in lines)


def _paragraphs(text: str) -> list[str]:
    return [" ".join(part.split()) for part in text.split("\n\n") if part.strip()]


def _table(caption: str, frame: pd.DataFrame) -> dict[str, Any]:
    columns = []
    for name in frame.columns:
        number = pd.api.types.is_numeric_dtype(frame[name].dtype) and frame[name].dtype != bool
        columns.append({"name": name, "style": Markup(' class="number"') if number else ""})
    rows = [
        ["–" if item is None else format_number(item) for item in row]
        for row in frame.astype(object).itertuples(index=False, name=None)
    ]
    return {"caption": caption, "columns": columns, "rows": rows}


def _uri(caption: str, image: bytes | Path) -> str:
    data = image.read_bytes() if isinstance(image, Path) else image
    png, svg = data.startswith(b"\x89PNG"), b"<svg" in data[:2000]
    require(png or svg, f"figure {caption!r}", data[:20], "SVG or PNG")
    kind = "png" if png else "svg+xml"
    return f"data:image/{kind};base64,{base64.b64encode(data).decode()}"


def _flat(tree: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Nested mappings as (name, value) lines."""
    lines: list[tuple[str, Any]] = []
    for name, value in tree.items():
        if isinstance(value, Mapping):
            lines.append((name, ", ".join(f"{key} {item}" for key, item in value.items())))
        else:
            lines.append((name, value))
    return lines
