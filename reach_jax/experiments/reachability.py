"""How long a text can m prompt vectors make a model say, and how long at most?

Loads the model (the quick one is trained first), measures the support of its states, crams text
and random tokens for every prompt length, and sets the line through n50(m) beside the bounds.
"""

import dataclasses
import json
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
import pandas as pd
from ml_collections import ConfigDict

from reach_jax.cramming import paper, trace
from reach_jax.cramming.freeze import freeze
from reach_jax.cramming.settings import Assignment
from reach_jax.experiments import hardware, pools, reachability_report, rounds, texts, zoo
from reach_jax.experiments.settings import Settings, assignments, prompt_slots, settings
from reach_jax.geometry import states
from reach_jax.geometry.support import Measure
from reach_jax.pretrain.corpus import longest_heldout
from sweep_jax import atomic, lanes, progress, provenance
from sweep_jax.cells import Cell, hash_name, shard
from sweep_jax.checks import require
from sweep_jax.experiment import Context
from sweep_jax.store import Result

EXCLUDED = ("axes", "execution", "support")
_SUPPORT_KEY = 0x5A


def validate(config: ConfigDict, cells: Sequence[Cell]) -> None:
    """Refuses what cannot run, with ValueError, before any device work."""
    s = settings(config)
    items = assignments(cells)
    sources = {item.source for item in items}
    for source in sorted({"text", "words"} & sources):
        zoo.check_tokenizer(s.choice, f"config.axes.sources = {source}")
    field, n = "config.cramming.max_target", s.cramming.max_target
    texts.check(s.texts, sources, n, zoo.encoder(s.choice))
    _check_lengths(s, items)
    own = s.choice.is_quick or s.choice.random is not None
    if "text" in sources and own and s.texts.text == texts.QUICK:
        longest = longest_heldout(s.choice.quick.corpus)
        expected = f"at most {longest}, the tokens of the longest held-out document"
        require(n <= longest, field, n, expected)
    model = zoo.describe(s.choice)
    if model is not None:
        _check_model(s, items, model)


def _check_model(s: Settings, items: Sequence[Assignment], model: Any) -> None:
    width, expected = s.cramming.coefficients, f"at most the model's width {model.width}"
    require(width <= model.width, "config.cramming.coefficients", width, expected)
    field, n = "config.cramming.max_target", s.cramming.max_target
    context = getattr(model, "context", None)
    if context is not None:
        m = max(item.prompt_length for item in items)
        expected = f"an m of which prefix, prompt and target fit into {context} positions"
        require(1 + m < context, "config.axes.prompt_lengths", m, expected)
        expected = f"at most {context - 1 - m}: with {m} vectors, {context} positions in all"
        require(1 + m + n - 1 <= context, field, n, expected)


def _check_lengths(s: Settings, items: Sequence[Assignment]) -> None:
    field, protocol = "config.axes.lengths", s.cramming.protocol
    lengths = sorted({item.length for item in items})
    if protocol != "kuratov":
        require(lengths == [0], field, lengths, f"none: the protocol {protocol} finds them")
    else:
        least, most = 1 + (s.cramming.first_token == "given"), s.cramming.max_target
        ok = least <= lengths[0] and lengths[-1] <= most
        require(ok, field, lengths, f"{least} to config.cramming.max_target = {most}")
    if protocol == "paper":
        first = max(paper.first_length(item.prompt_length) for item in items)
        field, most = "config.cramming.max_target", s.cramming.max_target
        require(first <= most, field, most, f"at least {first}, the first length that is tried")


