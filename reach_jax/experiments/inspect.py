"""One look at a model: its card, what cramming it takes, how its states grow, how it goes on.

The memory is that of the compiled program that cramming runs, read from the compiler and not
measured; the continuation is the same greedy decode that proves every cramming success.
"""

import dataclasses
import functools
import time
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
from ml_collections import ConfigDict

from reach_jax.analysis import layer_figure
from reach_jax.cramming import cost, verify
from reach_jax.cramming.settings import CrammingConfig
from reach_jax.experiments import zoo
from reach_jax.models import kinds
from sweep_jax import drawing, progress, provenance
from sweep_jax.cells import Cell, shard
from sweep_jax.checks import require, resolve
from sweep_jax.experiment import Context
from sweep_jax.report import Section, format_number, write_report
from sweep_jax.store import Result, table, write_table

EXCLUDED = ()
LEAD = """What this model is, what it costs to cram it, and how it goes on from a text. A number
computed from quantised weights is that of the quantised model."""
# A search's settings change its memory in nothing; two moments a prompt, as every Adam has.
_SEARCH = CrammingConfig("begin", 1, 1, 1.0, 0.1, 0.9, 0.99, 1, 1)


@dataclasses.dataclass(frozen=True)
class Continuation:
    """A text and how many tokens the model adds to it."""

    text: str
    tokens: int

    def __post_init__(self) -> None:
        require(self.text != "", "text", self.text, "a text of at least one token")
        require(self.tokens >= 1, "tokens", self.tokens, "an integer >= 1")


@dataclasses.dataclass(frozen=True)
class Memory:
    """The grid of cramming shapes."""

    prompt_lengths: tuple[int, ...]  # m, vectors
    targets: tuple[int, ...]  # n, tokens
    lanes: tuple[int, ...]

    def __post_init__(self) -> None:
        for name in ("prompt_lengths", "targets", "lanes"):
            values = getattr(self, name)
            require(min(values, default=0) >= 1, name, values, "integers >= 1, at least one")

    @property
    def shapes(self) -> list[tuple[int, int, int]]:
        """(m, n, lanes) of every row."""
        return [
            (m, n, lanes) for m in self.prompt_lengths for n in self.targets for lanes in self.lanes
        ]


@dataclasses.dataclass(frozen=True)
class Settings:
    """Everything the experiment reads."""

    choice: zoo.Choice
    continuation: Continuation
    memory: Memory


def settings(config: ConfigDict) -> Settings:
    """Resolves `config`.

    Raises:
      ValueError: a field is missing, unknown, of the wrong type, or does not fit the others.
    """
    values = config.to_dict()
    return Settings(
        zoo.choice(values),
        resolve(Continuation, values["continuation"], "config.continuation"),
        resolve(Memory, values["memory"], "config.memory"),
    )


def validate(config: ConfigDict, cells: Sequence[Cell]) -> None:
    """Refuses what cannot run, with ValueError, before any device work."""
    s = settings(config)
    model = zoo.describe(s.choice)
    if model is not None and getattr(model, "learned_positions", False):
        longest = 1 + max(s.memory.prompt_lengths) + max(s.memory.targets) - 1
        field = "config.memory.targets"
        fits = longest <= model.context
        require(fits, field, s.memory.targets, f"at most {model.context} positions in all")


def plan(config: ConfigDict, cells: Sequence[Cell]) -> pd.DataFrame:
    """One row: the model, as far as it is known before it is fetched."""
    s = settings(config)
    model = zoo.describe(s.choice)
    known = {} if model is None else {"layers": model.layers, "width": model.width}
    programs = len(s.memory.shapes)
    return pd.DataFrame([{"name": cells[0].name, "source": s.choice.source.path, **known}]).assign(
        programs=programs
    )


def run(config: ConfigDict, cells: Sequence[Cell], context: Context) -> None:
    """Loads the model, compiles the programs, decodes once.

    Raises:
      Stopped: a stop was asked for while the quick model trained.
    """
    s = settings(config)
    for cell in context.store.pending(shard(cells, context.shard)):
        began = time.perf_counter()
        model = zoo.load(s.choice, context.workdir, context.stop)
        load_seconds = time.perf_counter() - began
        began = time.perf_counter()
        metrics: dict[str, Any] = {"load_seconds": round(load_seconds, 2)}
        metrics |= _continue(s.continuation, model)
        rows = []
        with progress.bar(len(s.memory.shapes), "compiling", "programs") as bar:
            for shape in s.memory.shapes:
                rows.append(_memory(model, *shape))
                bar.update(1, last=f"{rows[-1]['temporary_MB']:.0f} MB")
        metrics |= {name: [row[name] for row in rows] for name in rows[0]}
        metrics["card"] = [f"{name}: {value}" for name, value in model.card.items()]
        metrics["config"] = [f"{k}: {v}" for k, v in dataclasses.asdict(model.config).items()]
        origin = provenance.collect() | {"model": model.card}
        took = round(time.perf_counter() - began, 3)
        context.store.write(cell, Result("ok", metrics, 0.0, took), origin)


