"""kill -9 at the worst moments, and stop signals: the same table in the end, bit for bit."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
OVERRIDES = (
    "training.steps=40",
    "training.chunk=10",
    "cramming.steps=60",
    "cramming.patience=30",
    "execution.chunk=10",
    "execution.lanes=4",
    "axes.targets=2",
)


def start(workdir: Path) -> subprocess.Popen:
    command = [sys.executable, str(ROOT / "launch.py"), f"--workdir={workdir}"]
    command += ["--config=" + str(ROOT / "configs" / "reach_quick.py:smoke")]
    command += [f"--config.{field}" for field in OVERRIDES]
    env = {key: value for key, value in os.environ.items() if key != "XLA_FLAGS"}
    return subprocess.Popen(
        command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def finish(process: subprocess.Popen) -> tuple[int, str, str]:
    out, err = process.communicate(timeout=240)
    return process.returncode, out, err


def wait_for(process: subprocess.Popen, workdir: Path, pattern: str) -> None:
    """Until one more file matches `pattern`; the process must still be running then."""
    before = set(workdir.glob(pattern))
    for _ in range(20_000):
        if set(workdir.glob(pattern)) - before:
            return
        if process.poll() is not None:
            break
        time.sleep(0.01)
    pytest.fail(f"ended before {pattern} was there: {process.communicate()}")


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory) -> Path:
    workdir = tmp_path_factory.mktemp("undisturbed")
    code, out, err = finish(start(workdir))
    assert code == 0, err
    assert "theory / measured" in out
    assert str(workdir / "report.html") in out
    return workdir


def test_killed_and_stopped_again_and_again_it_gives_the_same_table(undisturbed, tmp_path):
    for pattern in (
        "models/*/training/10",  # in the middle of training
        "models/*/params",  # trained, not measured
        "pools/*/1",  # after the first chunk of lanes
        "cells/*.json",  # between two cells of one chunk
    ):
        process = start(tmp_path)
        wait_for(process, tmp_path, pattern)
        process.send_signal(signal.SIGKILL)
        assert finish(process)[0] == -signal.SIGKILL
    stored = {path: path.read_bytes() for path in tmp_path.glob("cells/*.json")}

    process = start(tmp_path)
    wait_for(process, tmp_path, "pools/*/[0-9]*")
    process.send_signal(signal.SIGTERM)
    code, _, err = finish(process)
    assert code == 143, err
    assert "run the same command again to resume" in err

    code, _, err = finish(start(tmp_path))
    assert code == 0, err
    for name in ("table.csv", "table.parquet"):
        assert (tmp_path / name).read_bytes() == (undisturbed / name).read_bytes()
    for path, content in stored.items():
        assert path.read_bytes() == content  # what was stored is never computed again
    assert not list(tmp_path.glob("pools/*/"))  # no checkpoint is left behind


def test_a_finished_sweep_computes_nothing(undisturbed):
    cells = sorted(undisturbed.glob("cells/*.json"))
    assert len(cells) == 8
    before = [(path.stat().st_mtime_ns, path.read_bytes()) for path in cells]
    table = (undisturbed / "table.csv").read_bytes()
    code, _, err = finish(start(undisturbed))
    assert code == 0, err
    assert "training the quick model" not in err
    assert [(path.stat().st_mtime_ns, path.read_bytes()) for path in cells] == before
    assert (undisturbed / "table.csv").read_bytes() == table


def test_the_report_stands_alone_and_says_what_it_should(undisturbed):
    page = (undisturbed / "report.html").read_text()
    for outside in ('src="http', "src='http", 'href="http', "url(http", "<script src", "@import"):
        assert outside not in page
    for word in ("n50", "rigorous", "float grid", "ball, eps = r/2^11", "not found within"):
        assert word in page
    for name in ("line", "success", "fraction"):
        assert (undisturbed / "figures" / f"{name}.png").read_bytes()[:4] == b"\x89PNG"
        assert "<svg" in (undisturbed / "figures" / f"{name}.svg").read_text()
    record = json.loads(next(undisturbed.glob("cells/*.json")).read_text())
    assert record["provenance"]["versions"]["jax"]
    assert record["config"]["cramming"]["lookahead"] == 2
