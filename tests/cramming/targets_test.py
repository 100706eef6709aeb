"""A target depends on seed, source and number only, and holds what it should."""

import numpy as np
import pytest
from scipy import stats

from reach_jax.cramming.targets import random_targets, text_targets

BEGIN = 0


def stream(lengths):
    """Documents of the given lengths, each token naming its place in the stream."""
    parts, at = [], 1
    for length in lengths:
        parts.append(np.concatenate([[BEGIN], np.arange(at, at + length)]))
        at += length
    return np.concatenate(parts).astype(np.int32)


def test_text_targets_are_pieces_of_one_document():
    found = text_targets(stream([30, 5, 40]), BEGIN, list(range(50)), 12, seed=3)
    assert found.shape == (50, 12)
    assert (np.diff(found, axis=1) == 1).all()  # consecutive in the stream, no begin token
    inside = (found[:, 0] <= 19) | ((found[:, 0] >= 36) & (found[:, 0] <= 64))
    assert inside.all()  # not across documents, and never in the one that is too short
    assert len(set(found[:, 0].tolist())) > 20


@pytest.mark.parametrize("make", [
    lambda numbers, seed: text_targets(stream([100]), BEGIN, numbers, 8, seed),
    lambda numbers, seed: random_targets(512, BEGIN, numbers, 8, seed),
])  # fmt: skip
def test_asking_for_more_targets_changes_none(make):
    many = make(list(range(6)), 1)
    np.testing.assert_array_equal(make([4, 2], 1), many[[4, 2]])
    assert (make(list(range(6)), 2) != many).any()


@pytest.mark.parametrize("length", [31, 61, 62, 63, 100, 124, 200])  # the whole has 62 tokens
def test_no_document_is_long_enough(length):
    with pytest.raises(ValueError, match=rf"max_target = {length}: expected at most the longest"):
        text_targets(stream([30, 30]), BEGIN, [0], length, seed=0)


def test_a_text_of_one_token():
    assert text_targets(stream([1]), BEGIN, [0, 1], 1, seed=0).tolist() == [[1], [1]]


@pytest.mark.parametrize("begin", [0, 7, 19])
def test_random_tokens_are_uniform_over_all_but_the_begin_token(begin):
    tokens = random_targets(20, begin, list(range(40)), 100, seed=0).ravel()
    counts = np.bincount(tokens, minlength=20)
    assert counts[begin] == 0
    assert stats.chisquare(np.delete(counts, begin)).pvalue > 1e-3
