"""Cells one at a time: each is stored before the next begins, and none is measured twice."""

import pytest
from ml_collections import ConfigDict

from sweep_jax import serial
from sweep_jax.cells import expand
from sweep_jax.experiment import Context
from sweep_jax.stop import Stop, Stopped
from sweep_jax.store import Store


@pytest.fixture
def cells():
    config = ConfigDict({"experiment": "fake", "seed": 0, "cell": {"number": 0}})

    def sweep(add, config):
        for number in range(5):
            add({"cell.number": number})

    return expand(config, sweep, ())


def number(cell):
    return {"number": cell.config["cell"]["number"]}


def test_a_stop_or_a_crash_costs_one_cell_and_none_is_measured_twice(cells, tmp_path):
    stop, seen = Stop(), []
    context = Context(tmp_path, Store(tmp_path), stop, "0/1")

    def measure(cell):
        seen.append(cell.name)
        if len(seen) == 2:
            stop.signum = 15
        if len(seen) == 4:
            raise RuntimeError("a bug")
        return number(cell)

    with pytest.raises(Stopped, match="same command"):
        serial.run(cells, context, "measuring", measure)
    stop.signum = None
    assert len(context.store.done(cells)) == 2
    with pytest.raises(RuntimeError, match="a bug"):
        serial.run(cells, context, "measuring", measure)
    assert len(context.store.done(cells)) == 3
    serial.run(cells, context, "measuring", measure)
    assert len(context.store.done(cells)) == 5
    assert len(seen) == len(set(seen)) + 1  # the one that crashed


def test_a_shard_measures_its_own(cells, tmp_path):
    seen = []
    for shard in ("0/2", "1/2"):
        context = Context(tmp_path, Store(tmp_path), Stop(), shard)
        serial.run(cells, context, "measuring", lambda cell: seen.append(cell.name) or number(cell))
    assert sorted(seen) == sorted(cell.name for cell in cells)
    found = {context.store.read(cell)["metrics"]["number"] for cell in cells}
    assert found == set(range(5))
