"""The lane runner: who runs when, and that no interruption changes a result."""

import threading

import numpy as np
import pytest
from ml_collections import ConfigDict

from sweep_jax.cells import expand
from sweep_jax.lanes import pools, run_pool, schedule
from sweep_jax.stop import Stop, Stopped
from sweep_jax.store import Result, Store

LANES, BUCKETS = 3, (4, 8)


class Counter:
    """Each cell counts to its own goal, one a chunk; a count past 4 needs the larger bucket."""

    def __init__(self, goals, fail=()):
        self.goals, self.fail = np.array(goals), fail
        self.chunks = []  # (bucket, rows) of every chunk: what was computed

    def start(self):
        return {"count": np.zeros(len(self.goals), np.int32)}

    def advance(self, state, rows_L, bucket):
        self.chunks.append((bucket, rows_L.tolist()))
        assert len(rows_L) == LANES
        live = rows_L[rows_L < len(self.goals)]
        assert (state["count"][live] < bucket).all()
        count = state["count"].copy()
        count[live] += 1
        return {"count": count}

    def words(self, state):
        return "as far as it got"

    def look(self, state):
        return state["count"] >= self.goals, state["count"] + 1

    def finish(self, state, row):
        status = "failed" if row in self.fail else "ok"
        return Result(status, {"count": int(state["count"][row])}, 0.0, 0.0), {
            "trace": np.arange(state["count"][row] + 1)
        }


def cells_of(count):
    config = ConfigDict({"number": 0})

    def sweep(add, config):
        for i in range(count):
            add({"number": i})

    return expand(config, sweep, ())


def complete(cells, store, root, program, stop=None, on_cell=lambda result: None):
    """Runs the pool with `program`; returns the cells that it was made for."""
    made = []

    def make(chosen):
        made.extend(chosen)
        return program

    run_pool(
        cells, make, store, root, LANES, BUCKETS, stop or Stop(), {"made": "here"}, on_cell, print
    )
    return made


GOALS = [2, 7, 1, 5, 3, 6, 4]


def counts(store, cells):
    return [store.read(cell)["metrics"]["count"] for cell in cells]


def test_lanes_are_full_while_there_is_work():
    finished = np.array([False, True, False, False, False])
    need = np.array([9, 1, 3, 4, 3])
    bucket, rows = schedule(finished, need, (4, 16), 3)
    assert (bucket, rows.tolist()) == (4, [2, 3, 4])
    bucket, rows = schedule(finished, need, (4, 16), 4)  # the small ones do not fill the lanes
    assert (bucket, rows.tolist()) == (16, [0, 2, 3, 4])
    bucket, rows = schedule(finished, need, (4, 16), 6)
    assert (bucket, rows.tolist()) == (16, [0, 2, 3, 4, 5, 5])  # 5 = idle


def test_a_need_beyond_every_bucket_is_an_error():
    with pytest.raises(ValueError, match=r"buckets = \(4, 8\): expected one of at least 9"):
        schedule(np.array([False]), np.array([9]), (4, 8), 2)


def test_every_cell_is_stored_once_and_a_finished_pool_computes_nothing(tmp_path):
    cells, store = cells_of(7), Store(tmp_path)
    heard = []
    program = Counter(GOALS)
    complete(cells, store, tmp_path / "pools", program, on_cell=heard.append)
    assert counts(store, cells) == GOALS
    assert len(heard) == 7
    # 28 counts in 3 lanes: no schedule needs fewer than 10 chunks; refilled lanes stay near that.
    assert len(program.chunks) <= 12
    again = Counter(GOALS)
    assert complete(cells, store, tmp_path / "pools", again) == []
    assert again.chunks == []


class Killed(BaseException):
    """Stands for kill -9: nothing catches it, nothing is cleaned up."""


