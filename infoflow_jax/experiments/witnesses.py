"""Certified FFN widths of one-layer networks: random heads of Theorems 1 and 2, packed digits of 3.

One cell a layer and a family of inputs: the best certificate that the search finds. Every one has
been run and evaluated again. A width holds for these heads and FFN weights in [-1, 1]; the theorems
speak of all heads.
"""

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
import pandas as pd
from ml_collections import ConfigDict

from infoflow_jax.figures import witness_figure
from infoflow_jax.networks import decoding, transformer, witnesses
from infoflow_jax.networks.config import NetworkConfig, Params
from sweep_jax import drawing, provenance, serial
from sweep_jax.cells import Cell
from sweep_jax.checks import require, resolve
from sweep_jax.experiment import Context
from sweep_jax.report import Section, write_report
from sweep_jax.store import table, write_table

EXCLUDED = ("axes",)
THEOREMS = ("pairs", "kth", "packing")

LEAD = """Two inputs whose targets differ and that a layer's heads hardly tell apart force a width
on the FFN behind them: (gap - 2 eps) / L1 distance, at eps = gap / 3. Inputs are enumerated,
nearest pairs found by a KD-tree, and the layer and the brute-force target run again on each
pair."""


@dataclasses.dataclass(frozen=True)
class Point:
    """One layer and family of inputs."""

    theorem: str
    heads: int  # H; of packing E
    head_width: int  # N
    free: int  # free tokens
    choices: int  # values of each
    draw: int

    def __post_init__(self) -> None:
        require(self.theorem in THEOREMS, "theorem", self.theorem, f"one of {THEOREMS}")
        for name in ("heads", "head_width", "free"):
            require(getattr(self, name) >= 1, name, getattr(self, name), "an integer >= 1")
        require(self.choices >= 2, "choices", self.choices, "an integer >= 2")
        most = witnesses.MOST
        require(self.choices**self.free <= most, "free", self.free, f"choices^free <= {most}")
        fits = self.theorem != "packing" or self.heads <= self.free
        require(fits, "heads", self.heads, f"at most the {self.free} tokens that are packed")
        require(0 <= self.draw < 2**31, "draw", self.draw, "an integer in [0, 2^31)")


@dataclasses.dataclass(frozen=True)
class LayerSettings:
    """The random layers."""

    k: int
    encoder_width: int
    gain: float

    def __post_init__(self) -> None:
        # Every head's heaviest token may stand above the bands, which takes k - 1 of them.
        require(self.k >= 1, "k", self.k, "an integer >= 1")
        require(self.encoder_width >= 1, "encoder_width", self.encoder_width, "an integer >= 1")
        require(0 < self.gain <= 1e3, "gain", self.gain, "a number in (0, 1000]")


def validate(config: ConfigDict, cells: Sequence[Cell]) -> None:
    """Refuses impossible layers and families that are too large, with ValueError."""
    for cell in cells:
        point, settings = _settings(cell)
        room = point.theorem != "kth" or settings.k > point.heads
        require(room, "config.layer.k", settings.k, f"more than the {point.heads} heads")


def plan(config: ConfigDict, cells: Sequence[Cell]) -> pd.DataFrame:
    """One row a cell: how many inputs are enumerated, and seconds at 20 microseconds each."""
    points = [_settings(cell)[0] for cell in cells]
    inputs = [p.choices**p.free for p in points]
    frame = pd.DataFrame({"theorem": [p.theorem for p in points], "inputs": inputs})
    return frame.assign(seconds=[1 + 2e-5 * n for n in inputs])


def run(config: ConfigDict, cells: Sequence[Cell], context: Context) -> None:
    """Searches the cells that are missing.

    Raises:
      Stopped: between two cells, when asked to.
    """
    serial.run(cells, context, "searching", _measure)


