"""Copying as a user runs it: plan, refusals, a run that is stopped and goes on, its page."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import launch
from configs import copy, copy_tuned
from reach_jax.experiments import copy as experiment
from reach_jax.experiments import copy_report
from reach_jax.experiments.copy_settings import settings
from sweep_jax import arrays, backend, cells
from sweep_jax.store import Result, Store
from tests.launch.kill_test import ROOT, finish, wait_for

CONFIG = f"--config={Path(copy.__file__).resolve()}:smoke"
TUNED = f"--config={Path(copy_tuned.__file__).resolve()}:smoke"
LSTM = ("axes.variants=('lstm',)", "axes.draws=2", "networks.lstm.width=8")


def run(workdir, config, *fields):
    flags = [f"--config.{field}" for field in fields]
    return launch.main(["launch.py", config, f"--workdir={workdir}", *flags])


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    workdir, patch = tmp_path_factory.mktemp("copy"), pytest.MonkeyPatch()
    patch.setattr(backend, "configure", lambda precision, directory: None)
    code = run(workdir, CONFIG, *LSTM)
    patch.undo()
    assert code == 0
    return workdir


def test_counts_are_stored_by_length_and_an_untrained_model_has_no_cliff(done):
    for path in (done / "cells").glob("*.json"):
        metrics = json.loads(path.read_text())["metrics"]
        copied_PNK = arrays.restore(done / "arrays" / path.stem)["copied_PNK"]
        assert copied_PNK.shape == (1, 4, 16)
        np.testing.assert_array_equal(copied_PNK.sum(axis=2), metrics["copied"])
        assert metrics["symbols"] == [[16 * (n + 1) for n in metrics["lengths"]]]
        assert metrics["undertrained"] is True
        assert metrics["memory_numbers"] == 16
        assert 0 < metrics["memory_grid_letters"] < metrics["memory_bits_letters"]
        kept = done / "models" / path.stem
        assert any((kept / "best").iterdir())
        assert (kept / "last" / str(metrics["steps"])).is_dir()
    assert not any(path.is_dir() for path in (done / "pools").iterdir())
    page = (done / "report.html").read_text()
    assert "2 undertrained: lstm (draw 0), lstm (draw 1)" in page
    assert (done / "figures" / "cliffs.png").read_bytes()[:4] == b"\x89PNG"
    assert (done / "cliffs.csv").read_text().count("\n") == 1  # the header


def test_a_trained_models_cliff_is_where_its_strings_break(done, tmp_path):
    """The stored cell, its answers replaced: 2 and 4 letters copied, 6 by a quarter, 12 never."""
    config = cells.load_config(done / "config.json")
    items = cells.expand(config, copy.sweep, experiment.EXCLUDED)
    store, made = Store(done), Store(tmp_path)
    copied_PNK = np.zeros((1, 4, 16), bool)
    copied_PNK[0, :2], copied_PNK[0, 2, :4] = True, True
    record = store.read(items[0])
    metrics = {**record["metrics"], "undertrained": False, "copied": copied_PNK.sum(axis=2)}
    made.write(items[0], Result("ok", metrics, 0.0, 0.0), {}, {"copied_PNK": copied_PNK})
    context = experiment.Context(tmp_path, made, None, "0/1")
    found = copy_report.cliff_frame(items[:1], context)
    assert 4 < found["length"].item() < 6
    assert found["censored"].item() == ""
    shares = copy_report.share_frame(items[:1], context)
    assert shares["share"].tolist() == [1, 1, 0.25, 0]
    assert (shares["low"] <= shares["share"]).all()
    assert (shares["high"] >= shares["share"]).all()
    assert "1 of 1 cells are stored" in copy_report.write(items[:1], context)


def test_killed_while_it_learns_it_gives_the_same_table(tmp_path):
    """kill -9 behind a checkpoint; the same command again goes on, as if nothing had happened."""
    fields = (*LSTM, "learning.chunk=2", "evaluation.lengths=(2,6)")

    def begin(workdir):
        command = [sys.executable, str(ROOT / "launch.py"), CONFIG, f"--workdir={workdir}"]
        env = {key: value for key, value in os.environ.items() if key != "XLA_FLAGS"}
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        return subprocess.Popen([*command, *(f"--config.{f}" for f in fields)], env=env, **pipes)

    whole, broken = begin(tmp_path / "whole"), begin(tmp_path / "broken")
    wait_for(broken, tmp_path / "broken", "pools/*/2")
    broken.send_signal(signal.SIGKILL)
    assert finish(broken)[0] == -signal.SIGKILL
    assert not list((tmp_path / "broken").glob("cells/*.json"))
    for process in (whole, begin(tmp_path / "broken")):
        code, _, err = finish(process)
        assert code == 0, err
    first, second = (
        {
            path.name: {**json.loads(path.read_text())["metrics"], "tokens_per_s": None}
            for path in (tmp_path / directory / "cells").glob("*.json")
        }
        for directory in ("whole", "broken")
    )
    assert len(first) == 2
    assert first == second


def test_a_source_is_cut_to_the_symbols_and_tuned(tmp_path, monkeypatch):
    monkeypatch.setattr(backend, "configure", lambda precision, directory: None)
    small = (
        "learning.steps=10",
        "learning.warmup=2",
        "evaluation.lengths=(2,)",
        "learning.check=2",
    )
    assert run(tmp_path, TUNED, *small) == 0
    (path,) = (tmp_path / "cells").glob("*.json")
    metrics = json.loads(path.read_text())["metrics"]
    assert metrics["source"] == "random-llama"
    assert len(set(metrics["rows"])) == 30


def test_the_plan_tells_memory_and_flops_without_a_run(capsys):
    assert launch.main(["launch.py", CONFIG, "--mode=plan", f"--config.{LSTM[0]}"]) == 0
    out = capsys.readouterr().out
    for word in ("TFLOP_at_most", "lane_MB", "caches_MB", "parameters", "1 cells"):
        assert word in out


def test_bad_fields_are_one_line(capsys):
    for config, field, wanted in (
        (CONFIG, "axes.longest=(0,)", "longest"),
        (CONFIG, "task.shortest=0", "shortest"),
        (CONFIG, "task.context=8", "context"),
        (CONFIG, "axes.variants=('rope','rnn')", "variant"),
        (CONFIG, "axes.variants=('tuned',)", "rates"),
        (CONFIG, "evaluation.lengths=(4,2)", "ascending"),
        (CONFIG, "evaluation.lengths=(12,)", "at most the training length"),
        (CONFIG, "evaluation.before=(2,)", "before"),
        (CONFIG, "evaluation.learnt=1.5", "learnt"),
        (CONFIG, "learning.chunk=7", "divisor"),
        (CONFIG, "networks.decoder.masked_heads=9", "masked_heads"),
        (TUNED, "corpus.vocab_size=20", "vocab"),
    ):
        code = launch.main(["launch.py", config, "--mode=plan", f"--config.{field}"])
        err = capsys.readouterr().err
        assert (code, err.count("\n")) == (2, 1), (field, err)
        assert wanted in err, (field, err)


def test_questions_beyond_a_table_of_positions_are_refused(capsys):
    """GPT-2 reads them from a table of 512 rows, to whose last one JAX would clamp a look-up."""
    fields = ("source.path=random:gpt2", "evaluation.lengths=(6,300)")
    flags = [f"--config.{field}" for field in fields]
    assert launch.main(["launch.py", TUNED, "--mode=plan", *flags]) == 2
    assert "512" in capsys.readouterr().err


def test_the_shipped_configs_resolve():
    for config, sweep, count in (
        (copy.get_config(), copy.sweep, 12),
        (copy.get_config("paper"), copy.sweep, 18),
        (copy_tuned.get_config("paper"), copy_tuned.sweep, 1),
    ):
        items = cells.expand(config, sweep, experiment.EXCLUDED)
        assert len(items) == count
        for item in items:
            assert settings(item).point.longest == config.axes.longest[0]
