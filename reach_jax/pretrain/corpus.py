"""Real English that every machine has: Python's own language reference, and a BPE made from it.

The text differs a little between Python versions, so its hash travels with every result.
Not a data pipeline: the whole corpus is one array in memory.
"""

import dataclasses
import hashlib
from pathlib import Path
from pydoc_data import topics

import numpy as np
import tokenizers
from tokenizers import decoders, models, pre_tokenizers, trainers

from sweep_jax.atomic import write_text
from sweep_jax.checks import require

BEGIN = "<|begin|>"  # stands before every text; its id is 0
BEGIN_ID = 0


@dataclasses.dataclass(frozen=True)
class CorpusConfig:
    """Which text, cut how."""

    vocab_size: int
    heldout: float  # share of the topics kept from training; at most every second one

    def __post_init__(self) -> None:
        require(
            257 <= self.vocab_size <= 4096,
            "vocab_size",
            self.vocab_size,
            "an integer in [257, 4096]: 256 bytes, the begin token, merges",
        )
        require(0 < self.heldout <= 0.5, "heldout", self.heldout, "a share in (0, 0.5]")


@dataclasses.dataclass(frozen=True)
class Corpus:
    """Token streams; every topic starts with `BEGIN_ID` and nothing else is `BEGIN_ID`."""

    train_S: np.ndarray  # int32
    heldout_S: np.ndarray  # int32
    tokenizer: tokenizers.Tokenizer
    sha256: str  # of the text itself


def load(config: CorpusConfig, directory: Path) -> Corpus:
    """The corpus and its tokenizer; the latter is made once and kept in `directory`.

    Every k-th topic in alphabetical order is held out, k = round(1 / heldout); the tokenizer has
    seen the training topics only.

    Raises:
      ValueError: the held-out share is less than one topic.
    """
    texts, train, heldout = _split(config)
    path = directory / "tokenizer.json"
    if not path.exists():
        write_text(path, _train_tokenizer(train, config.vocab_size).to_str())
    made = tokenizers.Tokenizer.from_file(str(path))
    digest = hashlib.sha256("\0".join(texts).encode()).hexdigest()
    return Corpus(_stream(train, made), _stream(heldout, made), made, digest)


def longest_heldout(config: CorpusConfig) -> int:
    """Tokens of the longest held-out topic, found without a directory, in a tenth of a second.

    Raises:
      ValueError: the held-out share is less than one topic.
    """
    made = tokenizer(config)
    return max(len(made.encode(text).ids) for text in _split(config)[2])


def tokenizer(config: CorpusConfig) -> tokenizers.Tokenizer:
    """The corpus's tokenizer, made without a directory in a tenth of a second.

    Raises:
      ValueError: the held-out share is less than one topic.
    """
    return _train_tokenizer(_split(config)[1], config.vocab_size)


def heldout_texts(config: CorpusConfig) -> list[str]:
    """The held-out topics, untokenised.

    Raises:
      ValueError: the held-out share is less than one topic.
    """
    return _split(config)[2]


def _split(config: CorpusConfig) -> tuple[list[str], list[str], list[str]]:
    """All topics, those for training, and those held out."""
    texts = [topics.topics[name] for name in sorted(topics.topics)]
    every = round(1 / config.heldout)
    heldout = texts[every // 2 :: every]
    require(len(heldout) > 0, "heldout", config.heldout, f"one of the {len(texts)} topics or more")
    return texts, [text for i, text in enumerate(texts) if i % every != every // 2], heldout


def _train_tokenizer(texts: list[str], vocab_size: int) -> tokenizers.Tokenizer:
    tokenizer = tokenizers.Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        special_tokens=[BEGIN],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


def _stream(texts: list[str], tokenizer: tokenizers.Tokenizer) -> np.ndarray:
    ids = [np.array([BEGIN_ID, *tokenizer.encode(text).ids], np.int32) for text in texts]
    return np.concatenate(ids)
