"""Counts by hand, tolerances and intervals by their meaning, heads matched by trying all ways."""

import itertools

import numpy as np
import pytest

from infoflow_jax.probing import agreement


def test_precision_and_recall_by_hand():
    known_NQS = np.zeros((4, 1, 5), bool)
    known_NQS[:, 0, :2] = True
    score_NQS = np.tile([0.9, 0.2, 0.5, 0.01, 0.0], (4, 1)).reshape(4, 1, 5)
    got = agreement.at(score_NQS, known_NQS, 0.3, 0)
    assert got.precision == (0.5, 0.5, 0.5)  # {1, 3} of which 1
    assert got.recall == (0.5, 0.5, 0.5)
    assert got.equal == 0.0
    low = agreement.at(score_NQS, known_NQS, 0.1, 0)
    assert (low.precision[0], low.recall[0]) == (pytest.approx(2 / 3), 1.0)
    assert np.isnan(agreement.at(score_NQS, known_NQS, 1.0, 0).precision[0])
    np.testing.assert_array_equal(agreement.counts(score_NQS > 0.3, known_NQS), [[1, 1, 1]] * 4)
    precision_C, recall_C = agreement.curve(score_NQS, known_NQS)
    at = agreement.TOLERANCES.index(min(agreement.TOLERANCES, key=lambda t: abs(np.log(t / 0.3))))
    assert (precision_C[at], recall_C[at]) == (0.5, 0.5)


def test_the_tolerance_comes_from_the_other_half():
    """Odd inputs alone would choose another one; even ones separate at 1e-4..1e-2."""
    known_NQS = np.tile([True, False], (8, 1)).reshape(8, 1, 2)
    score_NQS = np.tile([1e-2, 1e-4], (8, 1)).reshape(8, 1, 2)
    score_NQS[1::2] *= 1e-5
    got = agreement.agree(score_NQS, known_NQS, 0)
    assert 1e-4 <= got.tolerance < 1e-2
    assert got.recall[0] == 0.0
    score_NQS[1::2] *= 1e5
    assert agreement.agree(score_NQS, known_NQS, 0).equal == 1.0
    with pytest.raises(ValueError, match="score_NQS"):
        agreement.agree(score_NQS[:3], known_NQS[:3], 0)


def test_intervals_cover_the_truth_about_as_often_as_they_say():
    """Inputs with a hit rate of their own, of mean .8."""
    rng, covered = np.random.default_rng(0), 0
    for trial in range(60):
        rate_N = rng.choice([0.6, 1.0], 60)
        score_NQS = (rng.random((60, 1, 10)) < rate_N[:, None, None]).astype(float)
        _, low, high = agreement.at(score_NQS, np.ones((60, 1, 10), bool), 0.5, trial).recall
        covered += low <= 0.8 <= high
    assert 0.85 <= covered / 60 <= 1.0


def test_heads_are_matched_as_trying_all_ways_would():
    share_HI = np.random.default_rng(1).random((4, 3))
    pairs = agreement.match(share_HI)
    best = max(
        sum(share_HI[h, i] for i, h in enumerate(ways))
        for ways in itertools.permutations(range(4), 3)
    )
    assert sum(share_HI[h, i] for h, i in pairs) == pytest.approx(best)
    assert len({h for h, _ in pairs}) == len({i for _, i in pairs}) == 3


def test_shares_count_queries_that_want_a_key():
    picked_NHP = np.array([[[1, 2, 0], [0, 0, 0]]])
    wanted_INP = np.array([[[1, 2, -1]], [[0, 1, 0]]])
    np.testing.assert_allclose(agreement.shares(picked_NHP, wanted_INP), [[1, 1 / 3], [0, 2 / 3]])
