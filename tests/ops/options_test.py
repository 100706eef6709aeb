"""The options that families differ in, each against its definition in float64."""

import math

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from reach_jax.ops import masks, mlp, norms, rope


def noise(seed, *shape):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def test_llama3_frequencies_are_the_published_ones():
    """Llama 3.2: pairs 0-14 kept, 15-17 mixed, 18-31 slowed 32 times."""
    plain_P = rope.frequencies(64, 5e5)
    scaled_P = rope.llama3(plain_P, 32.0, 1.0, 4.0, 8192)
    ratio_P = scaled_P.astype(np.float64) / plain_P
    np.testing.assert_array_equal(scaled_P[:15], plain_P[:15])
    np.testing.assert_allclose(ratio_P[15:18], [0.605573, 0.303743, 0.103448], atol=2e-6)
    np.testing.assert_allclose(ratio_P[18:], 1 / 32, rtol=1e-6)
    np.testing.assert_allclose(plain_P, 5e5 ** -(np.arange(0, 64, 2) / 64), rtol=5e-7)


def test_linear_scaling_is_a_slower_position():
    plain_P, positions_T = rope.frequencies(8, 100.0), jnp.arange(0, 40, 4)
    slowed = rope.phases(positions_T, rope.linear(plain_P, 4.0))
    chex.assert_trees_all_close(slowed, rope.phases(positions_T // 4, plain_P), atol=1e-6)


def test_partial_rotation_leaves_the_other_channels_bit_identical():
    x_THN = noise(0, 5, 3, 8)
    phases = rope.phases(jnp.arange(5), rope.frequencies(2, 1e4))
    got_THN = np.asarray(rope.rotate(x_THN, *phases))
    np.testing.assert_array_equal(got_THN[..., 2:], x_THN[..., 2:])
    turned = (x_THN[..., 0] + 1j * x_THN[..., 1]) * np.exp(1j * np.arange(5))[:, None]
    np.testing.assert_allclose(got_THN[..., 0], turned.real, atol=1e-6)
    np.testing.assert_allclose(got_THN[..., 1], turned.imag, atol=1e-6)


def test_no_rotation_is_the_identity():
    x_THN = noise(1, 5, 3, 7)
    phases = rope.phases(jnp.arange(5), rope.frequencies(0, 1.0))
    np.testing.assert_array_equal(rope.rotate(x_THN, *phases), x_THN)


@pytest.mark.parametrize("name", ["silu", "gelu", "gelu_tanh", "relu", "identity"])
def test_activations_equal_their_definitions(name):
    x = np.linspace(-6, 6, 12001)
    inner = math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)
    want = {
        "silu": x / (1 + np.exp(-x)),
        "relu": np.where(x > 0, x, 0),
        "identity": x,
        "gelu": np.array([v * (1 + math.erf(v / math.sqrt(2))) / 2 for v in x]),
        "gelu_tanh": 0.5 * x * (1 + np.tanh(inner)),
    }
    np.testing.assert_allclose(mlp.ACTIVATIONS[name](jnp.float32(x)), want[name], atol=1e-6)
    assert abs(np.abs(want["gelu"] - want["gelu_tanh"]).max() - 4.73e-4) < 1e-6


def test_the_gate_and_not_the_up_projection_is_activated():
    up_TF, gate_TF = noise(2, 3, 4), noise(3, 3, 4)
    want_TF = gate_TF / (1 + np.exp(-gate_TF)) * up_TF
    np.testing.assert_allclose(mlp.feed_forward(up_TF, gate_TF, "silu"), want_TF, atol=1e-6)
    plain_TF = mlp.feed_forward(up_TF, None, "silu")
    np.testing.assert_allclose(plain_TF, up_TF / (1 + np.exp(-up_TF)), atol=1e-6)


@pytest.mark.parametrize("shape", [(6,), (4, 6), (2, 3, 6)])
def test_norms_equal_their_formulas(shape):
    x, weight_D, bias_D = 3 + 2 * noise(4, *shape), noise(5, 6), noise(6, 6)
    x64 = x.astype(float)
    rms = x64 / np.sqrt((x64**2).mean(-1, keepdims=True) + 0.1)
    np.testing.assert_allclose(norms.rms_norm(x, weight_D, 0.1), rms * weight_D, atol=2e-6)
    offset = norms.rms_norm_offset(x, weight_D, 0.1)
    np.testing.assert_allclose(offset, rms * (1 + weight_D.astype(float)), atol=2e-6)
    unit = (x64 - x64.mean(-1, keepdims=True)) / np.sqrt(x64.var(-1, keepdims=True) + 0.1)
    got = norms.layer_norm(x, weight_D, bias_D, 0.1)
    np.testing.assert_allclose(got, unit * weight_D + bias_D, atol=3e-6)


def test_where_a_norm_rounds_to_bfloat16():
    """Llama rounds before the weight, Gemma once, at the end."""
    x_D = jnp.asarray(noise(7, 4096), jnp.bfloat16)
    weight_D = jnp.asarray(noise(8, 4096), jnp.bfloat16)
    x64_D, w64_D = np.asarray(x_D, float), np.asarray(weight_D, float)
    unit_D = x64_D / np.sqrt(np.mean(x64_D**2))

    def rounded(values_D):
        return np.asarray(jnp.asarray(values_D, jnp.float32).astype(jnp.bfloat16), float)

    llama_D = np.asarray(norms.rms_norm(x_D, weight_D, 1e-12), float)
    gemma_D = np.asarray(norms.rms_norm_offset(x_D, weight_D, 1e-12), float)
    assert np.mean(llama_D == rounded(rounded(unit_D) * w64_D)) > 0.99
    assert np.mean(llama_D == rounded(unit_D * w64_D)) < 0.9
    assert np.mean(gemma_D == rounded(unit_D * (1 + w64_D))) > 0.99
    assert np.mean(gemma_D == rounded(rounded(unit_D) * (1 + w64_D))) < 0.9


def test_layer_norm_of_a_constant_has_a_finite_gradient():
    def first(x_D):
        return norms.layer_norm(x_D, jnp.ones(6), jnp.zeros(6), 1e-5)[0]

    chex.assert_tree_all_finite(jax.grad(first)(jnp.full(6, 3.0)))


@pytest.mark.parametrize("window", [1, 3, 7, 20])
def test_a_window_is_the_last_keys_itself_included(window):
    got_TS = masks.causal(jnp.array([False] + [True] * 6), window)
    want_TS = [[0 < s <= t and s > t - window for s in range(7)] for t in range(7)]
    np.testing.assert_array_equal(got_TS, want_TS)
    for t in range(7):
        row_1S = masks.cached(jnp.int32(t), 7, window)
        np.testing.assert_array_equal(row_1S[0], [s <= t and s > t - window for s in range(7)])
