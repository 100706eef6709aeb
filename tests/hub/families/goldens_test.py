"""Every family against the reference's numbers, from files small enough to be committed."""

import functools
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from reach_jax.hub import loader
from reach_jax.models import kinds
from tests.hub.families import compare

GOLDENS = Path(__file__).parent / "goldens"
NAMES = sorted(p.name for p in GOLDENS.iterdir())


@functools.cache
def golden(name):
    with np.load(GOLDENS / name / "expected.npz", allow_pickle=False) as arrays:
        return loader.load(GOLDENS / name, "float32"), dict(arrays)


@pytest.fixture(params=NAMES)
def case(request):
    return golden(request.param)


def inputs(loaded, want):
    embedded_TD = compare.call(loaded, "embed", jnp.asarray(want["tokens"]))
    return jnp.concatenate([jnp.asarray(want["soft"]), embedded_TD])


def test_logits_states_loss_and_prompt_gradient_are_the_references(case):
    found = compare.errors(*case)
    assert max(found.values()) <= 1e-4, found


def test_goldens_are_small():
    for name in NAMES:
        size = sum(p.stat().st_size for p in (GOLDENS / name).iterdir())
        assert size < 200_000, name


def test_llama3_scaling_far_from_the_start():
    loaded, want = golden("llama")
    got_TV = compare.logits(loaded, want["far_tokens"])[-2:]
    np.testing.assert_allclose(got_TV, want["far_logits"], atol=1e-4, rtol=0)


def test_steps_with_a_cache_are_the_full_forward(case):
    loaded, want = case
    inputs_TD = inputs(loaded, want)
    T = inputs_TD.shape[0]
    module, variables = kinds.module(loaded.config), {"params": loaded.params}
    step = jax.jit(functools.partial(module.apply, variables, method="step"))
    cache, got_TD = kinds.empty_cache(loaded.config, T), []
    for t in range(T):
        state_D, cache = step(inputs_TD[t], jnp.int32(t), cache)
        got_TD.append(state_D)
    np.testing.assert_allclose(jnp.stack(got_TD), compare.plain(loaded, inputs_TD), atol=1e-4)


@pytest.mark.parametrize("pads", [1, 2])
def test_left_padding_changes_nothing(case, pads):
    loaded, want = case
    inputs_TD = inputs(loaded, want)
    T, D = inputs_TD.shape
    padded_TD = jnp.concatenate([jnp.full((pads, D), 3.0), inputs_TD])
    index_T = jnp.arange(T + pads)
    got_TD = compare.call(
        loaded, "hidden", padded_TD, jnp.maximum(index_T - pads, 0), index_T >= pads
    )
    np.testing.assert_allclose(got_TD[pads:], compare.plain(loaded, inputs_TD), atol=1e-5)


def test_a_lane_of_padding_is_finite_and_disturbs_no_other(case):
    loaded, want = case
    inputs_TD = inputs(loaded, want)
    T = inputs_TD.shape[0]

    def total(inputs_BTD, valid_BT):
        one = functools.partial(compare.call, loaded, "hidden")
        hidden_BTD = jax.vmap(one, in_axes=(0, None, 0))(inputs_BTD, jnp.arange(T), valid_BT)
        return jnp.where(valid_BT[..., None], hidden_BTD**2, 0.0).sum(), hidden_BTD

    grad = jax.jit(jax.grad(total, has_aux=True))
    lanes_BTD = jnp.stack([inputs_TD, 50 * inputs_TD[::-1]])
    grad_BTD, hidden_BTD = grad(lanes_BTD, jnp.array([[True] * T, [False] * T]))
    assert np.isfinite(grad_BTD).all()
    assert np.isfinite(hidden_BTD).all()
    assert not np.asarray(grad_BTD[1]).any()
    alone_1TD, hidden_1TD = grad(lanes_BTD[:1], jnp.ones((1, T), bool))
    np.testing.assert_allclose(hidden_BTD[:1], hidden_1TD, atol=2e-5)
    largest = np.abs(alone_1TD).max()
    np.testing.assert_allclose(grad_BTD[:1] / largest, alone_1TD / largest, atol=1e-5)


def test_the_future_has_no_effect_on_the_past(case):
    loaded, want = case
    inputs_TD = inputs(loaded, want)
    changed_TD = inputs_TD.at[7:].multiply(-2.0)  # a layer norm would not see a shift
    one_TD, other_TD = compare.plain(loaded, inputs_TD), compare.plain(loaded, changed_TD)
    np.testing.assert_array_equal(one_TD[:7], other_TD[:7])
    assert np.abs(one_TD[7:] - other_TD[7:]).max(axis=-1).min() > 1e-2
