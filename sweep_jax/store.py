"""One atomic JSON file a cell, its arrays beside it, and the table they make together.

A cell is stored when its JSON is there: arrays are written first, and a reader sees the old file
or the new one. Not a database: of two writers of one cell the last wins.
"""

import json
import math
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import asdict, dataclass
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from absl import logging

from sweep_jax import atomic
from sweep_jax.cells import Cell, hash_name
from sweep_jax.checks import BadInput, require

if TYPE_CHECKING:  # neither is needed to plan or to print help
    import numpy as np
    import pandas as pd

SCHEMA = 1
_STATUSES = ("ok", "censored", "failed")
_NONFINITE = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}


@dataclass(frozen=True)
class Result:
    """What a cell came to.

    Attributes:
      status: ok; censored (a bound on the answer, by a budget given in the config); failed.
      metrics: numbers, text, None or lists of them; also NaN and infinities.
      compile_seconds, run_seconds: wall time, compilation apart.
      traceback: of a failed cell.
    """

    status: Literal["ok", "censored", "failed"]
    metrics: Mapping[str, Any]
    compile_seconds: float
    run_seconds: float
    traceback: str | None = None


class Store:
    """The results under one directory, `cells/<name>.json` and `arrays/<name>/`."""

    def __init__(self, workdir: Path) -> None:
        """Opens `workdir`, making it on first use.

        Raises:
          ValueError: `workdir` holds another schema version or something else, or cannot be
            written.
        """
        self.workdir = Path(workdir).resolve()
        self._cells = self.workdir / "cells"
        schema = self.workdir / "schema.json"
        try:
            self._cells.mkdir(parents=True, exist_ok=True)
            if not schema.exists():
                atomic.write_text(schema, json.dumps({"schema": SCHEMA}) + "\n")
        except OSError as error:
            why = f"--workdir {workdir}: {error.strerror}: expected a directory to write to"
            raise BadInput(why) from error
        text = schema.read_text(errors="replace")
        wanted = json.dumps({"schema": SCHEMA})
        require(
            _schema_of(text) == SCHEMA, f"--workdir {workdir}: schema.json", text.strip(), wanted
        )
        for directory in (self.workdir, self._cells):
            atomic.remove_stale(directory)

    def write(
        self,
        cell: Cell,
        result: Result,
        provenance: Mapping[str, Any],
        arrays: "Mapping[str, np.ndarray] | None" = None,
    ) -> None:
        """Stores a cell, replacing what was stored of it.

        NaN and infinities become the text "nan", "inf" and "-inf" in the file, which is strict
        JSON; `read` turns them back.

        Raises:
          ValueError: an unknown status, or a metric that is neither number, text, None nor list.
          OSError: the disk is full; the old version stays.
        """
        require(result.status in _STATUSES, "status", result.status, f"one of {_STATUSES}")
        for column in ("name", "status"):
            require(column not in result.metrics, "metric", column, "another name in the table")
        record = {
            "schema": SCHEMA,
            "name": cell.name,
            **asdict(result),
            "metrics": {key: _encode(item, key) for key, item in result.metrics.items()},
            "arrays": sorted(arrays or {}),
            "axes": cell.axes,
            "config": cell.config,
            "provenance": dict(provenance),
        }
        text = json.dumps(record, indent=1, allow_nan=False) + "\n"
        if arrays:
            from sweep_jax import arrays as directories  # needs jax

            directories.save(self._arrays(cell), arrays)
        atomic.write_text(self._cells / f"{cell.name}.json", text)

    def read(self, cell: Cell) -> dict[str, Any] | None:
        """The stored record of `cell`, or None; a file that cannot be its record is warned of.

        Raises:
          ValueError: there is a file, and the system does not let it be read.
        """
        path = self._cells / f"{cell.name}.json"
        try:
            record = json.loads(path.read_bytes())
            problem = _problem(record, cell)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise BadInput(f"{path}: {error.strerror}: expected a readable file") from error
        except (ValueError, RecursionError) as error:  # not UTF-8, or not JSON
            problem = f"unreadable: {error}"
        if problem:
            logging.warning("%s is ignored, its cell counts as not done: %s", path, problem)
            return None
        record["metrics"] = {key: _decode(item) for key, item in record["metrics"].items()}
        return record

    def arrays(self, cell: Cell) -> "dict[str, np.ndarray]":
        """The arrays stored with `cell`, none if it is not stored or has none.

        Raises:
          ValueError: arrays that the record names are missing or damaged.
        """
        record = self.read(cell)
        if record is None or not record["arrays"]:
            return {}
        from sweep_jax import arrays as directories

        try:
            found = directories.restore(self._arrays(cell))
        except directories.Damaged as error:
            raise BadInput(f"arrays of cell {cell.name}: {error}") from None
        names = sorted(found)
        require(names == record["arrays"], f"arrays of {cell.name}", names, str(record["arrays"]))
        return found

    def done(self, cells: Iterable[Cell]) -> list[Cell]:
        """The cells with an answer: ok or censored."""
        return [cell for cell in cells if self._is_done(cell)]

    def pending(self, cells: Iterable[Cell]) -> list[Cell]:
        """The cells to compute: not stored, or failed."""
        return [cell for cell in cells if not self._is_done(cell)]

    def _is_done(self, cell: Cell) -> bool:
        record = self.read(cell)
        return record is not None and record["status"] != "failed"

    def _arrays(self, cell: Cell) -> Path:
        return self.workdir / "arrays" / cell.name


