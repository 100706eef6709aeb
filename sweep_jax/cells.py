"""A config and its sweep, expanded into cells: resolved, named by their content, independent.

Not an execution plan: which lane or device a cell runs on can change nothing about it.
"""

import hashlib
import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from ml_collections import ConfigDict

from sweep_jax import overrides
from sweep_jax.checks import require

T = TypeVar("T")
Sweep = Callable[[Callable[[Mapping[str, Any]], None], ConfigDict], None]


@dataclass(frozen=True)
class Cell:
    """One point of a sweep.

    Attributes:
      name: 16 hexadecimal digits, the hash of `config`.
      config: plain nested dict, tuples allowed, without the sections that change no result.
      axes: the dotted overrides that make this cell differ from the base config.
    """

    name: str
    config: dict[str, Any] = field(hash=False)
    axes: dict[str, Any] = field(hash=False)

    @property
    def fold(self) -> int:
        """An integer in [0, 2**31) for `jax.random.fold_in(jax.random.key(seed), fold)`."""
        return int(self.name, 16) % 2**31


def hash_name(config: Mapping[str, Any]) -> str:
    """The name of a cell: 16 hex digits of SHA-256 over canonical JSON; a tuple equals a list."""
    text = json.dumps(config, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def expand(config: ConfigDict, sweep: Sweep | None, excluded: Sequence[str]) -> list[Cell]:
    """The cells of `config`, in the order in which `sweep` adds them.

    Args:
      config: the base config; never changed.
      sweep: called as `sweep(add, config)`, calls `add({"section.field": value, ...})` once a
        cell; None is one cell, the base config itself.
      excluded: top-level sections that change no result: left out of the cells and their names.

    Raises:
      ValueError: an unknown field, a value of another type than the base config's, a field of an
        excluded section, two equal cells, or no cell at all.
    """
    for section in excluded:
        require(section in config, f"config.{section}", None, "a section, as it is excluded")
    cells: dict[str, Cell] = {}

    def add(axes: Mapping[str, Any]) -> None:
        resolved = ConfigDict(config.copy_and_resolve_references()).unlock()
        values = {}
        for path, value in axes.items():
            top = path.split(".")[0]
            require(top not in excluded, path, value, f"a field that changes results, not {top}")
            values[path] = overrides.convert(config, path, value, path)
        resolved.update_from_flattened_dict(values)
        plain = {key: value for key, value in resolved.to_dict().items() if key not in excluded}
        _check_plain(plain, "config")
        cell = Cell(hash_name(plain), plain, values)
        require(cell.name not in cells, "sweep", values, "cells that differ from each other")
        cells[cell.name] = cell

    if sweep is None:
        add({})
    else:
        sweep(add, config)
    require(bool(cells), "sweep", [], "at least one cell")
    return list(cells.values())


def shard(items: Sequence[T], spec: str) -> list[T]:
    """Every n-th of `items` from the i-th, for `spec` "i/n" with 0 <= i < n.

    Raises:
      ValueError: `spec` is anything else.
    """
    match = re.fullmatch(r"(\d+)/(\d+)", spec)
    require(match is not None, "--shard", spec, "'i/n', as '0/4'")
    index, count = (int(group) for group in match.groups()) if match else (0, 0)
    require(index < count, "--shard", spec, "'i/n' with 0 <= i < n")
    return list(items[index::count])


def dump_config(config: ConfigDict) -> str:
    """The whole resolved config as JSON, for people and for `load_config`."""
    return json.dumps(config.to_dict(), indent=2) + "\n"


def load_config(path: Path) -> ConfigDict:
    """The config that `dump_config` wrote, locked; sequences are tuples, as in every config."""

    def tuples(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: tuples(item) for key, item in value.items()}
        return tuple(tuples(item) for item in value) if isinstance(value, list) else value

    return ConfigDict(tuples(json.loads(path.read_text()))).lock()


def _check_plain(value: Any, path: str) -> None:
    """Refuses what JSON cannot keep: it would change the name, or be lost on the way."""
    if isinstance(value, dict):
        for key, item in value.items():
            _check_plain(item, f"{path}.{key}")
    elif isinstance(value, tuple):
        for index, item in enumerate(value):
            _check_plain(item, f"{path}[{index}]")
    else:
        kinds = (bool, int, float, str, type(None))
        require(type(value) in kinds, path, value, "a number, text, None or tuple")
        finite = not isinstance(value, float) or math.isfinite(value)
        require(finite, path, value, "a finite number")
