"""Verdicts against exact convex hulls, against whole linear programs, and against their proofs."""

import dataclasses

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.spatial import ConvexHull

from reach_jax.geometry import separation, unreachable
from reach_jax.geometry.separation import Verdict, problem
from reach_jax.geometry.unreachable import UnreachableConfig, check, classes, decide

SETTINGS = UnreachableConfig(relaxation=10, rivals=8, rounds=50, seconds=10.0, tolerance=1e-9)
PROGRAMS_ONLY = dataclasses.replace(SETTINGS, relaxation=0)


def head(V, D, seed=0):
    """Rows of mixed lengths, so that some lie well inside and some are corners."""
    rng = np.random.default_rng(seed)
    return rng.standard_normal((V, D)) * rng.uniform(0.2, 1.5, (V, 1)) + 0.5


def status(p, settings=SETTINGS):
    """Statuses of all tokens, every proof checked."""
    verdicts = decide(p, np.arange(len(p.rows_VD)), settings)
    assert len(verdicts) == len(p.rows_VD)
    assert all(check(p, i, v, settings.tolerance) for i, v in enumerate(verdicts))
    assert unreachable.recheck(p, np.arange(len(verdicts)), verdicts, settings.tolerance).all()
    return np.array([v.status for v in verdicts])


def best_margins(p):
    """The exact margin of every token by one linear program with all rows."""
    V, D = p.rows_VD.shape
    found = []
    for i in range(V):
        difference = np.delete(p.rows_VD[i] - p.rows_VD, i, axis=0)
        a = np.column_stack([-difference, np.ones(V - 1)])
        bounds = [*zip(p.lo_D, p.hi_D, strict=True), (None, None)]
        cost = np.append(np.zeros(D), -1.0)
        found.append(-linprog(cost, A_ub=a, b_ub=np.zeros(V - 1), bounds=bounds).fun)
    return np.array(found)


@pytest.mark.parametrize("D", [2, 3])
@pytest.mark.parametrize("seed", range(4))
def test_reachable_tokens_are_the_corners_of_the_hull(D, seed):
    rows = head(60, D, seed)
    corners = set(ConvexHull(rows).vertices.tolist())
    got = status(problem(rows))
    assert set(np.flatnonzero(got == "reachable").tolist()) == corners
    assert set(np.flatnonzero(got == "unreachable").tolist()) == set(range(60)) - corners
    assert 3 <= len(corners) < 60


@pytest.mark.parametrize("D", [1, 2])
@pytest.mark.parametrize("seed", range(3))
def test_with_a_bias_they_are_the_corners_of_the_upper_hull(D, seed):
    rows = head(50, D, seed)
    bias = np.random.default_rng(seed + 9).standard_normal(50)
    hull = ConvexHull(np.column_stack([rows, bias]))
    upper = set(hull.simplices[hull.equations[:, D] > 1e-12].ravel().tolist())
    got = status(problem(rows, bias))
    assert set(np.flatnonzero(got == "reachable").tolist()) == upper
    assert set(np.flatnonzero(got == "unreachable").tolist()) == set(range(50)) - upper
    assert upper != set(ConvexHull(np.column_stack([rows, bias])).vertices.tolist())


@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize("cheap", [False, True])
def test_in_a_box_they_are_those_of_the_whole_linear_program(biased, cheap):
    rows = head(40, 5, seed=3)
    bias = np.random.default_rng(1).standard_normal(40) if biased else None
    box = np.array([-0.2, 0.1, 0.5, -1.0, 0.0]), np.array([0.3, 0.4, 1.5, -0.5, 0.0])
    p = problem(rows, bias, box)
    want = best_margins(p)
    got = status(p, SETTINGS if cheap else PROGRAMS_ONLY)
    assert np.abs(want[np.abs(want) < 1e-6]).size == 0  # no case is doubtful
    np.testing.assert_array_equal(got == "reachable", want > 0)
    np.testing.assert_array_equal(got == "unreachable", want < 0)
    assert 1 <= (want > 0).sum() < 40
    free = status(problem(rows, bias))
    assert (free == "reachable").sum() > (want > 0).sum()


def test_linear_programs_alone_agree_with_all_stages(monkeypatch):
    rows = head(80, 4, seed=5)
    with_tries = status(problem(rows))
    monkeypatch.setattr(
        separation, "_polished", lambda p, token, others, weights: (others, weights)
    )
    monkeypatch.setattr(unreachable._Decisions, "direct", lambda self, places, settings: None)
    np.testing.assert_array_equal(status(problem(rows), PROGRAMS_ONLY), with_tries)
    assert {"reachable", "unreachable"} == set(with_tries.tolist())


def test_the_greatest_norm_and_the_mean():
    rows = head(300, 12, seed=6)
    rows[7] = np.delete(rows, 7, axis=0).mean(axis=0)
    got = status(problem(rows))
    assert got[np.linalg.norm(rows, axis=1).argmax()] == "reachable"
    assert got[7] == "unreachable"
    assert 100 < (got == "reachable").sum() < 299


