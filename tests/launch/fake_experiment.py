"""An experiment without science, for launch_test.py: a cell's answer is twice its number."""

import time
from pathlib import Path

import pandas as pd

from sweep_jax import cells, store
from sweep_jax.checks import require
from sweep_jax.stop import Stopped

EXCLUDED = ("execution",)


def validate(config, items):
    require(config.cell.number >= 0, "config.cell.number", config.cell.number, "at least 0")


def plan(config, items):
    return pd.DataFrame(
        {"number": [cell.config["cell"]["number"] for cell in items], "seconds": 0.5}
    )


def run(config, items, context):
    for cell in context.store.pending(cells.shard(items, context.shard)):
        number = cell.config["cell"]["number"]
        if config.execution.seconds:
            print("working", flush=True)
            time.sleep(config.execution.seconds)
        if context.stop.requested:
            raise Stopped("stopped; run the same command again to resume")
        require(number != config.execution.refused, "number", number, "what the model knows")
        if number == config.execution.broken:
            context.store.write(cell, store.Result("failed", {}, 0.0, 0.0, "boom"), {})
        elif number == config.execution.crash:
            raise ValueError("a bug, not bad input")
        else:
            context.store.write(cell, store.Result("ok", {"answer": 2 * number}, 0.0, 0.0), {})


def report(config, items, context):
    frame = store.table(context.store, items)
    store.write_table(frame, context.workdir)
    Path(context.workdir / "report.html").write_text("page")
    return f"{len(frame)} of {len(items)} cells"
