"""The quick model is made once, kept whole, and refused when it is not what was asked for."""

import dataclasses
import json
import math
import signal

import chex
import jax
import pytest

from reach_jax.models import decoder
from reach_jax.pretrain import quick, train
from reach_jax.pretrain.corpus import CorpusConfig
from sweep_jax.stop import Stop, Stopped
from tests.pretrain.conftest import CORPUS, MODEL, TRAINING

CONFIG = quick.QuickModelConfig(CORPUS, MODEL, TRAINING, seed=3)


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    return tmp_path_factory.mktemp("models")


@pytest.fixture(scope="module")
def model(root) -> quick.QuickModel:
    return quick.load_or_train(CONFIG, root, Stop())


@pytest.fixture
def trainings(monkeypatch):
    """Counts trainings, and replaces them by initialisation."""
    seen = []

    def fake(model, training, stream_S, key, directory, stop):
        seen.append(training)
        return decoder.init(model, key)

    monkeypatch.setattr(train, "train", fake)
    return seen


def test_the_second_call_trains_nothing(model, root, monkeypatch):
    monkeypatch.setattr(train, "train", None)
    monkeypatch.setattr(train, "heldout_loss", None)
    again = quick.load_or_train(CONFIG, root, Stop())
    chex.assert_trees_all_equal(again.params, model.params)
    assert jax.tree.structure(again.params) == jax.tree.structure(model.params)
    assert (again.card, again.directory) == (model.card, model.directory)


def test_the_card_says_what_the_model_is(model, text):
    loss = train.heldout_loss(MODEL, model.params, text.heldout_S, TRAINING.length)
    assert model.card["heldout_loss"] == pytest.approx(loss, abs=1e-6)
    assert 3 < loss < math.log(MODEL.vocab_size) + 0.1  # better than a guess, and no wonder
    attention, mlp = 16 * 8 * (2 * 2 + 2 * 1), 3 * 16 * 24
    assert model.card["parameters"] == 300 * 16 + 2 * (attention + mlp + 2 * 16) + 16
    assert model.card["train_tokens"] == len(text.train_S)
    assert model.card["heldout_tokens"] == len(text.heldout_S)
    assert model.card["corpus_sha256"] == text.sha256
    assert model.directory.name == CONFIG.name
    assert not (model.directory / "training").exists()


def test_every_setting_is_in_the_name():
    others = [
        dataclasses.replace(CONFIG, seed=4),
        dataclasses.replace(CONFIG, corpus=CorpusConfig(300, 0.2)),
        dataclasses.replace(CONFIG, model=dataclasses.replace(MODEL, layers=3)),
        dataclasses.replace(CONFIG, training=dataclasses.replace(TRAINING, rate=1e-3)),
    ]
    assert len({config.name for config in [CONFIG, *others]}) == 5


def test_a_stop_leaves_no_model_and_the_next_call_goes_on(tmp_path, model):
    stop = Stop()
    stop.signum = signal.SIGINT
    with pytest.raises(Stopped, match="step 8 of 16"):
        quick.load_or_train(CONFIG, tmp_path, stop)
    assert not (tmp_path / CONFIG.name / "model.json").exists()
    finished = quick.load_or_train(CONFIG, tmp_path, Stop())
    chex.assert_trees_all_equal(finished.params, model.params)
    assert finished.card == model.card


@pytest.mark.parametrize(("loss", "shown"), [(7.25, "7.250"), (math.nan, "nan")])
def test_a_model_that_did_not_learn_is_refused(loss, shown, tmp_path, trainings, monkeypatch):
    monkeypatch.setattr(train, "heldout_loss", lambda *_: loss)
    message = rf"^training.max_loss = 7.0: the model reached {shown} nats"
    for _ in range(2):  # and stays refused without another training
        with pytest.raises(RuntimeError, match=message):
            quick.load_or_train(CONFIG, tmp_path, Stop())
    assert len(trainings) == 1


def test_lost_parameters_are_made_again(tmp_path, trainings, monkeypatch):
    monkeypatch.setattr(train, "heldout_loss", lambda *_: 1.0)
    first = quick.load_or_train(CONFIG, tmp_path, Stop())
    for manifest in (first.directory / "params").rglob("*.json"):
        manifest.write_text("damaged")
    again = quick.load_or_train(CONFIG, tmp_path, Stop())
    assert len(trainings) == 2
    chex.assert_trees_all_equal(again.params, first.params)


def test_a_model_of_other_text_is_refused(tmp_path, trainings, monkeypatch):
    monkeypatch.setattr(train, "heldout_loss", lambda *_: 1.0)
    model = quick.load_or_train(CONFIG, tmp_path, Stop())
    card_path = model.directory / "model.json"
    card_path.write_text(json.dumps(model.card | {"corpus_sha256": "0" * 64}))
    with pytest.raises(RuntimeError, match="another Python version's text"):
        quick.load_or_train(CONFIG, tmp_path, Stop())


def test_vocabularies_must_agree():
    with pytest.raises(ValueError, match=r"^model.vocab_size = 299: expected corpus.vocab_size"):
        dataclasses.replace(CONFIG, model=dataclasses.replace(MODEL, vocab_size=299))
