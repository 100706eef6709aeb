"""Training: the loss it means, the schedule it follows, and runs that end and go on unseen."""

import dataclasses
import math
import signal

import chex
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from reach_jax.models import decoder
from reach_jax.pretrain import train
from reach_jax.pretrain.corpus import BEGIN_ID
from sweep_jax.stop import Stop, Stopped
from tests.models import mamba_reference, reference, tiny
from tests.pretrain.conftest import KEY, MODEL, TRAINING


def reference_loss(params, config, tokens_BT):
    """Mean of -log p over every token but each row's first."""
    hidden = mamba_reference.hidden if config == tiny.MAMBA else reference.hidden
    head_VD = np.asarray(params["embedding" if config.tied else "head"], np.float64)
    terms = []
    for tokens_T in tokens_BT:
        inputs_TD = np.asarray(params["embedding"])[tokens_T[:-1]]
        log_p_TV = reference.log_softmax(hidden(params, config, inputs_TD) @ head_VD.T)
        terms += [-log_p_TV[t, token] for t, token in enumerate(tokens_T[1:])]
    return np.mean(terms)


def test_rows_are_pieces_of_the_stream_behind_a_begin_token():
    rows_BT = train.rows(jnp.arange(100, 110), jnp.array([0, 3, 6]), 4)
    want_BT = [[BEGIN_ID, *range(start + 101, start + 104)] for start in (0, 3, 6)]
    np.testing.assert_array_equal(rows_BT, want_BT)


@pytest.mark.parametrize("tied", [True, False])
def test_mean_loss_equals_the_mean_of_minus_log_p(tied):
    config = dataclasses.replace(tiny.CONFIG, tied=tied)
    params = tiny.make_params(config)
    tokens_BT = np.random.default_rng(0).integers(0, config.vocab_size, (3, 6))
    got = jax.jit(train.mean_loss, static_argnums=0)(config, params, jnp.asarray(tokens_BT))
    np.testing.assert_allclose(got, reference_loss(params, config, tokens_BT), rtol=1e-5)


def test_every_parameter_of_a_mamba_gets_the_gradient_of_the_float64_loop():
    params = tiny.make_params(tiny.MAMBA)
    tokens_BT = np.random.default_rng(0).integers(0, tiny.MAMBA.vocab_size, (2, 6))
    value_and_grad = jax.jit(jax.value_and_grad(train.mean_loss, argnums=1), static_argnums=0)
    loss, grads = value_and_grad(tiny.MAMBA, params, jnp.asarray(tokens_BT))
    exact = jax.tree.map(lambda x: np.asarray(x, np.float64), params)
    np.testing.assert_allclose(loss, reference_loss(exact, tiny.MAMBA, tokens_BT), rtol=1e-5)
    leaves, tree = jax.tree.flatten(exact)
    for place, (leaf, grad) in enumerate(zip(leaves, jax.tree.leaves(grads), strict=True)):
        direction = np.asarray(grad, np.float64) / np.linalg.norm(grad)
        ends = []
        for sign in (1, -1):
            moved = [*leaves[:place], leaf + sign * 1e-5 * direction, *leaves[place + 1 :]]
            ends.append(reference_loss(tree.unflatten(moved), tiny.MAMBA, tokens_BT))
        np.testing.assert_allclose((ends[0] - ends[1]) / 2e-5, np.linalg.norm(grad), rtol=1e-3)


@pytest.mark.parametrize(("size", "count"), [(3, 1), (5, 1), (215, 71)])
def test_heldout_loss_is_the_mean_over_all_whole_rows(size, count):
    params = tiny.make_params(tiny.CONFIG)
    stream_S = np.random.default_rng(1).integers(1, tiny.CONFIG.vocab_size, size).astype(np.int32)
    rows_BT = stream_S[: 3 * count].reshape(count, 3).copy()
    rows_BT[:, 0] = BEGIN_ID
    want = reference_loss(params, tiny.CONFIG, rows_BT)
    got = train.heldout_loss(tiny.CONFIG, params, stream_S, 3)  # 71 rows: batches of 36 and 35
    np.testing.assert_allclose(got, want, rtol=1e-5)


def test_heldout_text_shorter_than_a_row_is_refused():
    with pytest.raises(ValueError, match=r"^training.length = 3: expected at most the 2 tokens"):
        train.heldout_loss(tiny.CONFIG, {}, np.zeros(2, np.int32), 3)


def follow(config, grads, param=0.0):
    """The optimiser's updates of one parameter under a sequence of gradients."""
    optimizer = train.optimizer(config)
    params = {"w": jnp.full(1, param)}
    state, found, update = optimizer.init(params), [], jax.jit(optimizer.update)
    for grad in grads:
        updates, state = update({"w": jnp.full(1, grad)}, state, params)
        found.append(float(updates["w"][0]))
    return np.array(found)


