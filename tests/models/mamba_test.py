"""Mamba against a float64 loop, its steps against itself, and padding anywhere (MOD-11)."""

import dataclasses
import functools
import re

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from reach_jax.models import kinds, mamba
from reach_jax.ops import readout
from tests.models import mamba_reference
from tests.models.tiny import MAMBA, make_params

PARAMS = make_params(MAMBA)
T = 7


def soft_inputs(seed, *shape):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


@functools.partial(jax.jit, static_argnames=("config", "method"))
def run(config, params, inputs_TD, valid_T, positions_T, method="hidden"):
    module = kinds.module(config)
    return module.apply({"params": params}, inputs_TD, positions_T, valid_T, method=method)


def plain(inputs_TD, config=MAMBA, params=PARAMS, method="hidden"):
    T = len(inputs_TD)
    return run(config, params, inputs_TD, jnp.ones(T, bool), jnp.arange(T), method)


@functools.partial(jax.jit, static_argnums=0)
def run_steps(config, params, inputs_TD, cache):
    step = functools.partial(kinds.module(config).apply, {"params": params}, method="step")

    def body(cache, item):
        hidden_D, cache = step(*item, cache)
        return cache, hidden_D

    return jax.lax.scan(body, cache, (inputs_TD, jnp.arange(len(inputs_TD))))


VARIANTS = [
    MAMBA,
    dataclasses.replace(MAMBA, projection_bias=False, tied=True),
    dataclasses.replace(
        MAMBA,
        conv_bias=False,
        conv_width=1,
        state_size=1,
        step_rank=1,
        layers=1,
        float32_residual=False,
    ),
]


@pytest.mark.parametrize("config", VARIANTS)
def test_logits_states_and_steps_equal_a_float64_loop(config):
    params = make_params(config, seed=config.conv_width)
    tokens_T = np.random.default_rng(1).integers(0, config.vocab_size, T)
    inputs_TD = np.asarray(params["embedding"])[tokens_T]
    want_LTD = mamba_reference.states(params, config, inputs_TD)
    got_LTD = plain(inputs_TD, config, params, "states")
    chex.assert_shape(got_LTD, (config.layers + 1, T, config.width))
    np.testing.assert_allclose(got_LTD, want_LTD, atol=2e-5)
    head_VD = np.asarray(params["embedding"] if config.tied else params["head"])
    got_TV = jax.jit(kinds.module(config).apply)({"params": params}, jnp.asarray(tokens_T))
    chex.assert_type(got_TV, jnp.float32)
    np.testing.assert_allclose(got_TV, want_LTD[-1] @ head_VD.T, atol=1e-4)
    empty = kinds.empty_cache(config, T)
    cache, stepped_TD = run_steps(config, params, inputs_TD, empty)
    chex.assert_trees_all_equal_shapes_and_dtypes(cache, empty)
    np.testing.assert_allclose(stepped_TD, want_LTD[-1], atol=2e-5)


def test_a_memory_does_not_grow_with_the_slots():
    chex.assert_trees_all_equal(kinds.empty_cache(MAMBA, 1), kinds.empty_cache(MAMBA, 10_000))


LONG = 24  # positions, T of them no padding; 17 is more than a chunk of the scan
PATTERNS = {
    "left by 1 and right": [*range(1, 1 + T)],
    "left by 3, one less than the window": [*range(3, 3 + T)],
    "left by 4": [*range(4, 4 + T)],
    "left by 17": [*range(17, LONG)],
    "right": [*range(T)],
    "between, one at a time": [*range(0, 2 * T, 2)],
    "between, more than the window": [0, 1, 7, 8, 9, 19, 23],
}


@jax.jit
def grad_and_hidden(inputs_TD, valid_T):
    """Of the sum of a token's -log p over all that is no padding."""

    def loss(inputs_TD):
        hidden_TD = run(MAMBA, PARAMS, inputs_TD, valid_T, jnp.zeros(valid_T.shape, jnp.int32))
        logits_TV = readout.logits(hidden_TD, PARAMS["head"])
        nll_T = -jax.nn.log_softmax(logits_TV)[:, 3]
        return jnp.sum(jnp.where(valid_T, nll_T, 0.0)), hidden_TD

    return jax.grad(loss, has_aux=True)(inputs_TD)


