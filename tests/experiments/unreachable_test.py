"""Unreachable tokens end to end: statuses against whole linear programs, proofs checked again."""

import shutil

import numpy as np
import pandas as pd
import pytest
from safetensors.numpy import load_file, save_file
from scipy.optimize import linprog

from tests.experiments.conftest import GOLDENS

INSIDE, EQUAL, LOWER = 17, 30, 5  # a token amid others, one with the row of a lower token


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A tiny checkpoint of whose tokens two can never win; its head in float64."""
    path = tmp_path_factory.mktemp("unreachable") / "tiny"
    shutil.copytree(GOLDENS / "llama", path)
    tensors = load_file(path / "model.safetensors")
    head_VD = tensors["lm_head.weight"].astype(np.float32)
    head_VD[INSIDE] = head_VD[:8].mean(axis=0)
    head_VD[EQUAL] = head_VD[LOWER]
    save_file(tensors | {"lm_head.weight": head_VD}, path / "model.safetensors")
    return path, head_VD.astype(float)


def words(path):
    small = ("--config.support.lengths=3,", "--config.support.samples=8")
    return f"--config.source.path={path}", "--config.source.dtype=float32", *small


def wins(head_VD, bias_V=None, lo_D=None, hi_D=None):
    """Whether each token can win strictly: one linear program with all rows, no bounds on scale."""
    V, D = head_VD.shape
    found = []
    for i in range(V):
        others = np.delete(np.arange(V), i)
        bias = np.zeros(V) if bias_V is None else bias_V
        ends = (-1.0, 1.0) if lo_D is None else None
        scale = (0.0, 1.0) if lo_D is None else (1.0, 1.0)
        a = np.column_stack([head_VD[others] - head_VD[i], bias[others] - bias[i], np.ones(V - 1)])
        box = [ends] * D if ends else list(zip(lo_D, hi_D, strict=True))
        cost = np.append(np.zeros(D + 1), -1.0)
        made = linprog(cost, a, np.zeros(V - 1), bounds=[*box, scale, (None, None)])
        found.append(-made.fun > 1e-7)
    return np.array(found)


def test_end_to_end_stopped_and_gone_on_with(launched, model):
    path, head_VD = model
    first = launched("unreachable", *words(path), stop_after=1)
    before = first.cells()
    assert (first.code, len(before)) == (143, 1)
    run = launched("unreachable", *words(path))
    assert run.code == 0
    assert before.items() < run.cells().items()
    want_V = wins(head_VD)
    want_V[EQUAL] = False  # exact ties go to the lower token
    want_V[LOWER] = wins(np.delete(head_VD, EQUAL, axis=0))[LOWER]
    assert not want_V[INSIDE]
    for states in ("any", "box"):
        for block in (0, 1):
            metrics, kept = run.stored(states=states, block=block)
            tokens_N, status_N = kept["tokens"], kept["status"]
            np.testing.assert_array_equal(tokens_N, np.arange(block, 40, 2))
            assert metrics["undecided"] == 0
            if states == "any":
                np.testing.assert_array_equal(status_N == 0, want_V[tokens_N])
            assert (status_N[~want_V[tokens_N]] == 1).all()  # a box only takes away
            witness_RD = kept["witness"].astype(float)
            logits_RV = witness_RD @ head_VD.T
            won_R = tokens_N[status_N == 0]
            np.testing.assert_array_equal(logits_RV.argmax(axis=1), won_R)
            for place in np.flatnonzero(status_N == 1):
                part = slice(*kept["starts"][place : place + 2])
                others, weights = kept["others"][part], kept["weights"][part]
                assert weights.min() >= 0
                assert weights.sum() == pytest.approx(1)
                if states == "any":
                    mixed_D = weights @ head_VD[others]
                    np.testing.assert_allclose(mixed_D, head_VD[tokens_N[place]], atol=1e-6)
    listed = pd.read_csv(run.workdir / "tokens.csv")
    found = listed[listed["states"] == "any"].set_index("token")
    assert set(found.index) == {INSIDE, EQUAL}
    assert found.loc[EQUAL, "because"] == "equal to a lower token"
    assert found.loc[EQUAL, "heaviest"] == str(LOWER)

    (run.workdir / "tokens.csv").unlink()
    again = launched("unreachable", *words(path), "--mode=report")
    assert again.code == 0
    pd.testing.assert_frame_equal(pd.read_csv(run.workdir / "tokens.csv"), listed)
    assert "4 of 4 cells are stored" in again.out


def test_a_bias_of_a_file(launched, model, tmp_path):
    """A token far down can still win where the logits are large; one inside a hull never can."""
    path, head_VD = model
    bias_V = np.random.default_rng(0).normal(0, 3, 40)
    np.save(tmp_path / "bias.npy", bias_V)
    more = (f"--config.axes.biases={tmp_path / 'bias.npy'},", "--config.axes.blocks=1")
    run = launched("unreachable", *words(path), *more, "--config.axes.states=any,")
    assert run.code == 0
    _, kept = run.stored(states="any")
    np.testing.assert_array_equal(kept["status"] == 0, wins(head_VD, bias_V))
    assert (kept["status"] == 1).any()
    lifted_VD = np.column_stack([head_VD, bias_V])
    won_R = (kept["witness"].astype(float) @ lifted_VD.T).argmax(axis=1)
    np.testing.assert_array_equal(won_R, np.flatnonzero(kept["status"] == 0))


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--config.axes.states=sphere,",), "config.cell.states = 'sphere': expected one of"),
        (("--config.axes.biases=absent.npy,",), "config.cell.bias = 'absent.npy': expected none"),
        (("--config.axes.biases=unigram,",), "a tokenizer.json in it, for config.axes.biases"),
        (("--config.axes.blocks=41",), "config.axes.blocks = 41: expected <= 40"),
        (("--config.decide.tolerance=0.1",), "config.decide.tolerance = 0.1: expected in"),
        (("--config.decide.rivals=0",), "config.decide.rivals = 0: expected an integer >= 1"),
        (("--config.text.path=absent.txt",), "config.text.path = 'absent.txt': expected a text"),
    ],
)
def test_bad_input_is_named(launched, model, more, message):
    run = launched("unreachable", *words(model[0]), *more)
    assert run.code == 2
    assert run.err.startswith("error: ")
    assert message in run.err
    assert not run.workdir.exists()