def plan(config: ConfigDict, cells: Sequence[Cell]) -> pd.DataFrame:
    """One row a cell: what it crams, and its cost if it takes every step in its largest bucket.

    Where the number of lanes is left to memory, also what an H200 and a TPU v5e would take.
    """
    s = settings(config)
    items = assignments(cells)
    rows = pd.DataFrame(
        [
            {"name": cell.name, **dataclasses.asdict(item), "steps_at_most": s.cramming.steps}
            for cell, item in zip(cells, items, strict=True)
        ]
    )
    model = zoo.describe(s.choice)
    if model is None:
        return rows
    slots = prompt_slots(items)
    bucket = next(b for b in s.execution.buckets if b >= s.cramming.max_target)
    if s.execution.lanes == 0:
        # A sweep over lengths tries at most every tenth of them, and one coarse round more.
        most = min(paper.CAP, s.cramming.max_target)
        tries = most // paper.FINE if s.cramming.protocol == "paper" else 1
        how = (model, s.cramming, model.dtype, slots, bucket, len(cells), tries)
        return rows.assign(**hardware.columns(*how))
    per_token = model.flops_per_token + 2 * model.width * model.vocab_size
    step = 2 * per_token * (slots + bucket)  # forward, and back to the prompt alone
    state = 4 * 4 * slots * model.width  # prompt, best prompt, two Adam moments; float32
    state += trace.nbytes(s.execution.path, slots, model.width)
    return rows.assign(
        GFLOP_at_most=round(step * s.cramming.steps / 1e9, 1), state_kB=round(state / 1e3, 1)
    )


def run(config: ConfigDict, cells: Sequence[Cell], context: Context) -> None:
    """Loads or trains, measures and crams whatever is not in the workdir yet.

    Raises:
      Stopped: on request, when the state is saved.
    """
    s = settings(config)
    model = zoo.load(s.choice, context.workdir, context.stop)
    _check_model(s, assignments(cells), model.config)  # of a source that could not be described
    frozen = freeze(model.config, model.params, s.cramming, model.prefix_id, model.tokens)
    _measure_support(s, model)
    zoo.remember(s.choice, model, context.workdir)
    subject = pools.Subject(s, model, frozen, {})
    origin = provenance.collect() | {"model": model.directory.name}
    sweeps = s.cramming.protocol == "paper"
    cut = rounds.groups(cells) if sweeps else lanes.pools(cells, s.execution.pool)
    mine = shard(cut, context.shard)
    done = sum(len(context.store.done(pool)) for pool in mine)
    with progress.bar(sum(map(len, mine)), "cramming", "cells", initial=done) as bar:

        def tell(result: Result) -> None:
            bar.update(1, last=f"{result.metrics['threshold']} tokens")

        def say(words: str) -> None:
            bar.update(0, now=words)

        if sweeps:
            rounds.run(subject, mine, context, origin, tell, say)
            return
        root = context.workdir / "pools"
        for pool in mine:
            pools.run(subject, pool, context.store, root, context.stop, origin, tell, say)


def report(config: ConfigDict, cells: Sequence[Cell], context: Context) -> str:
    """Writes table, figures and page from what is stored; returns the text to print."""
    s = settings(config)
    known = zoo.recall(s.choice, context.workdir)
    support = None if known is None else atomic.read_json(known.directory / _support_file(s))
    if known is None or support is None:
        return f"nothing to report yet: no finished model in {context.workdir / 'models'}"
    return reachability_report.write(s, cells, context, known, support)


def _support_file(s: Settings) -> str:
    return f"support-{hash_name(dataclasses.asdict(s.support))}.json"


def _measure_support(s: Settings, model: zoo.Model) -> None:
    path = model.directory / _support_file(s)
    if atomic.read_json(path) is not None:
        return
    measure = Measure(model.config.width)
    key = jax.random.fold_in(jax.random.key(s.seed), _SUPPORT_KEY)
    how = (model.config, model.params, s.support, model.prefix_id)
    for batch in states.sample(*how, key, vocabulary=model.tokens):
        finite = bool(np.isfinite(batch).all())
        expected = "a model whose states are finite; those of random tokens are not"
        require(finite, "config.source.path", s.choice.source.path, expected)
        measure.add(batch)
    found: dict[str, Any] = dataclasses.asdict(measure.support())
    record = {k: v.tolist() if isinstance(v, np.ndarray) else v for k, v in found.items()}
    atomic.write_text(path, json.dumps(record, indent=1) + "\n")
