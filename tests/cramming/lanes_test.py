"""Many lanes in one program: each as if alone, frozen when done, few compilations (CRM-02, 04)."""

import dataclasses

import chex
import jax
import jax.numpy as jnp
import numpy as np

from reach_jax.cramming import lane
from reach_jax.cramming import program as program_module
from reach_jax.cramming.state import AT_END, OUT_OF_STEPS, STALLED
from sweep_jax import mesh
from tests.cramming.conftest import MODEL, PROTOCOL, run


def one(pool, row):
    return jax.tree.map(lambda x: np.asarray(x[row]), pool.lanes_C)


def test_a_lane_does_not_feel_its_batch_its_place_or_its_padding(setup, targets_CN):
    """Same key, same target: alone, in a batch, in another order, with more prompt slots."""
    lengths = [1, 2, 4, 3]
    keys = [jax.random.fold_in(jax.random.key(7), i) for i in range(4)]
    # 12 steps: rounding differences between batch shapes stay small enough to compare numbers.
    short = dataclasses.replace(PROTOCOL, steps=12)
    together = run(setup.program(lengths, targets_CN[:4], short, keys=keys))
    order = [2, 0, 3, 1]
    shuffled = run(
        setup.program(
            [lengths[i] for i in order], targets_CN[order], short, keys=[keys[i] for i in order]
        )
    )
    for row in range(4):
        alone = run(
            setup.program([lengths[row]], targets_CN[row : row + 1], short, keys=[keys[row]]),
            lanes=1,
        )
        padded = run(
            setup.program(
                [lengths[row]], targets_CN[row : row + 1], short, slots=8, keys=[keys[row]]
            ),
            buckets=(16,),
            lanes=1,
        )
        wanted = one(alone, 0)
        for other in (one(together, row), one(shuffled, order.index(row)), one(padded, 0)):
            assert int(other.reached) == int(wanted.reached)
            assert int(other.step) == int(wanted.step)
            used = lengths[row]
            chex.assert_trees_all_close(
                other.prompt_MD[-used:], wanted.prompt_MD[-used:], atol=2e-4, rtol=2e-4
            )


def test_lanes_end_each_in_its_own_way(setup, targets_CN):
    """Right at the first step; at its own time; and never: that one stops at its limit."""
    twin = np.asarray(setup.frozen.params["embedding"]).copy()
    twin[9] = twin[5] / 2  # inside the hull of the other rows: no prompt can emit token 9
    params = {**setup.frozen.params, "embedding": jnp.asarray(twin)}
    setup = dataclasses.replace(setup, frozen=setup.frozen._replace(params=params))
    config = dataclasses.replace(PROTOCOL, patience=100, steps=100)
    first = setup.program([1, 1, 1], targets_CN[:3], config)
    prompt = np.asarray(first.start().lanes_C.prompt_MD[0, -1:])
    targets = targets_CN[:3].copy()
    targets[0] = setup.decode(prompt, 16)[0]  # what the first prompt says anyway
    targets[2] = 9
    keys = [jax.random.fold_in(jax.random.key(7), i) for i in range(3)]
    program = setup.program([1, 1, 1], targets, config, keys=keys)
    state = run(program, buckets=(16,))
    phases, steps = state.lanes_C.phase.tolist(), state.lanes_C.step.tolist()
    assert (phases[0], steps[0]) == (AT_END, 1)
    assert (phases[2], steps[2]) == (OUT_OF_STEPS, 100)
    assert 1 < steps[1] <= 100
    results = [program.finish(state, row)[0] for row in range(3)]
    assert [r.metrics["threshold"] for r in results][::2] == [16, 0]
    assert [r.status for r in results][::2] == ["censored", "censored"]
    for row in range(3):  # alone, the other places of the same program idle: to the last bit
        alone = setup.program([1], targets[row : row + 1], config, keys=keys[row : row + 1])
        alone.compiled.update(program.compiled)
        chex.assert_trees_all_equal(one(run(alone, buckets=(16,)), 0), one(state, row))


def test_patience_counts_from_the_last_growth(setup, targets_CN):
    state = run(setup.program([1, 2, 3, 4], targets_CN[:4]))
    for row in range(4):
        found = one(state, row)
        if int(found.phase) == STALLED:
            assert int(found.step) - 1 - int(found.grew_at) == PROTOCOL.patience
    assert STALLED in state.lanes_C.phase


def test_a_finished_lane_stands_still(setup, targets_CN):
    program = setup.program([1, 2], targets_CN[:2])
    state = run(program)
    before = jax.tree.map(np.asarray, state.lanes_C)
    after = program.advance(state, np.array([0, 1, 2, 2], np.int32), 16)
    chex.assert_trees_all_equal(after.lanes_C, before)


