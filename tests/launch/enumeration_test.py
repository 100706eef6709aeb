"""The enumeration as a user runs it: killed, run again, refused; its page, its plan."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import launch
from configs import enumeration
from reach_jax.experiments.enumeration_settings import settings
from sweep_jax import cells

ROOT = Path(__file__).resolve().parents[2]
CONFIG = "--config=" + str(ROOT / "configs" / "enumeration.py:smoke")
FIELDS = (
    "axes.weights=('random',)",
    "axes.layouts=(('none','full','token'),)",
    "axes.shapes=((2,2,2),(2,2,3))",
    "execution.block=32",
    "enumeration.length=5",
)


def start(workdir: Path) -> subprocess.Popen:
    command = [sys.executable, str(ROOT / "launch.py"), f"--workdir={workdir}", CONFIG]
    command += [f"--config.{field}" for field in FIELDS]
    env = {key: value for key, value in os.environ.items() if key != "XLA_FLAGS"}
    return subprocess.Popen(
        command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def test_a_killed_enumeration_ends_with_the_same_table(tmp_path):
    """Killed in the second cell; the whole one runs at the same time, elsewhere."""
    whole, killed = start(tmp_path / "whole"), start(tmp_path / "killed")
    deadline = time.monotonic() + 240
    while len(list((tmp_path / "killed").glob("blocks/*/32-*.npz"))) < 9:  # the first cell has 8
        assert killed.poll() is None, killed.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.002)
    killed.send_signal(signal.SIGKILL)
    killed.communicate(timeout=60)

    again = start(tmp_path / "killed")
    out, err = again.communicate(timeout=240)
    assert again.returncode == 0, err
    text, err = whole.communicate(timeout=240)
    assert whole.returncode == 0, err
    assert "0 exceed it" in out
    assert out.replace(str(tmp_path / "killed"), str(tmp_path / "whole")) == text
    for name in ("table.csv", "table.parquet"):
        one, other = (tmp_path / run / name for run in ("killed", "whole"))
        assert one.read_bytes() == other.read_bytes()
    assert not any((tmp_path / "killed" / "blocks").iterdir())
    page = (tmp_path / "whole" / "report.html").read_text()
    for word in ("Theorem 4.5", "classes", "unequal", "exact"):
        assert word in page
    records = [json.loads(path.read_text()) for path in (tmp_path / "whole").glob("cells/*.json")]
    for metrics in [record["metrics"] for record in records]:
        assert metrics["distinct"] <= metrics["classes"] < metrics["prompts"]
        assert metrics["unequal"] == metrics["violations"] == 0
        assert metrics["any_equal"] == 1.0


def test_the_plan_counts_prompts_without_a_device(capsys):
    assert launch.main(["launch.py", CONFIG, "--mode=plan"]) == 0
    out = capsys.readouterr().out
    assert "8 cells" in out
    assert "prompts 1280" in out


def test_bad_fields_are_one_line_and_exit_code_two(capsys):
    for field, wanted in (
        ("axes.shapes=((2,4,4),)", "24 = k m d"),
        ("axes.shapes=((2,4),)", "tuples of 3"),
        ("axes.vocabularies=(300,)", "[2, 256]"),
        ("axes.weights=('tied',)", "('random', 'trained')"),
        ("axes.layouts=(('rotary','causal','begin'),)", "('vector', 'token')"),
        ("enumeration.length=33", "64 bits"),
        ("enumeration.radius=-1.0", "radius"),
        ("random.gain=0.0", "gain"),
        ("model.tied=True", "unit_head"),
        ("execution.block=0", "config.execution.block"),
        ("training.steps=0", "steps"),
    ):
        code = launch.main(["launch.py", CONFIG, "--mode=plan", f"--config.{field}"])
        err = capsys.readouterr().err
        assert (code, err.count("\n")) == (2, 1), (field, err)
        assert wanted in err, (field, err)


def test_every_cell_of_the_shipped_configs_resolves():
    for arg, at_most in (("", 2**16), ("smoke", 2**8), ("large", 2**24)):
        config = enumeration.get_config(arg)
        items = cells.expand(config, enumeration.sweep, ("axes", "execution"))
        sizes = [settings(cell).spec.grid.count for cell in items]
        assert max(sizes) == at_most
