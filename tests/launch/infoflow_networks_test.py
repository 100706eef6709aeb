"""The constructions and witnesses experiments in their smallest form: stored, said, refused."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import launch
from configs import infoflow_constructions, infoflow_witnesses
from infoflow_jax.calculus import targets
from infoflow_jax.calculus.meaning import evaluate
from infoflow_jax.experiments import constructions, constructions_report, witnesses
from sweep_jax import cells, store
from sweep_jax.experiment import Context
from sweep_jax.report import markdown
from sweep_jax.stop import Stop, Stopped

PAIRS = {
    "constructions": (infoflow_constructions, constructions, "constructions.png"),
    "witnesses": (infoflow_witnesses, witnesses, "widths.png"),
}
CONFIG = infoflow_constructions.get_config()


@pytest.fixture(scope="module", params=PAIRS)
def done(request, tmp_path_factory):
    module, experiment, figure = PAIRS[request.param]
    config = module.get_config("smoke")
    items = cells.expand(config, module.sweep, experiment.EXCLUDED)
    workdir = tmp_path_factory.mktemp(request.param)
    context = Context(workdir, store.Store(workdir), Stop(), "0/1")
    experiment.run(config, items, context)
    return experiment, config, items, context, figure


def test_what_is_stored_holds(done):
    experiment, _, items, context, _ = done
    for cell in items:
        metrics = context.store.read(cell)["metrics"]
        if experiment is constructions:
            assert metrics["violations"] == 0
            assert metrics["error"] <= metrics["bound"] + constructions.ROUNDING
            assert metrics["ffn_parameters"] > 0
            assert metrics["parameters"] > metrics["ffn_parameters"]
            if cell.config["cell"]["construction"] == "compiled":
                assert metrics["bound"] <= cell.config["cell"]["eps"] + constructions.ROUNDING
                assert metrics["error"] > 0.01 * metrics["bound"]
            continue
        name = cell.config["cell"]["theorem"]
        tree = {"pairs": targets.pairmin(), "kth": targets.kth(3), "packing": targets.single()}
        a, b = (evaluate(tree[name], np.array(metrics[x]), {"a": np.ones(1)}) for x in ("a", "b"))
        assert abs(a - b) == pytest.approx(metrics["gap"], abs=1e-15)
        assert metrics["width_0"] == pytest.approx(metrics["gap"] / metrics["distance"])
        assert len(metrics["a"]) == metrics["tokens"]
        assert metrics["width_0"] > 1


def test_the_report_stands_and_a_second_run_computes_nothing(done):
    experiment, config, items, context, figure = done
    text = experiment.report(config, items, context)
    assert f"{len(items)} of {len(items)} cells are stored" in text
    assert (context.workdir / "report.html").exists()
    assert (context.workdir / "figures" / figure).read_bytes()[:4] == b"\x89PNG"
    before = {p: p.read_bytes() for p in context.workdir.glob("cells/*.json")}
    experiment.run(config, items, context)
    assert before == {p: p.read_bytes() for p in context.workdir.glob("cells/*.json")}


def test_the_page_in_docs_has_the_tables_of_its_csv():
    """Copy table.csv, figures/ and docs/ of runs/infoflow_constructions after a change."""
    docs = Path(infoflow_constructions.__file__).parents[1] / "docs" / "results"
    frame = pd.read_csv(docs / "infoflow_constructions" / "table.csv")
    page = (docs / "infoflow_constructions.md").read_text()
    found = constructions_report.tables(frame)
    assert len(found) == 3
    for title in ("Theorem 1: sup error x K^2 of pairmin", "Compiled plans"):
        assert markdown(found[title]) in page
    share = (frame["error"] / frame["bound"]).groupby(frame["construction"])
    shown = re.findall(r"^\| `(\w+)`.*\| \.(\d\d) to (\S+) \|$", page, re.M)
    assert len(shown) == 8
    for name, low, high in shown:
        assert [f"0.{low}", f"{float(high):.2f}"] == [
            f"{share.min()[name]:.2f}",
            f"{share.max()[name]:.2f}",
        ]
    assert frame["violations"].sum() == 0
    assert f"Of {len(frame)} cells none is above its bound" in page
    sets = frame[frame["plan"].notna()].groupby("plan")[["eps", "tokens"]].agg(set)
    assert tuple(sets.index.sort_values()) == tuple(sorted(CONFIG.axes.compiled))
    assert all(found == set(CONFIG.axes.tokens) for found in sets["tokens"])
    assert all(found == set(CONFIG.axes.eps) for found in sets["eps"])


def test_a_stop_is_taken_between_cells(done, tmp_path):
    experiment, config, items, *_ = done
    stop = Stop()
    stop.signum = 15
    with pytest.raises(Stopped):
        experiment.run(config, items, Context(tmp_path, store.Store(tmp_path), stop, "0/1"))


@pytest.mark.parametrize(
    ("name", "field", "wanted"),
    [
        ("constructions", "axes.interpolated=('nothing',)", "construction"),
        ("constructions", "axes.tokens=(2,)", "tokens"),
        ("constructions", "axes.betas=(0.0,)", "beta"),
        ("constructions", "axes.bases=(1,)", "resolution"),
        ("constructions", "sampling.inputs=1", "inputs"),
        ("constructions", "sampling.compiled=1", "config.sampling.compiled = 1"),
        ("constructions", "axes.eps=(0.0,)", "config.cell.eps = 0.0"),
        ("constructions", "axes.eps=(1.0,)", "config.cell.eps = 1.0"),
        ("constructions", "axes.compiled=('pairmin',)", "config.cell.plan = 'pairmin'"),
        ("constructions", "axes.compiled=('pairmin 1 in 1',)", "a place for ('min_s1', 'min_t1')"),
        ("constructions", "axes.compiled=('kth 2 in 1 1',)", "argmax jumps at ties"),
        ("constructions", "axes.compiled=('pairmin 1 in 0 1',)", "heads = (0, 1)"),
        ("constructions", "cell.plan='pairmin 1 in 1 1'", "unless the construction is compiled"),
        ("witnesses", "axes.theorems=('nothing',)", "theorem"),
        ("witnesses", "axes.free=(20,)", "free"),
        ("witnesses", "axes.heads=(3,)", "k = 3"),
        ("witnesses", "axes.coordinates=(7,)", "heads"),
    ],
)
def test_bad_fields_are_one_line(capsys, name, field, wanted):
    path = Path(PAIRS[name][0].__file__).resolve()
    command = ["launch.py", f"--config={path}:smoke", "--mode=plan"]
    assert launch.main([*command, f"--config.{field}"]) == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert wanted in err


def test_plans_count_the_cells(capsys):
    for module, said in ((infoflow_constructions, "5 cells"), (infoflow_witnesses, "5 cells")):
        path = Path(module.__file__).resolve()
        assert launch.main(["launch.py", f"--config={path}:smoke", "--mode=plan"]) == 0
        assert said in capsys.readouterr().out
