"""A picture: which token wins where, on the plane through the last states of three prompts."""

import dataclasses
import time
from collections.abc import Sequence

import numpy as np
import pandas as pd
from ml_collections import ConfigDict

from reach_jax.analysis import geometry_figures
from reach_jax.experiments import sampling, zoo
from reach_jax.geometry import plane, states
from sweep_jax import drawing, provenance
from sweep_jax.cells import Cell, shard
from sweep_jax.checks import require, resolve
from sweep_jax.experiment import Context
from sweep_jax.report import Section, write_report
from sweep_jax.store import Result, table, write_table

EXCLUDED = ()
LEAD = """Each pixel is a vector of the plane and has the colour of the token with the greatest
logit there. Between the three states no prompt need lead to a vector; the picture shows cells, not
what can be reached."""


@dataclasses.dataclass(frozen=True)
class PlaneConfig:
    """Three prompts and how their plane is drawn."""

    prompts: tuple[str, ...]
    pixels: int  # along each side
    margin: float  # around the three states, in widths of their extent
    named: int  # the largest cells, with a colour of their own

    def __post_init__(self) -> None:
        three = len(self.prompts) == 3 and len(set(self.prompts)) == 3 and all(self.prompts)
        require(three, "prompts", self.prompts, "three different texts")
        require(1 <= self.pixels <= 4000, "pixels", self.pixels, "an integer in [1, 4000]")
        require(self.margin >= 0, "margin", self.margin, "a number >= 0")
        require(1 <= self.named <= 18, "named", self.named, "an integer in [1, 18]")


def _settings(config: ConfigDict) -> tuple[zoo.Choice, PlaneConfig]:
    values = config.to_dict()
    return zoo.choice(values), resolve(PlaneConfig, values["plane"], "config.plane")


def validate(config: ConfigDict, cells: Sequence[Cell]) -> None:
    """Refuses what cannot run, with ValueError, before any device work."""
    chosen, _ = _settings(config)
    zoo.describe(chosen)
    zoo.check_tokenizer(chosen, "config.plane.prompts")


def plan(config: ConfigDict, cells: Sequence[Cell]) -> pd.DataFrame:
    """One row: the picture."""
    pixels = _settings(config)[1].pixels
    return pd.DataFrame([{"name": cells[0].name, "points": pixels**2}])


def run(config: ConfigDict, cells: Sequence[Cell], context: Context) -> None:
    """Finds the plane and its tokens."""
    chosen, p = _settings(config)
    for cell in context.store.pending(shard(cells, context.shard)):
        model = zoo.load(chosen, context.workdir, context.stop)
        began = time.perf_counter()
        before = [] if model.prefix_id is None else [model.prefix_id]
        ids = [np.array([*before, *model.encode(text)]) for text in p.prompts]
        found_3D = np.stack([states.last_state(model.config, model.params, t) for t in ids])
        made = plane.through(found_3D, p.margin)
        tokens_YX = plane.tokens(made, sampling.head(model), p.pixels)
        kinds, counts = np.unique(tokens_YX, return_counts=True)
        largest = kinds[np.argsort(-counts, kind="stable")]
        shares = np.sort(counts)[::-1] / tokens_YX.size
        metrics = {
            "cells": len(kinds),
            "tokens": largest[: p.named],
            "texts": [repr(model.text([t])) for t in largest[: p.named].tolist()],
            "shares": shares[: p.named],
            "extent": list(made.extent),
        }
        origin = provenance.collect() | {"model": sampling.card(model)}
        took = round(time.perf_counter() - began, 3)
        kept = {"tokens": tokens_YX, "points": made.points_32, "states": found_3D}
        context.store.write(cell, Result("ok", metrics, 0.0, took), origin, kept)


def report(config: ConfigDict, cells: Sequence[Cell], context: Context) -> str:
    """Writes table, figure and page from what is stored; returns the text to print."""
    write_table(table(context.store, cells), context.workdir)
    record = context.store.read(cells[0])
    if record is None:
        return f"nothing to report yet in {context.workdir}"
    m, kept = record["metrics"], context.store.arrays(cells[0])
    names = dict(zip(m["tokens"], m["texts"], strict=True))
    prompts = _settings(config)[1].prompts
    drawn = geometry_figures.token_plane(
        kept["tokens"], tuple(m["extent"]), kept["points"], prompts, names
    )
    path = drawing.save(drawn, context.workdir / "figures" / "plane")[1]
    shown = pd.DataFrame({name: m[name] for name in ("tokens", "texts", "shares")})
    card = record["provenance"]["model"]
    line = (
        f"model: {card['name']}, quantised weights: {card['quantised']}; {m['cells']} tokens win"
        " somewhere on the plane"
    )
    page = context.workdir / "report.html"
    section = Section("The plane", line, [("Largest cells", shown)], [("", path)])
    title = f"Token cells of {card['name']} on a plane"
    write_report(page, title, LEAD, [section], record["provenance"])
    return "\n\n".join([line, shown.to_string(index=False), f"report: {page}"])
