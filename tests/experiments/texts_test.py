"""Texts in a model's own tokens: from files, from words, uniform; the same for every m."""

import numpy as np
import pytest

from configs import cram
from reach_jax.cramming.settings import Assignment
from reach_jax.experiments import texts, zoo
from sweep_jax.stop import Stop


@pytest.fixture(scope="module")
def subject(tmp_path_factory):
    chosen = zoo.choice(cram.get_config("smoke").to_dict())
    return chosen, zoo.load(chosen, tmp_path_factory.mktemp("run"), Stop())


def rows(subject, found, source, numbers, length=12, seed=0):
    items = [Assignment(1 + n % 2, source, n) for n in numbers]
    return texts.make(found, *subject, items, length, seed)


def test_a_directory_of_texts(subject, tmp_path):
    """Targets are pieces of one file and never run from one into the next."""
    (tmp_path / "a.txt").write_text("the quick brown fox jumps over the lazy dog " * 3)
    (tmp_path / "b.txt").write_text("UPPER CASE AND NOTHING ELSE IN THIS FILE " * 3)
    (tmp_path / "c.md").write_text("not read")
    found = texts.Texts(str(tmp_path), texts.WORDFREQ)
    made = rows(subject, found, "text", range(30))
    said = {subject[1].text(row) for row in made}
    whole = [(tmp_path / name).read_text() for name in ("a.txt", "b.txt")]
    assert all(sum(text in file for file in whole) == 1 for text in said)
    assert {text.isupper() for text in said} == {True, False}
    one = rows(subject, texts.Texts(str(tmp_path / "a.txt"), texts.WORDFREQ), "text", [0, 1])
    assert all(subject[1].text(row) in whole[0] for row in one)
    with pytest.raises(ValueError, match="expected at most the longest held-out document"):
        rows(subject, found, "text", [0], length=2000)


def test_words_of_a_file(subject, tmp_path):
    (tmp_path / "words").write_text("alpha beta\ngamma alpha")
    found = texts.Texts(texts.QUICK, str(tmp_path / "words"))
    made = rows(subject, found, "words", range(20))
    assert made.shape == (20, 12)
    words = [word for row in made for word in subject[1].text(row).split()[:-1]]  # the last is cut
    assert set(words) == {"alpha", "beta", "gamma"}
    np.testing.assert_array_equal(rows(subject, found, "words", [7, 3]), made[[7, 3]])
    (tmp_path / "empty").write_text(" \n")
    with pytest.raises(ValueError, match=r"config\.texts\.words .* a file with words"):
        rows(subject, texts.Texts(texts.QUICK, str(tmp_path / "empty")), "words", [0])


def test_random_tokens_are_real_ones(subject):
    """Never the begin token, never the padding of the table (8 rows of 520), all the others."""
    model = subject[1]
    assert (model.config.vocab_size, model.tokens) == (520, 512)
    made = rows(subject, texts.Texts(texts.QUICK, texts.WORDFREQ), "random", range(60), 200)
    assert set(np.unique(made)) == set(range(1, 512))


def test_heldout_text_is_the_quick_corpus(subject):
    found = texts.Texts(texts.QUICK, texts.WORDFREQ)
    stream_S = zoo.heldout(*subject)
    whole = " ".join(map(str, stream_S))
    for row in rows(subject, found, "text", range(5)):
        assert " ".join(map(str, row)) in whole
