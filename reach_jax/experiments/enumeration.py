"""How many outputs can a small transformer emit at k bits a coordinate? All prompts are decoded.

Counts the distinct outputs of each length exactly, for random and trained weights, with and without
positions, and sets their share of V^n beside Theorem 4.5's bound for the same k. A trained model is
one of a synthetic language: a few tokens, a few dimensions.
"""

import dataclasses
import math
import shutil
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
import pandas as pd
from ml_collections import ConfigDict

from reach_jax.analysis import exact
from reach_jax.enumeration import blocks, counts, weights
from reach_jax.experiments import enumeration_report
from reach_jax.experiments.enumeration_settings import Settings, execution, settings
from reach_jax.models import decoder
from reach_jax.pretrain import markov
from sweep_jax import progress, provenance
from sweep_jax.cells import Cell, shard
from sweep_jax.experiment import Context
from sweep_jax.store import Result

EXCLUDED = ("axes", "execution")
_WEIGHTS_KEY = 0xE1


def validate(config: ConfigDict, cells: Sequence[Cell]) -> None:
    """Refuses what cannot run, with ValueError, before any device work."""
    execution(config)
    for cell in cells:
        settings(cell)


def plan(config: ConfigDict, cells: Sequence[Cell]) -> pd.DataFrame:
    """One row a cell: its prompts, and the matrix FLOPs of decoding them all."""
    rows = []
    for cell in cells:
        s = settings(cell)
        row = {"name": cell.name, **dataclasses.asdict(s.point), "prompts": s.spec.grid.count}
        row["tokens"] = s.spec.grid.count * s.spec.length
        row["GFLOP"] = round(s.spec.flops / 1e9, 3)
        row["block_files_MB"] = round(12 * s.spec.grid.count / 1e6, 3)
        rows.append(row)
    return pd.DataFrame(rows)


def run(config: ConfigDict, cells: Sequence[Cell], context: Context) -> None:
    """Enumerates whatever is not in the workdir yet.

    Raises:
      Stopped: on request, when the last block is stored.
    """
    block, origin = execution(config).block, provenance.collect()
    mine = shard(cells, context.shard)
    sizes = {cell.name: settings(cell).spec.grid.count for cell in mine}
    done = sum(sizes[cell.name] for cell in context.store.done(mine))
    with progress.bar(sum(sizes.values()), "enumerating", "prompts", initial=done) as bar:
        for cell in context.store.pending(mine):
            s = settings(cell)
            params, learnt = _weights(s, context)
            directory = context.workdir / "blocks" / cell.name
            outputs = blocks.run(s.spec, params, block, directory, context.stop, bar.update)
            metrics = _metrics(s, outputs) | learnt
            result = Result(
                "ok", metrics, round(outputs.compile_seconds, 3), round(outputs.run_seconds, 3)
            )
            context.store.write(cell, result, origin)
            shutil.rmtree(directory)


def report(config: ConfigDict, cells: Sequence[Cell], context: Context) -> str:
    """Writes table, figures and page from what is stored; returns the text to print."""
    return enumeration_report.write(cells, context)


def _weights(s: Settings, context: Context) -> tuple[decoder.Params, dict[str, Any]]:
    """Parameters, and what a trained model has learnt."""
    if s.point.weights == "random":
        key = jax.random.fold_in(jax.random.key(s.seed), _WEIGHTS_KEY)
        return weights.draw(s.spec.model, s.random, jax.random.fold_in(key, s.point.draw)), {}
    model = markov.load_or_train(
        s.language,
        s.spec.model,
        s.training,
        s.seed + s.point.draw,
        context.workdir / "models",
        context.stop,
    )
    return model.params, {"loss": model.loss, "entropy_rate": model.entropy_rate}


def _metrics(s: Settings, outputs: blocks.Outputs) -> dict[str, Any]:
    spec, vocabulary = s.spec, s.point.vocab_size
    distinct_N = counts.distinct_by_length(outputs.keys, vocabulary, spec.length)
    curve = exact.share_curve(distinct_N, vocabulary, s.threshold)
    ln_bound_N = exact.ln_count_bound(s.ln_bound, spec.length, vocabulary)
    orders = counts.compare_orders(spec, outputs)
    return {
        "prompts": spec.grid.count,
        "distinct": distinct_N[-1],
        "distinct_N": distinct_N,
        "plateau": curve.plateau,
        "half": curve.half,
        "effective": curve.effective,
        "bound_tokens": s.threshold,
        "tail_rate": curve.tail_rate,
        "tail_over_ln_v": -curve.tail_rate / math.log(vocabulary),
        "violations": int(np.sum(np.log(distinct_N) > ln_bound_N + exact.ROUNDING)),
        "entropy_bits": counts.entropy_bits(outputs.keys),
        "near_ties": int((outputs.margins < s.near_tie).sum()),
        "exact_ties": int((outputs.margins == 0).sum()),
        **dataclasses.asdict(orders),
    }
