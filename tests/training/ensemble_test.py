"""An ensemble: masks are smaller networks, runs do not see each other, resuming changes nothing."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType

from infoflow_jax.networks import transformer
from infoflow_jax.networks.config import NetworkConfig
from infoflow_jax.tasks.task import TaskConfig, inputs, nmse, scale, values
from infoflow_jax.training import ensemble, fit
from infoflow_jax.training.settings import TrainingConfig
from sweep_jax import mesh
from sweep_jax.stop import Stop, Stopped

TASK = TaskConfig("pairmax_planar", 2, 2, 0)
# Two stages of one T, so that one compilation serves both; another T has a test of its own.
TRAINING = TrainingConfig((3, 3), (4, 4), 8, "adam", "b2=0.99", 2, 0.1, 1.0, 1.0, 2)
EVALUATION = fit.Evaluation(16, (3,))


def network(heads):
    ffn = ((6,), ())
    return NetworkConfig(2, 8, heads, 2, ffn, kind="bilinear", beta=0.7)


@pytest.fixture(scope="module")
def shared():
    """On two devices: what is compiled for it serves most tests."""
    two = jax.make_mesh((2,), (mesh.AXIS,), (AxisType.Auto,), devices=jax.devices()[:2])
    return ensemble.Ensemble(network((2, 2)), TASK, scale(TASK, 3), TRAINING, "map", two)


@pytest.fixture(scope="module")
def alone(shared):
    return dataclasses.replace(shared, batching="vmap", mesh=None)


@functools.partial(jax.jit, static_argnums=0)
def loss_and_grads(which, params, mask, x, y):
    return jax.value_and_grad(lambda p: ensemble.loss(which, p, mask, x, y))(params)


def runs(heads, rates):
    keys = jnp.stack([jax.random.key_data(jax.random.key(i)) for i in range(len(heads))])
    mask_RLH = np.array([[np.arange(2) < h for h in pair] for pair in heads])
    return ensemble.Run(keys, jnp.asarray(mask_RLH), jnp.asarray(rates, jnp.float32))


GIVEN = runs([(2, 2), (1, 2), (2, 1)], [1e-2, 3e-3, 1e-2])


class StopAfter(Stop):
    """Asks to stop after so many looks."""

    def __init__(self, looks):
        super().__init__()
        self.left = looks

    @property
    def requested(self):
        self.left -= 1
        return self.left <= 0


@pytest.fixture(scope="module")
def fitted(shared):
    return fit.fit(shared, GIVEN, EVALUATION, None, Stop(), "test")


def sliced(params, heads):
    """The parameters of the network that has these heads only."""
    cut = jax.tree.map(lambda x: x, params)
    for place, h in enumerate(heads):
        layer = cut[f"layer_{place}"]
        for name in ("query", "key", "value"):
            layer[name] = layer[name][:, :h]
        layer["output"] = layer["output"][:h]
    return cut


def test_a_masked_run_is_the_smaller_network(alone):
    """Loss and gradients; those of masked heads are 0, so they never move."""
    params = transformer.init(alone.network, jax.random.key(5))
    x = inputs(TASK, jax.random.key(6), (8, 3), "float32")
    y = values(TASK, x)
    small = dataclasses.replace(alone, network=network((1, 2)))
    mask = jnp.array([[True, False], [True, True]])
    loss, grads = loss_and_grads(alone, params, mask, x, y)
    lean_loss, lean = loss_and_grads(small, sliced(params, (1, 2)), jnp.ones((2, 2), bool), x, y)
    assert float(loss) == pytest.approx(float(lean_loss), rel=1e-5)
    kept = sliced(grads, (1, 2))
    largest = max(float(np.abs(leaf).max()) for leaf in jax.tree.leaves(lean))
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-5 * largest), kept, lean
    )
    assert not np.any(np.asarray(grads["layer_0"]["query"])[:, 1])
    assert not np.any(np.asarray(grads["layer_0"]["output"])[1])


def test_steps_are_adam_on_fresh_batches(alone):
    """The first two steps by hand: clipped gradients, Adam's moments, the schedule's rates."""
    one = jax.tree.map(lambda x: x[:1], GIVEN)
    before = ensemble.start(alone, one)
    params = jax.tree.map(lambda x: np.array(x[0]), before.params)
    after, _ = ensemble.advance(alone, before, one, 3, 2)
    first = second = jax.tree.map(np.zeros_like, params)
    for step, rate in ((0, 0.0), (1, 0.5e-2)):  # 2 steps of warm-up to 1e-2
        key = jax.random.fold_in(jax.random.fold_in(jax.random.key(0), 1), step)
        x = inputs(TASK, key, (8, 3), "float32")
        _, grads = loss_and_grads(alone, params, one.mask_LH[0], x, values(TASK, x))
        norm = np.sqrt(sum(float((g**2).sum()) for g in jax.tree.leaves(grads)))
        grads = jax.tree.map(lambda g, norm=norm: np.asarray(g) / max(norm, 1.0), grads)
        first = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, first, grads)
        second = jax.tree.map(lambda v, g: 0.99 * v + 0.01 * g**2, second, grads)
        scale_1, scale_2 = 1 - 0.9 ** (step + 1), 1 - 0.99 ** (step + 1)
        params = jax.tree.map(
            lambda p, m, v, rate=rate, a=scale_1, b=scale_2: (
                p - np.float32(rate) * (m / a) / (np.sqrt(v / b) + 1e-8)
            ),
            params,
            first,
            second,
        )
    for want, got in zip(*map(jax.tree.leaves, (params, after.params)), strict=True):
        np.testing.assert_allclose(got[0], want, rtol=1e-4, atol=2e-6)


def test_a_run_is_the_same_alone_and_by_vmap(alone, fitted):
    one = jax.tree.map(lambda x: x[1:2], GIVEN)
    found = fit.fit(alone, one, EVALUATION, None, Stop(), "test")
    np.testing.assert_allclose(found.history_CR[:, 0], fitted.history_CR[:, 1], rtol=1e-4)


def test_every_stage_is_trained_at_its_own_length(shared, fitted, monkeypatch):
    seen, real = [], fit.advance

    def advance(which, states, runs, tokens, steps):
        seen.append((tokens, steps))
        return real(shared, states, runs, 3, steps)  # what is compiled already

    monkeypatch.setattr(fit, "advance", advance)
    monkeypatch.setattr(fit, "start", lambda which, runs: ensemble.start(shared, runs))
    monkeypatch.setattr(fit, "outputs", lambda which, *given: ensemble.outputs(shared, *given))
    staged = dataclasses.replace(TRAINING, tokens=(2, 3), steps=(2, 4))
    fit.fit(dataclasses.replace(shared, training=staged), GIVEN, EVALUATION, None, Stop(), "test")
    assert seen == [(2, 2), (3, 2), (3, 2)]


def test_a_run_that_diverges_stands_still_and_the_others_go_on(shared, fitted):
    wild = GIVEN._replace(rate=GIVEN.rate.at[1].set(1e30))
    found = fit.fit(shared, wild, EVALUATION, None, Stop(), "test")
    assert found.diverged_R[1] > 0
    assert list(found.diverged_R[[0, 2]]) == [ensemble.GOOD] * 2
    np.testing.assert_array_equal(found.history_CR[:, [0, 2]], fitted.history_CR[:, [0, 2]])


def test_resuming_on_other_device_counts_changes_nothing(shared, fitted, tmp_path):
    """STO-04: 3 runs on 8 devices, padded, stopped; on 2 to the end, as never stopped."""
    assert len(jax.devices()) == 8
    spread = dataclasses.replace(shared, mesh=mesh.row())
    with pytest.raises(Stopped, match="run the same command again"):
        fit.fit(spread, GIVEN, EVALUATION, tmp_path, StopAfter(1), "test")
    found = fit.fit(shared, GIVEN, EVALUATION, tmp_path, Stop(), "test")
    np.testing.assert_allclose(found.history_CR, fitted.history_CR, rtol=1e-4)
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-5),
        found.params_R,
        fitted.params_R,
    )
    other = dataclasses.replace(shared, network=network((2, 1)))
    with pytest.raises(ValueError, match="expected the tree of this config"):
        fit.fit(other, GIVEN, EVALUATION, tmp_path, Stop(), "test")


def test_what_is_measured_is_the_networks_error(shared, fitted):
    data = fit.validation(shared, 16, 3, 0)
    params = jax.tree.map(lambda x: x[1], fitted.params_R)
    raw = [transformer.apply(shared.network, params, x, GIVEN.mask_LH[1]) for x in data[0]]
    found = shared.scale.mean + shared.scale.deviation * np.array(raw)
    assert fitted.history_CR[-1, 1] == pytest.approx(nmse(found, data[1]), rel=1e-4)
    other = fit.validation(shared, 16, 3, 1)[0]
    assert not np.array_equal(np.asarray(data[0]), np.asarray(other))
    with pytest.raises(ValueError, match="x_NTD"):
        fit.measure(shared, fitted.params_R, GIVEN, np.full((16, 3, 2), np.nan), data[1])


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"tokens": (), "steps": ()}, "at least one stage"),
        ({"steps": (4,)}, "steps"),
        ({"steps": (4, 3)}, "multiple of chunk"),
        ({"batch": 0}, "batch"),
        ({"optimizer": "nothing"}, "optimizer"),
        ({"optimizer": "masked"}, "optimizer"),
        ({"options": "b9=1"}, "arguments of adam"),
        ({"options": "b2"}, "name=number"),
        ({"warmup": 8}, "warmup"),
        ({"final": 2.0}, "final"),
        ({"clip": -1.0}, "clip"),
    ],
)
def test_impossible_training_is_refused(change, said):
    with pytest.raises(ValueError, match=said):
        dataclasses.replace(TRAINING, **change)


def test_no_run_and_short_sequences_are_refused(shared):
    none = jax.tree.map(lambda x: x[:0], GIVEN)
    with pytest.raises(ValueError, match="runs"):
        fit.fit(shared, none, EVALUATION, None, Stop(), "test")
    short = fit.Evaluation(16, (1,))
    with pytest.raises(ValueError, match="at least 2 tokens"):
        fit.fit(shared, GIVEN, short, None, Stop(), "test")