def table(store: Store, cells: Sequence[Cell]) -> "pd.DataFrame":
    """One row a stored cell, in the order of `cells`: name, axes, status, metrics but lists.

    No times and no provenance: a sweep that was killed and resumed gives the same table.
    """
    import pandas as pd

    stored = [(cell, record) for cell in cells if (record := store.read(cell)) is not None]
    metrics = {key for _, record in stored for key in record["metrics"]}
    axes = _axis_columns(cells, {"name", "status", *metrics})
    rows = []
    for cell, record in stored:
        row = {"name": cell.name}
        row |= {column: _plain(cell.axes.get(field)) for field, column in axes.items()}
        row["status"] = record["status"]
        row |= {key: item for key, item in record["metrics"].items() if not isinstance(item, list)}
        rows.append(row)
    return pd.DataFrame(rows, columns=None if rows else ["name", *axes.values(), "status"])


def write_table(frame: "pd.DataFrame", workdir: Path) -> None:
    """Replaces `table.csv` and `table.parquet` in `workdir`."""
    atomic.write_text(workdir / "table.csv", frame.to_csv(index=False))
    buffer = BytesIO()
    frame.to_parquet(buffer, index=False)
    atomic.write_bytes(workdir / "table.parquet", buffer.getvalue())


def _axis_columns(cells: Sequence[Cell], taken: Set[str]) -> dict[str, str]:
    """Dotted field -> its last part, unless that already means something else."""
    fields = list(dict.fromkeys(field for cell in cells for field in cell.axes))
    short = [field.split(".")[-1] for field in fields] + list(taken)
    return {f: last if short.count(last := f.split(".")[-1]) == 1 else f for f in fields}


def _plain(value: Any) -> Any:
    return str(value) if isinstance(value, tuple) else value


def _schema_of(text: str) -> Any:
    try:
        return json.loads(text)["schema"]
    except (ValueError, TypeError, KeyError):
        return None


def _problem(record: Any, cell: Cell) -> str:
    """Why `record` is not the record of `cell`, or ""."""
    if not isinstance(record, dict):
        return "not an object"
    if record.get("schema") != SCHEMA:
        return f"schema = {record.get('schema')!r}, expected {SCHEMA}"
    for key, kind in (("name", str), ("metrics", dict), ("arrays", list), ("config", dict)):
        if not isinstance(record.get(key), kind):
            return f"{key} = {record.get(key)!r}, expected {kind.__name__}"
    if record.get("status") not in _STATUSES:
        return f"status = {record.get('status')!r}, expected one of {_STATUSES}"
    if record["name"] != cell.name or hash_name(record["config"]) != cell.name:
        return f"the record of another cell, {record['name']}"
    return ""


def _encode(value: Any, field: str) -> Any:
    if hasattr(value, "tolist"):  # NumPy and JAX, scalars too
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [_encode(item, field) for item in value]
    plain = value is None or isinstance(value, bool | int | float | str)
    require(plain, f"metric {field}", value, "a number, text, None or a list of them")
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


def _decode(value: Any) -> Any:
    if isinstance(value, list):
        return [_decode(item) for item in value]
    return _NONFINITE.get(value, value) if isinstance(value, str) else value
