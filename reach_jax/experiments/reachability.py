"""How long a text can m prompt vectors make a small trained model say, and how long at most?

Trains the quick model once, measures the support of its states, crams held-out text and random
tokens for every prompt length, and sets the line through n50(m) beside the bounds.
"""

import dataclasses
import functools
import json
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
from ml_collections import ConfigDict

from reach_jax.cramming import targets
from reach_jax.cramming.program import CrammingProgram
from reach_jax.cramming.progressive import Frozen
from reach_jax.cramming.settings import Assignment
from reach_jax.experiments import reachability_report
from reach_jax.experiments.settings import Settings, assignments, prompt_slots, settings
from reach_jax.geometry import states
from reach_jax.geometry.support import Measure
from reach_jax.pretrain.corpus import BEGIN_ID, longest_heldout
from reach_jax.pretrain.quick import QuickModel, load_or_train
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
    if any(item.source == "text" for item in assignments(cells)):
        longest = longest_heldout(s.quick.corpus)
        require(
            s.cramming.max_target <= longest,
            "config.cramming.max_target",
            s.cramming.max_target,
            f"at most {longest}, the tokens of the longest held-out document",
        )


def plan(config: ConfigDict, cells: Sequence[Cell]) -> pd.DataFrame:
    """One row a cell: what it crams, and its cost if it takes every step in its largest bucket."""
    s = settings(config)
    items = assignments(cells)
    slots = prompt_slots(items)
    per_token = s.model.flops_per_token + 2 * s.model.width * s.model.vocab_size
    bucket = next(b for b in s.execution.buckets if b >= s.cramming.max_target)
    step = 2 * per_token * (slots + bucket)  # forward, and back to the prompt alone
    state = 4 * 4 * slots * s.model.width  # prompt, best prompt, two Adam moments; float32
    rows = [
        {
            "name": cell.name,
            **dataclasses.asdict(item),
            "steps_at_most": s.cramming.steps,
            "GFLOP_at_most": round(step * s.cramming.steps / 1e9, 1),
            "state_kB": round(state / 1e3, 1),
        }
        for cell, item in zip(cells, items, strict=True)
    ]
    return pd.DataFrame(rows)


def run(config: ConfigDict, cells: Sequence[Cell], context: Context) -> None:
    """Trains, measures and crams whatever is not in the workdir yet.

    Raises:
      Stopped: on request, when the state is saved.
    """
    s = settings(config)
    model = load_or_train(s.quick, context.workdir / "models", context.stop)
    _measure_support(s, model)
    origin = provenance.collect() | {"model": model.directory.name}
    pools = shard(lanes.pools(cells, s.execution.pool), context.shard)
    mine = sum(len(pool) for pool in pools)
    done = sum(len(context.store.done(pool)) for pool in pools)
    with progress.bar(mine, "cramming", "cells", initial=done) as bar:

        def tell(result: Result) -> None:
            bar.update(1, last=f"{result.metrics['threshold']} tokens")

        ex = s.execution
        for pool in pools:
            slots = prompt_slots(assignments(pool))
            lanes.run_pool(
                pool,
                functools.partial(_program, s, model, slots),
                context.store,
                context.workdir / "pools",
                ex.lanes,
                ex.buckets,
                context.stop,
                origin,
                tell,
            )


def report(config: ConfigDict, cells: Sequence[Cell], context: Context) -> str:
    """Writes table, figures and page from what is stored; returns the text to print."""
    s = settings(config)
    directory = context.workdir / "models" / s.quick.name
    card = atomic.read_json(directory / "model.json")
    support = atomic.read_json(directory / _support_file(s))
    if card is None or support is None:
        return f"nothing to report yet: no finished model in {directory}"
    return reachability_report.write(s, cells, context, card, support)


def _program(s: Settings, model: QuickModel, slots: int, cells: Sequence[Cell]) -> CrammingProgram:
    items = assignments(cells)
    embedding_VD = model.params["embedding"]
    begins = s.cramming.prefix == "begin"
    frozen = Frozen(model.params, embedding_VD[BEGIN_ID] if begins else None, jnp.std(embedding_VD))
    keys = [jax.random.fold_in(jax.random.key(s.seed), cell.fold) for cell in cells]
    return CrammingProgram(
        s.model,
        s.cramming,
        frozen,
        items,
        _targets(s, model, items),
        keys,
        slots,
        s.execution.chunk,
    )


def _targets(s: Settings, model: QuickModel, items: Sequence[Assignment]) -> np.ndarray:
    length = s.cramming.max_target
    made: dict[tuple[str, int], np.ndarray] = {}
    for source in sorted({item.source for item in items}):
        numbers = sorted({item.target for item in items if item.source == source})
        if source == "text":
            stream = model.corpus.heldout_S
            rows = targets.text_targets(stream, BEGIN_ID, numbers, length, s.seed)
        else:
            rows = targets.random_targets(s.model.vocab_size, BEGIN_ID, numbers, length, s.seed)
        made |= {(source, n): row for n, row in zip(numbers, rows, strict=True)}
    return np.stack([made[item.source, item.target] for item in items])


def _support_file(s: Settings) -> str:
    return f"support-{hash_name(dataclasses.asdict(s.support))}.json"


def _measure_support(s: Settings, model: QuickModel) -> None:
    path = model.directory / _support_file(s)
    if atomic.read_json(path) is not None:
        return
    measure = Measure(s.model.width)
    key = jax.random.fold_in(jax.random.key(s.seed), _SUPPORT_KEY)
    for batch in states.sample(s.model, model.params, s.support, BEGIN_ID, key):
        measure.add(batch)
    found: dict[str, Any] = dataclasses.asdict(measure.support())
    record = {k: v.tolist() if isinstance(v, np.ndarray) else v for k, v in found.items()}
    atomic.write_text(path, json.dumps(record, indent=1) + "\n")
