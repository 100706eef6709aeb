"""The published tables again: every printed digit, every reason, and the page in docs."""

import dataclasses
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from configs import bounds_published as config_file
from reach_jax.experiments import bounds_published, published_comparison
from reach_jax.experiments.published_constants import MODELS, NOTEBOOK
from sweep_jax import cells as sweep_cells
from sweep_jax.experiment import Context
from sweep_jax.stop import Stop
from sweep_jax.store import Store

DOCS = Path(__file__).parents[2] / "docs" / "results"
# Recomputed in float64 from Tables 1 and 2, and the parts of the paper's Table 1, in this order:
# ball 2^-10, ball r/2^11, 16 bits, float16 in [-r, r], box; ln f; slope of the figure's points.
SLOPES = {
    "Pythia-160M": (835.5, 590.1, 786.8, 756.8, 716.0, -146.1135, 90.37),
    "Pythia-410M": (1100.1, 786.8, 1049.0, 1007.9, 916.1, -226.2767, 111.14),
    "Pythia-1B": (2234.1, 1573.6, 2098.0, 2018.6, 1758.9, -229.4022, 261.42),
    "Qwen2.5-0.5B": (1003.1, 624.7, 832.9, 808.7, 778.2, -99.8793, 71.02),
    "Qwen2.5-1.5B": (1629.7, 1070.8, 1427.7, 1380.7, 1217.9, -130.3885, 79.56),
    "Llama-3.2-1B": (1974.5, 1448.4, 1931.1, 1851.7, 1634.3, -563.1233, 137.77),
    "Gemma-3-270M": (512.9, 426.7, 568.9, 540.3, 495.3, -154.6918, 44.54),
}
NONUNIFORM = [6.66, 6.07, 4.50, 7.93, 10.82, 8.83, 10.65]  # columns put right


def prepared(workdir, **changes):
    config = config_file.get_config()
    with config.unlocked():
        config.update_from_flattened_dict({k.replace("__", "."): v for k, v in changes.items()})
    items = sweep_cells.expand(config, config_file.sweep, bounds_published.EXCLUDED)
    return config, items, Context(workdir, Store(workdir), Stop(), "0/1")


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """The whole experiment once: workdir, config, cells and what it printed."""
    workdir = tmp_path_factory.mktemp("bounds_published")
    config, items, context = prepared(workdir)
    bounds_published.validate(config, items)
    bounds_published.run(config, items, context)
    return workdir, config, items, bounds_published.report(config, items, context)


@pytest.fixture(scope="module")
def table(done):
    return pd.read_csv(done[0] / "table.csv").set_index("model")


@pytest.fixture(scope="module")
def ratios(done):
    frame = pd.read_csv(done[0] / "ratios.csv", dtype={"published": str}, keep_default_na=False)
    for column in ("recomputed", "corrected"):
        frame[column] = pd.to_numeric(frame[column])
    return frame


def row(ratios, name, table="Table 1"):
    return ratios[(ratios["table"] == table) & (ratios["row"] == name)].set_index("model")


@pytest.mark.parametrize("model", SLOPES)
def test_slopes_to_every_printed_digit(table, model):
    names = ["ball, eps = 2^-10", "ball, eps = r/2^11", "trivial bits", "float grid", "box"]
    found = table.loc[model]
    assert tuple(found[names].round(1)) == SLOPES[model][:5]
    assert round(found["ln f"], 4) == SLOPES[model][5]
    assert abs(found["slope of the figure"] - SLOPES[model][6]) < 0.015  # n50 are rounded to .1


def test_ratios_to_a_hundredth(ratios):
    for name in ("ball", "cone"):
        part = row(ratios, name)
        whole = part["published"].str.partition(".")[2].str.len() == 2  # three are printed to .1
        error = (part["recomputed"] - part["published"].astype(float)).abs()
        assert (error[whole] < 0.01).all()
        assert (error[~whole] < 0.08).all()
    assert row(ratios, "box + non-uniform")["recomputed"].round(2).tolist() == NONUNIFORM


def test_notebook_to_six_digits(ratios):
    ball, cone = (row(ratios, name, "notebook") for name in ("ball", "cone"))
    same = ball.index != "Pythia-6.9B"
    assert (ball["recomputed"].map("{:.6f}".format) == ball["published"])[same].all()
    assert cone["recomputed"][same].round(6).tolist() == [5.938624, 9.787134]
    # Over the vocabulary that the notebook takes for the third model.
    factor = np.log(50432) / np.log(50304)
    assert round(ball["recomputed"]["Pythia-6.9B"] * factor, 6) == 11.099110
    assert round(cone["recomputed"]["Pythia-6.9B"] * factor, 6) == 10.948465
    box = row(ratios, "box", "notebook")["corrected"]
    assert box[same].round(6).tolist() == [4.316811, 7.161607]
    assert round(box["Pythia-6.9B"] * factor, 6) == 7.704780


