"""The inspect experiment on every family, end to end through the launcher."""

import json
from pathlib import Path

import pytest

import launch
from sweep_jax import backend

ROOT = Path(__file__).parents[2]
GOLDENS = ROOT / "tests" / "hub" / "families" / "goldens"


@pytest.fixture
def run(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(backend, "configure", lambda precision, directory: None)

    def call(path, *words):
        code = launch.main(
            [
                "launch.py",
                f"--config={ROOT / 'configs' / 'inspect.py'}:smoke",
                f"--config.source.path={path}",
                f"--workdir={tmp_path / 'run'}",
                "--config.memory.prompt_lengths=1",
                "--config.memory.targets=4",
                "--config.memory.lanes=2",
                "--config.continuation.tokens=5",
                *words,
            ]
        )
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


@pytest.mark.parametrize("family", sorted(p.name for p in GOLDENS.iterdir()))
def test_every_family(run, tmp_path, family):
    code, out, _ = run(GOLDENS / family, "--config.source.dtype=float32")
    assert code == 0
    (record,) = (tmp_path / "run" / "cells").glob("*.json")
    metrics = json.loads(record.read_text())["metrics"]
    assert len(metrics["continuation_ids"]) == 5
    assert len(metrics["first_rms"]) == len(metrics["other_rms"])
    assert metrics["arguments_MB"][0] > 0
    model_type = json.loads((GOLDENS / family / "config.json").read_text())["model_type"]
    assert model_type in out
    assert (tmp_path / "run" / "report.html").stat().st_size > 5000


def test_positions_that_the_table_lacks_are_refused(run):
    code, _, err = run(GOLDENS / "gpt2", "--config.memory.targets=40", "--config.source.dtype=file")
    assert code == 2
    assert err.startswith("error: config.memory.targets = (40,): expected at most 16 positions")
