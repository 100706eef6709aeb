import dataclasses

import jax
import numpy as np
import pytest

from reach_jax.models.config import DecoderConfig
from reach_jax.pretrain import markov
from reach_jax.pretrain.train import TrainingConfig
from sweep_jax.stop import Stop

LANGUAGE = markov.MarkovConfig(concentration=0.5, tokens=6000, heldout=1000)
MODEL = DecoderConfig(
    vocab_size=4,
    layers=1,
    width=4,
    heads=1,
    kv_heads=1,
    head_width=2,
    mlp_width=8,
    rope_base=100.0,
    norm_eps=1e-5,
    tied=False,
    dtype="float32",
)
TRAINING = TrainingConfig(
    steps=120,
    batch=16,
    length=16,
    rate=3e-2,
    warmup=5,
    weight_decay=0.0,
    chunk=120,
    max_loss=1.3,
)


def test_entropy_rate_of_chains_that_can_be_done_by_hand():
    p, q = 0.3, 0.1  # leaves 0 with p, 1 with q: stationary (q, p) / (p + q)

    def entropy(x):
        return -x * np.log(x) - (1 - x) * np.log(1 - x)

    want = (q * entropy(p) + p * entropy(q)) / (p + q)
    found = markov.entropy_rate(np.array([[1 - p, p], [q, 1 - q]]))
    np.testing.assert_allclose(found, want, rtol=1e-12)
    np.testing.assert_allclose(markov.entropy_rate(np.full((5, 5), 0.2)), np.log(5), rtol=1e-12)


def test_streams_are_one_walk_with_the_chains_frequencies():
    config = dataclasses.replace(LANGUAGE, tokens=60_000)
    chain_VV = markov.transition(config, 3, seed=1)
    np.testing.assert_allclose(chain_VV.sum(axis=1), 1, rtol=1e-12)
    assert chain_VV.min() > 0.003
    train_S, heldout_S = markov.streams(config, 3, seed=1)
    assert (train_S[0], len(train_S), len(heldout_S)) == (0, 60_000, 1000)
    times_VV = np.zeros((3, 3))
    np.add.at(times_VV, (train_S[:-1], train_S[1:]), 1)
    np.testing.assert_allclose(times_VV / times_VV.sum(axis=1, keepdims=True), chain_VV, atol=0.02)
    assert not np.array_equal(markov.streams(config, 3, seed=2)[0], train_S)


def test_a_model_learns_the_chain_and_is_kept(tmp_path, monkeypatch):
    model = markov.load_or_train(LANGUAGE, MODEL, TRAINING, 0, tmp_path, Stop())
    assert model.entropy_rate - 0.05 < model.loss < model.entropy_rate + 0.15
    assert model.loss < np.log(4) - 0.2
    again = markov.load_or_train(LANGUAGE, MODEL, TRAINING, 0, tmp_path, Stop())
    assert again.loss == model.loss
    jax.tree.map(np.testing.assert_array_equal, again.params, model.params)
    assert len([path for path in tmp_path.iterdir() if path.is_dir()]) == 1
    for bad in (1.31, float("nan")):
        monkeypatch.setattr(markov.train, "heldout_loss", lambda *_, bad=bad: bad)
        with pytest.raises(RuntimeError, match=r"max_loss = 1\.3"):
            markov.load_or_train(LANGUAGE, MODEL, TRAINING, 0, tmp_path, Stop())


@pytest.mark.parametrize(
    ("field", "value"), [("concentration", 0.0), ("tokens", 1), ("heldout", 0)]
)
def test_a_language_that_is_none_is_refused(field, value):
    with pytest.raises(ValueError, match=field):
        dataclasses.replace(LANGUAGE, **{field: value})
