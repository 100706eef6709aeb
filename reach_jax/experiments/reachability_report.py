"""Tables, figures and page of the reachability experiment, from what its workdir holds."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from reach_jax.analysis import figures, summary, thresholds
from reach_jax.bounds.bound import Bound, first_bounds
from reach_jax.bounds.packing import threshold
from reach_jax.experiments import fixed_report, zoo
from reach_jax.experiments.settings import Settings
from sweep_jax import drawing, provenance
from sweep_jax.cells import Cell
from sweep_jax.experiment import Context
from sweep_jax.report import Section, write_report
from sweep_jax.store import Store, table, write_table

LEAD = """How many tokens can m prompt vectors make this model say? Each target below was crammed
into a soft prompt of m vectors until the frozen model emitted it greedily. A threshold is the
longest prefix of the target that was found and confirmed by an independent decode; n50 is the
median threshold. A text that was not reached was not found within this budget, which does not
make it unreachable: every measured slope is a lower bound, and stands below the upper bounds of
theory."""


_N50 = "n50 and its exact 95 % interval"


def write(
    s: Settings,
    cells: Sequence[Cell],
    context: Context,
    known: zoo.Known,
    support: dict[str, Any],
) -> str:
    """Writes table.csv, table.parquet, figures/ and report.html; returns the text to print."""
    store, workdir = context.store, context.workdir
    frame = table(store, cells)
    write_table(frame, workdir)
    stored = f"{len(frame)} of {len(cells)} cells are stored"
    if frame.empty or (frame["status"] == "failed").all():
        return f"{stored} in {workdir}; nothing to report yet"
    if s.cramming.protocol == "kuratov":
        return fixed_report.write_capacity(frame, known.name, stored, context)
    fits: list[tuple[str, pd.DataFrame]] = []
    if s.cramming.protocol == "paper":
        curves = fixed_report.logistic_frame(store, cells, s.seed)
        fits = [(fixed_report.LOGISTIC, curves), ("Their lines", fixed_report.line_frame(curves))]
    bounds = _bounds(known.tokens, store, cells, support)
    n50s = summary.n50_frame(frame)
    lines = summary.line_frame(frame, s.seed)
    ratios = summary.ratio_frame(lines, bounds)
    limits = _limits(bounds, sorted(set(n50s["prompt_length"])))
    plots = _figures(known.tokens, frame, n50s, lines, bounds, workdir / "figures")
    trusted = frame[frame["status"] != "failed"]
    unconfirmed = int((~trusted["confirmed"].astype(bool)).sum())
    proof = (
        f"{len(trusted)} searches ended; {unconfirmed} of them claimed more than the independent"
        f" single-lane decode confirmed (the confirmed length counts)"
    )
    compact = _compact(ratios)
    shown = lines.drop(columns=[c for c in ("reason", "left_out") if not lines[c].any()])
    card = known.card
    loss = ""
    if "heldout_loss" in card:
        loss = f", {card['heldout_loss']:.3f} nats a token on held-out text"
    weights = " (quantised weights)" if card["quantised"] else ""
    model = (
        f"model: {known.name}{weights}, {card['parameters']:,} parameters{loss}; support of"
        f" {support['count']} states: r_inf {support['r_inf']:.3g},"
        f" r_2 {support['r_2']:.3g}, cosine mean {support['mean_cosine']:.2f},"
        f" least {support['least_cosine']:.2f}"
    )
    write_report(
        workdir / "report.html",
        f"Reachable length of {known.name}",
        LEAD,
        [
            Section(
                "The line and the bounds",
                f"{stored}. {proof}.",
                [
                    ("n50 and its exact 95 % interval, tokens", n50s),
                    ("Straight lines", shown),
                    *fits,
                ],
                [("n50 against m, and the same below the bounds", plots["line"])],
            ),
            Section(
                "Theory over measurement",
                "A ratio of 1 would be a tight bound. Rigorous: holds for these prompts as they"
                " are. Heuristic: rests on the assumption named.",
                [
                    ("Bounds", _described(bounds)),
                    ("Ratios to the slope of the line with intercept", compact),
                    ("Threshold n* = C m of each bound, tokens", limits),
                ],
            ),
            Section(
                "Success against length",
                "S(n) is the share of targets whose first n tokens were reached.",
                [],
                [
                    ("Success curves with pointwise 95 % intervals", plots["success"]),
                    ("Random targets beside the bound on the reachable share", plots["fraction"]),
                ],
            ),
            Section("Model", model, [], []),
        ],
        provenance.collect(),
    )
    parts = [
        model,
        _plain("n50 (tokens)", n50s),
        _plain("lines: slope in tokens per prompt vector", shown),
        _plain("theory / measured (slope of the line with intercept)", compact),
        *(_plain(title, table) for title, table in fits),
        f"{proof}\n{stored} in {workdir}\nreport: {workdir / 'report.html'}",
    ]
    return "\n\n".join(parts)


def _bounds(
    vocabulary: int, store: Store, cells: Sequence[Cell], support: dict[str, Any]
) -> list[Bound]:
    """Every first bound for the box of the prompts found, and ball and box of the states too."""
    done = store.done(cells)
    prompts_PD = np.concatenate([store.arrays(cell)["prompt"] for cell in done])
    lo_D, hi_D = prompts_PD.min(axis=0), prompts_PD.max(axis=0)
    own = first_bounds(lo_D, hi_D, vocabulary, prompts_PD.dtype, "prompts")
    states = first_bounds(support["lo_D"], support["hi_D"], vocabulary, prompts_PD.dtype, "outputs")
    published = [b for b in states if b.name.startswith(("ball", "box"))]
    return list(own) + [dataclasses.replace(b, name=f"{b.name} (states)") for b in published]


def _label(rigorous: bool) -> str:
    return "rigorous" if rigorous else "heuristic"


def _described(bounds: Sequence[Bound]) -> pd.DataFrame:
    return pd.DataFrame(
        [
            {"bound": b.name, "label": _label(b.rigorous), "C": b.slope, "from": b.theorem}
            | {"assumes": b.assumptions}
            for b in bounds
        ]
    )


def _limits(bounds: Sequence[Bound], lengths: Sequence[int]) -> pd.DataFrame:
    return pd.DataFrame(
        [
            {"bound": b.name, "label": _label(b.rigorous)}
            | {f"m = {m}": round(float(threshold(b.slope, m)), 1) for m in lengths}
            for b in bounds
        ]
    )


def _compact(ratios: pd.DataFrame) -> pd.DataFrame:
    """One row a bound, one ratio a source."""
    lines = ratios[ratios["fit"] == "intercept"]
    lines = lines.assign(label=[_label(flag) for flag in lines["rigorous"]])
    keys = ["bound", "label", "bound_slope"]
    wide = lines.pivot_table(index=keys, columns="source", values="ratio", sort=False)
    return wide.add_prefix("ratio ").reset_index().rename_axis(columns=None)


def _figures(
    vocabulary: int,
    frame: pd.DataFrame,
    n50s: pd.DataFrame,
    lines: pd.DataFrame,
    bounds: Sequence[Bound],
    directory: Path,
) -> dict[str, Path]:
    """The SVG of each figure; a PNG is written beside it."""
    kept = frame[frame["status"] != "failed"]
    longest = int(kept["threshold"].max()) + 4
    curves = {
        str(source): {
            m: thresholds.success_curve(part["threshold"], part["status"] == "censored", longest)
            for m in sorted(set(group["prompt_length"].tolist()))
            for part in [group[group["prompt_length"] == m]]
        }
        for source, group in kept.groupby("source")
    }
    beside = [b for b in bounds if not b.name.endswith("(states)")]
    made = {
        "success": figures.success_curves(curves),
        "line": figures.line_beside_bounds(n50s, lines, beside),
    }
    if "random" in curves:
        grid = next(b for b in bounds if b.name == "float grid")
        made["fraction"] = figures.reachable_fraction(curves["random"], grid, vocabulary)
    return {name: drawing.save(figure, directory / name)[1] for name, figure in made.items()}


def _plain(title: str, frame: pd.DataFrame) -> str:
    return f"{title}\n{frame.to_string(index=False, float_format=lambda x: f'{x:.4g}')}"
