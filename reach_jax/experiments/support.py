"""The support of a model's embeddings: states by sequence length, inputs, and crammed prompts.

Every set is measured in one pass. What it gives is the constants of the bounds and how they grow
with the greatest length sampled; a sampled support is from below, so a longer run may be wider.
"""

import dataclasses
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
from ml_collections import ConfigDict

from reach_jax.analysis import geometry_figures
from reach_jax.bounds.bound import first_bounds
from reach_jax.experiments import sampling, zoo
from reach_jax.geometry.moments import ellipsoid
from reach_jax.geometry.states import SupportConfig
from reach_jax.models import kinds
from sweep_jax import arrays, atomic, drawing, progress, provenance
from sweep_jax.cells import Cell, shard
from sweep_jax.checks import require, resolve
from sweep_jax.experiment import Context
from sweep_jax.report import Section, write_report
from sweep_jax.stop import Stopped
from sweep_jax.store import Result, table, write_table

EXCLUDED = ("axes",)
KINDS = ("random", "text", "inputs", "prompts")
_ROWS = 4096  # input embeddings at once
LEAD = """Where the embeddings of this model lie. Random: last states, after the final norm, of
sequences of uniformly random tokens, as published. Text: the same of pieces of text. Inputs: the
embedding of every token. Prompts: vectors that cramming found. A sampled support is a lower
estimate of the whole one."""


@dataclasses.dataclass(frozen=True)
class Item:
    """What one cell measures."""

    kind: str
    length: int  # tokens; 0 for inputs and prompts

    def __post_init__(self) -> None:
        require(self.kind in KINDS, "kind", self.kind, f"one of {KINDS}")
        least = 1 if self.kind in ("random", "text") else 0
        require(self.length >= least, "length", self.length, f"an integer >= {least}")


@dataclasses.dataclass(frozen=True)
class Settings:
    """Everything the experiment reads."""

    seed: int
    choice: zoo.Choice
    samples: int
    text: str
    prompts: str


def settings(config: ConfigDict) -> Settings:
    """Resolves `config`.

    Raises:
      ValueError: a field is missing, unknown, of the wrong type, or does not fit the others.
    """
    values = config.to_dict()
    samples = values["sampling"]["samples"]
    require(samples >= 1, "config.sampling.samples", samples, "an integer >= 1")
    sampling.check_text(values["text"]["path"], "config.text.path")
    workdir = values["prompts"]["workdir"]
    there = workdir == "" or (Path(workdir) / "cells").is_dir()
    require(there, "config.prompts.workdir", workdir, "the workdir of a reachability run, or ''")
    path = values["text"]["path"]
    return Settings(values["seed"], zoo.choice(values), samples, path, workdir)


def _items(cells: Sequence[Cell]) -> list[Item]:
    return [resolve(Item, cell.config["cell"], "config.cell") for cell in cells]


def validate(config: ConfigDict, cells: Sequence[Cell]) -> None:
    """Refuses what cannot run, with ValueError, before any device work."""
    s, items = settings(config), _items(cells)
    model = zoo.describe(s.choice)
    if model is not None and getattr(model, "learned_positions", False):
        longest = 1 + max(item.length for item in items)
        require(longest <= model.context, "config.axes.lengths", longest, f"<= {model.context}")
    if any(item.kind == "text" for item in items):
        zoo.check_tokenizer(s.choice, "config.axes.kinds = text")
    if any(item.kind == "prompts" for item in items):
        found = _stored_prompts(Path(s.prompts))
        if model is not None:
            shape = arrays.read_manifest(found[0])["prompt"][0]
            require(shape[1:] == (model.width,), "config.prompts.workdir", s.prompts, _fit(model))


def plan(config: ConfigDict, cells: Sequence[Cell]) -> pd.DataFrame:
    """One row a cell, with its work in the layers."""
    s = settings(config)
    model = zoo.describe(s.choice)
    per_token = 0 if model is None else model.flops_per_token
    rows = [
        {"name": cell.name, **dataclasses.asdict(item)}
        | {"GFLOP": round(per_token * item.length * s.samples / 1e9, 1)}
        for cell, item in zip(cells, _items(cells), strict=True)
    ]
    return pd.DataFrame(rows)


def run(config: ConfigDict, cells: Sequence[Cell], context: Context) -> None:
    """Measures the sets that are missing.

    Raises:
      Stopped: on request, between two cells.
    """
    s = settings(config)
    mine = shard(cells, context.shard)
    pending = context.store.pending(mine)
    if not pending:
        return
    model = zoo.load(s.choice, context.workdir, context.stop)
    items = _items(pending)
    kinds = {item.kind for item in items}
    stream_S = sampling.text(s.text, s.choice, model) if "text" in kinds else None
    if stream_S is not None:
        longest = max(item.length for item in items if item.kind == "text")
        require(len(stream_S) >= longest, "tokens of the text", len(stream_S), f">= {longest}")
    origin = provenance.collect() | {"model": sampling.card(model)}
    with progress.bar(len(mine), "measuring", "sets", len(mine) - len(pending)) as bar:
        for cell, item in zip(pending, items, strict=True):
            if context.stop.requested:
                raise Stopped("stopped between two sets; the same command goes on")
            began = time.perf_counter()
            found = sampling.measure(_vectors(s, model, item, stream_S), model.config.width)
            context.store.write(
                cell,
                Result("ok", _metrics(found), 0.0, round(time.perf_counter() - began, 3)),
                origin,
                {
                    "lo": found.support.lo_D,
                    "hi": found.support.hi_D,
                    "mean": found.mean_D,
                    "covariance": found.covariance_DD,
                },
            )
            bar.update(1, last=f"{item.kind} {item.length}, r {found.support.r_inf:.3g}")


