"""The corpus and one short training run, made once a session."""

import dataclasses

import jax
import pytest

from reach_jax.models import decoder
from reach_jax.models.config import DecoderConfig
from reach_jax.pretrain import corpus, train
from sweep_jax.stop import Stop

CORPUS = corpus.CorpusConfig(vocab_size=300, heldout=0.1)
MODEL = DecoderConfig(
    vocab_size=300,
    layers=2,
    width=16,
    heads=2,
    kv_heads=1,
    head_width=8,
    mlp_width=24,
    rope_base=10_000.0,
    norm_eps=1e-5,
    tied=True,
    dtype="float32",
)
TRAINING = train.TrainingConfig(
    steps=16,
    batch=8,
    length=16,
    rate=3e-2,
    warmup=2,
    weight_decay=0.1,
    chunk=8,
    max_loss=7.0,
)
KEY = 5  # a seed: the key itself may be used once only


@dataclasses.dataclass(frozen=True)
class Trained:
    params: decoder.Params
    text: corpus.Corpus


@pytest.fixture(scope="session")
def text(tmp_path_factory) -> corpus.Corpus:
    return corpus.load(CORPUS, tmp_path_factory.mktemp("corpus"))


@pytest.fixture(scope="session")
def trained(text, tmp_path_factory) -> Trained:
    """The uninterrupted run."""
    directory = tmp_path_factory.mktemp("uninterrupted")
    key = jax.random.key(KEY)
    return Trained(train.train(MODEL, TRAINING, text.train_S, key, directory, Stop()), text)
