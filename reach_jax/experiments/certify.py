"""Certificates of the prompts that a finished reachability run stored.

One cell a stored prompt. It searches for nothing and changes nothing in the other workdir: the
prompts are as they were found. What is measured is `cramming/certificate.py`'s.
"""

import dataclasses
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
from ml_collections import ConfigDict

from reach_jax.cramming import certificate
from reach_jax.experiments import certify_report, zoo
from reach_jax.models import kinds
from reach_jax.pretrain.quick import resolve_quick
from sweep_jax import atomic, progress, provenance
from sweep_jax.cells import Cell, load_config, shard
from sweep_jax.checks import BadInput, require, resolve
from sweep_jax.experiment import Context
from sweep_jax.stop import Stopped
from sweep_jax.store import Result, Store

EXCLUDED = ("run", "execution")
_LEAST_BUCKET = 8  # tokens: one compilation a power of two from here on


@dataclasses.dataclass(frozen=True)
class Found:
    """A prompt of the other run, as its record tells."""

    cell: Cell
    prompt_length: int  # m
    source: str
    target: int
    threshold: int  # n that the run confirmed


def validate(config: ConfigDict, cells: Sequence[Cell]) -> None:
    """Refuses settings and a workdir that cannot be, with ValueError."""
    _settings(config)
    _read(config, cells)


def plan(config: ConfigDict, cells: Sequence[Cell]) -> pd.DataFrame:
    """One row a prompt: forward passes of its bisections, and their FLOPs."""
    settings, found = _settings(config), _read(config, cells)
    model = zoo.describe(_choice(_other(config)))
    points = 2 * (settings.samples + settings.directed)
    passes = points * (1 + int(np.log2(len(settings.grid_E))))
    rows = []
    for cell, item in zip(cells, found, strict=True):
        row = {"name": cell.name, "prompt_length": item.prompt_length, "threshold": item.threshold}
        if model is not None:
            token = model.flops_per_token + 2 * model.width * model.vocab_size
            tokens = 1 + _power(item.prompt_length) + _bucket(item.threshold)
            row["GFLOP"] = round(passes * tokens * token / 1e9, 1)
        rows.append({**row, "passes": passes})
    return pd.DataFrame(rows)


def run(config: ConfigDict, cells: Sequence[Cell], context: Context) -> None:
    """Certifies the prompts that are missing, one at a time.

    Raises:
      Stopped: on request, after the prompt at hand.
    """
    settings, root = _settings(config), Path(config.run.workdir)
    mine = shard(cells, context.shard)
    pending = context.store.pending(mine)
    if not pending:
        return
    found = dict(zip([cell.name for cell in cells], _read(config, cells), strict=True))
    model = zoo.load(_choice(_other(config)), root, context.stop)
    subject = _subject(_other(config), model, max(f.prompt_length for f in found.values()))
    origin = provenance.collect() | {"model": model.card}
    stored = Store(root)
    with progress.bar(len(mine), "certifying", "prompts", len(mine) - len(pending)) as bar:
        for cell in pending:
            if context.stop.requested:
                raise Stopped("stopped between two prompts; run the same command again to resume")
            item = found[cell.name]
            began = time.perf_counter()
            sized = dataclasses.replace(subject, bucket=_bucket(item.threshold))
            arrays = stored.arrays(item.cell)
            key = jax.random.fold_in(jax.random.key(config.seed), cell.fold)
            metrics, kept = certificate.certify(
                sized, settings, arrays["prompt"], arrays["target"], item.threshold, key
            )
            fields = ("prompt_length", "source", "target")
            metrics = {name: getattr(item, name) for name in fields} | metrics
            took = round(time.perf_counter() - began, 3)  # the first of a size compiles, too
            context.store.write(cell, Result("ok", metrics, 0.0, took), origin, kept)
            bar.update(1, last=f"{metrics['n']} tokens")


def report(config: ConfigDict, cells: Sequence[Cell], context: Context) -> str:
    """Writes table, figures and page from what is stored; returns the text to print."""
    return certify_report.write(_settings(config), cells, context)


def _settings(config: ConfigDict) -> certificate.CertificateConfig:
    values = config.to_dict()
    require(0 <= values["seed"] < 2**32, "config.seed", values["seed"], "an integer in [0, 2^32)")
    batch = values["execution"]["batch"]
    fields = {**values["certificate"], "batch": batch}
    return resolve(certificate.CertificateConfig, fields, "config.certificate")


def _other(config: ConfigDict) -> dict[str, Any]:
    """The other run's whole configuration.

    Raises:
      ValueError: the directory is not that of a reachability run, or its prompts do not stand
        right before their whole target, as a certificate decodes them.
    """
    path = Path(config.run.workdir) / "config.json"
    expected = "the workdir of a finished reachability run"
    require(path.is_file(), "config.run.workdir", config.run.workdir, expected)
    values = load_config(path).to_dict()
    is_ours = values.get("experiment") == "reachability"
    require(is_ours, "config.run.workdir", config.run.workdir, expected)
    # With the first token given it would have to stand between prompt and answer.
    first = values["cramming"].get("first_token", "predicted")
    expected = f"a run with config.cramming.first_token = 'predicted'; this one says {first!r}"
    require(first == "predicted", "config.run.workdir", config.run.workdir, expected)
    return values


def _choice(values: Mapping[str, Any]) -> zoo.Choice:
    """The other run's model; a run from before `config.source` crammed the quick one."""
    if "source" in values:
        return zoo.choice(values)
    quick = resolve_quick(values, values["seed"], "config")
    return zoo.Choice(zoo.Source(zoo.QUICK, zoo.AS_STORED, True), quick)


def _read(config: ConfigDict, cells: Sequence[Cell]) -> list[Found]:
    """The stored prompt of each of our cells."""
    root = Path(config.run.workdir)
    _other(config)
    found = []
    for cell in cells:
        name = cell.config["cell"]["prompt"]
        record = atomic.read_json(root / "cells" / f"{name}.json")
        if record is None or record["status"] == "failed":
            raise BadInput(f"config.cell.prompt = {name!r}: expected a prompt stored in {root}")
        there = Cell(name, record["config"], record["axes"])
        about, threshold = record["config"]["cell"], record["metrics"]["threshold"]
        found.append(
            Found(there, about["prompt_length"], about["source"], about["target"], threshold)
        )
    return found


def _subject(values: Mapping[str, Any], model: zoo.Model, longest: int) -> certificate.Subject:
    """What the prompts share; `bucket` is set for each."""
    prefix_D = None
    if values["cramming"]["prefix"] != "none" and model.prefix_id is not None:
        module, ids = kinds.module(model.config), jnp.array([model.prefix_id])
        row_1D = module.apply({"params": model.params}, ids, method="embed")
        prefix_D = np.asarray(row_1D, np.float32)[0]
    inputs = certificate.measure_inputs(model.config, model.params, model.tokens)
    return certificate.Subject(
        model.config, model.params, prefix_D, inputs, _power(longest), _LEAST_BUCKET
    )


def _power(number: int) -> int:
    """The power of two that holds `number` >= 1."""
    return 1 << (number - 1).bit_length()


def _bucket(threshold: int) -> int:
    return max(_LEAST_BUCKET, _power(max(threshold, 1)))