def report(config: ConfigDict, cells: Sequence[Cell], context: Context) -> str:
    """Writes table, figure and page from what is stored; returns the text to print."""
    frame = table(context.store, cells)
    write_table(frame, context.workdir)
    done = context.store.done(cells)
    if not done:
        return f"nothing to report yet in {context.workdir}"
    record = context.store.read(done[0]) or {}
    card = record["provenance"]["model"]
    growth = _growth(context, done, card)
    shown = frame.drop(columns=["name", "status"])
    parts = [f"model: {card['name']}, quantised weights: {card['quantised']}"]
    parts.append(_plain(shown))
    figs = []
    if not growth.empty:
        atomic.write_text(context.workdir / "growth.csv", growth.to_csv(index=False))
        drawn = geometry_figures.c_against_length(growth)
        figs = [("C against the greatest length", drawing.save(drawn, _stem(context))[1])]
        parts.append(_plain(growth))
    sections = [
        Section("Measures of each set", _MEASURES, [("", shown)]),
        Section("C against the greatest length", _GROWTH, [("", growth)], figs),
    ]
    page = context.workdir / "report.html"
    write_report(page, f"Support of {card['name']}", LEAD, sections, record["provenance"])
    return "\n\n".join([*parts, f"report: {page}"])


_MEASURES = """r_inf, r_2, r_1: greatest norms. Mean cosine over all pairs; least over the pairs of
the first `compared` vectors. The ellipsoid of inertia has the set's covariance; where its rank is
below the width (fewer samples than dimensions, or a flat set), ln_volume is that of the subspace
of that rank, and cannot be compared with another rank's."""
_GROWTH = """Slopes C in tokens per prompt vector of the union of all sets up to a length. Ball and
box are heuristic: they rest on a uniform grid, and on prompts inside the support of the states.
At eps = r/2^11 the ball does not depend on r, so only its box is shown."""


def _stem(context: Context) -> Path:
    return context.workdir / "figures" / "c_against_length"


def _metrics(found: sampling.Measured) -> dict[str, Any]:
    shape = ellipsoid(found.covariance_DD)
    widths_D = found.support.hi_D - found.support.lo_D
    inside_D = (found.support.lo_D < 0) & (found.support.hi_D > 0)
    return {
        **found.scalars(),
        "mean_width": float(widths_D.mean()),
        "straddling": int(inside_D.sum()),  # coordinates that take both signs
        "rank": shape.rank,
        "ln_volume": shape.ln_volume,
        "std_mean": float(np.sqrt(np.trace(found.covariance_DD) / len(widths_D))),
    }


def _vectors(
    s: Settings, model: zoo.Model, item: Item, stream_S: np.ndarray | None
) -> Iterator[np.ndarray]:
    if item.kind == "inputs":
        apply = jax.jit(
            lambda params, ids: kinds.module(model.config).apply(
                {"params": params}, ids, method="embed"
            )
        )
        for start in range(0, model.tokens, _ROWS):
            ids = jnp.arange(start, min(start + _ROWS, model.tokens))
            yield np.asarray(apply(model.params, ids), np.float32)
    elif item.kind == "prompts":
        yield from _prompts(Path(s.prompts), model.config)
    else:
        config = SupportConfig((item.length,), s.samples)
        text_S = stream_S if item.kind == "text" else None
        # The length is in the seed, so that no two cells draw the same tokens.
        yield from sampling.batches(model, config, (s.seed + item.length) % 2**32, text_S)


def _stored_prompts(workdir: Path) -> list[Path]:
    """Where a reachability run keeps every prompt that it confirmed a text for."""
    found = []
    for path in sorted((workdir / "cells").glob("*.json")):
        record = atomic.read_json(path) or {}
        if record.get("status") != "failed" and "prompt" in record.get("arrays", []):
            found.append(workdir / "arrays" / path.stem)
    require(len(found) > 0, "config.prompts.workdir", str(workdir), "at least one stored prompt")
    return found


def _prompts(workdir: Path, model: Any) -> Iterator[np.ndarray]:
    for directory in _stored_prompts(workdir):
        prompt_MD = arrays.restore(directory)["prompt"]
        require(prompt_MD.shape[1:] == (model.width,), str(directory), prompt_MD.shape, _fit(model))
        yield prompt_MD


def _fit(model: Any) -> str:
    return f"prompts of width {model.width}, as the model has"


def _growth(context: Context, done: Sequence[Cell], card: dict[str, Any]) -> pd.DataFrame:
    """The bounds of the union of all sets up to each length."""
    rows = []
    pairs = sorted(zip(_items(done), done, strict=True), key=lambda pair: pair[0].length)
    for kind in ("random", "text"):
        lo_D, hi_D = np.array(np.inf), np.array(-np.inf)
        for item, cell in pairs:
            if item.kind != kind:
                continue
            kept = context.store.arrays(cell)
            lo_D, hi_D = np.minimum(lo_D, kept["lo"]), np.maximum(hi_D, kept["hi"])
            bounds = first_bounds(lo_D, hi_D, card["tokens"], card["dtype"], "outputs")
            slopes = {b.name: b.slope for b in bounds if b.name not in _CONSTANT}
            radius = float(max(np.abs(lo_D).max(), np.abs(hi_D).max()))
            rows.append({"kind": kind, "length": item.length, "r_inf": radius, **slopes})
    return pd.DataFrame(rows)


_CONSTANT = ("trivial bits", "ball, eps = r/2^11")


def _plain(frame: pd.DataFrame) -> str:
    return frame.to_string(index=False, float_format=lambda x: f"{x:.4g}")
