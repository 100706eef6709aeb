"""The corpus: every topic once, whole, on one side only, behind its own begin token."""

from pydoc_data import topics

import numpy as np
import pytest

from reach_jax.pretrain import corpus
from reach_jax.pretrain.corpus import BEGIN_ID, CorpusConfig
from tests.pretrain.conftest import CORPUS

TEXTS = list(topics.topics.values())


def documents(stream_S, tokenizer):
    """The texts between the begin tokens."""
    assert stream_S[0] == BEGIN_ID
    pieces = np.split(stream_S, np.flatnonzero(stream_S == BEGIN_ID))[1:]
    return [tokenizer.decode(piece[1:].tolist(), skip_special_tokens=False) for piece in pieces]


def test_the_two_streams_hold_every_topic_once(text):
    train = documents(text.train_S, text.tokenizer)
    heldout = documents(text.heldout_S, text.tokenizer)
    assert sorted(train + heldout) == sorted(TEXTS)
    assert not set(train) & set(heldout)
    assert abs(len(heldout) - CORPUS.heldout * len(TEXTS)) <= 1


def test_ids_fit_the_vocabulary_and_bytes_need_no_unknown(text):
    tokenizer = text.tokenizer
    assert tokenizer.get_vocab_size() == CORPUS.vocab_size
    assert tokenizer.token_to_id(corpus.BEGIN) == BEGIN_ID
    for stream_S in (text.train_S, text.heldout_S):
        assert stream_S.dtype == np.int32
        assert stream_S.max() < CORPUS.vocab_size
    strange = "naïve ☃  two spaces\n\ttab \x00 数学"
    assert tokenizer.decode(tokenizer.encode(strange).ids) == strange
    sentence = "The following statement is executed"
    assert len(tokenizer.encode(sentence).ids) < len(sentence)  # merges are used


def test_a_kept_tokenizer_is_used_again(text, tmp_path, monkeypatch):
    first = corpus.load(CORPUS, tmp_path)
    monkeypatch.setattr(corpus, "_train_tokenizer", None)
    for again in (corpus.load(CORPUS, tmp_path), text):  # `text` was made elsewhere, by training
        np.testing.assert_array_equal(first.train_S, again.train_S)
        np.testing.assert_array_equal(first.heldout_S, again.heldout_S)
        assert first.sha256 == again.sha256


def test_the_tokenizer_has_seen_the_training_topics_only(monkeypatch, tmp_path):
    kept = {str(i): f"some words of topic {i}" for i in range(10)}
    monkeypatch.setattr(topics, "topics", kept)
    config = CorpusConfig(vocab_size=270, heldout=0.1)
    one = corpus.load(config, tmp_path)
    (tmp_path / "tokenizer.json").unlink()
    (heldout,) = documents(one.heldout_S, one.tokenizer)
    held_name = next(name for name, topic in kept.items() if topic == heldout)
    monkeypatch.setattr(topics, "topics", kept | {held_name: "quite another language " * 50})
    other = corpus.load(config, tmp_path)
    assert other.tokenizer.to_str() == one.tokenizer.to_str()
    np.testing.assert_array_equal(other.train_S, one.train_S)
    assert len(other.heldout_S) > len(one.heldout_S)
    assert other.sha256 != one.sha256


@pytest.mark.parametrize(
    ("field", "vocab_size", "heldout"),
    [
        ("vocab_size", 256, 0.1),
        ("vocab_size", 4097, 0.1),
        ("heldout", 300, 0.0),
        ("heldout", 300, 0.6),
        ("heldout", 300, float("nan")),
    ],
)
def test_a_bad_field_is_named(field, vocab_size, heldout):
    with pytest.raises(ValueError, match=f"^{field} = "):
        CorpusConfig(vocab_size, heldout)


def test_a_share_without_any_topic_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"^heldout = 0.001: expected one of the"):
        corpus.load(CorpusConfig(300, 0.001), tmp_path)
