"""The decoder against a float64 loop, its cache against itself, and what padding may change."""

import dataclasses
import functools

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from reach_jax.models import decoder
from reach_jax.ops import readout
from tests.models import reference
from tests.models.tiny import CONFIG, make_params

PARAMS = make_params(CONFIG)
T = 7


def soft_inputs(seed, *shape):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


@functools.partial(jax.jit, static_argnums=0)
def run_hidden(config, params, inputs_TD, positions_T, valid_T):
    variables = {"params": params}
    apply = functools.partial(decoder.Decoder(config).apply, method="hidden")
    return apply(variables, inputs_TD, positions_T, valid_T)


def plain_hidden(inputs_TD, config=CONFIG, params=PARAMS):
    T = len(inputs_TD)
    return run_hidden(config, params, inputs_TD, jnp.arange(T), jnp.ones(T, bool))


@functools.partial(jax.jit, static_argnums=0)
def run_steps(config, params, inputs_TD, cache):
    step = functools.partial(decoder.Decoder(config).apply, {"params": params}, method="step")

    def body(cache, item):
        hidden_D, cache = step(*item, cache)
        return cache, hidden_D

    return jax.lax.scan(body, cache, (inputs_TD, jnp.arange(len(inputs_TD))))


@pytest.mark.parametrize(
    ("heads", "kv_heads", "tied"), [(4, 4, True), (6, 2, False), (6, 1, True), (6, 1, False)]
)
def test_logits_equal_a_float64_loop(heads, kv_heads, tied):
    config = dataclasses.replace(CONFIG, heads=heads, kv_heads=kv_heads, tied=tied)
    params = make_params(config, seed=heads + kv_heads)
    tokens_T = np.random.default_rng(1).integers(0, config.vocab_size, T)
    tokens_T[2] = tokens_T[5]  # the same token at two positions
    got_TV = jax.jit(decoder.Decoder(config).apply)({"params": params}, jnp.asarray(tokens_T))
    want_TV = reference.logits(params, config, np.asarray(params["embedding"])[tokens_T])
    chex.assert_shape(got_TV, (T, config.vocab_size))
    chex.assert_type(got_TV, jnp.float32)
    assert np.abs(want_TV).max() > 1
    np.testing.assert_allclose(got_TV, want_TV, atol=1e-5 * np.abs(want_TV).max(), rtol=0)


def test_query_heads_share_a_key_head_with_their_neighbours():
    inputs_TD = soft_inputs(2, T, CONFIG.width)
    got_TD = plain_hidden(inputs_TD)
    blocks_TD = reference.hidden(PARAMS, CONFIG, inputs_TD)
    strides_TD = reference.hidden(PARAMS, CONFIG, inputs_TD, kv_of=lambda h, H, K: h % K)
    np.testing.assert_allclose(got_TD, blocks_TD, atol=3e-5)
    assert np.abs(got_TD[1:] - strides_TD[1:]).max() > 0.1


@pytest.mark.parametrize("kv_heads", [1, 2, 6])
def test_cached_steps_equal_the_full_pass(kv_heads):
    config = dataclasses.replace(CONFIG, kv_heads=kv_heads)
    params = make_params(config)
    inputs_TD = soft_inputs(3, T, config.width)
    full_TD = plain_hidden(inputs_TD, config, params)
    cache, stepped_TD = run_steps(config, params, inputs_TD, decoder.empty_cache(config, T))
    chex.assert_shape(cache, (config.layers, T, kv_heads, config.head_width))
    chex.assert_trees_all_close(stepped_TD, full_TD, atol=1e-5, rtol=1e-5)


def test_slots_past_the_position_are_never_read():
    inputs_TD = soft_inputs(3, T, CONFIG.width)
    _, exact_TD = run_steps(CONFIG, PARAMS, inputs_TD, decoder.empty_cache(CONFIG, T))
    spare = decoder.empty_cache(CONFIG, T + 6)
    dirty = jax.tree.map(lambda x: x + 1e3, spare)  # every slot is written before it is read
    for cache in (spare, dirty):
        _, hidden_TD = run_steps(CONFIG, PARAMS, inputs_TD, cache)
        chex.assert_trees_all_close(hidden_TD, exact_TD, atol=2e-6)


