"""Attention between measures: against the model's layer and float64 loops; what it cannot see."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from reach_jax.models.layers import Attention, View
from reach_jax.ops import measure
from tests.models.tiny import CONFIG, make_params

FREE = dataclasses.replace(CONFIG, rotary_width=0)
LAYER = jax.tree.map(lambda x: x[0], make_params(FREE)["layers"]["attention"])
KERNELS = measure.Kernels(*(LAYER[name] for name in "qkvo"))
move, push = jax.jit(measure.move), jax.jit(measure.push)


def points(count, seed=0):
    return np.random.default_rng(seed).standard_normal((count, FREE.width)).astype(np.float32)


def by_hand(x_TD, y_SD, weight_S):
    """The formula of the module's docstring, one pair at a time."""
    q, k, v, o = (np.asarray(kernel, np.float64) for kernel in KERNELS)
    H, N, K = FREE.heads, FREE.head_width, FREE.kv_heads
    out_TD = np.array(x_TD, np.float64)
    for t, x in enumerate(x_TD):
        for h in range(H):
            g = h // (H // K)
            mass = [
                w * np.exp((x @ q[:, h]) @ (y @ k[:, g]) / np.sqrt(N))
                for y, w in zip(y_SD, weight_S, strict=True)
            ]
            mean = sum(m * (y @ v[:, g]) for m, y in zip(mass, y_SD, strict=True)) / sum(mass)
            out_TD[t] += mean @ o[h]
    return out_TD


def test_on_an_empirical_measure_it_is_the_ordinary_layer():
    x_SD = points(5)
    view = View(jnp.ones((5, 0)), jnp.zeros((5, 0)), jnp.ones((5, 5), bool))
    module = Attention(FREE)
    ordinary_SD = jax.jit(lambda x: module.apply({"params": LAYER}, x, view, 0, None)[0])(x_SD)
    pushed = push(measure.empirical(jnp.asarray(x_SD)), KERNELS)
    np.testing.assert_allclose(pushed.points_SD - x_SD, ordinary_SD, atol=2e-6)
    np.testing.assert_allclose(jnp.exp(pushed.ln_weight_S), 0.2, rtol=1e-6)


def test_weighted_points_and_points_elsewhere_equal_the_integral():
    x_TD, y_SD = points(3, seed=1), points(4, seed=2)
    weight_S = np.array([0.5, 0.0, 2.0, 1e-3])
    with np.errstate(divide="ignore"):
        ln_weight_S = np.log(weight_S).astype(np.float32)
    moved_TD = move(x_TD, measure.Measure(y_SD, ln_weight_S), KERNELS)
    assert np.isfinite(moved_TD).all()
    np.testing.assert_allclose(moved_TD, by_hand(x_TD, y_SD, weight_S), atol=1e-5)
    with jax.enable_x64(True):
        kernels = measure.Kernels(*(jnp.asarray(np.asarray(k, np.float64)) for k in KERNELS))
        ln = jnp.asarray(ln_weight_S, jnp.float64)
        exact_TD = measure.move(
            jnp.asarray(x_TD, jnp.float64),
            measure.Measure(jnp.asarray(y_SD, jnp.float64), ln),
            kernels,
        )
        assert exact_TD.dtype == jnp.float64
    want_TD = by_hand(x_TD.astype(np.float64), y_SD.astype(np.float64), np.exp(np.asarray(ln)))
    np.testing.assert_allclose(exact_TD, want_TD, rtol=1e-12, atol=1e-12)


def test_order_duplication_and_scale_of_the_weights_change_nothing():
    x_SD = points(6, seed=3)
    mu = measure.empirical(jnp.asarray(x_SD))
    base_SD = np.asarray(push(mu, KERNELS).points_SD)
    order = np.array([3, 0, 5, 1, 4, 2])
    shuffled = push(measure.empirical(jnp.asarray(x_SD[order])), KERNELS)
    np.testing.assert_allclose(shuffled.points_SD, base_SD[order], rtol=1e-6, atol=1e-6)
    for times in (2, 3):
        again = push(measure.empirical(jnp.asarray(np.tile(x_SD, (times, 1)))), KERNELS)
        np.testing.assert_allclose(
            again.points_SD, np.tile(base_SD, (times, 1)), rtol=1e-6, atol=1e-6
        )
    heavier = push(mu._replace(ln_weight_S=mu.ln_weight_S + 3.0), KERNELS)
    np.testing.assert_allclose(heavier.points_SD, base_SD, rtol=1e-6, atol=1e-6)


def test_twice_the_same_point_is_one_point_of_twice_the_weight():
    """And duplicating one vector alone, unlike all of them, does change the measure."""
    x_SD = points(3, seed=4)
    doubled = move(x_SD, measure.empirical(jnp.asarray(x_SD[[0, 0, 1, 2]])), KERNELS)
    weighted = measure.Measure(x_SD, np.log(np.array([2, 1, 1], np.float32) / 4))
    np.testing.assert_allclose(doubled, move(x_SD, weighted, KERNELS), rtol=1e-6, atol=1e-6)
    plain = move(x_SD, measure.empirical(jnp.asarray(x_SD)), KERNELS)
    assert np.abs(doubled - plain).max() > 1e-2


@pytest.mark.parametrize("scale", [None, 0.7])
def test_forms_are_the_matrices_of_scores_and_values(scale):
    a_HDD, v_HDD = measure.forms(KERNELS, scale)
    x_SD = points(4, seed=5)
    scores_HST = np.einsum("sd,hde,te->hst", x_SD, a_HDD, x_SD)
    weights_HST = np.exp(scores_HST)
    weights_HST /= weights_HST.sum(-1, keepdims=True)
    want_SD = x_SD + np.einsum("hst,td,hde->se", weights_HST, x_SD, v_HDD)
    mu = measure.empirical(jnp.asarray(x_SD))
    np.testing.assert_allclose(measure.push(mu, KERNELS, scale).points_SD, want_SD, atol=1e-5)