@pytest.mark.parametrize("warmup", [0, 4])
def test_schedule_warms_up_linearly_and_falls_to_a_tenth(warmup):
    config = dataclasses.replace(TRAINING, steps=24, warmup=warmup, rate=0.5, weight_decay=0.0)
    rate_S = -follow(config, [0.7] * 25)  # Adam moves by the rate under a constant gradient
    np.testing.assert_allclose(rate_S[:warmup], 0.5 * np.arange(warmup) / max(warmup, 1), rtol=1e-5)
    share_S = np.arange(25 - warmup) / (24 - warmup)
    cosine_S = 0.05 + 0.45 * (1 + np.cos(math.pi * share_S)) / 2
    np.testing.assert_allclose(rate_S[warmup:], cosine_S, rtol=1e-4)


def test_gradients_are_clipped_and_weights_decay():
    config = dataclasses.replace(TRAINING, warmup=0, weight_decay=0.0)
    chex.assert_trees_all_close(follow(config, [1.0, 1.0]), follow(config, [1e4, 1.0]), rtol=1e-5)
    decaying = dataclasses.replace(config, weight_decay=0.25)
    np.testing.assert_allclose(follow(decaying, [0.0], param=2.0), -config.rate * 0.25 * 2.0)


def test_the_loss_falls(trained):
    stream_S = trained.text.heldout_S[: 16 * 60]
    fresh = decoder.init(MODEL, jax.random.key(1))
    before = train.heldout_loss(MODEL, fresh, stream_S, TRAINING.length)
    after = train.heldout_loss(MODEL, trained.params, stream_S, TRAINING.length)
    assert abs(before - math.log(MODEL.vocab_size)) < 1
    assert after < before - 0.5


def test_a_stopped_run_goes_on_and_ends_bit_for_bit_the_same(trained, tmp_path):
    stop = Stop()
    stop.signum = signal.SIGTERM
    arguments = MODEL, TRAINING, trained.text.train_S
    with pytest.raises(Stopped, match="step 8 of 16"):
        train.train(*arguments, jax.random.key(KEY), tmp_path, stop)
    params = train.train(*arguments, jax.random.key(KEY), tmp_path, stop)  # nothing left to stop
    chex.assert_trees_all_equal(params, trained.params)
    again = train.train(*arguments, jax.random.key(KEY), tmp_path, stop)  # all from the disk
    chex.assert_trees_all_equal(again, trained.params)


def test_the_key_matters(trained, tmp_path):
    key = jax.random.key(KEY + 1)
    other = train.train(MODEL, TRAINING, trained.text.train_S, key, tmp_path, Stop())
    difference = optax.tree.sub(other, trained.params)
    assert min(float(jnp.abs(x).max()) for x in jax.tree.leaves(difference)) > 1e-2


def test_chunks_do_not_matter(trained, tmp_path):
    config = dataclasses.replace(TRAINING, chunk=11)  # 11 and 5 steps
    key = jax.random.key(KEY)
    same = train.train(MODEL, config, trained.text.train_S, key, tmp_path, Stop())
    chex.assert_trees_all_close(same, trained.params, atol=1e-4)


def test_every_step_draws_new_rows_from_the_whole_stream(tmp_path, monkeypatch):
    drawn, rows = [], train.rows

    def spy(stream_S, starts_B, length):
        jax.debug.callback(lambda starts_B: drawn.append(tuple(starts_B.tolist())), starts_B)
        return rows(stream_S, starts_B, length)

    monkeypatch.setattr(train, "rows", spy)
    stream_S = np.arange(1, 19, dtype=np.int32)  # room for three starts
    params = train.train(MODEL, TRAINING, stream_S, jax.random.key(0), tmp_path, Stop())
    jax.effects_barrier()
    assert {start for starts in drawn for start in starts} == {0, 1, 2}
    assert len(set(drawn)) == len(drawn) == TRAINING.steps
    assert train.heldout_loss(MODEL, params, stream_S, 16) < 4  # of 5.7 nats: it knows its text


def test_a_stream_shorter_than_a_row_is_refused(tmp_path):
    stream_S = np.zeros(15, np.int32)
    with pytest.raises(ValueError, match=r"^training.length = 16: expected at most the 15 "):
        train.train(MODEL, TRAINING, stream_S, jax.random.key(0), tmp_path, Stop())


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("steps", 0),
        ("batch", 0),
        ("chunk", 0),
        ("length", 1),
        ("rate", 0.0),
        ("warmup", -1),
        ("warmup", 16),
        ("weight_decay", -0.1),
    ],
)
def test_a_bad_field_is_named(field, value):
    with pytest.raises(ValueError, match=f"^{field} = {value}: expected "):
        dataclasses.replace(TRAINING, **{field: value})
