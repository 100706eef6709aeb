"""The reachability experiment's configuration, resolved to frozen values and checked as a whole."""

import dataclasses
from collections.abc import Sequence

from ml_collections import ConfigDict

from reach_jax.cramming.settings import Assignment, CrammingConfig
from reach_jax.experiments import zoo
from reach_jax.experiments.texts import Texts
from reach_jax.geometry.states import SupportConfig
from sweep_jax.cells import Cell
from sweep_jax.checks import require, resolve


@dataclasses.dataclass(frozen=True)
class Execution:
    """How the cells run and what is kept of them on the way; no field changes a result."""

    lanes: int  # cells that run at once; 0 for as many as memory takes (`pools.lanes_for`)
    chunk: int  # steps between two looks of the host
    pool: int  # cells that share a checkpoint, and the unit of sharding
    buckets: tuple[int, ...]  # padded target lengths, ascending: one compilation each
    path: int = 0  # snapshots of each prompt's way to keep (`cramming.trace`); 0 for none

    def __post_init__(self) -> None:
        require(self.lanes >= 0, "lanes", self.lanes, "an integer >= 0")
        for name in ("chunk", "pool"):
            require(getattr(self, name) >= 1, name, getattr(self, name), "an integer >= 1")
        rising = list(self.buckets) == sorted(set(self.buckets)) and min(self.buckets, default=0)
        require(bool(rising), "buckets", self.buckets, "ascending integers >= 1")
        power = self.path == 0 or (self.path >= 4 and self.path.bit_count() == 1)
        require(power, "path", self.path, "0 or a power of two >= 4")


@dataclasses.dataclass(frozen=True)
class Settings:
    """Everything the experiment reads."""

    seed: int
    choice: zoo.Choice
    texts: Texts
    support: SupportConfig
    cramming: CrammingConfig
    execution: Execution


# What a configuration without these sections means.
_QUICK = {"path": zoo.QUICK, "dtype": zoo.AS_STORED, "offline": False}
_TEXTS = {"text": "quick", "words": "wordfreq"}


def settings(config: ConfigDict) -> Settings:
    """Resolves `config`.

    Raises:
      ValueError: a field is missing, unknown, of the wrong type, or does not fit the others.
    """
    values = {"source": _QUICK, "texts": _TEXTS, **config.to_dict()}
    found = Settings(
        values["seed"],
        zoo.choice(values),
        resolve(Texts, values["texts"], "config.texts"),
        resolve(SupportConfig, values["support"], "config.support"),
        resolve(CrammingConfig, values["cramming"], "config.cramming"),
        resolve(Execution, values["execution"], "config.execution"),
    )
    largest = found.execution.buckets[-1]
    require(
        found.cramming.max_target <= largest,
        "config.cramming.max_target",
        found.cramming.max_target,
        f"at most the largest of config.execution.buckets, {largest}",
    )
    path, restarts = found.execution.path, found.cramming.restarts
    expected = "0 with config.cramming.restarts: a new attempt goes on from nowhere"
    require(not path or not restarts, "config.execution.path", path, expected)
    return found


def assignments(cells: Sequence[Cell]) -> list[Assignment]:
    """What each cell crams.

    Raises:
      ValueError: m < 1, an unknown source, or a negative target number.
    """
    return [resolve(Assignment, cell.config["cell"], "config.cell") for cell in cells]


def prompt_slots(items: Sequence[Assignment]) -> int:
    """The padded prompt length of a pool: the power of two that holds its longest prompt."""
    longest = max(item.prompt_length for item in items)
    return 1 << (longest - 1).bit_length()
