"""The way of a prompt: which snapshots are held, its length and components, kill and resume."""

import dataclasses

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from reach_jax.cramming import trace
from reach_jax.cramming.state import OUT_OF_STEPS, RUNNING, Trace
from sweep_jax.checkpoint import Checkpoints
from tests.cramming.conftest import PROTOCOL, run

LONG = dataclasses.replace(PROTOCOL, steps=45, patience=45)


@pytest.mark.parametrize(("steps", "most"), [(1, 4), (7, 8), (8, 8), (9, 8), (100, 4), (333, 16)])
def test_the_snapshots_held_are_evenly_spaced_whenever_the_lane_stops(steps, most):
    place_T = trace.places(steps, most)
    at_S = np.full(most, -1)
    for step, place in enumerate(place_T):
        if place < most:
            at_S[place] = step
        blank = np.zeros((most, 1, 1))
        held, _ = trace.held(Trace(blank, at_S, np.float32(0)), 1)
        stride = 1 if step < most else 2 ** int(np.log2(step // most) + 1)
        np.testing.assert_array_equal(held, np.arange(0, step + 1, stride))
        assert step < most or most // 2 < len(held) <= most


@pytest.fixture(scope="module")
def walked(setup, targets_CN):
    """Three lanes with traces run to their end, and every prompt of the way from plain steps."""
    how = ([1, 2, 4], targets_CN[:3], LONG)
    state = run(setup.program(*how, path=8), buckets=(16,))
    plain = setup.program(*how, chunk=1)
    step, prompts, running = plain.start(), [], []
    while not plain.look(step)[0].all():
        prompts.append(np.asarray(step.lanes_C.prompt_MD))
        running.append(np.asarray(step.lanes_C.phase) == RUNNING)
        step = plain.advance(step, np.arange(4, dtype=np.int32), 16)
    return state, step, np.stack(prompts), np.stack(running)


def test_a_trace_is_of_the_prompts_on_the_way(walked, setup):
    state, plain, prompts_TCMD, running_TC = walked
    assert OUT_OF_STEPS in state.lanes_C.phase
    assert int(state.lanes_C.step.max()) > 20  # or there was nothing to thin out
    unit = float(setup.frozen.scale)
    for row, used in enumerate([1, 2, 4]):
        lane = jax.tree.map(lambda x, row=row: np.asarray(x[row]), state.lanes_C)
        way_TmD = prompts_TCMD[running_TC[:, row], row][:, -used:]
        assert len(way_TmD) == int(lane.step) == int(plain.lanes_C.step[row])
        at, kept = trace.held(lane.trace, used)
        np.testing.assert_allclose(kept, way_TmD[at], atol=1e-3)
        flat = way_TmD.reshape(len(way_TmD), -1).astype(np.float64)
        found, shares = trace.measure(lane.trace, used, unit)
        length = np.linalg.norm(np.diff(flat, axis=0), axis=1).sum() / unit
        np.testing.assert_allclose(found["path_length"], length, rtol=1e-3)
        values = np.linalg.svd(flat[at] - flat[at].mean(0), compute_uv=False) ** 2
        wanted = 1 + int(np.searchsorted(np.cumsum(values) / values.sum(), 0.99))
        assert found["path_components"] == wanted
        np.testing.assert_allclose(shares, (values / values.sum())[: len(shares)], atol=1e-4)
        straight = np.linalg.norm(flat[at[-1]] - flat[0]) / unit
        np.testing.assert_allclose(found["path_straight"], straight, rtol=1e-3)
        assert 0 < straight <= length


def test_a_trace_changes_no_search(walked, setup, targets_CN):
    with_it = walked[0].lanes_C._replace(trace=None)
    without = run(setup.program([1, 2, 4], targets_CN[:3], LONG), buckets=(16,))
    chex.assert_trees_all_equal(with_it, without.lanes_C)


def test_a_trace_survives_a_kill(walked, setup, targets_CN, tmp_path):
    """Saved after a chunk, restored into a new program, run on: the same to the last bit."""
    whole = walked[0]
    rows = np.arange(4, dtype=np.int32)
    first = setup.program([1, 2, 4], targets_CN[:3], LONG, path=8)
    state = first.advance(first.advance(first.start(), rows, 16), rows, 16)
    Checkpoints(tmp_path).save(2, state)
    second = setup.program([1, 2, 4], targets_CN[:3], LONG, path=8)
    _, state = Checkpoints(tmp_path).restore(second.start())
    while not second.look(state)[0].all():
        state = second.advance(state, rows, 16)
    chex.assert_trees_all_equal(state.lanes_C, whole.lanes_C)
    results = [program.finish(s, 1) for program, s in ((first, whole), (second, state))]
    np.testing.assert_equal(*(result.metrics for result, _ in results))
    assert results[0][1]["path_shares"].sum() == pytest.approx(1)


def made(rows_KX, at=None):
    K = len(rows_KX)
    prompts = np.zeros((8, 2, rows_KX.shape[1]), np.float32)
    prompts[:K, 1] = rows_KX
    at_S = np.array([*(range(K) if at is None else at), *[-1] * (8 - K)])
    return Trace(prompts, at_S, np.float32(3))


def test_components_of_ways_that_are_known():
    line = np.outer(np.arange(6), [1, 2, 0]).astype(np.float32)
    assert trace.measure(made(line), 1, 1.0)[0]["path_components"] == 1
    cross = np.array([[9, 0, 0], [-9, 0, 0], [0, 1, 0], [0, -1, 0]], np.float32)
    found, shares = trace.measure(made(cross), 1, 0.5)
    np.testing.assert_allclose(shares, [81 / 82, 1 / 82, 0], atol=1e-12)
    assert found["path_components"] == 2  # 81/82 is .988
    assert found["path_length"] == 6
    still = trace.measure(made(np.ones((3, 3), np.float32)), 1, 1.0)[0]
    assert (still["path_components"], still["path_straight"]) == (0, 0)
    for few in (line[:1], np.full((3, 3), np.nan, np.float32)):
        found, shares = trace.measure(made(few), 1, 1.0)
        assert np.isnan(found["path_components"])
        assert shares.size == 0


def test_the_bytes_of_a_trace():
    assert trace.nbytes(0, 4, 16) == 0
    made = trace.empty(3, 8, 4, 16)
    assert 3 * trace.nbytes(8, 4, 16) == sum(x.nbytes for x in jax.tree.leaves(made))
    assert made.at_S.dtype == jnp.int32
