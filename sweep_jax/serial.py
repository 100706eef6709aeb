"""Cells that are worth no batching: one at a time, each stored as it is done. Not for searches."""

import time
from collections.abc import Callable, Sequence
from typing import Any

from sweep_jax import progress, provenance
from sweep_jax.cells import Cell, shard
from sweep_jax.experiment import Context
from sweep_jax.stop import Stopped
from sweep_jax.store import Result


def run(
    cells: Sequence[Cell],
    context: Context,
    doing: str,
    measure: Callable[[Cell], dict[str, Any]],
) -> None:
    """Measures this shard's cells that are missing, compilation and run counted together.

    Args:
      cells: of the whole sweep.
      context: where it runs.
      doing: what the progress bar says, as "measuring".
      measure: a cell's metrics.

    Raises:
      Stopped: on request, between two cells.
    """
    mine, origin = shard(cells, context.shard), provenance.collect()
    pending = context.store.pending(mine)
    with progress.bar(len(mine), doing, "cells", initial=len(mine) - len(pending)) as bar:
        for cell in pending:
            if context.stop.requested:
                raise Stopped("stopped between two cells; run the same command again to resume")
            began = time.perf_counter()
            metrics = measure(cell)
            result = Result("ok", metrics, 0.0, round(time.perf_counter() - began, 3))
            context.store.write(cell, result, origin)
            bar.update(1)