@pytest.mark.parametrize("filling", [0.0, 100.0, np.nan])
@pytest.mark.parametrize("pattern", PATTERNS)
def test_padding_enters_no_state_wherever_it_is_and_whatever_it_holds(pattern, filling):
    """Every bias is noise, so that even a row of zeros would leave its mark."""
    rows, inputs_TD = PATTERNS[pattern], soft_inputs(8, T, MAMBA.width)
    want_grad_TD, want_TD = grad_and_hidden(inputs_TD, jnp.ones(T, bool))
    padded_TD = np.full((LONG, MAMBA.width), filling, np.float32)
    padded_TD[rows] = inputs_TD
    valid_T = np.isin(np.arange(LONG), rows)
    grad_TD, hidden_TD = jax.device_get(grad_and_hidden(padded_TD, valid_T))
    np.testing.assert_allclose(hidden_TD[rows], want_TD, atol=1e-5)
    np.testing.assert_allclose(hidden_TD[rows], mamba_reference.hidden(PARAMS, MAMBA, inputs_TD),
                               atol=2e-5)  # fmt: skip
    np.testing.assert_allclose(grad_TD[rows], want_grad_TD, atol=1e-5)
    assert np.abs(want_grad_TD).max(axis=1).min() > 1e-2
    assert not hidden_TD[~valid_T].any()
    assert not grad_TD[~valid_T].any()
    states_LTD = run(MAMBA, PARAMS, padded_TD, valid_T, np.zeros(LONG, np.int32), "states")
    want_LTD = mamba_reference.states(PARAMS, MAMBA, inputs_TD)
    np.testing.assert_allclose(states_LTD[:, rows], want_LTD, atol=2e-5)
    assert not states_LTD[:, ~valid_T].any()


def test_a_lane_of_padding_is_zero_and_disturbs_no_other():
    lanes_BTD = soft_inputs(9, 2, T, MAMBA.width)
    valid_BT = np.array([[True] * T, [False] * T])
    grad_BTD, hidden_BTD = jax.vmap(grad_and_hidden)(lanes_BTD, valid_BT)
    assert not np.asarray(hidden_BTD[1]).any()
    assert not np.asarray(grad_BTD[1]).any()
    grad_TD, hidden_TD = grad_and_hidden(lanes_BTD[0], valid_BT[0])
    np.testing.assert_allclose(hidden_BTD[0], hidden_TD, atol=1e-5)
    np.testing.assert_allclose(grad_BTD[0], grad_TD, atol=1e-5)


def test_positions_are_an_order_and_no_numbers():
    inputs_TD = soft_inputs(7, T, MAMBA.width)
    shifted_TD = run(MAMBA, PARAMS, inputs_TD, jnp.ones(T, bool), 3 * jnp.arange(T) + 11)
    np.testing.assert_array_equal(shifted_TD, plain(inputs_TD))
    assert np.abs(plain(inputs_TD[::-1])[::-1] - shifted_TD).max() > 0.1


def test_later_inputs_leave_earlier_states_bit_identical():
    """Over a chunk's end too."""
    inputs_TD = soft_inputs(4, LONG, MAMBA.width)
    before_TD = np.asarray(plain(inputs_TD))
    for t in range(0, LONG - 1, 3):
        changed_TD = inputs_TD.copy()
        changed_TD[t + 1 :] = 3 * soft_inputs(5, LONG - t - 1, MAMBA.width)
        after_TD = np.asarray(plain(changed_TD))
        np.testing.assert_array_equal(after_TD[: t + 1], before_TD[: t + 1])
        assert (np.abs(after_TD[t + 1 :] - before_TD[t + 1 :]).max(axis=1) > 1e-2).all()


def test_gradients_reach_exactly_the_past():
    jacobian = jax.jit(jax.jacrev(plain))(soft_inputs(6, T, MAMBA.width))
    reaches_TS = np.abs(jacobian).max(axis=(1, 3)) > 0
    np.testing.assert_array_equal(reaches_TS, np.tri(T, dtype=bool))


