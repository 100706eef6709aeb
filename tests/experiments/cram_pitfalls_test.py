"""What goes wrong in a cramming run, through the launcher: refused by name, or one failed cell."""

import json
import re
import shutil
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest

import launch
from reach_jax.cramming.program import CrammingProgram
from reach_jax.experiments import random_model
from reach_jax.pretrain import corpus
from sweep_jax import backend

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "tests" / "hub" / "families" / "goldens" / "llama"
TINY = (
    "--config.axes.prompt_lengths=1,",
    "--config.axes.targets=2",
    "--config.cramming.steps=4",
    "--config.cramming.patience=4",
    "--config.execution.chunk=4",
    "--config.execution.lanes=4",
    "--config.support.samples=8",
)


@pytest.fixture
def run(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(backend, "configure", lambda precision, directory: None)

    def call(*flags):
        config, where = f"--config={ROOT / 'configs' / 'cram.py'}:smoke", tmp_path / "run"
        words = [f"--config.{flag}" for flag in flags]
        code = launch.main(["launch.py", config, f"--workdir={where}", *TINY, *words])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


@pytest.fixture
def directory(tmp_path):
    """A checkpoint of 40 tokens beside a tokenizer of 512."""
    made = tmp_path / "model"
    shutil.copytree(GOLDEN, made)
    tokenizer = corpus.tokenizer(corpus.CorpusConfig(512, 0.1))
    (made / "tokenizer.json").write_text(tokenizer.to_str())
    return made


@pytest.mark.parametrize(
    ("text", "flags", "line"),
    [
        ("", (), "config.texts.text = '{file}': expected a text; this one is empty"),
        ("a", (), "config.cramming.max_target = 24: expected at most 1, the tokens of the longest"),
        (None, ("axes.prompt_lengths=600",), "config.axes.prompt_lengths = 600: expected an m of"),
        (
            None,
            ("cramming.max_target=600", "execution.buckets=600", "axes.sources=random"),
            "config.cramming.max_target = 600: expected at most 510: with 1 vectors, 512 positions",
        ),
        (None, ("execution.path=5",), "config.execution.path = 5: expected 0 or a power of two"),
        (
            None,
            ("execution.path=8", "cramming.restarts=1"),
            "config.execution.path = 8: expected 0 with config.cramming.restarts",
        ),
    ],
)
def test_refused_in_one_line_before_any_work(run, tmp_path, text, flags, line):
    file = tmp_path / "text.txt"
    if text is not None:
        file.write_text(text)
        flags = (*flags, f"texts.text={file}")
    code, _, err = run(*flags)
    assert code == 2
    assert err.startswith(f"error: {line.format(file=file)}"), err
    assert err.count("\n") == 1
    assert not (tmp_path / "run").exists()


def test_a_directory_is_asked_for_its_tokenizer_and_its_text_counted(run, directory, tmp_path):
    path = (f"source.path={directory}", "axes.sources=text")
    (tmp_path / "text.txt").write_text("?!%")  # no merges
    code, _, err = run(*path, f"texts.text={tmp_path / 'text.txt'}")
    assert code == 2
    assert "max_target = 24: expected at most 3, the tokens of the longest document" in err
    (directory / "tokenizer.json").unlink()
    code, _, err = run(*path)
    assert code == 2
    assert "expected a tokenizer.json in it, for config.axes.sources = text" in err


def test_a_token_outside_the_table_is_named(run, directory):
    """A gather would take the last row instead, and the prompt of another text be called a hit."""
    expected = r"token of config\.axes\.sources = text = \d+: expected one of the 40 tokens in"
    code, _, err = run(f"source.path={directory}", "axes.sources=text")
    assert code == 2
    assert re.search(expected, err.splitlines()[-1])


@pytest.mark.parametrize(
    ("weight", "line"),
    [
        ("embedding", r"input vector that is not finite = 1: expected .* token 3 is the first"),
        ("mlp", r"config\.source\.path = 'random:llama': expected a model whose states are finite"),
    ],
)
def test_a_model_that_says_nan_is_named(run, monkeypatch, weight, line):
    made = random_model.params

    def broken(found, seed):
        return jax.tree_util.tree_map_with_path(
            lambda path, x: x.at[(3 % len(x), 0)].set(jnp.nan) if weight in str(path) else x,
            made(found, seed),
        )

    monkeypatch.setattr(random_model, "params", broken)
    code, _, err = run()
    assert code == 2
    assert re.search(line, err.splitlines()[-1])


def test_texts_of_one_token_and_a_lane_that_breaks_alone(run, monkeypatch, tmp_path):
    """One lane's prompt is NaN: its cell fails and says why, the others and the page are made."""
    (tmp_path / "text.txt").write_text("a")
    start = CrammingProgram.start

    def poisoned(self):
        state = start(self)
        prompts = state.lanes_C.prompt_MD.at[1].set(jnp.nan)
        return state._replace(lanes_C=state.lanes_C._replace(prompt_MD=prompts))

    monkeypatch.setattr(CrammingProgram, "start", poisoned)
    flags = ("cramming.max_target=1", "execution.buckets=1", "execution.path=4")
    flags += ("axes.sources=text", "axes.targets=4")  # and a page without random targets
    code, out, err = run(*flags, f"texts.text={tmp_path / 'text.txt'}")
    assert code == 1
    assert "1 cells failed" in err
    assert "3 searches ended; 0 of them claimed more" in out
    records = [json.loads(p.read_text()) for p in (tmp_path / "run" / "cells").glob("*.json")]
    assert len(records) == 4
    (failed,) = [r for r in records if r["status"] == "failed"]
    assert failed["traceback"] == "loss or gradient not finite at step 1"
    assert failed["metrics"]["reason"] == "not_finite"
    for record in records:
        assert record["metrics"]["threshold"] in (0, 1)  # one token has one term
        if record is not failed:
            assert record["status"] in ("ok", "censored")
    assert (tmp_path / "run" / "report.html").stat().st_size > 5000
