"""The store: whole under several writers and under kill, and a table that tells no history."""

import json
import math
import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from absl import logging

from sweep_jax import store
from sweep_jax.store import Result, Store
from tests.sweep.store_writer import make_cells

ROOT = Path(__file__).parents[2]
OK = Result("ok", {"length": 7, "loss": 0.25}, 1.5, 2.5)
FAILED = Result("failed", {}, 0.0, 1.0, "Traceback: boom")


@pytest.fixture
def warnings_logged(monkeypatch):
    lines = []
    monkeypatch.setattr(logging, "warning", lambda text, *args: lines.append(text % args))
    return lines


def test_round_trip(tmp_path):
    (cell,) = make_cells(1)
    metrics = {
        "nan": math.nan,
        "below": -math.inf,
        "list": [1.0, math.inf],
        "none": None,
        "text": "begin",
        "flag": True,
        "numpy": np.float32(0.5),
        "jax": jnp.arange(3),
    }
    results = Store(tmp_path)
    results.write(cell, Result("censored", metrics, 1.0, 2.0), {"device": "cpu"})
    text = (tmp_path / "cells" / f"{cell.name}.json").read_text()
    stored = json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    assert stored["config"] == json.loads(json.dumps(cell.config))
    assert stored["provenance"] == {"device": "cpu"}
    read = results.read(cell)
    assert math.isnan(read["metrics"].pop("nan"))
    assert read["metrics"] == {
        "below": -math.inf,
        "list": [1.0, math.inf],
        "none": None,
        "text": "begin",
        "flag": True,
        "numpy": 0.5,
        "jax": [0, 1, 2],
    }
    assert (read["status"], read["compile_seconds"], read["run_seconds"]) == ("censored", 1.0, 2.0)
    assert read["traceback"] is None
    with pytest.raises(ValueError, match="metric x = "):
        results.write(cell, replace(OK, metrics={"x": object()}), {})
    with pytest.raises(ValueError, match="status = 'done'"):
        results.write(cell, replace(OK, status="done"), {})


def test_arrays_round_trip_and_replace(tmp_path):
    first, second = make_cells(2)
    results = Store(tmp_path)
    arrays = {
        "prompt/MD": np.arange(6.0, dtype=np.float32).reshape(2, 3),
        "half": np.asarray(jnp.ones(3, jnp.bfloat16)),
        "tokens": np.arange(4, dtype=np.int32),
        "none": np.zeros((0, 5), np.float32),
        "flag": np.array(True),
    }
    results.write(first, FAILED, {}, {"old": np.zeros(3)})
    results.write(first, OK, {}, arrays)
    read = results.arrays(first)
    assert read.keys() == arrays.keys()
    for name, array in arrays.items():
        assert read[name].dtype == array.dtype
        np.testing.assert_array_equal(read[name], array)
    assert results.arrays(second) == {}
    results.write(second, OK, {}, {"empty": np.zeros((0, 2))})
    assert results.arrays(second)["empty"].shape == (0, 2)


def test_arrays_over_the_leftovers_of_a_killed_writer(tmp_path):
    (cell,) = make_cells(1)
    results = Store(tmp_path)
    for leftover in ("", ".partial", ".partial.orbax-checkpoint-tmp"):
        path = tmp_path / "arrays" / (cell.name + leftover)
        path.mkdir(parents=True)
        (path / "half").write_text("half")
    results.write(cell, OK, {}, {"a": np.arange(3)})
    np.testing.assert_array_equal(results.arrays(cell)["a"], np.arange(3))
    assert [path.name for path in (tmp_path / "arrays").iterdir()] == [cell.name]


def test_damaged_arrays_are_named(tmp_path):
    (cell,) = make_cells(1)
    results = Store(tmp_path)
    results.write(cell, OK, {}, {"a": np.arange(100)})
    files = [path for path in (tmp_path / "arrays").rglob("*") if path.is_file()]
    largest = max(files, key=lambda path: path.stat().st_size)
    largest.write_bytes(largest.read_bytes()[:-1])
    with pytest.raises(ValueError, match=f"arrays of cell {cell.name}: .*{largest.name}"):
        results.arrays(cell)


def test_done_and_pending(tmp_path):
    items = make_cells(4)
    results = Store(tmp_path)
    for cell, result in zip(items, [OK, FAILED, replace(OK, status="censored")], strict=False):
        results.write(cell, result, {})
    assert results.done(items) == [items[0], items[2]]
    assert results.pending(items) == [items[1], items[3]]
    assert results.read(items[1])["traceback"] == "Traceback: boom"
    results.write(items[1], OK, {})
    assert results.pending(items) == [items[3]]


