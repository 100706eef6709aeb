"""The independent decode is a greedy decode, and a success means what it says (CRM-07)."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from reach_jax.cramming.verify import greedy_decode
from tests.cramming.conftest import MODEL, PROTOCOL, run
from tests.cramming.loss_test import plain_logits


@pytest.mark.parametrize("P", [1, 3, 5])
def test_decode_is_the_argmax_of_the_full_forward_again_and_again(setup, P):
    embedding = np.asarray(setup.frozen.params["embedding"])
    sequence = np.random.default_rng(P).normal(size=(P, MODEL.width)).astype(np.float32)
    tokens, margins = greedy_decode(MODEL, setup.frozen.params, sequence, 9, 20)
    for token, margin in zip(tokens, margins, strict=True):
        logits = plain_logits(setup.frozen, sequence)[-1]
        assert token == np.argmax(logits)
        best = np.sort(logits)
        np.testing.assert_allclose(margin, best[-1] - best[-2], atol=1e-4)
        sequence = np.concatenate([sequence, embedding[token][None]])


def test_slots_that_are_too_few_are_refused(setup):
    inputs = np.zeros((3, MODEL.width), np.float32)
    with pytest.raises(ValueError, match=r"slots = 6: expected at least .* 7"):
        greedy_decode(MODEL, setup.frozen.params, inputs, 5, 6)


def test_a_reported_success_is_emitted_by_the_stored_prompt(setup, targets_CN):
    config = dataclasses.replace(PROTOCOL, steps=300, patience=100)
    program = setup.program([1, 2, 3, 4], targets_CN[:4], config, chunk=50)
    state = run(program)
    longest = 0
    for row in range(4):
        result, arrays = program.finish(state, row)
        threshold = result.metrics["threshold"]
        longest = max(longest, threshold)
        sequence = np.concatenate(
            [np.asarray(setup.frozen.params["embedding"])[:1], arrays["prompt"]]
        )
        assert arrays["prompt"].shape == (row + 1, MODEL.width)
        for n in range(threshold):
            logits = plain_logits(setup.frozen, sequence)[-1]
            assert np.argmax(logits) == targets_CN[row, n]
            token = np.asarray(setup.frozen.params["embedding"])[targets_CN[row, n]]
            sequence = np.concatenate([sequence, token[None]])
        assert result.metrics["confirmed"]
        assert threshold == 0 or result.metrics["least_margin"] > 0
    assert longest >= 2  # or this test has looked at nothing


def test_a_search_that_claims_too_much_is_found_out(setup, targets_CN):
    program = setup.program([2], targets_CN[:1])
    state = run(program)
    honest = program.finish(state, 0)[0].metrics["threshold"]
    boast = state._replace(lanes_C=state.lanes_C._replace(best=state.lanes_C.best + 3))
    metrics = program.finish(boast, 0)[0].metrics
    assert metrics["searched"] == honest + 3
    assert metrics["threshold"] >= honest
    assert metrics["confirmed"] is (metrics["threshold"] == honest + 3)
    assert not metrics["confirmed"]


@pytest.fixture(scope="module")
def coarse(setup, targets_CN):
    """Prompts found in bfloat16, where ties and near ties are common."""
    params = jax.tree.map(lambda x: x.astype(jnp.bfloat16), setup.frozen.params)
    frozen = setup.frozen._replace(params=params, prefix_D=params["embedding"][0])
    made = dataclasses.replace(
        setup, frozen=frozen, model=dataclasses.replace(MODEL, dtype="bfloat16")
    )
    config = dataclasses.replace(PROTOCOL, steps=30, patience=30)
    program = made.program([1, 2, 3, 4], targets_CN[:4], config, chunk=30)
    state = run(program, buckets=(16,))
    return made, [program.finish(state, row) for row in range(4)]


def test_in_bfloat16_a_success_is_what_the_prompt_says_alone(coarse, targets_CN):
    """Teacher-forced and free run agree up to the confirmed length, or the record says not.

    The free run again with other padding: where every margin is clear of bfloat16's step it is the
    same, token by token.
    """
    setup, found = coarse
    longest = 0
    for row, (result, arrays) in enumerate(found):
        metrics = result.metrics
        n, begin = metrics["threshold"], np.asarray(setup.frozen.prefix_D, np.float32)[None]
        inputs = np.concatenate([begin, arrays["prompt"]])
        for slots in (20, 29):
            said, margins = greedy_decode(setup.model, setup.frozen.params, inputs, 12, slots)
            clear = int(np.cumprod(margins > 0.02).sum())
            agree = min(clear, n)
            assert said[:agree].tolist() == targets_CN[row, :agree].tolist()
        assert metrics["confirmed"] is (n == metrics["searched"])
        assert arrays["prompt"].dtype == np.float32
        longest = max(longest, agree)
    assert longest >= 2  # or this test has looked at nothing