def test_every_difference_has_its_reason(ratios):
    reasons = ratios["reason"]
    assert not reasons.str.contains("no reading of the constants").any()
    swapped = ratios[reasons.str.contains("two columns are swapped")]
    partner = dict(
        zip(swapped["model"], swapped["reason"].str.extract("s of ([^:]*):")[0], strict=True)
    )
    assert partner == {
        "Pythia-410M": "Pythia-1B",
        "Pythia-1B": "Pythia-410M",
        "Llama-3.2-1B": "Gemma-3-270M",
        "Gemma-3-270M": "Llama-3.2-1B",
    }
    above = ratios[reasons.str.contains(published_comparison.ABOVE_BITS.format(16))]
    assert above["row"].value_counts().to_dict() == {"ball": 6, "box + variable eps": 6, "cone": 5}
    capless = ratios[reasons.str.contains(published_comparison.CAPLESS)]
    assert set(zip(capless["table"], capless["row"], strict=True)) == {("notebook", "cone")}
    assert len(capless) == 3
    assert ratios[reasons.str.contains("are cut")]["model"].tolist() == ["Qwen2.5-1.5B"]
    assert (ratios["recomputed"].isna() == ratios["row"].isin(["box", "box + variable eps"])).all()


def test_what_is_corrected_is_no_more_than_the_float_grid(ratios, table):
    for name in ("ball", "cone", "box", "box + non-uniform"):
        part = row(ratios, name)
        grid = table["float grid"] / table["slope of the figure"]
        assert (part["corrected"] <= grid[part.index] + 1e-6).all()
    np.testing.assert_allclose(
        row(ratios, "ball")["corrected"]["Pythia-160M"], 756.842347 / 90.37, 1e-6
    )


@pytest.mark.parametrize(("model", "change", "reason"), [
    (MODELS[0], {"ball": "9.99"}, published_comparison.UNEXPLAINED),
    (MODELS[0], {"cone": "9.12"}, published_comparison.UNEXPLAINED),
    (MODELS[0], {"nonuniform": "6.70"}, published_comparison.UNEXPLAINED),
    (NOTEBOOK[0], {"ball": "6.019812"}, published_comparison.UNEXPLAINED),
    (MODELS[4], {"ball": "20.5"}, "counts more prompts"),
])  # fmt: skip
def test_a_wrong_digit_is_seen(done, model, change, reason):
    _, _, items, _ = done
    store = Store(done[0])
    cell = next(c for c in items if c.config["cell"]["model"] == model.name)
    changed = dataclasses.replace(model, **change)
    frame = published_comparison.compare([(changed, store.read(cell)["metrics"])], "float16")
    title = published_comparison.ROWS[next(iter(change))]
    assert frame.set_index("row")["reason"][title].startswith(reason)


def test_docs_page_is_what_the_run_writes(done):
    """Copy runs/bounds_published/docs/. to docs/results after a change."""
    for name in ("bounds_published.md", "bounds_published/ratios.csv"):
        assert (DOCS / name).read_text() == (done[0] / "docs" / name).read_text(), name
    assert (DOCS / "bounds_published" / "ratios.png").stat().st_size < 100_000


def test_report_and_figure_are_there_and_a_second_run_computes_nothing(done):
    workdir, config, items, text = done
    assert "10 of 10 cells are stored" in text
    page = (workdir / "report.html").read_text()
    assert "two columns are swapped" in page
    assert page.count("data:image/svg") == 1
    before = {p.name: p.stat().st_mtime_ns for p in (workdir / "cells").iterdir()}
    bounds_published.run(config, items, Context(workdir, Store(workdir), Stop(), "0/1"))
    assert {p.name: p.stat().st_mtime_ns for p in (workdir / "cells").iterdir()} == before


def test_few_models_and_none(tmp_path):
    config, items, context = prepared(tmp_path, axes__models=("Pythia-1.4B", "Gemma-3-270M"))
    assert "0 of 2 cells" in bounds_published.report(config, items, context)
    bounds_published.run(config, items[:1], context)
    assert "no model of the tables" in bounds_published.report(config, items, context)
    bounds_published.run(config, items, context)
    assert "2 of 2 cells" in bounds_published.report(config, items, context)
    assert list(bounds_published.plan(config, items)["model"]) == ["Pythia-1.4B", "Gemma-3-270M"]


def test_another_dtype_is_named_throughout(tmp_path):
    config, items, context = prepared(
        tmp_path, axes__models=("Qwen2.5-0.5B",), bounds__dtype="bfloat16"
    )
    bounds_published.run(config, items, context)
    bounds_published.report(config, items, context)
    page = (tmp_path / "docs" / "bounds_published.md").read_text()
    assert "no bfloat16 prompt exceeds" in page
    assert "rigorous for bfloat16 prompts" in page
    assert "float16" not in page.replace("bfloat16", "")


@pytest.mark.parametrize(("changes", "message"), [
    ({"axes__models": ("GPT-5",)}, "config.axes.models = 'GPT-5'"),
    ({"bounds__dtype": "float64"}, "config.bounds.dtype = 'float64'"),
    ({"bounds__order": 0.5}, "config.bounds.order = 0.5"),
])  # fmt: skip
def test_bad_config_is_refused(tmp_path, changes, message):
    config, items, _ = prepared(tmp_path, **changes)
    with pytest.raises(ValueError, match=message):
        bounds_published.validate(config, items)


def test_the_sweep_names_every_published_model():
    names = config_file.get_config().axes.models
    assert list(names) == [m.name for m in (*MODELS, *NOTEBOOK)]
    with pytest.raises(ValueError, match="config argument = 'smoke'"):
        config_file.get_config("smoke")