def report(config: ConfigDict, cells: Sequence[Cell], context: Context) -> str:
    """Writes table, figure and page from what is stored; returns the text to print."""
    frame = table(context.store, cells)
    write_table(frame, context.workdir)
    stored = f"{len(frame)} of {len(cells)} cells are stored in {context.workdir}"
    if frame.empty:
        return f"{stored}; nothing to report yet"
    growth = _growth(frame[frame["theorem"] != "packing"])
    columns = ["tokens", "coordinates", "choices", "width_0", "law", "hidden"]
    packed = frame[frame["theorem"] == "packing"].reindex(columns=columns)
    saved = drawing.save(witness_figure.growth(frame), context.workdir / "figures" / "widths")[1]
    tables = [("Growth of the median width with the free tokens", growth)]
    tables.append(("Packing: certified width, b^(digits - 1), and the decoder's own", packed))
    page = context.workdir / "report.html"
    sections = [Section("Certified widths", stored, tables, [("Widths", saved)])]
    write_report(page, "Witnesses", LEAD, sections, provenance.collect())
    shown = [t.to_string(index=False, float_format=lambda x: f"{x:.4g}") for _, t in tables]
    return "\n\n".join([*shown, f"{stored}\nreport: {page}"])


def _settings(cell: Cell) -> tuple[Point, LayerSettings]:
    seed = cell.config["seed"]
    require(0 <= seed < 2**31, "config.seed", seed, "an integer in [0, 2^31)")
    point = resolve(Point, cell.config["cell"], "config.cell")
    return point, resolve(LayerSettings, cell.config["layer"], "config.layer")


def _random(point: Point, settings: LayerSettings, seed: int) -> tuple[NetworkConfig, Params]:
    """A layer with normal weights; the same draw serves every number of free tokens."""
    config = NetworkConfig(
        d=2 if point.theorem == "pairs" else 1,
        width=point.heads * point.head_width,
        heads=(point.heads,),
        head_width=point.head_width,
        ffn=((),),
        encoder="mlp",
        encoder_widths=(settings.encoder_width,),
        dtype="float64",
    )
    rng = np.random.default_rng([seed, point.draw])
    shapes = transformer.shapes(config)
    return config, jax.tree.map(lambda s: settings.gain * rng.standard_normal(s.shape), shapes)


def _measure(cell: Cell) -> dict[str, Any]:
    point, settings = _settings(cell)
    hidden, law = math.nan, math.nan
    if point.theorem == "packing":
        made = decoding.packed(point.free, point.heads, point.choices)
        config, params = made.config, made.params
        hidden = float(config.ffn[0][0])
        law = float(point.choices) ** (-(-point.free // point.heads) - 1)
        family = witnesses.packing_family(config, point.choices)
    else:
        config, params = _random(point, settings, cell.config["seed"])
        if point.theorem == "pairs":
            family = witnesses.pair_family(config, params, point.free, point.choices)
        else:
            family = witnesses.kth_family(config, params, settings.k, point.free, point.choices)
    found = witnesses.search(config, params, family)
    return {
        "tokens": family.tokens,
        "coordinates": config.width,
        "inputs": point.choices**point.free,
        "gap": found.gap,
        "distance": found.distance,
        "width": found.width(found.gap / 3),
        "width_0": found.width(0.0),
        "law": law,
        "hidden": hidden,
        "a": found.a_TD.tolist(),
        "b": found.b_TD.tolist(),
    }


def _growth(frame: pd.DataFrame) -> pd.DataFrame:
    """Factor by which a free token multiplies the median width, beside what counting gives.

    G^M inputs in H (N + 1) numbers, of bounded size, have a pair at G^(-M / (H (N + 1))): the
    pigeonhole's factor is G^(1 / (H (N + 1))).
    """
    rows = []
    for _, part in frame.groupby(["theorem", "heads", "head_width"]):
        first = part.iloc[0]
        heads, width = int(first["heads"]), int(first["head_width"])
        median = part.groupby("free")["width"].median()
        if len(median) < 2:
            continue
        slope = np.polyfit(median.index, np.log(median), 1)[0]
        counted = float(first["choices"]) ** (1 / (heads * (width + 1)))
        rows.append((first["theorem"], heads, width, math.exp(slope), counted, median.iloc[-1]))
    names = ["theorem", "heads", "head_width", "factor", "pigeonhole", "width at most tokens"]
    return pd.DataFrame(rows, columns=names)
