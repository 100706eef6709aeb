"""Tables, figures and page of the reachability experiment, from what its workdir holds."""

from collections.abc import Sequence
from typing import Any

import pandas as pd

from reach_jax.analysis import summary
from reach_jax.bounds.bound import Bound
from reach_jax.bounds.packing import threshold
from reach_jax.experiments import (
    fixed_report,
    published_curves,
    reachability_plots,
    search_report,
    zoo,
)
from reach_jax.experiments.settings import Settings
from sweep_jax import provenance
from sweep_jax.cells import Cell
from sweep_jax.experiment import Context
from sweep_jax.report import Section, write_report
from sweep_jax.store import table, write_table

LEAD = """How many tokens can m prompt vectors make this model say? Each target below was crammed
into a soft prompt of m vectors until the frozen model emitted it greedily. A threshold is the
longest prefix of the target that was found and confirmed by an independent decode; n50 is the
median threshold. A text that was not reached was not found within this budget, which does not
make it unreachable: every measured slope is a lower bound, and stands below the upper bounds of
theory."""

SURVIVAL = """S(n) is the share of targets whose first n tokens were reached: the survival curve of
the thresholds. Beyond the least threshold that a budget cut short it is not known; dashed is the
share that is sure, a tick a target cut short."""
BESIDE = "from the figures of arXiv 2605.22223; success teacher-forced, text of PG-19."
CAPTIONS = {
    "success": "Success against n: the survival curve of the thresholds, pointwise 95 % intervals",
    "tried": "Share of targets that came out whole at each length tried",
    "fraction": "Random targets beside the bound on the reachable share",
}


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
    trusted = frame[frame["status"] != "failed"]
    bounds = reachability_plots.bounds(known.tokens, store, cells, support)
    given = int(s.cramming.first_token == "given")
    about = (known.tokens, given, bounds, workdir / "figures")
    more, more_tables = search_report.sections(trusted, store, cells, *about)
    if s.cramming.protocol == "kuratov":
        return fixed_report.write_capacity(frame, known.name, stored, context, more, more_tables)
    fits: list[tuple[str, pd.DataFrame]] = []
    published = published_curves.find(known, search_report.width(store, cells))
    if s.cramming.protocol == "paper":
        curves = fixed_report.logistic_frame(store, cells, s.seed)
        fits = [(fixed_report.LOGISTIC, curves), ("Their lines", fixed_report.line_frame(curves))]
    n50s = summary.n50_frame(frame)
    lines = summary.line_frame(frame, s.seed)
    ratios = summary.ratio_frame(lines, bounds)
    limits = _limits(bounds, sorted(set(n50s["prompt_length"])))
    plots = reachability_plots.draw(
        known, published, frame, n50s, lines, bounds, workdir / "figures"
    )
    if s.cramming.protocol == "paper":
        plots["tried"] = fixed_report.draw_tries(store, cells, published, workdir / "figures")
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
                f"{SURVIVAL}{'' if published is None else f' Published: {published}, {BESIDE}'}",
                [],
                [(caption, plots[name]) for name, caption in CAPTIONS.items() if name in plots],
            ),
            *more,
            Section("Model", model, [], []),
        ],
        provenance.collect(),
    )
    parts = [
        model,
        _plain("n50 (tokens)", n50s),
        _plain("lines: slope in tokens per prompt vector", shown),
        _plain("theory / measured (slope of the line with intercept)", compact),
        *(_plain(title, table) for title, table in [*fits, *more_tables]),
        f"{proof}\n{stored} in {workdir}\nreport: {workdir / 'report.html'}",
    ]
    return "\n\n".join(parts)


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


def _plain(title: str, frame: pd.DataFrame) -> str:
    return f"{title}\n{frame.to_string(index=False, float_format=lambda x: f'{x:.4g}')}"
