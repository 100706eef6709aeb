"""The experiment with trained networks in its smallest form: stored, resumed, said, refused."""

from pathlib import Path

import jax
import numpy as np
import pytest

import launch
from configs import (
    infoflow_depth,
    infoflow_kth,
    infoflow_pairmax,
    infoflow_positions,
    infoflow_retrieval,
    infoflow_triangle,
)
from infoflow_jax.experiments import published_training, trained, trained_report
from infoflow_jax.networks import scores, transformer
from infoflow_jax.tasks.task import Scale, fixed, nmse
from infoflow_jax.training import ensemble, fit
from sweep_jax import cells, store
from sweep_jax.experiment import Context
from sweep_jax.stop import Stop, Stopped

CONFIGS = {
    "pairmax": infoflow_pairmax,
    "triangle": infoflow_triangle,
    "depth": infoflow_depth,
    "kth": infoflow_kth,
    "positions": infoflow_positions,
    "retrieval": infoflow_retrieval,
}


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    config = infoflow_pairmax.get_config("smoke")
    config.unlock()
    config.training.tokens, config.training.steps = (3,), (4,)
    config.network.width, config.network.head_width = 8, 2
    config.network.ffn = ((4,), (4,))
    config.evaluation.tokens = (3,)
    items = cells.expand(config, infoflow_pairmax.sweep, trained.EXCLUDED)
    workdir = tmp_path_factory.mktemp("trained")
    context = Context(workdir, store.Store(workdir), Stop(), "0/1")
    stop = Stop()
    stop.signum = 15
    with pytest.raises(Stopped):
        trained.run(config, items, Context(workdir, context.store, stop, "0/1"))
    assert context.store.pending(items) == items
    trained.run(config, items, context)
    return config, items, context


def test_stored_parameters_give_the_stored_error(done):
    _, items, context = done
    assert [cell.config["cell"]["heads"] for cell in items] == [(2, 2), (1, 2), (2, 1)]
    for cell in items:
        s = trained.settings(cell)
        record, arrays = context.store.read(cell), context.store.arrays(cell)
        params = {}
        for name, value in arrays.items():
            *path, last = name.split(".")
            at = params
            for part in path:
                at = at.setdefault(part, {})
            at[last] = value
        key = jax.random.fold_in(jax.random.key(0), 2**31 - 2)
        x, y = fixed(s.task, key, s.evaluation.examples, 3, "float32")
        mask = np.array([[i < h for i in range(2)] for h in s.point.heads])
        found = [transformer.apply(s.network, params, row, mask) for row in x]
        metrics = record["metrics"]
        found = metrics["mean"] + metrics["deviation"] * np.array(found)
        assert metrics["nmse_T"][0] == pytest.approx(nmse(found, y), rel=1e-3)
        assert metrics["best"] <= metrics["nmse"]
        assert metrics["diverged"] == -1


def test_the_report_stands_and_a_second_run_computes_nothing(done):
    config, items, context = done
    text = trained.report(config, items, context)
    assert "3 of 3 cells are stored" in text
    assert (context.workdir / "figures" / "lengths.png").read_bytes()[:4] == b"\x89PNG"
    page = (context.workdir / "docs" / "infoflow_pairmax.md").read_text()
    assert "(D,D) against its neighbours" in page
    assert "5.89e-05" in page
    rows = trained_report.summary([(c, context.store.read(c)) for c in items])
    assert list(rows["feasible"]) == [True, False, False]
    each = trained_report.every_run([(c, context.store.read(c)) for c in items])
    assert list(each["heads"]) == ["2-2", "1-2", "2-1"]
    np.testing.assert_allclose([float(text) for text in each["runs"]], rows["least"], rtol=0.05)
    gaps = trained_report.neighbours(rows).iloc[0]
    least = rows.set_index("heads")["least"]
    assert gaps["factor 1"] == pytest.approx(least["1-2"] / least["2-2"])
    before = {p: p.read_bytes() for p in context.workdir.glob("cells/*.json")}
    trained.run(config, items, context)
    assert before == {p: p.read_bytes() for p in context.workdir.glob("cells/*.json")}