def test_later_inputs_leave_earlier_states_bit_identical():
    inputs_TD = soft_inputs(4, T, CONFIG.width)
    before_TD = np.asarray(plain_hidden(inputs_TD))
    for t in range(T - 1):
        changed_TD = inputs_TD.copy()
        changed_TD[t + 1 :] = 3 * soft_inputs(5, T - t - 1, CONFIG.width)
        after_TD = np.asarray(plain_hidden(changed_TD))
        np.testing.assert_array_equal(after_TD[: t + 1], before_TD[: t + 1])
        assert (np.abs(after_TD[t + 1 :] - before_TD[t + 1 :]).max(axis=1) > 1e-2).all()


def test_gradients_reach_exactly_the_past():
    jacobian = jax.jit(jax.jacrev(plain_hidden))(soft_inputs(6, T, CONFIG.width))
    reaches_TS = np.abs(jacobian).max(axis=(1, 3)) > 0
    np.testing.assert_array_equal(reaches_TS, np.tri(T, dtype=bool))


def test_a_shift_of_all_positions_changes_nothing():
    inputs_TD = soft_inputs(7, T, CONFIG.width)
    valid_T = jnp.ones(T, bool)
    shifted_TD = run_hidden(CONFIG, PARAMS, inputs_TD, jnp.arange(T) + 11, valid_T)
    spread_TD = run_hidden(CONFIG, PARAMS, inputs_TD, jnp.arange(T) * 2, valid_T)
    chex.assert_trees_all_close(shifted_TD, plain_hidden(inputs_TD), atol=3e-5)
    assert np.abs(spread_TD[1:] - plain_hidden(inputs_TD)[1:]).max() > 0.1


PADS = (1, 5, 0, 6)  # of 6 positions each; the last lane is padding and nothing else


@jax.jit
def grad_and_logits(inputs_BTD, pads_B):
    """Of left-padded lanes; the loss is the sum of a token's -log p over all that is no padding."""

    def loss(inputs_BTD):
        index_T = jnp.arange(inputs_BTD.shape[1])
        valid_BT = index_T[None] >= pads_B[:, None]
        positions_BT = jnp.maximum(index_T[None] - pads_B[:, None], 0)
        many = jax.vmap(run_hidden, in_axes=(None, None, 0, 0, 0))
        hidden_BTD = many(CONFIG, PARAMS, inputs_BTD, positions_BT, valid_BT)
        logits_BTV = jax.vmap(readout.logits, in_axes=(0, None))(hidden_BTD, PARAMS["head"])
        nll_BT = -jax.nn.log_softmax(logits_BTV)[:, :, 3]
        return jnp.sum(jnp.where(valid_BT, nll_BT, 0.0)), logits_BTV

    return jax.grad(loss, has_aux=True)(inputs_BTD)


@pytest.fixture(scope="module")
def lanes_BTD():
    lanes_BTD = soft_inputs(8, len(PADS), 6, CONFIG.width)
    for lane_TD, pad in zip(lanes_BTD, PADS, strict=True):
        lane_TD[:pad] *= 100  # what stands in the padding must not matter
    return lanes_BTD


def test_left_padding_changes_neither_logits_nor_gradients(lanes_BTD):
    grad_BTD, logits_BTV = jax.device_get(grad_and_logits(lanes_BTD, jnp.array(PADS)))
    for i, pad in enumerate(PADS[:-1]):
        single = grad_and_logits(lanes_BTD[i : i + 1, pad:], jnp.zeros(1, jnp.int32))
        chex.assert_trees_all_close(
            (grad_BTD[i, pad:], logits_BTV[i, pad:]),
            jax.tree.map(lambda x: x[0], single),
            atol=1e-5,
        )
        assert not grad_BTD[i, :pad].any()
        assert np.abs(grad_BTD[i, pad:]).max() > 1e-2


