"""Training rows parsed back by an independent reader; which strings are kept for tests."""

import jax
import numpy as np
import pytest

from reach_jax.copying import task

SHORTEST, LONGEST, CONTEXT = 2, 7, 40


@pytest.fixture(scope="module")
def rows():
    token_BT, counts_BT = jax.jit(lambda key: task.rows(key, 400, SHORTEST, LONGEST, CONTEXT))(
        jax.random.key(0)
    )
    return ["".join(task.SYMBOLS[i] for i in row) for row in np.asarray(token_BT)], counts_BT


def examples(text):
    """Whole examples of a row as (string, answer, where the answer begins), and where they end."""
    found, place = [], 0
    while "." in text[place:]:
        end = text.index(".", place)
        question, answer = text[place:end].split("|")
        found.append((question[1:], answer, place + len(question) + 1))
        assert question[0] == "$"
        place = end + 1
    return found, place


def test_a_row_is_whole_examples_and_a_cut_one_that_teaches_nothing(rows):
    texts, counts_BT = rows
    for text, counts_T in zip(texts, np.asarray(counts_BT), strict=True):
        found, rest = examples(text)
        want_T = np.zeros(CONTEXT, bool)
        for string, answer, begin in found:
            assert string == answer
            assert SHORTEST <= len(string) <= LONGEST
            want_T[begin : begin + len(string) + 1] = True  # the end symbol with it
        np.testing.assert_array_equal(counts_T, want_T)
        assert text[rest : rest + 1] in ("$", "")
        assert "*" not in text


def test_lengths_and_letters_are_uniform_and_rows_fresh(rows):
    texts, _ = rows
    first = [examples(text)[0][0][0] for text in texts]
    lengths = np.bincount([len(s) for s in first], minlength=LONGEST + 1)[SHORTEST:]
    assert (np.abs(lengths - 400 / 6) < 4 * (400 / 6) ** 0.5).all()
    letters = np.bincount([ord(c) - 97 for s in first for c in s], minlength=26)
    mean = letters.mean()
    assert (np.abs(letters - mean) < 4.5 * mean**0.5).all()
    assert len(set(texts)) == 400


def test_no_training_string_is_a_test_string(rows):
    texts, _ = rows
    trained = {string for text in texts for string, _, _ in examples(text)[0]}
    assert not any(sum(ord(c) - 97 for c in string) % 26 == 0 for string in trained)
    for length in (1, 2, 7, 300):
        drawn_BN = task.strings(np.random.default_rng(1), 50, length)
        assert drawn_BN.shape == (50, length)
        assert task.held_out(drawn_BN).all()
        assert not trained & {task.decode(row) for row in drawn_BN}
    spread = np.bincount(task.strings(np.random.default_rng(2), 2600, 3)[:, -1], minlength=26)
    assert spread.min() > 50  # the last letter is forced, and uniform all the same


def test_text_and_ids_are_each_other():
    assert len(task.SYMBOLS) == task.VOCABULARY == 30
    assert task.decode(task.encode("$copy|copy.*")) == "$copy|copy.*"
    example = task.examples(task.encode("abc")[None])
    assert task.decode(example[0]) == "$abc|abc."
    assert task.size(3) == 9


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ((1, 0, 9), "longest"),
        ((0, 3, 9), "shortest"),
        ((4, 3, 9), "longest"),
        ((1, 4, 10), "context"),
    ],
)
def test_what_cannot_be_trained_on_is_refused(values, field):
    with pytest.raises(ValueError, match=field):
        task.TaskConfig(*values)
    with pytest.raises(ValueError, match="symbols of"):
        task.encode("Copy")
    with pytest.raises(ValueError, match="length = 0"):
        task.strings(np.random.default_rng(0), 1, 0)
