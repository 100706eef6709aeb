"""Selective scan and causal convolution against float64 loops over positions, and step by step."""

import functools

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from reach_jax.ops import ssm
from tests.models import mamba_reference

CHANNELS, N = 3, 5


def noise(seed, *shape):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def arguments(T, seed=0):
    """x, dt, a, b, c, d with decays from about 0.05 to 0.999 a position."""
    dt_TI = np.logaddexp(0, 2 * noise(seed + 1, T, CHANNELS) - 1)
    a_IN = -np.exp(noise(seed + 2, CHANNELS, N) - 1)
    b_TN, c_TN = noise(seed + 3, T, N), noise(seed + 4, T, N)
    return noise(seed, T, CHANNELS), dt_TI, a_IN, b_TN, c_TN, noise(seed + 5, CHANNELS)


scan = jax.jit(ssm.scan, static_argnames="chunk")


@pytest.mark.parametrize(
    ("T", "chunk"), [(1, 16), (2, 1), (7, 16), (16, 16), (17, 16), (23, 5), (40, 64)]
)
def test_scan_equals_a_float64_loop(T, chunk):
    given = arguments(T)
    got_TI = scan(*given, chunk=chunk)
    chex.assert_shape(got_TI, (T, CHANNELS))
    want_TI = mamba_reference.scan(*given)
    np.testing.assert_allclose(got_TI, want_TI, atol=2e-6 * np.abs(want_TI).max(), rtol=0)


def test_gradients_equal_central_differences_of_the_float64_loop():
    given, weight_TI = arguments(11), noise(9, 11, CHANNELS)

    def loss(*given):
        return jnp.sum(ssm.scan(*given, chunk=4) * weight_TI)

    grads = jax.jit(jax.grad(loss, argnums=tuple(range(6))))(*given)
    for place, grad in enumerate(grads):
        direction = np.random.default_rng(place).standard_normal(grad.shape)
        ends = []
        for sign in (1, -1):
            moved = [np.asarray(v, np.float64) for v in given]
            moved[place] = moved[place] + sign * 1e-5 * direction
            ends.append(np.sum(mamba_reference.scan(*moved) * weight_TI))
        want = (ends[0] - ends[1]) / 2e-5
        np.testing.assert_allclose(np.sum(grad * direction), want, rtol=2e-4, atol=1e-4)


def test_a_far_past_decays_to_nothing_and_nothing_overflows():
    """2,000 positions whose decays multiply to far below the least float32."""
    x_TI, dt_TI, a_IN, b_TN, c_TN, d_I = arguments(2000)
    grad = jax.jit(jax.grad(lambda x, dt: jnp.sum(ssm.scan(x, dt, a_IN, b_TN, c_TN, d_I)[-1])))
    grad_TI = grad(x_TI, 10 * dt_TI)
    assert np.isfinite(grad_TI).all()
    assert not np.asarray(grad_TI[:1000]).any()
    assert np.asarray(grad_TI[-1]).all()


def test_no_time_passes_where_dt_is_zero():
    """The state goes over such positions as if they were not there."""
    x_TI, dt_TI, a_IN, b_TN, c_TN, d_I = arguments(20)
    kept_T = np.random.default_rng(7).random(20) < 0.6
    got_TI = scan(x_TI, dt_TI * kept_T[:, None], a_IN, b_TN, c_TN, d_I, chunk=6)
    alone_TI = scan(x_TI[kept_T], dt_TI[kept_T], a_IN, b_TN[kept_T], c_TN[kept_T], d_I, chunk=6)
    np.testing.assert_allclose(got_TI[kept_T], alone_TI, atol=2e-6)


def test_steps_are_the_scan():
    x_TI, dt_TI, a_IN, b_TN, c_TN, d_I = arguments(23)

    def body(state_IN, now):
        x_I, dt_I, b_N, c_N = now
        y_I, state_IN = ssm.step(x_I, dt_I, a_IN, b_N, c_N, d_I, state_IN)
        return state_IN, y_I

    rows = (x_TI, dt_TI, b_TN, c_TN)
    _, stepped_TI = jax.lax.scan(body, jnp.zeros((CHANNELS, N)), rows)
    np.testing.assert_allclose(stepped_TI, scan(x_TI, dt_TI, a_IN, b_TN, c_TN, d_I), atol=3e-6)


def test_a_state_sums_in_float32_whatever_the_dtype():
    """3,000 equal writes without decay: a bfloat16 sum would stand still at 256."""
    T = 3000
    ones = functools.partial(jnp.ones, dtype=jnp.bfloat16)
    given = (ones((T, 1)), ones((T, 1)), jnp.zeros((1, 1), jnp.bfloat16), ones((T, 1)))
    y_TI = scan(*given, ones((T, 1)), ones(1))
    chex.assert_type(y_TI, jnp.float32)
    np.testing.assert_array_equal(y_TI[:, 0], np.arange(T) + 2)
    now = [v[0] for v in given[:2]] + [given[2], given[3][0], ones(1), ones(1)]
    y_I, state_IN = ssm.step(*now, jnp.full((1, 1), 2999.0))
    chex.assert_type([y_I, state_IN], jnp.float32)
    assert (float(y_I[0]), float(state_IN[0, 0])) == (3001.0, 3000.0)


def test_memory_of_a_gradient_stays_near_the_inputs():
    """The states of all positions would be N = 16 times the inputs, many times over."""
    T, inner, N = 256, 64, 16
    shapes = [(T, inner)] * 2 + [(inner, N)] + [(T, N)] * 2 + [(inner,)]
    given = [jax.ShapeDtypeStruct(shape, jnp.float32) for shape in shapes]

    def peak(chunk):
        def loss(*given):
            return jnp.sum(ssm.scan(*given, chunk=chunk) ** 2)

        compiled = jax.jit(jax.grad(loss, argnums=(0, 1))).lower(*given).compile()
        return compiled.memory_analysis().temp_size_in_bytes / (4 * T * inner)

    assert peak(16) < 16 < 64 < peak(T)


@pytest.mark.parametrize("W", [1, 2, 4, 9])
@pytest.mark.parametrize("has_bias", [True, False])
def test_convolution_equals_a_loop_and_its_steps(W, has_bias):
    T = 7
    x_TI, kernel_WI, bias_I = (
        noise(0, T, CHANNELS),
        noise(1, W, CHANNELS),
        noise(2, CHANNELS) if has_bias else None,
    )
    want_TI = mamba_reference.convolve(x_TI, kernel_WI, bias_I)
    np.testing.assert_allclose(ssm.convolve(x_TI, kernel_WI, bias_I), want_TI, atol=3e-6)
    past_SI = jnp.zeros((W - 1, CHANNELS))
    for x_I, want_I in zip(x_TI, want_TI, strict=True):
        got_I, past_SI = ssm.convolve_step(x_I, kernel_WI, bias_I, past_SI)
        np.testing.assert_allclose(got_I, want_I, atol=3e-6)
    chex.assert_shape(past_SI, (W - 1, CHANNELS))


def test_convolution_sums_bfloat16_in_float32():
    x_TI = jnp.array([[256.0], [1.0], [1.0], [-256.0]], jnp.bfloat16)
    got_TI = ssm.convolve(x_TI, jnp.ones((4, 1), jnp.bfloat16), jnp.full(1, 0.5, jnp.bfloat16))
    chex.assert_type(got_TI, jnp.float32)
    np.testing.assert_array_equal(got_TI[:, 0], [256.5, 257.5, 258.5, 2.5])
