"""Attention, masks, rotary positions, norm and feed-forward against loops and their definitions."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from reach_jax.ops import attention, masks, mlp, norms, rope
from tests.models import reference


def noise(seed, *shape):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize(("heads", "kv_heads"), [(4, 4), (6, 2), (6, 1)])
def test_attend_equals_a_loop_over_visible_keys(heads, kv_heads):
    T, S, N = 4, 6, 5
    q_THN, k_SKN, v_SKN = noise(0, T, heads, N), noise(1, S, kv_heads, N), noise(2, S, kv_heads, N)
    mask_TS = np.random.default_rng(3).random((T, S)) < 0.5
    mask_TS[:, 2] = True
    want_THN = np.zeros((T, heads, N))
    for t, h in np.ndindex(T, heads):
        g = h // (heads // kv_heads)
        seen = np.flatnonzero(mask_TS[t])
        weights = np.exp([q_THN[t, h].astype(float) @ k_SKN[s, g] / N**0.5 for s in seen])
        want_THN[t, h] = weights / weights.sum() @ v_SKN[seen, g]
    got_THN = attention.attend(q_THN, k_SKN, v_SKN, mask_TS)
    chex.assert_shape(got_THN, (T, heads, N))
    np.testing.assert_allclose(got_THN, want_THN, atol=2e-6)


def test_a_row_without_keys_poisons_nothing():
    q_THN, k_SKN, v_SKN = noise(0, 3, 2, 4), noise(1, 3, 2, 4), noise(2, 3, 2, 4)
    mask_TS = np.array([[False] * 3, [True, True, False], [True] * 3])

    def loss(q_THN, k_SKN, v_SKN, mask_TS, first):
        return jnp.sum(attention.attend(q_THN, k_SKN, v_SKN, mask_TS)[first:] ** 2)

    grad = jax.jit(jax.grad(loss, argnums=(0, 1, 2)), static_argnums=4)
    grads = grad(q_THN, k_SKN, v_SKN, mask_TS, 1)
    chex.assert_tree_all_finite((attention.attend(q_THN, k_SKN, v_SKN, mask_TS), grads))
    alone = grad(q_THN[1:], k_SKN, v_SKN, mask_TS[1:], 0)
    chex.assert_trees_all_close((grads[0][1:], *grads[1:]), alone, atol=1e-6)
    assert not np.asarray(grads[0][0]).any()
    chex.assert_tree_all_finite(grad(q_THN, k_SKN, v_SKN, mask_TS, 0))


def test_scores_are_float32_for_bfloat16_inputs():
    # Two keys whose scores, 256 and 257, are the same bfloat16 number.
    q_THN = jnp.array([[[16.0, 1.0]]], jnp.bfloat16)
    k_SKN = jnp.array([[[16.0, 0.0]], [[16.0, 1.0]]], jnp.bfloat16) * 2**0.5
    v_SKN = jnp.array([[[0.0, 0.0]], [[1.0, 1.0]]], jnp.bfloat16)
    out_THN = attention.attend(q_THN, k_SKN, v_SKN, jnp.ones((1, 2), bool))
    chex.assert_type(out_THN, jnp.bfloat16)
    np.testing.assert_allclose(np.asarray(out_THN, float), 1 / (1 + np.exp(-1)), atol=0.01)


def test_causal_mask_hides_padding_and_the_future():
    got_TS = masks.causal(jnp.array([False, False, True, True, False, True]))
    want_TS = [
        [0, 0, 0, 0, 0, 0],
        [0, 0, 0, 0, 0, 0],
        [0, 0, 1, 0, 0, 0],
        [0, 0, 1, 1, 0, 0],
        [0, 0, 1, 1, 0, 0],
        [0, 0, 1, 1, 0, 1],
    ]
    np.testing.assert_array_equal(got_TS, np.array(want_TS, bool))


@pytest.mark.parametrize("position", [0, 2, 4])
def test_cached_mask_sees_the_slots_written_so_far(position):
    got_TS = masks.cached(jnp.int32(position), 5)
    np.testing.assert_array_equal(got_TS, [[s <= position for s in range(5)]])


@pytest.mark.parametrize(("width", "base"), [(2, 10_000.0), (6, 100.0), (8, 5e5)])
def test_rotation_is_a_complex_product_and_keeps_norms(width, base):
    positions_T = np.array([0, 1, 2, 17, 1000])
    x_THN = noise(4, 5, 3, width)
    got_THN = rope.rotate(
        x_THN, *rope.phases(jnp.asarray(positions_T), rope.frequencies(width, base))
    )
    want_THN = np.zeros(x_THN.shape)
    for t, h in np.ndindex(5, 3):
        want_THN[t, h] = reference.rotate(x_THN[t, h].astype(float), positions_T[t], base)
    np.testing.assert_allclose(got_THN, want_THN, atol=2e-4)  # float32 angles near 1000
    np.testing.assert_allclose(got_THN[:3], want_THN[:3], atol=1e-6)
    np.testing.assert_array_equal(got_THN[0], x_THN[0])
    norms_TH = np.linalg.norm(x_THN, axis=-1)
    np.testing.assert_allclose(np.linalg.norm(got_THN, axis=-1), norms_TH, rtol=1e-5)


def test_rotated_products_depend_on_the_distance_alone():
    q_N, k_N = noise(5, 8), noise(6, 8)
    places_T = jnp.arange(12)
    cos_TP, sin_TP = rope.phases(places_T, rope.frequencies(8, 100.0))
    turned_THN = rope.rotate(jnp.tile(jnp.stack([q_N, k_N]), (12, 1, 1)), cos_TP, sin_TP)
    product_TS = np.asarray(turned_THN[:, 0] @ turned_THN[:, 1].T)
    for distance in range(-11, 12):
        along = np.diagonal(product_TS, distance)
        np.testing.assert_allclose(along, along[0], atol=1e-5)
    means = [np.diagonal(product_TS, distance).mean() for distance in range(-11, 12)]
    assert np.min(np.diff(np.sort(means))) > 1e-3  # and does depend on it, sign included


def test_rotate_turns_in_float32_and_keeps_the_dtype():
    x_THN = noise(7, 9, 2, 6)
    phases = rope.phases(jnp.arange(9), rope.frequencies(6, 100.0))
    chex.assert_type(phases, jnp.float32)
    half_THN = rope.rotate(jnp.asarray(x_THN, jnp.bfloat16), *phases)
    chex.assert_type(half_THN, jnp.bfloat16)
    exact_THN = rope.rotate(jnp.asarray(x_THN, jnp.bfloat16).astype(jnp.float32), *phases)
    chex.assert_trees_all_equal(half_THN, exact_THN.astype(jnp.bfloat16))  # one rounding only


@pytest.mark.parametrize("shape", [(6,), (4, 6), (2, 3, 6)])
def test_rms_norm_equals_its_formula(shape):
    x, weight_D = noise(8, *shape), noise(9, 6)
    want = [reference.rms_norm(row.astype(float), weight_D, 0.1) for row in x.reshape(-1, 6)]
    got = norms.rms_norm(x, weight_D, 0.1)
    np.testing.assert_allclose(got, np.reshape(want, shape), atol=1e-6)


def test_rms_norm_computes_bfloat16_in_float32():
    x_D = jnp.asarray(1 + 0.1 * noise(10, 4096), jnp.bfloat16)
    got_D = norms.rms_norm(x_D, jnp.ones(4096), 1e-6)
    chex.assert_type(got_D, jnp.bfloat16)
    x64_D = np.asarray(x_D, float)
    want_D = jnp.asarray(x64_D / np.sqrt(np.mean(x64_D**2)), jnp.bfloat16)
    assert np.mean(np.asarray(got_D == want_D)) > 0.999  # one rounding, at the end


def test_rms_norm_of_zeros_has_a_finite_gradient():
    grad_D = jax.grad(lambda x_D: norms.rms_norm(x_D, jnp.ones(6), 1e-6)[0])(jnp.zeros(6))
    np.testing.assert_allclose(grad_D, [1e3, 0, 0, 0, 0, 0], rtol=1e-5)


def test_a_gated_block_equals_its_formula():
    x_TD, gate_DF, up_DF, down_FD = noise(0, 3, 4), noise(1, 4, 7), noise(2, 4, 7), noise(3, 7, 4)
    want_TD = [reference.swiglu(x_D.astype(float), gate_DF, up_DF, down_FD) for x_D in x_TD]
    hidden_TF = mlp.feed_forward(mlp.affine(x_TD, up_DF), mlp.affine(x_TD, gate_DF), "silu")
    np.testing.assert_allclose(mlp.affine(hidden_TF, down_FD), want_TD, atol=2e-5)