@pytest.mark.parametrize("where", ["advance", "write"])
@pytest.mark.parametrize("at", [1, 2, 5, 7])
def test_killed_anywhere_it_goes_on_with_the_same_chunks(tmp_path, monkeypatch, where, at):
    cells = cells_of(7)
    whole = Counter(GOALS)
    complete(cells, Store(tmp_path / "whole"), tmp_path / "whole-pools", whole)

    store, first = Store(tmp_path / "cut"), Counter(GOALS)
    target = first if where == "advance" else store
    original, calls = getattr(target, where), []

    def killing(*args):
        calls.append(args)
        if len(calls) == at:
            raise Killed
        return original(*args)

    monkeypatch.setattr(target, where, killing)
    with pytest.raises(Killed):
        complete(cells, store, tmp_path / "cut-pools", first)
    monkeypatch.undo()
    second = Counter(GOALS)
    complete(cells, store, tmp_path / "cut-pools", second)
    assert counts(store, cells) == GOALS
    assert first.chunks + second.chunks == whole.chunks  # nothing redone, nothing different


def test_a_stop_is_heard_after_the_chunk_and_nothing_is_lost(tmp_path):
    cells, store, stop = cells_of(7), Store(tmp_path), Stop()
    program = Counter(GOALS)

    def request(result):
        stop.signum = 15

    with pytest.raises(Stopped, match="after chunk 1, 1 of 7 cells"):
        complete(cells, store, tmp_path / "pools", program, stop, request)
    rest = Counter(GOALS)
    complete(cells, store, tmp_path / "pools", rest)
    assert counts(store, cells) == GOALS
    whole = Counter(GOALS)
    complete(cells, Store(tmp_path / "whole"), tmp_path / "whole-pools", whole)
    assert program.chunks + rest.chunks == whole.chunks


def test_a_failed_or_damaged_cell_is_tried_again_and_the_others_are_left(tmp_path):
    cells, store = cells_of(7), Store(tmp_path)
    complete(cells, store, tmp_path / "pools", Counter(GOALS, fail=(3,)))
    assert store.read(cells[3])["status"] == "failed"
    (tmp_path / "cells" / f"{cells[5].name}.json").write_text("{")
    retry = Counter([GOALS[3], GOALS[5]])
    assert complete(cells, store, tmp_path / "pools", retry) == [cells[3], cells[5]]
    assert counts(store, cells) == GOALS
    assert {row for _, rows in retry.chunks for row in rows} <= {0, 1, 2}


@pytest.mark.parametrize("text", ["", "another cell", "\x00"])
def test_a_garbage_list_starts_the_pool_anew(tmp_path, text):
    cells, store, stop = cells_of(7), Store(tmp_path), Stop()

    def request(result):
        stop.signum = 2

    with pytest.raises(Stopped):
        complete(cells, store, tmp_path / "pools", Counter(GOALS), stop, request)
    next((tmp_path / "pools").glob("*/cells.txt")).write_text(text)
    left = store.pending(cells)
    assert 0 < len(left) < 7
    goals = [GOALS[cells.index(cell)] for cell in left]
    assert complete(cells, store, tmp_path / "pools", Counter(goals)) == left
    assert counts(store, cells) == GOALS


def test_the_second_of_two_processes_computes_nothing(tmp_path):
    """The cells are chosen once the lock is held, not before."""
    cells, store, second = cells_of(7), Store(tmp_path), Counter(GOALS)
    arguments = (cells, Store(tmp_path), tmp_path / "pools", second)
    waiting = threading.Thread(target=complete, args=arguments)

    def start_second(result):
        if waiting.ident is None:
            waiting.start()

    complete(cells, store, tmp_path / "pools", Counter(GOALS), on_cell=start_second)
    waiting.join(60)
    assert counts(store, cells) == GOALS
    assert second.chunks == []


def test_pools_cut_the_sweep_in_order():
    cells = cells_of(7)
    assert [len(pool) for pool in pools(cells, 3)] == [3, 3, 1]
    assert [cell for pool in pools(cells, 3) for cell in pool] == cells
    with pytest.raises(ValueError, match="pool = 0"):
        pools(cells, 0)
