"""Which model an experiment works on: the quick one that it trains, or a checkpoint by path or id.

Every experiment that takes `config.source` runs on every model of the zoo. Not a loader (`hub`)
and not a trainer (`pretrain`): it chooses, and says where the numbers come from.
"""

import dataclasses
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from reach_jax.hub import directory, loader
from reach_jax.hub.tokenizer import Tokenizer
from reach_jax.models.config import DTYPES
from reach_jax.pretrain import corpus
from reach_jax.pretrain.quick import QuickModelConfig, load_or_train, resolve_quick
from sweep_jax import atomic
from sweep_jax.checks import require, resolve
from sweep_jax.stop import Stop

QUICK = "quick"
AS_STORED = "file"


@dataclasses.dataclass(frozen=True)
class Source:
    """Where the model comes from."""

    path: str  # "quick", a directory, a .gguf file, or a hub id as "org/name"
    dtype: str  # of parameters and activations; "file" for what the checkpoint says
    offline: bool  # never ask the network for a hub id

    def __post_init__(self) -> None:
        require(self.path != "", "path", self.path, "quick, a directory, a .gguf file or a hub id")
        kinds = (AS_STORED, *DTYPES)
        require(self.dtype in kinds, "dtype", self.dtype, f"one of {kinds}")


@dataclasses.dataclass(frozen=True)
class Choice:
    """A source, and the quick model's own settings, which a checkpoint does without."""

    source: Source
    quick: QuickModelConfig

    @property
    def is_quick(self) -> bool:
        """Whether the model is the one that the project trains."""
        return self.source.path == QUICK


@dataclasses.dataclass(frozen=True)
class Model:
    """A model ready for use.

    Attributes:
      name: short and fit for a file name.
      config: the frozen configuration of `reach_jax.models`.
      params: its parameters.
      tokenizer: None where a checkpoint has no tokenizer.json.
      prefix_id: the token that stands before a text: begin, else end of text, else None.
      tokens: V without the padding of the table, where a tokenizer tells.
      directory: under the workdir; measurements of this model are kept there.
      card: plain values that say what it is and where it is from, for results and reports.
    """

    name: str
    config: Any
    params: dict[str, Any]
    tokenizer: "Tokenizer | QuickTokenizer | None"
    prefix_id: int | None
    tokens: int
    directory: Path
    card: dict[str, Any]

    def encode(self, text: str) -> list[int]:
        """Ids of a text, nothing before it.

        Raises:
          ValueError: the checkpoint has no tokenizer.
        """
        if self.tokenizer is None:
            raise ValueError(f"tokenizer of {self.name}: expected a tokenizer.json beside it")
        return self.tokenizer.encode(text, begin=False)

    def text(self, ids: Sequence[int]) -> str:
        """The text of ids; the ids themselves where there is no tokenizer or no such token."""
        plain = [int(i) for i in ids]
        if self.tokenizer is None or any(i >= self.tokens for i in plain):
            return " ".join(f"<{i}>" for i in plain)
        return self.tokenizer.decode(plain)


class QuickTokenizer:
    """The quick model's BPE behind the interface of a checkpoint's tokenizer."""

    def __init__(self, made: corpus.Corpus) -> None:
        """Wraps the tokenizer that was trained with the corpus."""
        self._tokenizer = made.tokenizer

    def encode(self, text: str, begin: bool) -> list[int]:
        """The ids of a text; with `begin`, after the begin token."""
        ids = self._tokenizer.encode(text).ids
        return [corpus.BEGIN_ID, *ids] if begin else ids

    def decode(self, ids: Sequence[int]) -> str:
        """The text of ids, the begin token written out."""
        return self._tokenizer.decode(list(ids), skip_special_tokens=False)


def choice(config: Mapping[str, Any], path: str = "config") -> Choice:
    """Resolves the sections `source`, `corpus`, `model` and `training` (the last three: quick).

    Args:
      config: the whole configuration as a plain dict.
      path: its name in an error.

    Raises:
      ValueError: a field is missing, unknown, of the wrong type, or does not fit the others.
    """
    seed = config["seed"]
    require(0 <= seed < 2**32, f"{path}.seed", seed, "an integer in [0, 2^32)")
    source = resolve(Source, config["source"], f"{path}.source")
    return Choice(source, resolve_quick(config, seed, path))


