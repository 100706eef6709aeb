"""Runs a pool of cells through a fixed number of lanes: chunk, look, save, store, refill.

All states of a pool live in one stacked array tree; each chunk gathers the lanes it advances,
so a lane that finishes is refilled with the next cell and no shape ever changes. Which cells run
next is a pure function of the pool's state: a pool restored from a checkpoint goes on exactly as
it would have. Knows nothing of what a cell computes.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from absl import logging

from sweep_jax.atomic import write_text
from sweep_jax.cells import Cell
from sweep_jax.checkpoint import Checkpoints
from sweep_jax.checks import BadInput, require
from sweep_jax.lock import held
from sweep_jax.stop import Stop, Stopped
from sweep_jax.store import Result, Store


class Program(Protocol):
    """What a pool computes. `State` is any tree of arrays stacked over the pool's cells."""

    def start(self) -> Any:
        """The state of every cell before its first step."""

    def advance(self, state: Any, rows_L: np.ndarray, bucket: int) -> Any:
        """One chunk for the cells in `rows_L`; an index past the end marks an idle lane."""

    def look(self, state: Any) -> tuple[np.ndarray, np.ndarray]:
        """For every cell: is it finished, and the size that its next step needs."""

    def words(self, state: Any) -> str:
        """How far the running cells are, in a few words for whoever waits."""

    def finish(self, state: Any, row: int) -> tuple[Result, dict[str, np.ndarray]]:
        """The checked result of a finished cell."""


def schedule(
    finished_C: np.ndarray, need_C: np.ndarray, buckets: Sequence[int], lanes: int
) -> tuple[int, np.ndarray]:
    """Picks the bucket and the cells of the next chunk.

    The smallest bucket that fills the lanes, counting cells that would fit into a smaller one;
    within it the first cells in order. Returns the bucket and `lanes` row indices, idle lanes
    given as len(finished_C).
    """
    running = np.flatnonzero(~finished_C)
    for bucket in buckets:
        fit = running[need_C[running] <= bucket]
        if len(fit) >= min(lanes, len(running)):
            rows = fit[:lanes]
            idle = np.full(lanes - len(rows), len(finished_C))
            return bucket, np.concatenate([rows, idle]).astype(np.int32)
    raise BadInput(f"buckets = {tuple(buckets)}: expected one of at least {need_C.max()}")


def pools(cells: Sequence[Cell], size: int) -> list[list[Cell]]:
    """Cuts the sweep into pools of at most `size` cells, in order: the unit of sharding."""
    require(size >= 1, "pool", size, "an integer >= 1")
    return [list(cells[i : i + size]) for i in range(0, len(cells), size)]


def run_pool(
    cells: Sequence[Cell],
    make: Callable[[list[Cell]], Program],
    store: Store,
    root: Path,
    lanes: int,
    buckets: Sequence[int],
    stop: Stop,
    provenance: Mapping[str, Any],
    on_cell: Callable[[Result], None],
    on_chunk: Callable[[str], None],
) -> None:
    """Advances a pool until every cell of it is finished and stored; `on_cell` hears of each.

    A chunk is saved before the cells that it finished are stored, so being killed anywhere costs
    at most one chunk. Of two processes with the same pool the second waits, and finds it done.

    Args:
      cells: the whole pool, whatever is stored of it: its names decide where it is kept.
      make: the program for those of them that are to run.
      store: takes the results.
      root: holds one directory of checkpoints a pool.
      lanes: cells that run at once.
      buckets: sizes to choose from, ascending.
      stop: looked at after each chunk.
      provenance: stored with every result.
      on_cell: called with each result.
      on_chunk: called after each chunk with the program's words on it.

    Raises:
      Stopped: a stop was asked for; the last chunk is saved.
    """
    digest = hashlib.sha256(" ".join(cell.name for cell in cells).encode())
    directory = root / digest.hexdigest()[:16]
    with held(directory):
        listed = directory / "cells.txt"
        chosen = _choose(cells, store, listed)
        checkpoints = Checkpoints(directory)
        if chosen:
            directory.mkdir(exist_ok=True)
            write_text(listed, "\n".join(cell.name for cell in chosen))
            program = make(chosen)
            how = (lanes, buckets, stop, provenance, on_cell, on_chunk)
            _run(chosen, program, checkpoints, store, *how)
        checkpoints.clear()


def _choose(cells: Sequence[Cell], store: Store, listed: Path) -> list[Cell]:
    """The pending cells; all that a run cut short had, in its order, if there was one."""
    pending = store.pending(cells)
    if pending and listed.exists():
        by_name = {cell.name: cell for cell in cells}
        names = listed.read_text(errors="replace").split()
        if {cell.name for cell in pending} <= set(names) <= set(by_name):
            return [by_name[name] for name in names]
        logging.warning("%s is not a list of this pool's cells: the pool starts anew", listed)
        Checkpoints(listed.parent).clear()
    return pending


def _run(
    cells: list[Cell],
    program: Program,
    checkpoints: Checkpoints,
    store: Store,
    lanes: int,
    buckets: Sequence[int],
    stop: Stop,
    provenance: Mapping[str, Any],
    on_cell: Callable[[Result], None],
    on_chunk: Callable[[str], None],
) -> None:
    state = program.start()
    restored = checkpoints.restore(state)
    chunk, state = (0, state) if restored is None else restored
    pending = {cell.name for cell in store.pending(cells)}
    stored = np.array([cell.name not in pending for cell in cells])
    while True:
        finished_C, need_C = program.look(state)
        for row in np.flatnonzero(finished_C & ~stored):
            result, arrays = program.finish(state, int(row))
            store.write(cells[row], result, provenance, arrays)
            on_cell(result)
            stored[row] = True
        if finished_C.all():
            return
        if stop.requested:
            raise Stopped(
                f"stopped after chunk {chunk}, {stored.sum()} of {len(stored)} cells of this pool"
                " stored; run the same command again to resume"
            )
        bucket, rows_L = schedule(finished_C, need_C, buckets, lanes)
        state = program.advance(state, rows_L, bucket)
        chunk += 1
        checkpoints.save(chunk, state)
        on_chunk(program.words(state))