def test_the_residual_is_kept_in_the_dtype_asked_for():
    """Steps of 0.5 from 256: too small for bfloat16 to see, one by one or together."""
    for float32_residual, want in ((True, 257.5), (False, 256.0)):
        config = dataclasses.replace(
            MAMBA, dtype="bfloat16", layers=4, float32_residual=float32_residual
        )
        params = jax.tree.map(jnp.zeros_like, make_params(config))
        params["layers"]["down_bias"] += jnp.bfloat16(0.5)
        params["final_norm"] += 1.0
        inputs_TD = np.full((2, config.width), 256, np.float32)
        states_LTD = plain(inputs_TD, config, params, "states")
        chex.assert_type(states_LTD, jnp.float32 if float32_residual else jnp.bfloat16)
        assert (states_LTD[3] == want).all()


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_a_short_dtype_stays_near_float32_and_takes_float32_prompts(dtype):
    config = dataclasses.replace(MAMBA, dtype=dtype)
    params = make_params(config)
    chex.assert_type(params["layers"]["up"], jnp.dtype(dtype))
    for name in ("a_log", "d", "dt_bias", "norm"):
        chex.assert_type(params["layers"][name], jnp.float32)
    inputs_TD = soft_inputs(9, T, config.width)
    exact_TD = mamba_reference.hidden(params, config, inputs_TD)
    cache, stepped_TD = run_steps(config, params, inputs_TD, kinds.empty_cache(config, T))
    chex.assert_type(cache.state, jnp.float32)
    for half_TD in (plain(inputs_TD, config, params), stepped_TD):
        chex.assert_type(half_TD, jnp.dtype(dtype))
        error_TD = np.abs(np.asarray(half_TD, np.float64) - exact_TD)
        assert 1e-5 < error_TD.max() < 0.1 * np.abs(exact_TD).max()
    grad = jax.jit(jax.grad(lambda x: plain(x, config, params)[-1, 0].astype(jnp.float32)))
    chex.assert_type(grad(inputs_TD), jnp.float32)
    assert np.abs(grad(inputs_TD)).max() > 1e-2


def test_init_has_the_papers_decays_and_nothing_to_spare():
    config = dataclasses.replace(MAMBA, width=128, inner=256, step_rank=8, tied=True)
    params = mamba.init(config, jax.random.key(0))
    assert set(params) == {"embedding", "layers", "final_norm"}
    layers = params["layers"]
    fan_in = {"up": 128, "gate": 128, "select": 256, "dt": 8, "conv": 4, "down": 256}
    for name, size in fan_in.items():
        np.testing.assert_allclose(np.std(layers[name]), size**-0.5, rtol=0.05)
        assert np.abs(layers[name][0] - layers[name][1]).max() > 0.1
    np.testing.assert_allclose(np.exp(layers["a_log"]), np.tile([1, 2, 3, 4, 5], (2, 256, 1)),
                               rtol=1e-6)  # fmt: skip
    steps = np.log(np.logaddexp(0, np.asarray(layers["dt_bias"], np.float64)))
    low, high = np.log(1e-3), np.log(0.1)
    np.testing.assert_allclose([steps.min(), steps.max()], [low, high], atol=0.1)
    np.testing.assert_allclose(steps.mean(), (low + high) / 2, atol=0.2)
    for ones in (layers["d"], layers["norm"], params["final_norm"]):
        np.testing.assert_array_equal(ones, 1)
    for zeros in (layers["up_bias"], layers["conv_bias"], layers["down_bias"]):
        np.testing.assert_array_equal(zeros, 0)


def test_flops_are_twice_the_weights_of_the_layers():
    layers = jax.eval_shape(lambda: mamba.init(MAMBA, jax.random.key(0)))["layers"]
    names = ("up", "gate", "conv", "select", "dt", "down")
    assert MAMBA.flops_per_token == 2 * sum(layers[name].size for name in names)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("vocab_size", 0),
        ("layers", 0),
        ("width", 0),
        ("inner", -1),
        ("state_size", 0),
        ("conv_width", 0),
        ("step_rank", 0),
        ("norm_eps", float("nan")),
        ("dtype", "float64"),
    ],
)
def test_a_bad_field_is_named(field, value):
    with pytest.raises(ValueError, match=f"^{field} = {re.escape(repr(value))}: expected "):
        dataclasses.replace(MAMBA, **{field: value})
