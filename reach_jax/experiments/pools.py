"""From cells to running lanes: targets, keys, how many lanes, and the devices under them.

None of it changes a result but by rounding.
"""

import functools
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax

from reach_jax.cramming import cost, trace
from reach_jax.cramming.program import CrammingProgram
from reach_jax.cramming.state import Frozen
from reach_jax.experiments import texts, zoo
from reach_jax.experiments.settings import Settings, assignments, prompt_slots
from sweep_jax import lanes, mesh
from sweep_jax.cells import Cell
from sweep_jax.checks import BadInput, require
from sweep_jax.stop import Stop
from sweep_jax.store import Result, Store

SHARE = 0.8  # of the free memory; the rest is for the pool, the decode and fragmentation
MOST_ON_CPU = 32  # lanes a device, where more only wait for the same cores


class Subject(NamedTuple):
    """What all pools of a run share."""

    settings: Settings
    model: zoo.Model
    frozen: Frozen
    compiled: dict[tuple[int, ...], Any]  # programs by their size, whichever pool made them


def run(
    subject: Subject,
    pool: Sequence[Cell],
    store: Store,
    root: Path,
    stop: Stop,
    origin: Mapping[str, Any],
    tell: Callable[[Result], None],
    say: Callable[[str], None],
) -> None:
    """Runs a pool to its end, spread over all devices there are.

    Args:
      subject: model and settings.
      pool: its cells.
      store: takes the results.
      root: holds the pools' checkpoints.
      stop: looked at after each chunk.
      origin: stored with every result.
      tell: called with each result.
      say: called after each chunk with how far it is.

    Raises:
      Stopped: a stop was asked for; the last chunk is saved.
    """
    if not store.pending(pool):
        return
    s, devices = subject.settings, jax.device_count()
    slots = prompt_slots(assignments(pool))
    count = s.execution.lanes or lanes_for(subject, slots, len(pool))
    count = -(-count // devices) * devices  # every device has as many
    make = functools.partial(program, subject, slots, mesh.row() if devices > 1 else None)
    how = (count, s.execution.buckets, stop, origin, tell, say)
    lanes.run_pool(pool, make, store, root, *how)


def program(subject: Subject, slots: int, row: Any, cells: Sequence[Cell]) -> CrammingProgram:
    """The program of these cells."""
    s, model, frozen, compiled = subject
    items = assignments(cells)
    return CrammingProgram(
        model.config,
        s.cramming,
        frozen,
        items,
        texts.make(s.texts, s.choice, model, items, s.cramming.max_target, s.seed),
        [jax.random.fold_in(jax.random.key(s.seed), cell.fold) for cell in cells],
        slots,
        s.execution.chunk,
        row,
        s.execution.path,
        compiled,
    )


def lanes_for(subject: Subject, slots: int, cells: int) -> int:
    """How many lanes the free memory takes, over all devices.

    Memory of the compiled step is a line in the lanes, found from one lane and from two, in the
    largest bucket in use; it may fill `SHARE` of what is free. Never more than there are cells.

    Raises:
      ValueError: the backend says nothing about its programs' memory.
    """
    s, model, frozen, _ = subject
    bucket = next(b for b in s.execution.buckets if b >= s.cramming.max_target)
    how = (model.config, s.cramming, frozen.params, slots, bucket)
    one, two = (cost.step_memory(*how, lanes=n) for n in (1, 2))
    if one is None or two is None:
        expected = "a number >= 1: this backend does not tell what a program needs"
        raise BadInput(f"config.execution.lanes = 0: expected {expected}")
    devices = jax.device_count()
    held = sum(x.nbytes for x in jax.tree.leaves((frozen.params, frozen.rounded)))
    way = 2 * trace.nbytes(s.execution.path, slots, model.config.width)  # in the pool and out of it
    free = free_memory()
    return fit(sum(one) - held + way, sum(two) - held + 2 * way, free, devices, cells, _most())


def fit(one: int, two: int, free: float, devices: int, cells: int, most: int) -> int:
    """Lanes over all devices, a multiple of their number.

    Args:
      one: bytes that a step of one lane needs beside the parameters.
      two: the same of two lanes.
      free: bytes a device has left beside the parameters.
      devices: how many there are.
      cells: how many there are to compute.
      most: lanes a device at most.

    Raises:
      ValueError: not even one lane fits.
    """
    each = max(two - one, 1)
    fits = int((SHARE * free - (one - each)) // each)
    expected = f"a model and targets of which one lane fits into {free / 1e9:.1f} GB"
    require(fits >= 1, "config.execution.lanes", 0, expected)
    return devices * max(1, min(fits, most, -(-cells // devices)))


def free_memory() -> float:
    """Bytes that a device has left."""
    stats = jax.local_devices()[0].memory_stats()
    if stats and "bytes_limit" in stats:
        return float(stats["bytes_limit"] - stats["bytes_in_use"])
    names = os.sysconf_names
    pages = os.sysconf("SC_AVPHYS_PAGES" if "SC_AVPHYS_PAGES" in names else "SC_PHYS_PAGES")
    return pages * os.sysconf("SC_PAGE_SIZE") / jax.local_device_count()


def _most() -> int:
    return MOST_ON_CPU if jax.default_backend() == "cpu" else 2**20
