"""Scores against dense float64 formulas; ties, precision, and the memory that chunks save."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from reach_jax.ops import readout
from tests.models.reference import log_softmax

V, D = 11, 5


def case(N, seed=0):
    rng = np.random.default_rng(seed)
    hidden_ND = rng.standard_normal((N, D)).astype(np.float32)
    head_VD = rng.standard_normal((V, D)).astype(np.float32)
    targets_N = rng.integers(0, V, N)
    targets_N[[0, -1]] = 0, V - 1  # the first and the last id
    best = np.argmax(hidden_ND @ head_VD.T, axis=-1)
    targets_N[1 : N // 2] = best[1 : N // 2]  # some are right
    return hidden_ND, head_VD, targets_N


def dense(hidden_ND, head_VD, targets_N, temperature):
    logits_NV = hidden_ND.astype(np.float64) @ head_VD.T
    rows = np.arange(len(targets_N))
    nll_N = -log_softmax(logits_NV / temperature)[rows, targets_N]
    others_NV = logits_NV.copy()
    others_NV[rows, targets_N] = -np.inf
    margin_N = logits_NV[rows, targets_N] - others_NV.max(axis=-1)
    return nll_N, margin_N, margin_N > 0


# 12 = 3 x 4; 10 is cut into fives of 2; the prime 13 into single positions or not at all.
CASES = [(12, 4, 1.0), (10, 4, 0.3), (13, 4, 0.3), (13, 13, 0.3), (6, 100, 1.0)]


@pytest.mark.parametrize(("N", "chunk", "temperature"), CASES)
def test_scores_equal_the_dense_formulas(N, chunk, temperature):
    hidden_ND, head_VD, targets_N = case(N)
    got = readout.score(hidden_ND, head_VD, jnp.asarray(targets_N), temperature, chunk)
    chex.assert_shape(got, (N,))
    nll_N, margin_N, correct_N = dense(hidden_ND, head_VD, targets_N, temperature)
    np.testing.assert_allclose(got.nll, nll_N, rtol=1e-6, atol=1e-6 / temperature)
    np.testing.assert_allclose(got.margin, margin_N, rtol=1e-6, atol=1e-6)
    np.testing.assert_array_equal(got.correct, correct_N)
    assert {True, False} == set(correct_N.tolist())


@pytest.mark.parametrize(("N", "chunk", "temperature"), CASES)
def test_gradients_equal_softmax_minus_one_hot(N, chunk, temperature):
    hidden_ND, head_VD, targets_N = case(N, seed=1)
    weight_N = np.linspace(-1, 2, N, dtype=np.float32)

    def loss(hidden_ND, head_VD):
        scores = readout.score(hidden_ND, head_VD, jnp.asarray(targets_N), temperature, chunk)
        return jnp.sum(weight_N * scores.nll)

    got_hidden_ND, got_head_VD = jax.grad(loss, argnums=(0, 1))(hidden_ND, head_VD)
    logits_NV = hidden_ND.astype(np.float64) @ head_VD.T / temperature
    dense_NV = np.exp(log_softmax(logits_NV)) - np.eye(V)[targets_N]
    dense_NV *= weight_N[:, None] / temperature
    np.testing.assert_allclose(got_hidden_ND, dense_NV @ head_VD, atol=1e-5)
    np.testing.assert_allclose(got_head_VD, dense_NV.T @ hidden_ND, atol=1e-5)


def test_the_lowest_id_wins_an_exact_tie():
    head_VD = np.random.default_rng(2).integers(-3, 3, (V, D)).astype(np.float32)
    head_VD[[2, 5, 9]] = 7.0  # the same best logit three times, exactly
    hidden_ND = np.ones((3, D), np.float32)
    scores = readout.score(hidden_ND, head_VD, jnp.array([2, 5, 9]), chunk=1)
    np.testing.assert_array_equal(scores.correct, [True, False, False])
    np.testing.assert_array_equal(scores.margin, [0, 0, 0])


def test_bfloat16_inputs_give_a_float32_loss():
    # Losses 36.125 and 0: near 36 bfloat16 knows quarters only.
    hidden_ND = jnp.ones((2, 2), jnp.bfloat16)
    head_VD = jnp.array([[-36.0, -0.125], [0.0, 0.0]], jnp.bfloat16)
    scores = readout.score(hidden_ND, head_VD, jnp.array([0, 1]))
    chex.assert_type((scores.nll, scores.margin, scores.correct), [jnp.float32, jnp.float32, bool])
    np.testing.assert_allclose(scores.nll, [36.125, 0.0], atol=1e-6)
    np.testing.assert_allclose(scores.margin, [-36.125, 36.125], atol=1e-6)
    chex.assert_type(readout.logits(hidden_ND, head_VD), jnp.float32)


def test_huge_logits_stay_finite():
    head_VD = jnp.array([[1e4], [-1e4], [0.0]])
    scores = readout.score(jnp.ones((3, 1)), head_VD, jnp.array([0, 1, 2]), temperature=0.1)
    np.testing.assert_allclose(scores.nll, [0, 2e5, 1e5], rtol=1e-6)


def temporary_bytes(N, chunk, V=50_000, D=8):
    def loss(hidden_ND, head_VD, targets_N):
        return jnp.sum(readout.score(hidden_ND, head_VD, targets_N, chunk=chunk).nll)

    shapes = (
        jax.ShapeDtypeStruct((N, D), jnp.float32),
        jax.ShapeDtypeStruct((V, D), jnp.float32),
        jax.ShapeDtypeStruct((N,), jnp.int32),
    )
    compiled = jax.jit(jax.value_and_grad(loss)).lower(*shapes).compile()
    return compiled.memory_analysis().temp_size_in_bytes


def test_memory_follows_the_chunk_and_not_the_length():
    dense, chunked = temporary_bytes(256, 256), temporary_bytes(256, 16)
    assert dense >= 4 * 256 * 50_000  # the logits are there at least once
    assert chunked < dense / 8
    assert chunked < 1.1 * temporary_bytes(64, 16)


def test_one_program_serves_all_targets():
    chex.clear_trace_counter()

    @jax.jit
    @chex.assert_max_traces(n=1)
    def nll(hidden_ND, head_VD, targets_N):
        return readout.score(hidden_ND, head_VD, targets_N, chunk=4).nll

    hidden_ND, head_VD, _ = case(8)
    found = [nll(hidden_ND, head_VD, jnp.full(8, token)) for token in range(V)]
    total_N = np.exp(-np.stack(found).astype(np.float64)).sum(axis=0)
    np.testing.assert_allclose(total_N, 1, rtol=1e-6)  # the probabilities of all tokens
