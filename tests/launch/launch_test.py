"""The launcher end to end, with an experiment that takes no time."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import pytest

import launch
from sweep_jax import backend, cells

ROOT = Path(__file__).parents[2]
CONFIG = f"--config={Path(__file__).with_name('fake_config.py')}"
RUNNER = (
    "import sys, launch; launch.EXPERIMENTS['fake'] = 'tests.launch.fake_experiment';"
    "sys.exit(launch.main(sys.argv))"
)


@pytest.fixture
def run(monkeypatch, tmp_path, capsys):
    """Runs the launcher in `tmp_path`; returns exit code, stdout and stderr."""
    monkeypatch.setitem(launch.EXPERIMENTS, "fake", "tests.launch.fake_experiment")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(os, "environ", os.environ.copy())
    monkeypatch.setattr(backend, "configure", lambda precision, directory: None)

    def call(*words):
        code = launch.main(["launch.py", CONFIG, *words])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


def test_run_table_and_report(run, tmp_path):
    code, out, err = run()
    assert (code, err) == (0, "")
    assert out.count('experiment: "fake"') == 1
    assert "3 of 3 cells" in out
    workdir = tmp_path / "runs" / "fake_config"
    table = pd.read_csv(workdir / "table.csv")
    assert table[["number", "answer"]].to_numpy().tolist() == [[0, 0], [1, 2], [2, 4]]
    config = cells.load_config(workdir / "config.json")
    assert config.train.lens == (1, 2)

    records = {path.name: path.stat().st_mtime_ns for path in (workdir / "cells").iterdir()}
    for name in ("table.csv", "table.parquet", "report.html"):
        (workdir / name).unlink()
    code, out, _ = run("--mode=table")
    assert code == 0
    assert "answer" in out
    assert not (workdir / "report.html").exists()
    assert pd.read_csv(workdir / "table.csv").equals(table)
    assert run("--mode=report")[0] == 0
    assert (workdir / "report.html").exists()
    assert run()[0] == 0  # all done: nothing is computed again
    assert records == {path.name: path.stat().st_mtime_ns for path in (workdir / "cells").iterdir()}


def test_plan_writes_nothing(run, tmp_path):
    code, out, _ = run("--mode=plan", "--config.axes.numbers=5,6,7,8")
    assert code == 0
    assert "seconds" in out
    assert out.splitlines()[-1] == "4 cells, seconds 2"
    assert list(tmp_path.iterdir()) == []


def test_config_argument_names_the_workdir(run, tmp_path, monkeypatch):
    monkeypatch.setitem(globals(), "CONFIG", CONFIG + ":small")
    code, out, _ = run()
    assert code == 0
    assert "2 of 2 cells" in out
    assert (tmp_path / "runs" / "fake_config-small" / "schema.json").exists()


def test_shards_share_a_workdir(run):
    assert "2 of 3 cells" in run("--shard=0/2")[1]
    assert "3 of 3 cells" in run("--shard=1/2")[1]


def test_failed_cells_are_named_and_tried_again(run):
    code, out, err = run("--config.execution.broken=1")
    assert code == 1
    assert "1 cells failed: " in err
    assert "3 of 3 cells" in out
    code, _, err = run()
    assert (code, err) == (0, "")


def test_a_bug_keeps_its_traceback(run):
    with pytest.raises(ValueError, match="a bug"):
        run("--config.execution.crash=1")


def test_bad_input_that_only_the_run_can_see_is_one_line(run):
    code, _, err = run("--config.execution.refused=2")
    assert (code, err) == (2, "error: number = 2: expected what the model knows\n")


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["--config.cell.number=-1"], "config.cell.number = -1: expected at least 0"),
        (["--config.train.steps=x"], "--config.train.steps = 'x': expected int"),
        (["--config.axes.numbers=(1,1)"], "sweep = {'cell.number': 1}: expected cells that"),
        (["--config.axes.numbers=()"], "sweep = []: expected at least one cell"),
        (["--config.experiment=fak"], "--config.experiment = 'fak': expected one of ['reach"),
        (["--shard=3/2"], "--shard = '3/2': expected"),
        (["--gpu_memory_fraction=1.5"], "--gpu_memory_fraction = 1.5: expected"),
        (["--gpu_memory_fraction=0"], "--gpu_memory_fraction = 0.0: expected"),
        (["--gpu_memory_fraction=x"], "--gpu_memory_fraction = 'x': expected float"),
        (["--cpu_devices=0"], "--cpu_devices = 0: expected an integer in [1, "),
        (["--mode=table"], "--workdir = 'runs/fake_config': expected the directory of"),
        (["--mode=draw"], "--mode = 'draw': expected one of"),
        (["--workdr=x"], "--workdr = 'x': expected a flag of --help; Did you mean: workdir"),
        (["reach_quick"], "argument = 'reach_quick': expected flags only"),
        (["--config=nowhere.py"], "--config = 'nowhere.py': expected an existing .py file"),
        ([CONFIG + ":smal"], "config argument = 'smal': expected small"),
    ],
)
def test_bad_input_is_one_line(run, tmp_path, words, line):
    code, out, err = run(*words)
    assert code == 2
    assert out == ""
    assert err.startswith(f"error: {line}")
    assert err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_a_foreign_workdir_is_refused(run, tmp_path):
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "schema.json").write_text("something else")
    code, _, err = run("--workdir=here")
    assert code == 2
    assert err.startswith("error: --workdir here: schema.json = 'something else': expected")


def test_memory_fraction_reaches_jax(run):
    assert run("--gpu_memory_fraction=0.45")[0] == 0
    assert os.environ["XLA_PYTHON_CLIENT_MEM_FRACTION"] == "0.45"


@pytest.mark.parametrize(("signum", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_stop_and_resume(tmp_path, run, signum, code):
    words = [sys.executable, "-c", RUNNER, CONFIG, f"--workdir={tmp_path / 'run'}"]
    process = subprocess.Popen(
        [*words, "--config.execution.seconds=0.3"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    while process.stdout.readline() != "working\n":
        pass
    process.send_signal(signum)
    _, err = process.communicate()
    assert process.returncode == code
    assert err == "stopped; run the same command again to resume\n"
    assert "3 of 3 cells" in run(f"--workdir={tmp_path / 'run'}")[1]


def start(*words, cwd, **environment):
    begin = time.monotonic()
    done = subprocess.run(
        [sys.executable, *words],
        cwd=cwd,
        env=os.environ | environment,
        capture_output=True,
        text=True,
    )
    return done, time.monotonic() - begin


@pytest.mark.parametrize("platform", ["cpu", "cuda"])
def test_help_is_quick_and_starts_nothing(tmp_path, platform):
    # A platform that does not exist here would fail if anything asked for a device.
    done, seconds = start(str(ROOT / "launch.py"), "--help", cwd=tmp_path, JAX_PLATFORMS=platform)
    assert done.returncode == 0
    assert done.stderr == ""
    for word in ("python launch.py", "--mode", "plan", "--workdir", "--shard", "--flagfile"):
        assert word in done.stdout
    assert seconds < 2
    assert list(tmp_path.iterdir()) == []


def test_help_lists_the_fields_of_a_config(tmp_path, capsys):
    path = tmp_path / "one.py"
    path.write_text(
        '"""What it is for."""\nfrom ml_collections import ConfigDict, config_dict\n\n\n'
        "def get_config(arg=''):\n    config = ConfigDict()\n"
        "    config.steps = 7 if arg else 3  # of the walk\n    config.inner = ConfigDict()\n"
        "    config.inner.size = config_dict.placeholder(int)\n    return config\n"
    )
    for argument, steps in (("", 3), (":long", 7)):
        assert launch.main(["launch.py", "--help", f"--config={path}{argument}"]) == 0
        shown = capsys.readouterr().out
        assert "What it is for." in shown
        assert f"  --config.steps (default {steps}): of the walk\n" in shown
        assert "  --config.inner.size (default None)\n" in shown
    assert launch.main(["launch.py", "--help"]) == 0
    assert "--config.steps" not in capsys.readouterr().out
    assert launch.main(["launch.py", "--help", "--config=none.py"]) == 2
    assert capsys.readouterr().err == "error: --config = 'none.py': expected an existing .py file\n"


def test_import_takes_no_jax_and_no_pandas():
    code = (
        "import sys, launch, sweep_jax.progress, sweep_jax.provenance;"
        "print([name for name in ('jax', 'jaxlib', 'pandas', 'orbax') if name in sys.modules])"
    )
    done, _ = start("-c", code, cwd=ROOT)
    assert done.stdout.strip() == "[]"


def test_a_bad_flag_ends_the_process_before_any_device(tmp_path):
    done, seconds = start(
        str(ROOT / "launch.py"), "--confg.seed=1", cwd=tmp_path, JAX_PLATFORMS="cuda"
    )
    assert done.returncode == 2
    assert done.stderr == "error: --confg.seed = '1': expected a flag of --help\n"
    assert seconds < 2


def test_default_config_from_anywhere(tmp_path):
    done, _ = start(str(ROOT / "launch.py"), "--config.cramming.steps=10.5", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr == "error: --config.cramming.steps = '10.5': expected int\n"


def test_the_config_is_printed_and_reloads(run, tmp_path):
    _, out, _ = run("--config.train.rate=1", "--config.train.lens=8")
    saved = tmp_path / "runs" / "fake_config" / "config.json"
    assert json.loads(saved.read_text())["train"]["rate"] == 1.0
    for section, values in json.loads(saved.read_text()).items():
        assert f"{section}: {json.dumps(values)}\n" in out


def test_an_unreadable_cell_file_is_refused_before_any_work(run, tmp_path):
    run()
    path = next((tmp_path / "runs" / "fake_config" / "cells").glob("*.json"))
    path.unlink()
    path.mkdir()  # root reads any file, but nobody reads a directory
    for mode in ("run", "table", "report"):
        code, out, err = run(f"--mode={mode}")
        assert (code, out) == (2, "")
        assert err == f"error: {path}: Is a directory: expected a readable file\n"


def test_a_workdir_that_is_a_file_is_refused(run, tmp_path):
    (tmp_path / "file").write_text("")
    code, _, err = run(f"--workdir={tmp_path / 'file'}")
    assert code == 2
    assert err.startswith(f"error: --workdir {tmp_path / 'file'}: ")
    assert err.endswith("expected a directory to write to\n")
