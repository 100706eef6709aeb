"""What an experiment offers to `launch.py`, and what it is given. Interfaces only."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from ml_collections import ConfigDict

from sweep_jax.cells import Cell
from sweep_jax.stop import Stop
from sweep_jax.store import Store

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Context:
    """Where an experiment runs.

    Attributes:
      workdir: for checkpoints, tables and figures.
      store: the results under `workdir`.
      stop: looked at between two chunks; when requested, save and raise `Stopped`.
      shard: "i/n", the share of the cells that this process computes.
    """

    workdir: Path
    store: Store
    stop: Stop
    shard: str


class Experiment(Protocol):
    """A module of this shape can be named in `launch.EXPERIMENTS`.

    Attributes:
      EXCLUDED: top-level sections of its config that change no result.
    """

    EXCLUDED: tuple[str, ...]

    def validate(self, config: ConfigDict, cells: Sequence[Cell]) -> None:
        """Refuses what cannot run, with ValueError, before any device work."""

    def plan(self, config: ConfigDict, cells: Sequence[Cell]) -> "pd.DataFrame":
        """The cells and their estimated cost, without a device.

        A column named as an axis is one; of every other column of numbers the sum is shown.
        """

    def run(self, config: ConfigDict, cells: Sequence[Cell], context: Context) -> None:
        """Computes the pending cells of this shard into the store.

        Raises:
          Stopped: on request, when the state is saved.
        """

    def report(self, config: ConfigDict, cells: Sequence[Cell], context: Context) -> str:
        """Writes table, figures and page from what is stored; returns the text to print."""
