"""The launcher in this process, and one crammed quick model that the session's tests share."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import launch
from sweep_jax import arrays, backend, store
from sweep_jax.stop import Stop

ROOT = Path(__file__).parents[2]
GOLDENS = ROOT / "tests" / "hub" / "families" / "goldens"
QUICK = ("--config.model.layers=1", "--config.training.steps=20")  # the model of `crammed`


@dataclasses.dataclass
class Launched:
    """What a call of the launcher left."""

    code: int
    out: str
    err: str
    workdir: Path

    def stored(self, **wanted: Any) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Metrics and arrays of the one cell whose axes have these values."""
        found = []
        for path in (self.workdir / "cells").glob("*.json"):
            record = json.loads(path.read_text())
            axes = {name.split(".")[-1]: value for name, value in record["axes"].items()}
            if wanted.items() <= axes.items():
                found.append(
                    (record["metrics"], arrays.restore(self.workdir / "arrays" / path.stem))
                )
        (one,) = found
        return one

    def cells(self) -> dict[str, bytes]:
        """Every stored cell, byte for byte."""
        return {path.name: path.read_bytes() for path in (self.workdir / "cells").glob("*.json")}


@pytest.fixture
def launched(monkeypatch, tmp_path, capsys):
    """Calls the launcher: `launched("support", *flags, workdir=..., stop_after=cells)`."""
    monkeypatch.setattr(backend, "configure", lambda precision, directory: None)
    write = store.Store.write

    def call(name, *words, workdir=None, stop_after=None):
        stop, written = Stop(), []

        def writing(self, *rest, **named):
            write(self, *rest, **named)
            written.append(1)
            if len(written) == stop_after:
                stop.signum = 15

        monkeypatch.setattr(launch, "Stop", lambda: stop)
        monkeypatch.setattr(store.Store, "write", writing)
        where = workdir or tmp_path / "run"
        config = f"--config={ROOT / 'configs' / name}.py:smoke"
        code = launch.main(["launch.py", config, f"--workdir={where}", *words])
        captured = capsys.readouterr()
        return Launched(code, captured.out, captured.err, where)

    return call


@pytest.fixture(scope="session")
def crammed(tmp_path_factory):
    """The workdir of a finished `configs/reach_quick.py:smoke`; its models/ holds the model."""
    workdir = tmp_path_factory.mktemp("crammed")
    patch = pytest.MonkeyPatch()
    patch.setattr(backend, "configure", lambda precision, directory: None)
    config = f"--config={ROOT / 'configs' / 'reach_quick.py'}:smoke"
    code = launch.main(
        [
            "launch.py",
            config,
            f"--workdir={workdir}",
            *QUICK,
            "--config.axes.prompt_lengths=2,",
            "--config.axes.targets=2",
            "--config.execution.buckets=32,",
            "--config.cramming.steps=20",
        ]
    )
    patch.undo()
    assert code == 0
    return workdir