def test_a_lane_of_padding_is_finite_and_disturbs_no_other(lanes_BTD):
    with_lane = jax.device_get(grad_and_logits(lanes_BTD, jnp.array(PADS)))
    chex.assert_tree_all_finite(with_lane)
    assert not with_lane[0][-1].any()
    without = grad_and_logits(lanes_BTD[:-1], jnp.array(PADS[:-1]))
    chex.assert_trees_all_close(jax.tree.map(lambda x: x[:-1], with_lane), without, atol=1e-5)


def test_init_has_the_documented_scale_and_nothing_to_spare():
    config = dataclasses.replace(CONFIG, width=256, mlp_width=64, head_width=16, tied=True)
    params = decoder.init(config, jax.random.key(0))
    assert set(params) == {"embedding", "layers", "final_norm"}
    layers = params["layers"]
    fan_in = {"q": 256, "k": 256, "v": 256, "o": 96, "gate": 256, "up": 256, "down": 64}
    for name, kernel in {**layers["attention"], **layers, **{"head": params["embedding"]}}.items():
        if not isinstance(kernel, dict):
            np.testing.assert_allclose(np.std(kernel), fan_in.get(name, 256) ** -0.5, rtol=0.05)
            np.testing.assert_allclose(np.mean(kernel), 0, atol=3e-3)
    for norm in (layers["attention_norm"], layers["mlp_norm"], params["final_norm"]):
        np.testing.assert_array_equal(norm["weight"], 1)
    first, second = layers["gate"]
    assert np.abs(first - second).max() > 0.1  # every layer has a key of its own
    chex.assert_trees_all_equal(params, decoder.init(config, jax.random.key(0)))


def test_bfloat16_stays_near_float32_and_takes_float32_prompts():
    config = dataclasses.replace(CONFIG, dtype="bfloat16")
    params = make_params(config)
    chex.assert_type(params["layers"]["gate"], jnp.bfloat16)
    chex.assert_type(params["final_norm"]["weight"], jnp.float32)
    inputs_TD = soft_inputs(9, T, config.width)
    half_TD = plain_hidden(inputs_TD, config, params)
    chex.assert_type(half_TD, jnp.bfloat16)
    exact_TD = reference.hidden(params, config, inputs_TD)
    error_TD = np.abs(np.asarray(half_TD, np.float64) - exact_TD)
    assert 1e-4 < error_TD.max() < 0.1 * np.abs(exact_TD).max()
    cache, stepped_TD = run_steps(config, params, inputs_TD, decoder.empty_cache(config, T))
    chex.assert_type((*cache, stepped_TD), jnp.bfloat16)
    assert np.abs(np.asarray(stepped_TD, np.float64) - exact_TD).max() < 0.1 * exact_TD.max()
    logits_TV = readout.logits(half_TD, params["head"])
    chex.assert_type(logits_TV, jnp.float32)
    grad = jax.jit(jax.grad(lambda x: plain_hidden(x, config, params)[-1, 0].astype(jnp.float32)))
    chex.assert_type(grad(inputs_TD), jnp.float32)
    assert np.abs(grad(inputs_TD)).max() > 1e-2


def test_the_backward_pass_keeps_little(monkeypatch):
    """Without `saving_products` a step keeps far more, and says the same."""
    config = dataclasses.replace(CONFIG, layers=6)
    params = decoder.init(config, jax.random.key(2))
    inputs_TD = jax.random.normal(jax.random.key(3), (96, config.width))
    found = []
    for keep in (decoder.saving_products, lambda layer: layer):
        monkeypatch.setattr(decoder, "saving_products", keep)
        hidden = functools.partial(decoder.Decoder(config).apply, method="hidden")

        def loss(inputs_TD, hidden=hidden):
            out = hidden({"params": params}, inputs_TD, jnp.arange(96), jnp.ones(96, bool))
            return jnp.sum(jnp.sin(out))

        compiled = jax.jit(jax.grad(loss)).lower(inputs_TD).compile()
        memory = compiled.memory_analysis().temp_size_in_bytes
        found.append((memory, np.asarray(compiled(inputs_TD))))
    (lean, grad), (full, plain_grad) = found
    assert lean < 0.7 * full
    np.testing.assert_allclose(grad, plain_grad, rtol=1e-5, atol=1e-6)
