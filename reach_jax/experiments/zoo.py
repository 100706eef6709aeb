"""Which model an experiment works on: the quick one that it trains, or a checkpoint by path or id.

Every experiment that takes `config.source` runs on every model of the zoo. Not a loader (`hub`)
and not a trainer (`pretrain`): it chooses, and says where the numbers come from.
"""

import dataclasses
import functools
import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np
import tokenizers

from reach_jax.experiments import published_models, random_model
from reach_jax.hub import directory, loader
from reach_jax.hub.tokenizer import Tokenizer
from reach_jax.models.config import DTYPES
from reach_jax.pretrain import corpus
from reach_jax.pretrain.quick import QuickModelConfig, load_or_train, resolve_quick
from sweep_jax import atomic
from sweep_jax.cells import hash_name
from sweep_jax.checks import BadInput, require, resolve
from sweep_jax.stop import Stop

QUICK = "quick"
AS_STORED = "file"


@dataclasses.dataclass(frozen=True)
class Source:
    """Where the model comes from."""

    path: str  # "quick", a directory, a .gguf file, a hub id as "org/name", or "random:FAMILY"
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

    @property
    def random(self) -> str | None:
        """The family of a random model; None for any other."""
        path, prefix = self.source.path, random_model.PREFIX
        return path.removeprefix(prefix) if path.startswith(prefix) else None


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
            raise BadInput(f"tokenizer of {self.name}: expected a tokenizer.json beside it")
        return self.tokenizer.encode(text, begin=False)

    def text(self, ids: Sequence[int]) -> str:
        """The text of ids; the ids themselves where there is no tokenizer or no such token."""
        plain = [int(i) for i in ids]
        if self.tokenizer is None or any(i >= self.tokens for i in plain):
            return " ".join(f"<{i}>" for i in plain)
        return self.tokenizer.decode(plain)


class QuickTokenizer:
    """The quick model's BPE behind the interface of a checkpoint's tokenizer."""

    def __init__(self, made: tokenizers.Tokenizer) -> None:
        """Wraps the tokenizer that was trained with the corpus."""
        self._tokenizer = made

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
    """The frozen configuration without weights; None for what neither disk nor list tells.

    Raises:
      ValueError: a path of which no model can be read.
    """
    if chosen.is_quick:
        return chosen.quick.model
    if chosen.random is not None:
        return _random(chosen)
    path = Path(chosen.source.path).expanduser()
    if path.is_dir():
        return loader.read_config(path, _dtype(chosen.source))[1]
    directory.check(chosen.source.path)
    known = published_models.config(chosen.source.path)
    dtype = _dtype(chosen.source)
    return known if known is None or dtype is None else dataclasses.replace(known, dtype=dtype)


def check_tokenizer(chosen: Choice, why: str) -> None:
    """Refuses a directory without a tokenizer; another source is only known once it is loaded.

    Args:
      chosen: the choice.
      why: the field that needs text, for the error.
    """
    path = Path(chosen.source.path).expanduser()
    lacks = not chosen.is_quick and path.is_dir() and not (path / "tokenizer.json").is_file()
    require(not lacks, "config.source.path", str(path), f"a tokenizer.json in it, for {why}")


def encoder(chosen: Choice) -> Callable[[str], list[int]] | None:
    """Text to ids as the loaded model will do it; None for what is only known once it is loaded.

    Raises:
      ValueError: a damaged tokenizer.json.
    """
    path = Path(chosen.source.path).expanduser()
    made: Tokenizer | QuickTokenizer
    if chosen.is_quick or chosen.random is not None:
        made = QuickTokenizer(corpus.tokenizer(chosen.quick.corpus))
    elif (path / "tokenizer.json").is_file():
        made = Tokenizer(path)
    else:
        return None
    return functools.partial(made.encode, begin=False)


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
            QuickTokenizer(made.corpus.tokenizer),
            corpus.BEGIN_ID,
            chosen.quick.model.vocab_size,
            made.directory,
            card,
        )
    if chosen.random is not None:
        return _load_random(chosen, workdir)
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


@dataclasses.dataclass(frozen=True)
class Known:
    """What is kept of a model that was loaded for this workdir; no weights.

    Attributes:
      name: as in `Model`.
      directory: as in `Model`.
      tokens: as in `Model`.
      card: as in `Model`.
    """

    name: str
    directory: Path
    tokens: int
    card: dict[str, Any]


def remember(chosen: Choice, model: Model, workdir: Path) -> None:
    """Keeps what `recall` gives back."""
    values = {"name": model.name, "directory": model.directory.name, "tokens": model.tokens}
    text = json.dumps({**values, "card": model.card}, indent=1) + "\n"
    atomic.write_text(_note(chosen, workdir), text)


def recall(chosen: Choice, workdir: Path) -> Known | None:
    """What is known of the chosen model; None before its first use here."""
    found = atomic.read_json(_note(chosen, workdir))
    if found is None:
        return None
    return Known(**{**found, "directory": workdir / "models" / found["directory"]})


def _note(chosen: Choice, workdir: Path) -> Path:
    return workdir / "models" / f"source-{hash_name(dataclasses.asdict(chosen))}.json"


def heldout(chosen: Choice, model: Model) -> np.ndarray:
    """Tokens of text that the quick model never saw in training; any tokenizer can write it.

    Raises:
      ValueError: the checkpoint has no tokenizer.
    """
    if chosen.is_quick or chosen.random is not None:
        return corpus.load(chosen.quick.corpus, model.directory).heldout_S
    ids = model.encode("\n\n".join(corpus.heldout_texts(chosen.quick.corpus)))
    return np.array(ids, np.int32)


def _random(chosen: Choice) -> Any:
    tokens = chosen.quick.corpus.vocab_size
    return random_model.config(chosen.random or "", tokens, _dtype(chosen.source))


def _load_random(chosen: Choice, workdir: Path) -> Model:
    config, text = _random(chosen), chosen.quick.corpus
    name = f"random-{chosen.random}"
    values = (dataclasses.asdict(config), dataclasses.asdict(text), chosen.quick.seed)
    kept = workdir / "models" / f"{name}-{hash_name({'random': values})[:12]}"
    kept.mkdir(parents=True, exist_ok=True)
    params = random_model.params(config, chosen.quick.seed)
    count = sum(x.size for x in jax.tree.leaves(params))
    card = {"source": chosen.source.path, "quantised": False, "parameters": count}
    tokenizer = QuickTokenizer(corpus.load(text, kept).tokenizer)
    tokens = text.vocab_size
    return Model(name, config, params, tokenizer, corpus.BEGIN_ID, tokens, kept, card)


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
