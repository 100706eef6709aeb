"""The published protocols: which length is tried next, what a lane of fixed length does, gains."""

import dataclasses

import numpy as np
import pytest

from reach_jax.cramming import kuratov, outcome, paper
from reach_jax.cramming.state import AT_END, STALLED
from tests.cramming.conftest import MODEL, PROTOCOL, run

FIXED = dataclasses.replace(
    PROTOCOL, protocol="kuratov", steps=150, patience=40, b2=0.9, optimizer="adamw"
)


def sweep(chance, m, cap=1000):
    """The lengths tried, in order, when `chance(n)` succeed at length n."""
    shares, order = {}, []
    while (length := paper.next_length(shares, m, cap)) is not None:
        assert length not in shares
        shares[length] = chance(length)
        order.append(length)
    return order


def published(chance, m, cap=1000):
    """The same as the loop that the protocol describes, written apart."""
    seen, order = {}, []

    def look(n):
        if n not in seen:
            seen[n] = chance(n)
            order.append(n)
        return seen[n]

    n = max(10, m + 1)
    last_high = None
    while n <= cap and look(n) > 0.9:
        last_high = n
        n += 100
    n = max(10, m + 1) if last_high is None else last_high + 10
    while n <= cap:
        if look(n) < 0.1:
            if n + 100 <= cap:
                look(n + 100)
            break
        n += 10
    return order


@pytest.mark.parametrize("centre", [5, 14, 57, 88.9, 209.8, 448.6, 985, 3000])
@pytest.mark.parametrize("width", [0.5, 12.0])
def test_the_published_sweep_over_lengths(centre, width):
    def chance(n):
        return 1 / (1 + np.exp((n - centre) / width))

    order = sweep(chance, m=3)
    assert order == published(chance, 3)
    assert order[0] == 10
    assert max(order) <= 1000


def test_lengths_of_a_sweep_by_hand():
    assert sweep(lambda n: float(n <= 130), 1) == [10, 110, 210, 120, 130, 140, 240]
    assert sweep(lambda n: 0.0, 1) == [10, 110]
    assert sweep(lambda n: 0.0, 40) == [41, 141]
    assert sweep(lambda n: 1.0, 1, cap=30) == [10, 20, 30]
    assert sweep(lambda n: 0.5, 1, cap=40) == [10, 20, 30, 40]


@pytest.fixture(scope="module")
def ends(setup, targets_CN):
    """Lanes of length 2 and 16 with the first token predicted, and with it given."""
    found = {}
    for first_token in ("predicted", "given"):
        config = dataclasses.replace(FIXED, first_token=first_token)
        program = setup.program([4, 2], targets_CN[:2], config, chunk=25)
        program._assignments = [
            dataclasses.replace(item, length=n)
            for item, n in zip(program._assignments, (2, 16), strict=True)
        ]
        state = run(program, buckets=(16,), lanes=2)
        found[first_token] = (state, [program.finish(state, row) for row in range(2)])
    return found


@pytest.mark.parametrize("first_token", ["predicted", "given"])
def test_a_lane_of_fixed_length_succeeds_or_stalls(ends, setup, targets_CN, first_token):
    state, results = ends[first_token]
    given = int(first_token == "given")
    assert state.lanes_C.phase.tolist()[0] == AT_END
    assert state.lanes_C.phase.tolist()[1] in (STALLED, 3)
    (short, arrays), (long, _) = results
    assert short.status == long.status == "ok"  # a budget that is used up is the protocol's
    assert short.metrics["success"]
    assert short.metrics["teacher_forced"] == 1.0
    assert not long.metrics["success"]
    assert long.metrics["threshold"] <= long.metrics["searched"] < 16
    judged = long.metrics["searched"] - given
    np.testing.assert_allclose(long.metrics["teacher_forced"], judged / (16 - given))
    # The greedy decode again, by the argmax of whole sequences.
    from tests.cramming.loss_test import plain_logits

    embedding_VD = np.asarray(setup.frozen.params["embedding"])
    target = targets_CN[0, :2]
    sequence = [embedding_VD[:1], arrays["prompt"], embedding_VD[target[:given]]]
    for token in target[given:]:
        logits_V = plain_logits(setup.frozen, np.concatenate(sequence))[-1]
        assert np.argmax(logits_V) == token
        sequence.append(embedding_VD[token][None])


def test_gains_are_over_the_model_alone(ends, setup, targets_CN):
    """Sums of -log p by plain forwards of the prompt and of the bare text."""
    from tests.cramming.loss_test import log_softmax, plain_logits

    embedding_VD = np.asarray(setup.frozen.params["embedding"])
    (_, _), (result, arrays) = ends["predicted"][1]
    target = targets_CN[1]
    sums = []
    for prompt in (arrays["prompt"], arrays["prompt"][:0]):
        sequence = np.concatenate([embedding_VD[:1], prompt, embedding_VD[target[:-1]]])
        logits = plain_logits(setup.frozen, sequence)[len(prompt) :]
        nll = -log_softmax(logits)[np.arange(16), target].sum()
        sums.append((nll, (np.argmax(logits, -1) == target).sum()))
    (nll, right), (base_nll, base_right) = sums
    found = result.metrics
    np.testing.assert_allclose(found["information_gain_nats"], base_nll - nll, rtol=1e-4)
    np.testing.assert_allclose(
        found["information_gain_bits"] * np.log(2), found["information_gain_nats"]
    )
    assert found["token_gain"] == right - base_right


def test_without_a_prefix_the_first_token_is_no_gain(setup, targets_CN):
    """The model alone says nothing of it; nothing else may leak into the numbers."""
    frozen = setup.frozen._replace(prefix_D=None)
    task = outcome.Finished(MODEL, FIXED, frozen, 2, 16, targets_CN[1], 4)
    from tests.cramming.loss_test import log_softmax, plain_logits

    embedding_VD = np.asarray(setup.frozen.params["embedding"])
    alone = outcome.answers(task, np.zeros((4, MODEL.width), np.float32), 0)
    logits = plain_logits(frozen, embedding_VD[targets_CN[1][:-1]])
    want = -log_softmax(logits)[np.arange(15), targets_CN[1][1:]]
    np.testing.assert_allclose(alone.nll_N[1:], want, rtol=1e-4, atol=1e-4)


def test_capacity_is_the_longest_length_of_mean_accuracy():
    assert kuratov.capacity({8: 1.0, 16: 0.991, 32: 0.989, 64: 0.2}) == 16
    assert kuratov.capacity({8: 0.5, 16: 0.99}) == 16  # a dip below does not hide it
    assert kuratov.capacity({8: 0.98}) == 0
