"""Tables and page of the unreachable experiment, from what its workdir holds."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from sweep_jax import atomic
from sweep_jax.cells import Cell
from sweep_jax.experiment import Context
from sweep_jax.report import Section, write_report
from sweep_jax.store import table, write_table

_SHOWN = 200  # tokens that are not reachable, on the page; all are in tokens.csv
LEAD = """A token is reachable if some state prefers it to every other token, by a margin that
float64 proves; unreachable if no state does, which a mixture of other tokens' rows proves up to the
tolerance. Reachable speaks of vectors, not of prompts: that a prompt leads to the vector is
shown only for tokens that were the argmax at a sampled state. Unreachable speaks of every prompt
(of every prompt whose state lies in the box, where the states are those of the measured box). Exact
ties go to the lowest token id, so of equal rows only the lowest can win. Exact arithmetic is meant:
a margin below the rounding of the model's own logits can go either way in it."""


def write(tolerance: float, items: Sequence[Any], cells: Sequence[Cell], context: Context) -> str:
    """Writes table.csv, tokens.csv and report.html; returns the text to print."""
    frame = table(context.store, cells)
    write_table(frame, context.workdir)
    done = context.store.done(cells)
    if not done:
        return f"nothing to report yet in {context.workdir}"
    records = {cell.name: context.store.read(cell) or {} for cell in done}
    first = records[done[0].name]
    card = first["provenance"]["model"]
    pairs = [(item, cell) for item, cell in zip(items, cells, strict=True) if cell in done]
    summary = _summary(pairs, records)
    listed = pd.concat([_listed(item, cell, context) for item, cell in pairs], ignore_index=True)
    atomic.write_text(context.workdir / "tokens.csv", listed.to_csv(index=False))
    stages = _stages(pairs, records)
    model = (
        f"model: {card['name']}, {card['tokens']} tokens, quantised weights: {card['quantised']};"
        f" unreachable up to {tolerance:g} of the greatest logit allowed"
    )
    page = context.workdir / "report.html"
    write_report(
        page,
        f"Unreachable tokens of {card['name']}",
        LEAD,
        [
            Section("Counts", model, [("", summary), ("Which stage decided", stages)]),
            Section("Tokens that are not reachable", "", [("", listed.head(_SHOWN))]),
        ],
        first["provenance"],
    )
    parts = [model, _plain(summary), _plain(stages)]
    if len(listed):
        parts.append(f"not reachable (all in tokens.csv):\n{_plain(listed.head(20))}")
    stored = f"{len(done)} of {len(cells)} cells are stored"
    return "\n\n".join([*parts, f"{stored}\nreport: {page}"])


def _summary(pairs: Sequence[Any], records: dict[str, Any]) -> pd.DataFrame:
    """Sums over the blocks of each bias and set of states."""
    rows: dict[tuple[str, str], dict[str, Any]] = {}
    for item, cell in pairs:
        m = records[cell.name]["metrics"]
        row = rows.setdefault((item.bias, item.states), {"bias": item.bias, "states": item.states})
        for name in ("tokens", "reachable", "unreachable", "undecided", "met_at_a_state"):
            row[name] = row.get(name, 0) + m[name]
        least = m["least_margin"]
        if least is not None:
            row["least_margin"] = min(row.get("least_margin", np.inf), least)
        row["one_signed"] = m["one_signed"]
        row["seconds"] = round(row.get("seconds", 0) + records[cell.name]["run_seconds"], 1)
    return pd.DataFrame(rows.values())


def _stages(pairs: Sequence[Any], records: dict[str, Any]) -> pd.DataFrame:
    counts: dict[tuple[str, str, str], int] = {}
    for item, cell in pairs:
        for line in records[cell.name]["metrics"]["stages"]:
            name, count = line.rsplit(": ", 1)
            key = (item.bias, item.states, name)
            counts[key] = counts.get(key, 0) + int(count)
    rows = [(*key, count) for key, count in counts.items()]
    return pd.DataFrame(rows, columns=["bias", "states", "stage", "tokens"])


def _listed(item: Any, cell: Cell, context: Context) -> pd.DataFrame:
    """The tokens of a cell that are not reachable, with the first tokens of their certificate."""
    kept = context.store.arrays(cell)
    texts = (context.store.read(cell) or {})["metrics"]["texts"]
    reasons = bytes(kept["reasons"]).decode().split("\n")
    rows: list[dict[str, Any]] = []
    for place in np.flatnonzero(kept["status"] != 0).tolist():
        others = slice(*kept["starts"][place : place + 2])
        order = np.argsort(-kept["weights"][others])[:3]
        heaviest = kept["others"][others][order]
        rows.append(
            {
                "bias": item.bias,
                "states": item.states,
                "token": int(kept["tokens"][place]),
                "text": texts[len(rows)],
                "status": "unreachable" if kept["status"][place] == 1 else "undecided",
                "because": reasons[kept["reason"][place]],
                "margin_at_most": float(kept["margin"][place]),
                "mixture_of": len(kept["others"][others]),
                "heaviest": " ".join(str(i) for i in heaviest.tolist()),
            }
        )
    columns = ["bias", "states", "token", "text", "status", "because", "margin_at_most"]
    return pd.DataFrame(rows, columns=[*columns, "mixture_of", "heaviest"])


def _plain(frame: pd.DataFrame) -> str:
    return frame.to_string(index=False, float_format=lambda x: f"{x:.3g}")