def test_attention_by_position_is_that_of_explicit_weights():
    """A third to each of the first three tokens; a head that is masked is not shown."""
    made = scores.positions(2, 3, 100.0)
    [cell] = cells.expand(
        infoflow_positions.get_config("smoke"), infoflow_positions.sweep, trained.EXCLUDED
    )
    s = trained.settings(cell)
    rng = np.random.default_rng(0)
    other = jax.tree.map(lambda leaf: rng.standard_normal(leaf.shape) / 4, made.params)
    with trained.wide(made.config):
        shared = ensemble.Ensemble(made.config, s.task, Scale(0.0, 1.0), s.training, "map")
        params_R = jax.tree.map(lambda a, b: np.stack([a, a, b]), made.params, other)
        found = fit.Fitted(params_R, *[np.zeros(3)] * 3)
        masks = np.array([[[True]], [[False]], [[True]]])
        runs_R = ensemble.Run(np.zeros((3, 2), np.uint32), masks, np.zeros(3))
        one, none, drawn = trained.looks(shared, found, runs_R, s.evaluation)
        x_NTD, _ = fit.validation(shared, s.evaluation.examples, s.evaluation.tokens[0], 1)
        terms = transformer.Network(made.config).bind({"params": other}).first_terms
        weight_NTH = np.exp([terms(x_TD)[0] for x_TD in x_NTD])
    np.testing.assert_allclose(one["attention_HT"], [[1 / 3] * 3 + [0] * 7], atol=1e-9)
    np.testing.assert_allclose(one["attention_spread_HT"], np.zeros((1, 10)), atol=1e-9)
    assert none["attention_HT"].shape == (0, 10)
    weight_NTH /= weight_NTH.sum(1, keepdims=True)
    assert weight_NTH.std(0).max() > 0.01  # it depends on the tokens
    np.testing.assert_allclose(drawn["attention_HT"].T, weight_NTH.mean(0), rtol=1e-6)
    np.testing.assert_allclose(drawn["attention_spread_HT"].T, weight_NTH.std(0), rtol=1e-5)


@pytest.mark.parametrize("name", CONFIGS)
def test_every_config_has_a_plan(capsys, name):
    path = Path(CONFIGS[name].__file__).resolve()
    for arg, most in (("smoke", 1.0), ("", np.inf)):
        assert launch.main(["launch.py", f"--config={path}:{arg}", "--mode=plan"]) == 0
        seconds = float(capsys.readouterr().out.strip().split("seconds ")[-1])
        assert seconds <= most


@pytest.mark.parametrize("name", CONFIGS)
def test_a_step_of_every_full_sweep_can_be_traced(name):
    """The paper's own shapes; `smoke` runs one, and nothing here has the time to compile them."""
    config = CONFIGS[name].get_config()
    items = cells.expand(config, CONFIGS[name].sweep, trained.EXCLUDED)
    parts = trained.programs(items, config.execution.most)
    for part in (parts[0], parts[-1]):
        s = trained.settings(part[0])
        how = (s.network, s.task, Scale(0.0, 1.0), s.training, config.execution.batching)
        shared = ensemble.Ensemble(*how)
        R, L, H = len(part), s.network.layers, max(s.point.slots)
        key, mask, rate = ((R, 2), "uint32"), ((R, L, H), "bool"), ((R,), s.network.dtype)
        runs_R = ensemble.Run(*(jax.ShapeDtypeStruct(*leaf) for leaf in (key, mask, rate)))
        states_R = ensemble.start.eval_shape(shared, runs_R)
        tokens = s.training.tokens[-1]
        after_R, loss_R = ensemble.advance.eval_shape(shared, states_R, runs_R, tokens, 2)
        assert loss_R.shape == (R,)
        assert jax.tree.map(lambda x: x.shape, after_R) == jax.tree.map(lambda x: x.shape, states_R)


@pytest.mark.parametrize(
    ("name", "field", "said"),
    [
        ("pairmax", "axes.dims=()", "axes.dims"),
        ("pairmax", "axes.dims=(5,)", "1..4"),
        ("pairmax", "axes.runs=0", "axes.runs"),
        ("pairmax", "axes.rates=(0.0,)", "rate"),
        ("pairmax", "training.tokens=(1,)", "at least 2 tokens"),
        ("pairmax", "task.target=nothing", "target"),
        ("pairmax", "execution.batching=all", "batching"),
        ("pairmax", "page.published=nothing", "published"),
        ("triangle", "axes.widths=(25,)", "a multiple of its 2 heads"),
        ("triangle", "axes.tokens=(2,)", "at least 3 tokens"),
        ("depth", "evaluation.examples=1", "examples"),
    ],
)
def test_bad_fields_are_one_line(capsys, name, field, said):
    path = Path(CONFIGS[name].__file__).resolve()
    command = ["launch.py", f"--config={path}:smoke", "--mode=plan"]
    assert launch.main([*command, f"--config.{field}"]) == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert said in err


def test_published_values_are_the_papers():
    assert published_training.table("pairmax").shape == (5, 4)
    assert published_training.table("") is None