@pytest.mark.parametrize("keep", [0.0, 1, 0.5, -1])
def test_truncated_files_are_named_and_recomputed(tmp_path, warnings_logged, keep):
    items = make_cells(2)
    results = Store(tmp_path)
    for cell in items:
        results.write(cell, OK, {})
    path = tmp_path / "cells" / f"{items[0].name}.json"
    data = path.read_bytes().rstrip()
    path.write_bytes(data[: int(len(data) * keep) if isinstance(keep, float) else keep])
    assert results.pending(items) == [items[0]]
    assert str(path) in warnings_logged[0]
    assert path.exists()
    assert len(store.table(results, items)) == 1
    results.write(items[0], OK, {})
    assert results.pending(items) == []


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (lambda r: r.update(schema=99), "schema = 99"),
        (lambda r: r.update(name="0" * 16), "another cell"),
        (lambda r: r["config"].update(seed=1), "another cell"),
        (lambda r: r.update(status="fine"), "status = 'fine'"),
        (lambda r: r.pop("metrics"), "metrics = None"),
    ],
)
def test_foreign_records_are_named_and_recomputed(tmp_path, warnings_logged, change, named):
    (cell,) = make_cells(1)
    results = Store(tmp_path)
    results.write(cell, OK, {})
    path = tmp_path / "cells" / f"{cell.name}.json"
    record = json.loads(path.read_text())
    change(record)
    path.write_text(json.dumps(record))
    assert results.read(cell) is None
    assert named in warnings_logged[0]


@pytest.mark.parametrize("garbage", [b"[]", b"\xff\xfe", b"null", b"3", b"[" * 100_000])
def test_garbage_is_named_and_recomputed(tmp_path, warnings_logged, garbage):
    (cell,) = make_cells(1)
    results = Store(tmp_path)
    (tmp_path / "cells" / f"{cell.name}.json").write_bytes(garbage)
    assert results.read(cell) is None
    assert cell.name in warnings_logged[0]


@pytest.mark.parametrize("text", ['{"schema": 2}', "garbage", "", "[]"])
def test_another_schema_is_refused(tmp_path, text):
    Store(tmp_path)
    Store(tmp_path)
    (tmp_path / "schema.json").write_text(text)
    with pytest.raises(ValueError, match=r'schema\.json = .*: expected \{"schema": 1\}') as error:
        Store(tmp_path)
    assert str(tmp_path) in str(error.value)
    assert repr(text) in str(error.value)


def start_writer(workdir: Path, spec: str, count: int) -> subprocess.Popen:
    command = [sys.executable, "-m", "tests.sweep.store_writer", str(workdir), spec, str(count)]
    return subprocess.Popen(command, cwd=ROOT)


def test_eight_writers_lose_nothing(tmp_path):
    count = 1600
    writers = [start_writer(tmp_path, f"{i}/8", count) for i in range(8)]
    assert [writer.wait() for writer in writers] == [0] * 8
    items = make_cells(count)
    results = Store(tmp_path)
    assert results.pending(items) == []
    frame = store.table(results, items)
    store.write_table(frame, tmp_path)
    assert frame["name"].tolist() == [cell.name for cell in items]
    lines = (tmp_path / "table.csv").read_text().splitlines()
    assert len(lines) == count + 1
    assert sum(line.startswith("name,") for line in lines) == 1


def test_killed_writers_leave_a_whole_store_and_the_same_table(tmp_path, warnings_logged):
    items = make_cells(1200)
    choose = random.Random(0)
    for _ in range(20):
        writer = start_writer(tmp_path / "killed", "0/1", len(items))
        time.sleep(choose.uniform(0.12, 0.22))
        writer.send_signal(signal.SIGKILL)
        writer.wait()
        results = Store(tmp_path / "killed")
        done = results.done(items)
        assert done == items[: len(done)]
    assert start_writer(tmp_path / "killed", "0/1", len(items)).wait() == 0
    assert start_writer(tmp_path / "whole", "0/1", len(items)).wait() == 0
    assert warnings_logged == []
    for name in ("killed", "whole"):
        store.write_table(store.table(Store(tmp_path / name), items), tmp_path / name)
    for file in ("table.csv", "table.parquet"):
        one, other = ((tmp_path / name / file).read_bytes() for name in ("killed", "whole"))
        assert one == other


def test_full_disk_keeps_the_old_record(tmp_path, monkeypatch):
    (cell,) = make_cells(1)
    results = Store(tmp_path)
    results.write(cell, FAILED, {})

    def full(*args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        results.write(cell, OK, {})
    assert results.read(cell)["status"] == "failed"


def test_table(tmp_path):
    items = make_cells(3)
    results = Store(tmp_path)
    results.write(items[2], replace(OK, metrics={"length": 3, "curve": [1, 2]}), {})
    results.write(items[0], replace(OK, metrics={"loss": math.nan, "kind": "a"}), {})
    frame = store.table(results, items)
    # `length` is a metric, so the axis keeps its dotted name; `source` needs none.
    assert list(frame) == ["name", "cell.length", "source", "status", "loss", "kind", "length"]
    assert frame["name"].tolist() == [items[0].name, items[2].name]
    assert frame["cell.length"].tolist() == [0, 2]
    store.write_table(frame, tmp_path)
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "table.parquet"), frame)


def test_table_of_nothing(tmp_path):
    frame = store.table(Store(tmp_path), make_cells(2))
    assert list(frame) == ["name", "length", "source", "status"]
    assert len(frame) == 0
    store.write_table(frame, tmp_path)