def describe(chosen: Choice) -> Any | None:
    """The frozen configuration without weights; None for what is not on this disk as a directory.

    Raises:
      ValueError: a path of which no model can be read.
    """
    if chosen.is_quick:
        return chosen.quick.model
    path = Path(chosen.source.path).expanduser()
    if path.is_dir():
        return loader.read_config(path, _dtype(chosen.source))[1]
    directory.check(chosen.source.path)
    return None


def check_tokenizer(chosen: Choice, why: str) -> None:
    """Refuses a directory without a tokenizer; another source is only known once it is loaded.

    Args:
      chosen: the choice.
      why: the field that needs text, for the error.
    """
    path = Path(chosen.source.path).expanduser()
    lacks = not chosen.is_quick and path.is_dir() and not (path / "tokenizer.json").is_file()
    require(not lacks, "config.source.path", str(path), f"a tokenizer.json in it, for {why}")


def load(chosen: Choice, workdir: Path, stop: Stop) -> Model:
    """The model, trained, converted or downloaded first if need be.

    Raises:
      ValueError: whatever `hub` refuses.
      Stopped: a stop was asked for while the quick model trained.
    """
    if chosen.is_quick:
        made = load_or_train(chosen.quick, workdir / "models", stop)
        card = {"source": QUICK, "quantised": False, **made.card}
        return Model(
            QUICK,
            chosen.quick.model,
            made.params,
            QuickTokenizer(made.corpus),
            corpus.BEGIN_ID,
            chosen.quick.model.vocab_size,
            made.directory,
            card,
        )
    source = chosen.source
    found = directory.locate(source.path, workdir / "models", source.offline)
    loaded = loader.load(found, _dtype(source))
    tokenizer = Tokenizer(found) if (found / "tokenizer.json").is_file() else None
    prefix_id, tokens = None, loaded.config.vocab_size
    if tokenizer is not None:
        known = (tokenizer.begin_id, tokenizer.end_of_text_id)
        prefix_id = next((i for i in known if i is not None), None)
        tokens = min(tokens, tokenizer.size)
    card = _card(found, source, loaded, tokens)
    name = re.sub(r"[^\w.-]+", "-", found.name) or "model"
    kept = workdir / "models" / f"{name}-{card['fingerprint']}"
    kept.mkdir(parents=True, exist_ok=True)
    atomic.write_text(kept / "model.json", json.dumps(card, indent=1) + "\n")
    return Model(name, loaded.config, loaded.params, tokenizer, prefix_id, tokens, kept, card)


def heldout(chosen: Choice, model: Model) -> np.ndarray:
    """Tokens of text that the quick model never saw in training; any tokenizer can write it.

    Raises:
      ValueError: the checkpoint has no tokenizer.
    """
    if chosen.is_quick:
        return corpus.load(chosen.quick.corpus, model.directory).heldout_S
    ids = model.encode("\n\n".join(corpus.heldout_texts(chosen.quick.corpus)))
    return np.array(ids, np.int32)


def _dtype(source: Source) -> str | None:
    return None if source.dtype == AS_STORED else source.dtype


def _card(found: Path, source: Source, loaded: loader.Loaded, tokens: int) -> dict[str, Any]:
    origin = atomic.read_json(found / "source.json") or {}
    report = dataclasses.asdict(loaded.report)
    digest = hashlib.sha256((found / "config.json").read_bytes())
    for file in sorted(found.glob("*.safetensors")):  # a name and a size: no hash of gigabytes
        digest.update(f"{file.name} {file.stat().st_size}".encode())
    return {
        "source": found.name if Path(source.path).exists() else source.path,
        "quantised": bool(origin.get("quantised", False)),
        "tensor_types": origin.get("tensor_types", report["file_dtypes"]),
        "file_sha256": origin.get("sha256"),
        "dtype": loaded.config.dtype,
        "tokens": tokens,
        "padded_vocabulary": loaded.config.vocab_size,
        "fingerprint": digest.hexdigest()[:12],
        **{k: report[k] for k in ("family", "model_type", "parameters", "bytes", "ignored")},
        "notes": report["notes"],
    }
