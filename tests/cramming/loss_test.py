"""The loss looks at the right tokens from the right places (pitfalls CRM-01 and CRM-07)."""

import dataclasses

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from reach_jax.cramming import lane
from reach_jax.cramming.state import Task
from reach_jax.cramming.verify import greedy_decode
from reach_jax.models import decoder
from tests.cramming.conftest import MODEL, PROTOCOL


@jax.jit
def _hidden(params, vectors_PD):
    P = len(vectors_PD)
    variables = {"params": params}
    everywhere = (jnp.arange(P), jnp.ones(P, bool))
    return decoder.Decoder(MODEL).apply(variables, vectors_PD, *everywhere, method="hidden")


def plain_logits(frozen, vectors_PD):
    """Logits (P, V) of a plain sequence of input vectors, the readout in float64."""
    P = len(vectors_PD)
    behind = np.zeros((24 - P, MODEL.width), np.float32)  # one shape; the future has no effect
    hidden_PD = _hidden(frozen.params, np.concatenate([vectors_PD, behind]))[:P]
    return np.asarray(hidden_PD, np.float64) @ np.asarray(frozen.params["embedding"], np.float64).T


loss_and_grad = jax.jit(
    jax.value_and_grad(lane.loss_and_reach, argnums=3, has_aux=True), static_argnums=(0, 1)
)


def log_softmax(logits):
    shifted = logits - logits.max(-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))


def task_of(target, used, padded):
    target_N = np.zeros(padded, np.int32)
    target_N[: len(target)] = target
    return Task(jnp.asarray(target_N), jnp.int32(len(target)), jnp.int32(used))


@pytest.mark.parametrize("prefix", ["begin", "none"])
@pytest.mark.parametrize("m", [1, 4])
@pytest.mark.parametrize("T", [1, 2, 7])
def test_loss_is_the_mean_of_every_target_from_the_last_prompt_vector_on(setup, m, T, prefix):
    rng = np.random.default_rng(m * 10 + T)
    target = rng.integers(1, MODEL.vocab_size, T)
    prompt = rng.normal(size=(m, MODEL.width)).astype(np.float32)
    frozen = setup.frozen if prefix == "begin" else setup.frozen._replace(prefix_D=None)
    embedding = np.asarray(frozen.params["embedding"])
    before = [embedding[:1]] if prefix == "begin" else []
    sequence = np.concatenate([*before, prompt, embedding[target[:-1]]])
    logits = plain_logits(frozen, sequence)[len(before) + m - 1 :]
    assert len(logits) == T
    expected = -log_softmax(logits / 0.7)[np.arange(T), target].mean()
    right = np.argmax(logits, -1) == target

    config = dataclasses.replace(PROTOCOL, lookahead=16, temperature=0.7)
    exact = [(m, T)] if (m, T) in [(1, 1), (4, 7)] else []
    for slots, padded in [*exact, (5, 16)]:  # padding changes nothing
        padded_prompt = np.zeros((slots, MODEL.width), np.float32)
        padded_prompt[slots - m :] = prompt
        (loss, prefix_length), grad = loss_and_grad(
            MODEL,
            config,
            frozen,
            jnp.asarray(padded_prompt),
            jnp.int32(0),
            task_of(target, m, padded),
        )
        np.testing.assert_allclose(loss, expected, rtol=2e-6, atol=1e-6)
        assert int(prefix_length) == np.cumprod(right).sum()
        assert np.abs(grad[slots - m :]).max(axis=1).min() > 0  # every vector in use is steered
        chex.assert_trees_all_equal(grad[: slots - m], jnp.zeros((slots - m, MODEL.width)))


def test_the_window_ends_lookahead_tokens_past_the_correct_prefix(setup, targets_CN):
    prompt = jax.random.normal(jax.random.key(3), (1, MODEL.width))
    target = targets_CN[0]
    embedding = np.asarray(setup.frozen.params["embedding"])
    sequence = np.concatenate([embedding[:1], prompt, embedding[target[:-1]]])
    nll = -log_softmax(plain_logits(setup.frozen, sequence)[1:])[np.arange(16), target]
    config = dataclasses.replace(PROTOCOL, lookahead=3, temperature=1.0)
    for reached, end in [(0, 3), (5, 8), (13, 16), (15, 16)]:
        (loss, _), _ = loss_and_grad(
            MODEL, config, setup.frozen, prompt, jnp.int32(reached), task_of(target, 1, 16)
        )
        np.testing.assert_allclose(loss, nll[:end].mean(), rtol=1e-5)


def test_a_tie_goes_to_the_lowest_token_in_search_and_in_decode(setup):
    """Two tokens with equal output rows tie exactly; only the lower one can be reached."""
    embedding = setup.frozen.params["embedding"]
    twin = embedding.at[9].set(embedding[5])
    frozen = setup.frozen._replace(params={**setup.frozen.params, "embedding": twin})
    prompts = np.random.default_rng(0).normal(size=(2000, 1, MODEL.width)).astype(np.float32)
    begin = np.asarray(twin[:1])
    emitted = (
        np.argmax(plain_logits(frozen, np.concatenate([begin, p]))[-1]) == 5 for p in prompts
    )
    prompt = next(p for p, hit in zip(prompts, emitted, strict=True) if hit)
    reached = []
    for token in (5, 9):
        (_, length), _ = loss_and_grad(
            MODEL, PROTOCOL, frozen, prompt, jnp.int32(0), task_of([token], 1, 1)
        )
        reached.append(int(length))
    assert reached == [1, 0]
    inputs = np.concatenate([begin, prompt])
    tokens, margins = greedy_decode(MODEL, frozen.params, inputs, 1, 20)
    assert tokens.tolist() == [5]
    assert margins[0] == 0.0


@pytest.mark.parametrize("objective", ["cross_entropy", "margin"])
@pytest.mark.parametrize("focus", [0.0, 3.0])
def test_objectives_by_their_formulas(setup, targets_CN, objective, focus):
    """Cross entropy, or softplus of what is missing to the margin; the first wrong token weighs."""
    prompt = jax.random.normal(jax.random.key(3), (1, MODEL.width))
    begin = np.asarray(setup.frozen.params["embedding"])[:1]
    sequence = np.concatenate([begin, prompt])
    first = int(np.argmax(plain_logits(setup.frozen, sequence)[-1]))
    target = np.array([first, *targets_CN[0, 1:]])  # right, then wrong: the focus is the second
    rows = np.concatenate([sequence, np.asarray(setup.frozen.params["embedding"])[target[:-1]]])
    logits = plain_logits(setup.frozen, rows)[1:]
    own = logits[np.arange(16), target]
    rivals = logits.copy()
    rivals[np.arange(16), target] = -np.inf
    terms = {
        "cross_entropy": -log_softmax(logits / 0.7)[np.arange(16), target],
        "margin": np.log1p(np.exp((1.5 - own + rivals.max(-1)) / 0.7)),
    }[objective]
    weights = np.zeros(16)
    weights[:5] = 1
    wrong = np.flatnonzero(np.argmax(logits, -1) != target)[0]
    assert 0 < wrong < 5
    weights[wrong] += focus
    config = dataclasses.replace(
        PROTOCOL, lookahead=4, temperature=0.7, objective=objective, margin=1.5, focus=focus
    )
    (loss, got), grad = loss_and_grad(
        MODEL, config, setup.frozen, prompt, jnp.int32(1), task_of(target, 1, 16)
    )
    np.testing.assert_allclose(loss, weights @ terms / weights.sum(), rtol=1e-5)
    assert int(got) == wrong
    assert np.isfinite(grad).all()
