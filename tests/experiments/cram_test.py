"""`configs/cram*.py` end to end on tiny random models; every family, every protocol."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import launch
from reach_jax.experiments import pools, random_model
from sweep_jax import backend

ROOT = Path(__file__).parents[2]


@pytest.fixture
def run(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(backend, "configure", lambda precision, directory: None)

    def call(config, *words):
        code = launch.main(
            [
                "launch.py",
                f"--config={ROOT / 'configs' / config}",
                f"--workdir={tmp_path / 'run'}",
                *words,
            ]
        )
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


SMALL = (
    "--config.axes.prompt_lengths=1,2",
    "--config.axes.targets=2",
    "--config.cramming.steps=6",
    "--config.cramming.patience=6",
    "--config.execution.chunk=6",
    "--config.cramming.max_target=10",
    "--config.execution.buckets=10",
)


@pytest.mark.parametrize("family", ["pythia", "qwen", "llama", "gemma", "mamba"])
def test_smoke_of_every_family(run, tmp_path, family):
    code, out, err = run(f"cram_{family}.py:smoke", *SMALL)
    assert code == 0, err
    assert "8 of 8 cells" in out
    assert f"model: random-{family}, " in out
    table = pd.read_csv(tmp_path / "run" / "table.csv")
    assert set(table["source"]) == {"text", "random"}
    assert table["confirmed"].all()
    assert (tmp_path / "run" / "report.html").stat().st_size > 5000


def test_the_published_sweep_goes_on_where_it_was(run, tmp_path):
    """Lengths 10 and beyond until fewer than .1 succeed; each try is stored, none is repeated."""
    strong = (
        "--config.axes.prompt_lengths=8",
        "--config.axes.sources=random",
        "--config.axes.targets=3",
        "--config.cramming.steps=400",
        "--config.cramming.patience=150",
        "--config.cramming.rate_unit=embeddings",
        "--config.cramming.rate=0.3",
        "--config.cramming.prefix=begin",
        "--config.cramming.max_target=40",
        "--config.execution.buckets=16,40",
        "--config.execution.chunk=50",
    )
    code, out, err = run("cram.py:paper_smoke", *strong)
    assert code == 0, err
    assert "n50 by logistic likelihood" in out
    cells = [json.loads(p.read_text()) for p in (tmp_path / "run" / "cells").glob("*.json")]
    lengths = {tuple(cell["metrics"]["lengths"]) for cell in cells}
    assert len(lengths) == 1  # one sweep for the group
    (tried,) = lengths
    success = np.array([cell["metrics"]["successes"] for cell in cells])
    assert tried[0] == 10
    assert success[:, 0].any()  # or this test has looked at nothing
    shares = success.mean(0)
    assert len(tried) == 1 + int((np.diff(tried) == 10).sum())
    assert tried[-1] == 40 or shares[-1] < 0.1
    for cell, row in zip(cells, success, strict=True):
        reached = [n for n, ok in zip(tried, row, strict=True) if ok]
        assert cell["metrics"]["threshold"] == max(reached, default=0)
    tries = sorted((tmp_path / "run" / "tries" / "cells").glob("*.json"))
    assert len(tries) == 3 * len(tried)
    # One program a bucket, 16 and 40, whatever the lengths (CRM-04).
    records = [json.loads(path.read_text()) for path in tries]
    compiled = {r["config"]["cell"]["length"] for r in records if r["compile_seconds"] > 0}
    assert compiled == {10, *tried[1:2]}
    assert all(r["run_seconds"] > 0 for r in records)
    times = [path.stat().st_mtime_ns for path in tries]
    next((tmp_path / "run" / "cells").glob("*.json")).unlink()
    assert run("cram.py:paper_smoke", *strong)[0] == 0  # made again from its tries
    assert times == [path.stat().st_mtime_ns for path in tries]
    assert len(list((tmp_path / "run" / "cells").glob("*.json"))) == 3


def test_capacity_and_gains(run, tmp_path):
    code, out, err = run("cram.py:kuratov_smoke", *SMALL, "--config.axes.prompt_lengths=2")
    assert code == 0, err
    assert "Capacity, tokens" in out
    table = pd.read_csv(tmp_path / "run" / "table.csv")
    assert sorted(set(table["length"])) == [2, 4]
    nats, bits = table["information_gain_nats"], table["information_gain_bits"]
    np.testing.assert_allclose(bits * np.log(2), nats)
    assert (nats != 0).all()


def test_a_plan_of_a_hub_model_needs_no_network(run, tmp_path):
    small = ("--config.axes.prompt_lengths=1", "--config.cramming.max_target=16")
    code, out, err = run("cram_llama.py", *small, "--config.axes.targets=2", "--mode=plan")
    assert code == 0, err
    assert "H200_lanes" in out
    assert "v5e_hours_at_13_TFLOP/s" in out
    assert "4 cells" in out
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("argument", "flag", "line"),
    [
        ("smok", "", "config argument = 'smok': expected one of"),
        ("smoke", "source.path=random:opt", "random:FAMILY = 'opt': expected"),
        ("smoke", "axes.sources=words", "config.texts.words = 'wordfreq': expected"),
        ("smoke", "axes.lengths=4", "config.axes.lengths = [4]: expected none"),
        ("kuratov_smoke", "axes.lengths=4,99", "config.axes.lengths = [4, 99]: expected"),
        ("smoke", "axes.prompt_lengths=600", "config.axes.prompt_lengths = 600: expected"),
        ("smoke", "cramming.coefficients=99", "config.cramming.coefficients = 99: expected at"),
        ("smoke", "texts.text=/no/file", "config.texts.text = '/no/file': expected quick"),
        ("paper_smoke", "cramming.max_target=9", "config.cramming.max_target = 9: expected at"),
    ],
)
def test_what_cannot_run_is_refused_in_one_line(run, tmp_path, argument, flag, line):
    code, _, err = run(f"cram.py:{argument}", *([f"--config.{flag}"] if flag else []))
    assert code == 2
    assert err.startswith(f"error: {line}"), err
    assert err.count("\n") == 1
    assert not (tmp_path / "run").exists()


def test_random_models_of_every_family_have_padding_in_their_table():
    for family in random_model.names():
        config = random_model.config(family, 300, None)
        assert config.vocab_size == 308
        assert config.width == 32


def test_lanes_fill_the_free_memory_and_no_more():
    """A step needs 100 bytes and 10 a lane; 1000 are free, of which .8 may be used."""
    many = 10**6
    assert pools.fit(110, 120, 1000, 1, many, many) == 70
    assert pools.fit(110, 120, 1000, 8, many, many) == 8 * 70  # each device has its own memory
    assert pools.fit(110, 120, 1000, 8, 20, many) == 8 * 3  # no more than there are cells
    assert pools.fit(110, 120, 1000, 1, many, 32) == 32
    with pytest.raises(ValueError, match=r"config\.execution\.lanes = 0: expected a model"):
        pools.fit(110, 120, 130, 1, many, many)
    assert pools.free_memory() > 1e6


def test_lanes_left_to_memory(run):
    code, out, err = run("cram.py:smoke", *SMALL, "--config.execution.lanes=0")
    assert code == 0, err
    assert "8 of 8 cells" in out
