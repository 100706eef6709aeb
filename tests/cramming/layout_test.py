"""One lane's layout: what stands where, and that neither M nor unused rows reach its loss."""

import functools

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from reach_jax.cramming import layout
from reach_jax.models import decoder
from reach_jax.ops import readout
from tests.models import reference
from tests.models.tiny import CONFIG, make_params

M, D = 4, CONFIG.width
PARAMS = make_params(CONFIG)
APPLY = functools.partial(decoder.Decoder(CONFIG).apply, {"params": PARAMS})
PREFIX_D = PARAMS["embedding"][0]


def noise(seed, *shape):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def padded(prompt_mD, slots=M, fill=50.0):
    """The prompt in the last rows of `slots`; above it what must never matter."""
    return np.concatenate([fill * noise(9, slots - len(prompt_mD), D), prompt_mD])


@functools.partial(jax.jit, static_argnames="with_prefix")
def terms(prompt_MD, used, targets_N, with_prefix):
    """-log p of every target."""
    prefix_D = PREFIX_D if with_prefix else None
    target_ND = APPLY(targets_N, method="embed")
    parts = layout.arrange(prompt_MD, used, prefix_D, target_ND)
    hidden_TD = APPLY(*parts, method="hidden")
    return readout.score(hidden_TD[-len(targets_N) :], PARAMS["head"], targets_N).nll


@functools.partial(jax.jit, static_argnames="with_prefix")
def grad_and_loss(prompt_MD, used, targets_N, with_prefix):
    def loss(prompt_MD):
        return jnp.mean(terms(prompt_MD, used, targets_N, with_prefix))

    return jax.grad(loss)(prompt_MD), loss(prompt_MD)


def reference_terms(prompt_mD, targets_N, with_prefix):
    """The same from the unpadded sequence, by the float64 loop."""
    prefix_1D = [np.asarray(PREFIX_D)] if with_prefix else []
    embedded_ND = np.asarray(PARAMS["embedding"])[targets_N]
    inputs_TD = np.stack([*prefix_1D, *prompt_mD, *embedded_ND[:-1]])
    logits_TV = reference.logits(PARAMS, CONFIG, inputs_TD)
    N = len(targets_N)
    return -reference.log_softmax(logits_TV[-N:])[np.arange(N), targets_N]


@pytest.mark.parametrize("with_prefix", [True, False])
@pytest.mark.parametrize("used", [1, 2, 3, 4])
def test_rows_positions_and_validity(used, with_prefix):
    prompt_MD, target_ND = noise(0, M, D), noise(1, 3, D)
    prefix_D = jnp.asarray(noise(2, D)) if with_prefix else None
    inputs_TD, positions_T, valid_T = layout.arrange(
        prompt_MD, jnp.int32(used), prefix_D, target_ND
    )
    chex.assert_shape(inputs_TD, (M + 3, D))
    lane = [prefix_D] if with_prefix else []
    lane += [*prompt_MD[M - used :], *target_ND[:2]]
    pads = M + 3 - len(lane)
    np.testing.assert_array_equal(inputs_TD[pads:], np.stack(lane))
    np.testing.assert_array_equal(positions_T, [0] * pads + list(range(len(lane))))
    np.testing.assert_array_equal(valid_T, [False] * pads + [True] * len(lane))


@pytest.mark.parametrize("with_prefix", [True, False])
@pytest.mark.parametrize("N", [1, 2, 7])
def test_terms_equal_the_unpadded_float64_loop(N, with_prefix):
    chex.clear_trace_counter()
    targets_N = np.random.default_rng(N).integers(0, CONFIG.vocab_size, N).astype(np.int32)
    traced = jax.jit(chex.assert_max_traces(terms.__wrapped__, n=1), static_argnames="with_prefix")
    for used in range(1, M + 1):  # one program for all of them
        prompt_mD = noise(used, used, D)
        got_N = traced(padded(prompt_mD), jnp.int32(used), targets_N, with_prefix=with_prefix)
        chex.assert_shape(got_N, (N,))
        want_N = reference_terms(prompt_mD, targets_N, with_prefix)
        np.testing.assert_allclose(got_N, want_N, atol=2e-5)


def test_more_slots_change_neither_loss_nor_gradient():
    used, targets_N, prompt_mD = 2, np.array([3, 11, 5], np.int32), noise(2, 2, D)
    bare = grad_and_loss(prompt_mD, jnp.int32(used), targets_N, with_prefix=True)
    grad_MD, loss = grad_and_loss(padded(prompt_mD), jnp.int32(used), targets_N, with_prefix=True)
    assert not np.asarray(grad_MD[: M - used]).any()
    chex.assert_trees_all_close((grad_MD[M - used :], loss), bare, atol=1e-5)


@pytest.mark.parametrize("used", [1, 3])
def test_a_target_of_one_token_has_one_term_and_moves_every_prompt_vector(used):
    prompt_MD, targets_N = padded(noise(5, used, D)), np.array([7], np.int32)
    grad_MD, loss = grad_and_loss(prompt_MD, jnp.int32(used), targets_N, with_prefix=True)
    logits_V = reference.logits(PARAMS, CONFIG, np.stack([PREFIX_D, *prompt_MD[M - used :]]))[-1]
    np.testing.assert_allclose(loss, -reference.log_softmax(logits_V)[7], atol=2e-5)
    assert (np.linalg.norm(grad_MD[M - used :], axis=1) > 1e-3).all()


def test_the_last_target_is_never_an_input():
    prompt_MD, target_ND = noise(0, M, D), noise(1, 3, D)
    other_ND = target_ND.copy()
    other_ND[-1] = np.nan
    lanes = [layout.arrange(prompt_MD, jnp.int32(2), None, t_ND) for t_ND in (target_ND, other_ND)]
    chex.assert_trees_all_equal(*lanes)