def test_a_lane_whose_window_outgrows_its_bucket_stands_still(setup, targets_CN):
    program = setup.program([1], targets_CN[:1])
    state = program.start()
    grown = state._replace(lanes_C=state.lanes_C._replace(reached=jnp.array([7], jnp.int32)))
    before = jax.tree.map(np.asarray, grown.lanes_C)
    assert program.look(grown)[1].tolist() == [9]
    after = program.advance(grown, np.array([0, 1, 1, 1], np.int32), 8)
    chex.assert_trees_all_equal(after.lanes_C, before)


def test_a_nan_ends_its_own_lane_with_the_step_and_no_other(setup, targets_CN):
    program = setup.program([1, 2, 1], targets_CN[:3])
    clean = run(program)
    state = program.advance(program.start(), np.array([0, 1, 2, 3], np.int32), 8)
    broken = state.lanes_C.prompt_MD.at[1].set(jnp.nan)
    state = state._replace(lanes_C=state.lanes_C._replace(prompt_MD=broken))
    while not program.look(state)[0].all():
        from sweep_jax.lanes import schedule

        bucket, rows = schedule(*program.look(state), (8, 16), 4)
        state = program.advance(state, rows, bucket)
    result, _ = program.finish(state, 1)
    assert result.status == "failed"
    assert "not finite at step 11" in result.traceback
    assert np.isfinite(state.lanes_C.best_MD).all()
    for row in (0, 2):
        chex.assert_trees_all_equal(one(state, row), one(clean, row))


def test_one_trace_a_bucket_whatever_the_lengths(setup, targets_CN):
    """Targets of every length 1..16 and prompts of 1..4 vectors share two programs."""
    chex.clear_trace_counter()
    counted = chex.assert_max_traces(lane.step, n=2)
    original = lane.step
    lane.step = counted
    try:
        config = dataclasses.replace(PROTOCOL, steps=21, patience=21)
        for lengths in ([1, 2, 3, 4], [4, 4, 1, 1]):
            program = setup.program(lengths, targets_CN[:4], config, chunk=7)
            state = program.start()
            spans = jnp.array([1, 5, 12, 16], jnp.int32)
            state = state._replace(tasks_C=state.tasks_C._replace(length=spans))
            for bucket in (8, 16, 8, 16):
                state = program.advance(state, np.arange(4, dtype=np.int32), bucket)
    finally:
        lane.step = original


def test_the_model_is_an_argument_of_the_program_and_no_constant(setup, targets_CN):
    program = setup.program([1, 2], targets_CN[:2])
    state = program.start()
    traced = program_module.advance.trace(
        *state, setup.frozen, model=MODEL, config=PROTOCOL, steps=2
    )
    constants = sum(np.asarray(c).nbytes for c in traced.jaxpr.consts)
    assert constants < 1_000


def test_lanes_over_eight_devices_need_no_collective_and_agree(setup, targets_CN):
    """The same pool through the same calls, on one device and on eight."""
    # Adam would blow rounding up to whole steps where a gradient is nearly zero.
    config = dataclasses.replace(PROTOCOL, optimizer="sgd", rate=0.1)
    lengths = [1, 2, 3, 4, 4, 3, 2, 1]
    alone = setup.program(lengths, targets_CN, config, chunk=3)
    spread = setup.program(lengths, targets_CN, config, chunk=3, mesh=mesh.row())
    rows_L = np.array([7, 6, 5, 4, 3, 2, 8, 8], np.int32)  # two idle
    alone, after = (p.advance(p.start(), rows_L, 8) for p in (alone, spread))
    assert alone.lanes_C.step.tolist() == [0, 0] + [3] * 6
    for name in ("best", "best_at", "step", "phase"):
        np.testing.assert_array_equal(getattr(after.lanes_C, name), getattr(alone.lanes_C, name))
    np.testing.assert_allclose(after.lanes_C.prompt_MD, alone.lanes_C.prompt_MD, atol=1e-4)
    assert len(after.lanes_C.prompt_MD.devices()) == 1  # the pool stays where it was
    (text,) = (compiled.as_text() for compiled in spread.compiled.values())
    for word in ("all-reduce", "all-gather", "collective-permute", "all-to-all", "reduce-scatter"):
        assert word not in text


def test_the_cut_of_a_target_changes_no_step(setup, targets_CN):
    """An answer right beyond a bucket's end is judged in a larger one, as if never cut."""
    config = dataclasses.replace(PROTOCOL, steps=12)
    first = setup.program([1], targets_CN[:1], config)
    said, _ = setup.decode(np.asarray(first.start().lanes_C.prompt_MD[0, -1:]), 13)
    target = targets_CN[:1].copy()
    target[0, :13] = said
    target[0, 13] = (said[12] + 1) % MODEL.vocab_size
    small = run(setup.program([1], target, config), buckets=(4, 8, 16), lanes=1)
    whole = run(setup.program([1], target, config), buckets=(16,), lanes=1)
    assert int(small.lanes_C.grew_at[0]) == int(whole.lanes_C.grew_at[0])
    assert int(small.lanes_C.reached[0]) == int(whole.lanes_C.reached[0]) >= 13
    chex.assert_trees_all_close(small.lanes_C.prompt_MD, whole.lanes_C.prompt_MD, atol=2e-4)
