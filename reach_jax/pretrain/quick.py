"""The quick model: made once, kept in a directory, and refused when it did not learn.

Everything that decides it (corpus, sizes, training, seed) is in the directory's name, and the text
is compared by its hash, so a cached model is never the wrong one.
"""

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax

from reach_jax.models import kinds
from reach_jax.models.config import DecoderConfig, Params
from reach_jax.pretrain import corpus, train
from sweep_jax import atomic
from sweep_jax.cells import hash_name
from sweep_jax.checkpoint import Checkpoints
from sweep_jax.checks import require, resolve
from sweep_jax.lock import held
from sweep_jax.stop import Stop

_KEY = 0x51  # keeps the model's keys apart from the cells'


@dataclasses.dataclass(frozen=True)
class QuickModelConfig:
    """Corpus, model and training run."""

    corpus: corpus.CorpusConfig
    model: kinds.Config
    training: train.TrainingConfig
    seed: int

    def __post_init__(self) -> None:
        require(
            self.model.vocab_size == self.corpus.vocab_size,
            "model.vocab_size",
            self.model.vocab_size,
            f"corpus.vocab_size = {self.corpus.vocab_size}",
        )

    @property
    def name(self) -> str:
        """The hash that names the model's directory."""
        return hash_name(dataclasses.asdict(self))


@dataclasses.dataclass(frozen=True)
class QuickModel:
    """A trained model and the text it comes from."""

    params: Params
    corpus: corpus.Corpus
    card: dict[str, Any]  # heldout_loss in nats a token, parameters, corpus_sha256, token counts
    directory: Path


def resolve_quick(config: Mapping[str, Any], seed: int, path: str) -> QuickModelConfig:
    """The sections `corpus`, `model` and `training` of a whole configuration, checked.

    Raises:
      ValueError: a field is missing, unknown, of the wrong type, or does not fit the others.
    """
    text = resolve(corpus.CorpusConfig, config["corpus"], f"{path}.corpus")
    sizes = {"vocab_size": text.vocab_size, **config["model"]}
    model = resolve(DecoderConfig, sizes, f"{path}.model")
    training = resolve(train.TrainingConfig, config["training"], f"{path}.training")
    return QuickModelConfig(text, model, training, seed)


def load_or_train(config: QuickModelConfig, root: Path, stop: Stop) -> QuickModel:
    """The model under `root`, trained first if it is not there.

    Raises:
      Stopped: a stop was asked for while training; the last chunk is saved.
      RuntimeError: the held-out loss is not within `config.training.max_loss`, or the model that
        is there comes from the text of another Python version.
    """
    directory = root / config.name
    card_path = directory / "model.json"
    with held(directory):
        text = corpus.load(config.corpus, directory)
        finished = Checkpoints(directory / "params", keep=1)
        params = None
        card = atomic.read_json(card_path)
        if card is not None:
            shapes = jax.eval_shape(lambda: kinds.init(config.model, jax.random.key(0)))
            restored = finished.restore(shapes)
            params = None if restored is None else restored[1]
        if params is None or card is None:
            key = jax.random.fold_in(jax.random.key(config.seed), _KEY)
            running = directory / "training"
            params = train.train(config.model, config.training, text.train_S, key, running, stop)
            finished.save(config.training.steps, params)
            card = _card(config, text, params)
            atomic.write_text(card_path, json.dumps(card, indent=1) + "\n")
            Checkpoints(running).clear()
    if card["corpus_sha256"] != text.sha256:
        raise RuntimeError(
            f"{directory}: this model was trained on another Python version's text, whose held-out"
            " part differs; run with that version, or in another workdir"
        )
    if not card["heldout_loss"] <= config.training.max_loss:  # NaN is refused too
        raise RuntimeError(
            f"training.max_loss = {config.training.max_loss}: the model reached"
            f" {card['heldout_loss']:.3f} nats a token; train longer or allow more"
        )
    return QuickModel(params, text, card, directory)


def _card(config: QuickModelConfig, text: corpus.Corpus, params: Params) -> dict[str, Any]:
    length = config.training.length
    return {
        "heldout_loss": train.heldout_loss(config.model, params, text.heldout_S, length),
        "parameters": sum(x.size for x in jax.tree.leaves(params)),
        "train_tokens": len(text.train_S),
        "heldout_tokens": len(text.heldout_S),
        "corpus_sha256": text.sha256,
    }
