"""A process that fills a store, for store_test.py to start several of, and to kill."""

import sys
from pathlib import Path

from ml_collections import ConfigDict

from sweep_jax import cells
from sweep_jax.store import Result, Store


def make_cells(count: int) -> list[cells.Cell]:
    """Cells whose records take about 4 kB."""
    config = ConfigDict({"seed": 0, "cell": {"length": 0, "source": "text"}, "pad": "x" * 3000})

    def sweep(add, config):
        for i in range(count):
            add({"cell.length": i, "cell.source": "random" if i % 2 else "text"})

    return cells.expand(config.lock(), sweep, ())


def work(workdir: Path, spec: str, count: int) -> None:
    """Stores this shard's pending cells."""
    store = Store(workdir)
    for cell in store.pending(cells.shard(make_cells(count), spec)):
        length = cell.axes["cell.length"]
        store.write(cell, Result("ok", {"steps": length, "loss": 1 / (1 + length)}, 1.0, 2.0), {})


if __name__ == "__main__":
    work(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
