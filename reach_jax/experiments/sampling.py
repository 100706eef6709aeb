"""States of a model of the zoo and their measurement, kept beside the model."""

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import numpy as np

from reach_jax.experiments import zoo
from reach_jax.geometry import states
from reach_jax.geometry.moments import Moments
from reach_jax.geometry.states import SupportConfig
from reach_jax.geometry.support import Measure, Support
from sweep_jax import arrays
from sweep_jax.cells import hash_name
from sweep_jax.checks import require

_KEY = 0x5A
_SCALARS = ("count", "r_inf", "r_2", "r_1", "mean_cosine", "least_cosine", "compared")


@dataclasses.dataclass(frozen=True)
class Measured:
    """The support of a set of vectors, and its first two moments."""

    support: Support
    mean_D: np.ndarray
    covariance_DD: np.ndarray

    def scalars(self) -> dict[str, Any]:
        """The measures that are single numbers, by name."""
        return {name: getattr(self.support, name) for name in _SCALARS}


def batches(
    model: zoo.Model, config: SupportConfig, seed: int, stream_S: np.ndarray | None = None
) -> Iterator[np.ndarray]:
    """States (B, D) after random ids, or after pieces of a text."""
    key = jax.random.fold_in(jax.random.key(seed), _KEY)
    yield from states.sample(
        model.config, model.params, config, model.prefix_id, key, stream_S, model.tokens
    )


def head(model: zoo.Model) -> np.ndarray:
    """The unembedding rows of the tokens that exist, float32 of shape (V, D)."""
    name = "embedding" if model.config.tied else "head"
    return np.asarray(model.params[name], np.float32)[: model.tokens]


def card(model: zoo.Model) -> dict[str, Any]:
    """What a result says of its model; the same fields for every source."""
    return {**model.card, "name": model.name, "tokens": model.tokens, "dtype": model.config.dtype}


def measure(stream: Iterator[np.ndarray], width: int) -> Measured:
    """One pass over batches (B, D); memory does not grow with their number."""
    support, moments = Measure(width), Moments(width)
    for batch_BD in stream:
        support.add(batch_BD)
        moments.add(batch_BD)
    return Measured(support.support(), moments.mean_D, moments.covariance_DD)


def measured(model: zoo.Model, config: SupportConfig, seed: int) -> Measured:
    """The measurement of random states, from the model's directory if it is there."""
    name = hash_name({**dataclasses.asdict(config), "seed": seed, "dtype": model.config.dtype})
    directory = model.directory / f"states-{name}"
    if directory.exists():
        try:
            return _unpacked(arrays.restore(directory))
        except arrays.Damaged:  # half written by a killed run: made again
            pass
    found = measure(batches(model, config, seed), model.config.width)
    arrays.save(directory, _packed(found))
    return found


def text(path: str, chosen: zoo.Choice, model: zoo.Model) -> np.ndarray:
    """Tokens of a text file, or for "" of the text held out from the quick model.

    Raises:
      ValueError: there is no such file, or the model has no tokenizer.
    """
    if path == "":
        return zoo.heldout(chosen, model)
    check_text(path, "text")
    return np.array(model.encode(Path(path).read_text(encoding="utf-8")), np.int32)


def check_text(path: str, field: str) -> None:
    """Refuses a text file that is not there; "" is the held-out text."""
    found = path == "" or Path(path).is_file()
    require(found, field, path, "a text file in UTF-8, or '' for the held-out text")


def _packed(found: Measured) -> dict[str, np.ndarray]:
    scalars = np.array([float(value) for value in found.scalars().values()])
    support = found.support
    parts = {"scalars": scalars, "lo": support.lo_D, "hi": support.hi_D}
    return {**parts, "mean": found.mean_D, "covariance": found.covariance_DD}


def _unpacked(kept: dict[str, np.ndarray]) -> Measured:
    values = dict(zip(_SCALARS, kept["scalars"].tolist(), strict=True))
    values |= {name: int(values[name]) for name in ("count", "compared")}
    return Measured(
        Support(**values, lo_D=kept["lo"], hi_D=kept["hi"]), kept["mean"], kept["covariance"]
    )
