"""The stability experiment in its smallest form: what it stores, says and refuses."""

import json
from pathlib import Path

import numpy as np
import pytest

import launch
from configs import meanfield
from reach_jax.experiments import meanfield as experiment
from sweep_jax import cells, store
from sweep_jax.experiment import Context
from sweep_jax.stop import Stop, Stopped

CONFIG = f"--config={Path(meanfield.__file__).resolve()}:smoke"


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    config = meanfield.get_config("smoke")
    items = cells.expand(config, meanfield.sweep, experiment.EXCLUDED)
    workdir = tmp_path_factory.mktemp("meanfield")
    context = Context(workdir, store.Store(workdir), Stop(), "0/1")
    experiment.run(config, items, context)
    return config, items, context


def test_ratios_lie_below_the_estimate_and_small_steps_on_the_derivative(done):
    _, items, context = done
    for cell in items:
        metrics = context.store.read(cell)["metrics"]
        ratios = np.array(metrics["out_2"]) / np.array(metrics["in_2"])
        small = np.array(metrics["size"]) == 1e-3
        steepest = np.array(metrics["kind"]) == "steepest"
        assert (ratios[small] < 1.02 * metrics["derivative"]).all()
        # A step off the ball is put back, so it may fall short of the steepest way.
        assert ratios[small & steepest][0] > 0.6 * metrics["derivative"]
        assert np.log(max(metrics["worst_1"], metrics["worst_2"])) < metrics["ln_estimate"]
        assert metrics["violations"] == 0
        assert metrics["permutation_error"] < 1e-12
        assert metrics["duplication_error"] < 1e-12
        assert len(ratios) == 2 * (2 * 2 + 1)


def test_the_report_stands_and_a_second_run_computes_nothing(done):
    config, items, context = done
    text = experiment.report(config, items, context)
    assert "0 cells exceed the estimate" in text
    assert "Largest over draws" in (context.workdir / "report.html").read_text()
    assert (context.workdir / "figures" / "stability.png").read_bytes()[:4] == b"\x89PNG"
    before = {p: p.read_bytes() for p in context.workdir.glob("cells/*.json")}
    experiment.run(config, items, context)
    assert before == {p: p.read_bytes() for p in context.workdir.glob("cells/*.json")}
    assert json.loads(next(iter(before.values())))["provenance"]["versions"]["jax"]


def test_a_stop_is_taken_between_cells(done, tmp_path):
    config, items, _ = done
    stop = Stop()
    stop.signum = 15
    context = Context(tmp_path, store.Store(tmp_path), stop, "0/1")
    with pytest.raises(Stopped):
        experiment.run(config, items, context)


def test_plan_and_bad_fields(capsys):
    assert launch.main(["launch.py", CONFIG, "--mode=plan"]) == 0
    assert "2 cells, pairs 20" in capsys.readouterr().out
    for field, wanted in (
        ("axes.gains=(0.0,)", "gain"),
        ("axes.points=(0,)", "points"),
        ("layer.kv_heads=3", "divisor of heads"),
        ("measures.radius=-1.0", "radius"),
        ("measures.sizes=(2.0,)", "sizes"),
        ("measures.repeats=0", "repeats"),
    ):
        assert launch.main(["launch.py", CONFIG, "--mode=plan", f"--config.{field}"]) == 2
        err = capsys.readouterr().err
        assert err.count("\n") == 1
        assert wanted in err