def test_an_edge_point_a_thin_corner_and_one_token():
    square = np.array([[0.0, 0], [2, 0], [0, 2], [2, 2], [1, 0]])
    assert status(problem(square)).tolist() == ["reachable"] * 4 + ["unreachable"]
    square[4, 1] = -1e-6  # now a corner, of an angle of almost pi
    assert status(problem(square)).tolist() == ["reachable"] * 5
    square[4, 1] = 1e-6
    assert status(problem(square)).tolist() == ["reachable"] * 4 + ["unreachable"]
    assert status(problem(np.array([[1.0, 2.0]]))).tolist() == ["reachable"]


def test_the_lowest_of_equal_rows_stands_for_all():
    rows = np.array([[1.0, 0], [0, 1], [1, 0], [0.0, -0.0], [0, 1], [-0.0, 0]])
    np.testing.assert_array_equal(classes(rows), [0, 1, 0, 3, 1, 3])
    bias = np.array([0.0, 0, 1, 0, 0, 0])
    np.testing.assert_array_equal(classes(rows, bias), [0, 1, 2, 3, 1, 3])


def test_a_bias_decides_between_equal_rows():
    rows = np.array([[1.0, 0], [1, 0], [0, 1]])
    got = status(problem(rows, np.array([0.0, 0.5, 0.0])))
    assert got.tolist() == ["unreachable", "reachable", "reachable"]


def test_states_that_were_met_are_witnesses():
    rows = head(30, 3, seed=8)
    states = np.random.default_rng(0).standard_normal((50, 3)).astype(np.float32)
    p = problem(rows)
    verdicts = decide(p, np.arange(30), SETTINGS, [p.project(states[:20]), p.project(states[20:])])
    met = {i for i, v in enumerate(verdicts) if v.by == "state"}
    assert met == set(np.argmax(states @ rows.T.astype(np.float32), axis=1).tolist())
    assert all(check(p, i, verdicts[i], 1e-9) for i in met)


def test_a_wrong_proof_is_refused():
    rows = head(40, 3, seed=1)
    p = problem(rows)
    verdicts = decide(p, np.arange(40), SETTINGS)
    out = next(i for i, v in enumerate(verdicts) if v.status == "unreachable")
    inside = next(i for i, v in enumerate(verdicts) if v.status == "reachable")
    proof = verdicts[out]
    assert check(p, out, proof, 1e-9)
    tilted = proof.weights_J * np.linspace(0.9, 1.1, len(proof.weights_J))
    wrong = [
        dataclasses.replace(proof, weights_J=tilted / tilted.sum()),
        dataclasses.replace(proof, weights_J=2 * proof.weights_J),
        dataclasses.replace(proof, weights_J=-proof.weights_J),
        dataclasses.replace(proof, others_J=np.array([out]), weights_J=np.ones(1)),
        dataclasses.replace(proof, weights_J=None),
        Verdict("reachable", "", 1.0, verdicts[inside].witness_D),
        Verdict("reachable", "", 1.0, None),
    ]
    assert not any(check(p, out, v, 1e-9) for v in wrong)
    assert not unreachable.recheck(p, np.full(len(wrong), out), wrong, 1e-9).any()
    witness = verdicts[inside].witness_D
    assert not check(p, inside, Verdict("reachable", "", 1.0, 3 * witness / abs(witness).max()), 1)
    assert not check(p, inside, Verdict("reachable", "", 1.0, np.zeros(3)), 1e-9)


def test_what_is_not_decided_says_why():
    rows = head(200, 8, seed=2)
    rows[5] = np.delete(rows, 5, axis=0).mean(axis=0)
    few = dataclasses.replace(SETTINGS, rounds=1, rivals=1, relaxation=0)
    verdict = decide(problem(rows), np.array([5]), few)[0]
    assert (verdict.status, verdict.by) == ("undecided", "1 linear programs")
    assert decide(problem(rows), np.array([5]), SETTINGS)[0].status == "unreachable"


def test_a_stop_is_heard():
    assert decide(problem(head(20, 3)), np.arange(20), SETTINGS, stop=lambda: True) is None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((np.zeros((3, 0)),), "^head = "),
        ((np.zeros((0, 3)),), "^head = "),
        ((np.array([[1.0, np.nan]]),), "^head = 'not finite'"),
        ((np.ones((2, 2)), np.ones(3)), r"^bias = \(3,\)"),
        ((np.ones((2, 2)), np.array([1.0, np.inf])), "^bias = 'not finite'"),
        ((np.ones((2, 2)), None, (np.ones(2), np.zeros(2))), "^box = 'not in order'"),
        ((np.ones((2, 2)), None, (np.ones(1), np.ones(2))), "^box = "),
    ],
)
def test_bad_input_is_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        problem(*arguments)


def test_bad_settings_are_named():
    for field, value in (("rounds", 0), ("rivals", 0), ("seconds", 0.0), ("tolerance", 0.1)):
        with pytest.raises(ValueError, match=f"^{field} = "):
            dataclasses.replace(SETTINGS, **{field: value})
