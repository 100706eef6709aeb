"""Support end to end: stored measures against NumPy over the vectors that were met."""

import math
import shutil

import numpy as np
import pandas as pd
import pytest

from reach_jax.geometry import states
from reach_jax.hub.tensors import Tensors
from sweep_jax import arrays
from tests.experiments.conftest import GOLDENS, QUICK

SIZES = ("--config.sampling.samples=5", "--config.axes.lengths=2,6", "--config.axes.kinds=random,")


def source(family):
    return f"--config.source.path={GOLDENS / family}", "--config.source.dtype=float32"


@pytest.fixture
def met(monkeypatch):
    """The vectors of every batch that the model gave, by length of the sequence."""
    seen, real = {}, states._last_states

    def spy(model, params, tokens_BT):
        found_BD = real(model, params, tokens_BT)
        seen.setdefault(tokens_BT.shape[1], []).append(np.asarray(found_BD, float))
        return found_BD

    monkeypatch.setattr(states, "_last_states", spy)
    return seen


def same(stored, x_ND):
    """Whether what is stored of a set is what plain loops over its vectors give."""
    metrics, kept = stored
    unit_ND = x_ND / np.sqrt((x_ND**2).sum(axis=1, keepdims=True))
    pairs = [unit_ND[i] @ unit_ND[j] for i in range(len(x_ND)) for j in range(i)]
    want = {
        "count": len(x_ND),
        "r_inf": max(max(abs(x) for x in x_D) for x_D in x_ND),
        "r_2": max(math.sqrt(sum(x * x for x in x_D)) for x_D in x_ND),
        "r_1": max(sum(abs(x) for x in x_D) for x_D in x_ND),
        "mean_cosine": np.mean(pairs),
        "least_cosine": min(pairs),
        "mean_width": np.mean(x_ND.max(axis=0) - x_ND.min(axis=0)),
        "straddling": sum(x_N.min() < 0 < x_N.max() for x_N in x_ND.T),
        "rank": np.linalg.matrix_rank(x_ND - x_ND.mean(axis=0)),
        "std_mean": math.sqrt(x_ND.var(axis=0).mean()),
    }
    assert {name: metrics[name] for name in want} == pytest.approx(want, rel=1e-6)
    np.testing.assert_allclose(kept["covariance"], np.cov(x_ND.T, bias=True), atol=1e-9)
    np.testing.assert_array_equal(kept["lo"], x_ND.min(axis=0))
    np.testing.assert_array_equal(kept["hi"], x_ND.max(axis=0))


def test_a_llama_end_to_end_stopped_and_gone_on_with(launched, met):
    first = launched("support", *source("llama"), *SIZES, stop_after=1)
    before = first.cells()
    assert (first.code, len(before)) == (143, 1)
    assert "the same command goes on" in first.err
    run = launched("support", *source("llama"), *SIZES)
    assert run.code == 0
    after = run.cells()
    assert before.items() < after.items()
    begin = 1  # no tokenizer, so no begin token: sequences of 2 and 6
    assert sorted(met) == [1 + begin, 5 + begin]
    for length in (2, 6):
        assert len(met[length]) == 1  # the first set was not measured again
        same(run.stored(kind="random", length=length), met[length][0])
    table_VD = Tensors(GOLDENS / "llama").read("model.embed_tokens.weight")
    same(run.stored(kind="inputs"), np.asarray(table_VD, float))
    both_ND = np.concatenate([met[2][0], met[6][0]])
    growth = pd.read_csv(run.workdir / "growth.csv").set_index("length")
    width_D = both_ND.max(axis=0) - both_ND.min(axis=0)
    want = np.log1p(width_D * 2**10).sum() / math.log(40)
    (column,) = [name for name in growth if name.startswith("box") and "10" in name]
    assert growth.loc[6, column] == pytest.approx(want, rel=1e-6)
    assert growth.loc[6, "r_inf"] == np.abs(both_ND).max()

    page, table = run.workdir / "report.html", run.workdir / "table.csv"
    for path in (page, table):
        path.unlink()
    again = launched("support", *source("llama"), *SIZES, "--mode=report")
    assert (again.code, again.cells()) == (0, after)
    assert page.stat().st_size > 5000
    assert len(pd.read_csv(table)) == 3


def test_a_mamba_end_to_end(launched, met):
    run = launched("support", *source("mamba"), *SIZES, "--config.axes.lengths=3,")
    assert run.code == 0
    same(run.stored(kind="random"), met[3][0])


def test_prompts_of_a_finished_reachability_run_and_text(launched, met, crammed, tmp_path):
    shutil.copytree(crammed / "models", tmp_path / "run" / "models")
    words = (*QUICK, "--config.axes.lengths=4,", f"--config.prompts.workdir={crammed}")
    run = launched("support", *words, "--config.axes.kinds=text,", "--config.sampling.samples=4")
    assert run.code == 0
    directories = sorted((crammed / "arrays").iterdir())
    prompts = [arrays.restore(directory)["prompt"] for directory in directories]
    assert len(prompts) == 4
    assert all(prompt_MD.shape == (2, 64) for prompt_MD in prompts)
    same(run.stored(kind="prompts"), np.concatenate(prompts).astype(float))
    same(run.stored(kind="text"), met[5][0])  # the begin token and four of text


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--config.sampling.samples=0",), "config.sampling.samples = 0: expected"),
        (("--config.axes.kinds=noise,",), "config.cell.kind = 'noise': expected one of"),
        (("--config.axes.lengths=0,",), "config.cell.length = 0: expected an integer >= 1"),
        (("--config.text.path=absent.txt",), "config.text.path = 'absent.txt': expected a text"),
        (("--config.prompts.workdir=absent",), "config.prompts.workdir = 'absent': expected"),
        (source("llama"), "expected a tokenizer.json in it, for config.axes.kinds = text"),
        (
            (*source("gpt2"), "--config.axes.kinds=random,", "--config.axes.lengths=90,"),
            "config.axes.lengths = 91: expected <=",
        ),
    ],
)
def test_bad_input_is_named(launched, words, message):
    run = launched("support", *words)
    assert run.code == 2
    assert run.err.startswith("error: ")
    assert message in run.err
    assert not run.workdir.exists()


def test_prompts_that_are_not_there_or_do_not_fit_are_refused(launched, crammed, tmp_path):
    (tmp_path / "empty" / "cells").mkdir(parents=True)
    words = (*source("llama"), *SIZES, f"--config.prompts.workdir={tmp_path / 'empty'}")
    assert "expected at least one stored prompt" in launched("support", *words).err
    run = launched("support", *source("llama"), *SIZES, f"--config.prompts.workdir={crammed}")
    assert run.code == 2
    assert "expected prompts of width 24, as the model has" in run.err
