"""The probing experiment in its smallest form: stored, said, refused; and the law of widths."""

from pathlib import Path

import numpy as np
import pytest

import launch
from configs import infoflow_depth, infoflow_probe
from infoflow_jax.experiments import probe, probe_report, scaling_report, trained
from infoflow_jax.figures import scaling_figure
from sweep_jax import cells, store
from sweep_jax.experiment import Context
from sweep_jax.stop import Stop

PATH = Path(infoflow_probe.__file__).resolve()


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    config = infoflow_probe.get_config("smoke").unlock()
    config.network.width, config.network.head_width = 8, 2
    config.network.ffn = ((4,), ())
    config.probing.linear_inputs = config.probing.inputs  # one shape, compiled once
    config.axes.plans = ("retrieval 2 in 2",)
    items = cells.expand(config, infoflow_probe.sweep, probe.EXCLUDED)
    items = [items[0], *items[2:4]]  # a plan, trained (2,2) and (1,2)
    workdir = tmp_path_factory.mktemp("probe")
    context = Context(workdir, store.Store(workdir), Stop(), "0/1")
    probe.run(config, items, context)
    return config, items, context


def test_explicit_weights_have_exactly_the_sets_of_their_plan(done):
    _, items, context = done
    rows = context.store.read(items[0])["metrics"]["rows"]
    assert [row[:3] for row in rows if row[2] == "gradient"] == [["c0 1", "known", "gradient"]]
    exact = {row[2]: row[-1] for row in rows}
    assert exact["nudged"] == exact["gradient"] == 1.0


def test_trained_networks_are_matched_probed_and_kept(done):
    _, items, context = done
    for cell, pairs in zip(items[1:], (2, 1), strict=True):
        metrics = context.store.read(cell)["metrics"]
        assert len(metrics["pairs_1"]) == len(metrics["linear_max_trained"]) == pairs
        assert len(metrics["pairs_2"]) == 2
        assert {row[0] for row in metrics["rows"]} == {"tokens 1", "c0 2"}
        assert context.store.arrays(cell)["layer_0.query"].shape == (8, 2, 2)
    assert not list((context.workdir / "programs").glob("*/*"))


def test_the_report_stands(done):
    config, items, context = done
    text = probe.report(config, items, context)
    assert "3 of 3 cells are stored" in text
    page = (context.workdir / "docs" / "infoflow_probe.md").read_text()
    assert "trained 1-2, D = 2, run 0 | c0 2 | known" in page
    assert (context.workdir / "docs" / "infoflow_probe" / "tolerance.png").exists()
    records = [(cell, context.store.read(cell)) for cell in items]
    shown = probe_report.agreements(records)
    assert shown.loc[0, "gradient"].startswith("1.00 [1.00, 1.00] / 1.00 [1.00, 1.00]; 1.000 at")


@pytest.mark.parametrize(
    ("field", "said"),
    [
        ("axes.plans=('nothing',)", "plan = 'nothing'"),
        ("axes.betas=(0.0,)", "config.subject.beta = 0.0"),
        ("subject.tokens=2", "config.subject.tokens = 2"),
        ("subject.eps=2.0", "config.subject.eps = 2.0"),
        ("probing.inputs=3", "config.probing.inputs = 3"),
        ("task.target=retrieval", "a pairmax"),
        ("axes.runs=0", "axes.runs"),
    ],
)
def test_bad_fields_are_one_line(capsys, field, said):
    command = ["launch.py", f"--config={PATH}:smoke", "--mode=plan", f"--config.{field}"]
    assert launch.main(command) == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert said in err


def test_every_form_has_a_plan(capsys):
    for arg, most in (("smoke", 60), ("quick", 600), ("", np.inf)):
        assert launch.main(["launch.py", f"--config={PATH}:{arg}", "--mode=plan"]) == 0
        assert float(capsys.readouterr().out.strip().split("seconds ")[-1]) <= most


def test_parameters_grow_by_the_law_that_errors_were_made_by():
    """Two layers: eps = .5 N^-1/2, so parameters ~ eps^-2. One layer stands still."""
    config = infoflow_depth.get_config("widths")
    items = cells.expand(config, infoflow_depth.sweep, trained.EXCLUDED)
    records = []
    for cell in items:
        deep, size = (
            len(cell.config["cell"]["heads"]) == 2,
            sum(sum(widths) for widths in cell.config["network"]["ffn"]),
        )
        eps = 0.5 * size**-0.5 if deep else 0.7
        worse = 1 + cell.config["cell"]["run"]  # only the best run counts
        metrics = {"nmse": (worse * eps / 3) ** 2, "deviation": 3.0, "ffn_parameters": size}
        records.append((cell, {"metrics": metrics}))
    found = scaling_report.points(records)
    rows = scaling_report.slopes(found, 0).set_index("heads")
    assert rows.loc["1-1", "parameters ~ eps^-"].startswith("2.00 [")
    assert rows.loc["1", "parameters ~ eps^-"] == "–"
    assert rows.loc["1", "problems"] != "–"
    assert len(scaling_figure.against_parameters(found).axes) == 1
    few = {("1-1", 8): (np.array([1, 2, 3]), np.array([0.3, 0.2, 0.1]))}
    assert "fewer than 4" in scaling_report.slopes(few, 0)["problems"][0]
