"""Table, figures and page of a set of certificates, from what is stored."""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from reach_jax.analysis.certificate_figure import survival_panels
from reach_jax.cramming.certificate import NORMS, ROUNDED, CertificateConfig
from sweep_jax import drawing, provenance
from sweep_jax.cells import Cell
from sweep_jax.experiment import Context
from sweep_jax.report import Section, write_report
from sweep_jax.store import table, write_table

LEAD = """A search succeeds at a point; the paper (arXiv 2605.22223) calls a text accessible at eps
only if a whole ball of radius eps/2 around the prompt emits it. Each stored prompt was decoded
again at highest precision, rounded to coarser floats and decoded, and points of the ball around it
were tried."""
EPS = """Three kinds of number, never to be mixed up. Random: at this eps all random points of the
ball held; evidence, no proof, and blind to rare directions. Directed: the same for points where a
token's margin falls fastest. Refuted: a point was seen that does not emit the text, so the text is
not accessible at this eps or above with this prompt; a fact, up to rounding, and an upper bound.
First order is an estimate from margins and gradients. cube: l_inf, the paper's grid of cubes of
side eps; ball: l_2. In standard deviations of the input embeddings."""
BITS = """Bits of text that a coordinate carries, n ln V / (m D ln 2), beside the bits that it is
stored in, and log2(1 + 2 r/eps) of the ball bound at the largest eps of the cube at which no tried
point failed."""
PLACE = """The greatest norm among a prompt's vectors, over the greatest among the model's own input
vectors, and the share of a prompt's coordinates that lie inside their box. Bounds measured on the
support of real inputs hold only for prompts inside it."""
KINDS = ("random", "directed", "refuted")


def write(settings: CertificateConfig, cells: Sequence[Cell], context: Context) -> str:
    """Writes table.csv, table.parquet, figures/ and report.html; returns the text to print."""
    workdir = context.workdir
    frame = table(context.store, cells)
    write_table(frame, workdir)
    stored = f"{len(frame)} of {len(cells)} prompts are certified"
    if frame.empty or (frame["n"] == 0).all():
        return f"{stored} in {workdir}; nothing to report yet"
    reached = frame[frame["n"] > 0]
    facts = (
        f"{stored}; {int(frame['confirmed'].sum())} decode to the whole length that their run"
        f" stored, {int((frame['n'] == 0).sum())} emit no token of their target,"
        f" {int(reached['tied'].sum())} hang on a tie. {int(reached['decodes_agree'].sum())} of"
        f" {int(reached['decoded'].sum())} points decoded for real did as the teacher-forced check"
        f" said. Points a prompt and norm: {settings.samples} random, {settings.directed} directed"
    )
    tables = {
        "margins": _grouped(reached, _margins),
        "eps": _grouped(reached, _eps),
        "bits": _grouped(reached, _bits),
        "place": _grouped(reached, _place),
    }
    plots = _figures(reached, workdir / "figures")
    write_report(
        workdir / "report.html",
        "Certificates of crammed prompts",
        LEAD,
        [
            Section(
                "Margins and rounding",
                f"{facts}.",
                [("Least margin in logits; survival under rounding", tables["margins"])],
                [
                    ("Share of prompts with at least this margin", plots["margin"]),
                    ("Share of the text kept after rounding the prompt", plots["rounding"]),
                ],
            ),
            Section(
                "The ball around a prompt",
                EPS,
                [("Median over prompts", tables["eps"])],
                [("Share of prompts with at least this eps", plots["eps"])],
            ),
            Section("Bits", BITS, [("Median over prompts", tables["bits"])]),
            Section("Where the prompts lie", PLACE, [("Median over prompts", tables["place"])]),
        ],
        provenance.collect(),
    )
    plain = [t.to_string(index=False, float_format=lambda x: f"{x:.4g}") for t in tables.values()]
    return "\n\n".join([f"{facts} in {workdir}", *plain, f"report: {workdir / 'report.html'}"])


def _grouped(
    reached: pd.DataFrame, columns: Callable[[pd.DataFrame], dict[str, float]]
) -> pd.DataFrame:
    rows = []
    for (source, m), part in reached.groupby(["source", "prompt_length"], sort=True):
        rows.append({"source": source, "m": m, "prompts": len(part), **columns(part)})
    return pd.DataFrame(rows)


def _margins(part: pd.DataFrame) -> dict[str, float]:
    row = {"least_margin": part["least_margin"].median(), "smallest": part["least_margin"].min()}
    for name in ROUNDED:
        row[f"{name} keeps all"] = (part[f"kept_{name}"] == part["n"]).mean()
        row[f"{name} share kept"] = (part[f"kept_{name}"] / part["n"]).mean()
    return row


def _eps(part: pd.DataFrame) -> dict[str, float]:
    names = [f"{norm}_{kind}" for norm in NORMS for kind in (*KINDS, "first_order")]
    return {name: part[f"eps_{name}_rel"].median() for name in names}


def _bits(part: pd.DataFrame) -> dict[str, float]:
    return {name: part[name].median() for name in ("bits_used", "bits_stored", "bits_at_eps")}


def _place(part: pd.DataFrame) -> dict[str, float]:
    names = ("r_2_over_inputs", "r_2_quantile", "r_inf_over_inputs", "r_inf_quantile", "inside_box")
    return {name: part[name].median() for name in names}


def _figures(reached: pd.DataFrame, directory: Path) -> dict[str, Path]:
    """The SVG of each figure; a PNG is written beside it."""
    sources = {str(source): part for source, part in reached.groupby("source")}
    margins = {
        source: {f"m = {m}": g["least_margin"].to_numpy() for m, g in part.groupby("prompt_length")}
        for source, part in sources.items()
    }
    rounding = {
        source: {name: (part[f"kept_{name}"] / part["n"]).to_numpy() for name in ROUNDED}
        for source, part in sources.items()
    }
    eps = {
        f"{norm}, {'l_inf' if norm == 'cube' else 'l_2'}": {
            kind: np.asarray(reached[f"eps_{norm}_{kind}_rel"]) for kind in KINDS
        }
        for norm in NORMS
    }
    made = {
        "margin": survival_panels(margins, "least margin (logits)", log=True),
        "rounding": survival_panels(rounding, "share of the text kept", log=False),
        "eps": survival_panels(eps, "eps (embedding deviations)", log=True),
    }
    return {name: drawing.save(figure, directory / name)[1] for name, figure in made.items()}