def report(config: ConfigDict, cells: Sequence[Cell], context: Context) -> str:
    """Writes table, figure and page from what is stored; returns the text to print."""
    write_table(table(context.store, cells), context.workdir)
    record = context.store.read(cells[0])
    if record is None:
        return f"nothing to report yet in {context.workdir}"
    metrics = record["metrics"]
    card = _pairs(
        [*metrics["card"], *metrics["config"], f"load_seconds: {metrics['load_seconds']}"]
    )
    memory = pd.DataFrame({name: metrics[name] for name in _MEMORY})
    drawn = layer_figure.state_norms(metrics["first_rms"], metrics["other_rms"])
    paths = drawing.save(drawn, context.workdir / "figures" / "states")
    said = f"{metrics['prompt_text']!r} is continued by {metrics['continuation']!r}"
    margin = f"least margin over the runner-up {format_number(metrics['least_margin'])}"
    write_report(
        context.workdir / "report.html",
        f"Model: {record['provenance']['model']['source']}",
        LEAD,
        [
            Section("Card", "", [("", card)]),
            Section("Greedy continuation", f"{said}; {margin}."),
            Section("Memory and work of one cramming step", _MEMORY_TEXT, [("", memory)]),
            Section("States by layer", _STATES_TEXT, [], [("", paths[1])]),
        ],
        record["provenance"],
    )
    parts = [card.to_string(index=False, header=False), f"{said}; {margin}"]
    parts += [memory.to_string(index=False), f"report: {context.workdir / 'report.html'}"]
    return "\n\n".join(parts)


_MEMORY = ("m", "n", "lanes", "temporary_MB", "arguments_MB", "GFLOP")
_MEMORY_TEXT = """temporary: what the compiled step needs beyond its arguments; arguments:
parameters, prompts, optimiser state and targets. FLOPs are counted from the shapes: forward, and
back to the prompt but to no weight."""
_STATES_TEXT = """Root mean square of the states that enter each layer, and of those that leave the
last norm, while the model reads the text. The first position is often far out (an attention sink),
which is why a prompt that stands there controls little."""


def _continue(c: Continuation, model: zoo.Model) -> dict[str, Any]:
    ids = model.encode(c.text) if model.tokenizer is not None else [0]
    if model.prefix_id is not None:
        ids = [model.prefix_id, *ids]
    apply = functools.partial(kinds.module(model.config).apply, {"params": model.params})
    inputs_TD = apply(jnp.array(ids), method="embed")
    states = jax.jit(functools.partial(apply, method="states"))
    T = len(ids)
    states_LTD = states(inputs_TD, jnp.arange(T), jnp.ones(T, bool)).astype(jnp.float32)
    rms_LT = np.asarray(jnp.sqrt(jnp.mean(jnp.square(states_LTD), axis=-1)))
    slots = T + c.tokens
    given = np.asarray(inputs_TD, np.float32)
    tokens, margins = verify.greedy_decode(model.config, model.params, given, c.tokens, slots)
    return {
        "prompt_text": model.text(ids),
        "continuation": model.text(tokens.tolist()),
        "continuation_ids": tokens,
        "least_margin": float(margins.min()),
        "first_rms": rms_LT[:, 0],
        "other_rms": rms_LT[:, 1:].mean(axis=1) if T > 1 else rms_LT[:, 0],
    }


def _memory(model: zoo.Model, m: int, n: int, lanes: int) -> dict[str, float]:
    """What the compiler says of one step of `lanes` lanes; nothing is run."""
    found = cost.step_memory(model.config, _SEARCH, model.params, m, n, lanes)
    arguments, temporary = (float("nan"), float("nan")) if found is None else found
    return {
        "m": m,
        "n": n,
        "lanes": lanes,
        "temporary_MB": round(temporary / 1e6, 3),
        "arguments_MB": round(arguments / 1e6, 3),
        "GFLOP": round(lanes * cost.step_flops(model.config, m, n) / 1e9, 2),
    }


def _pairs(lines: Sequence[str]) -> pd.DataFrame:
    return pd.DataFrame([line.split(": ", 1) for line in lines], columns=["field", "value"])
