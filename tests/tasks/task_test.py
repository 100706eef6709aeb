"""Targets against their trees by brute force, data by its distribution, NMSE by its meaning."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from infoflow_jax.calculus.meaning import evaluate
from infoflow_jax.tasks import task as tasks
from infoflow_jax.tasks.functions import FUNCTIONS
from infoflow_jax.tasks.task import TaskConfig, nmse

CASES = {
    "pairmax_random": TaskConfig("pairmax_random", 2, 3, 1),
    "pairmax_planar": TaskConfig("pairmax_planar", 4, 2, 0),
    "pairmin": TaskConfig("pairmin", 1, 3, 0),
    "triangle": TaskConfig("triangle", 1, 2, 0),
    "triangle_squared": TaskConfig("triangle_squared", 1, 2, 0),
    "retrieval": TaskConfig("retrieval", 3, 4, 2),
    "kth": TaskConfig("kth", 2, 3, 0),
    "positions": TaskConfig("positions", 3, 2, 0),
}


def brute(config, x_TD):
    """The value by the tree's own loops; a maximum of retrieval is minus a minimum."""
    weights = config.weights()
    if config.target.startswith("pairmax"):
        named = {f"A{i + 1}": A for i, A in enumerate(weights)}
    elif config.target == "retrieval":
        named = {f"a{i + 1}": -a for i, a in enumerate(weights)}
    else:
        named = {"a": weights[0]} if config.target == "kth" else {}
    value = evaluate(config.tree, x_TD, named)
    if config.target == "retrieval":
        return -value
    return value**2 if config.target == "triangle_squared" else value


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_target_is_what_its_tree_means(name):
    config = CASES[name]
    x_BTD = np.random.default_rng(0).standard_normal((3, 5, config.d))
    with jax.enable_x64(True):
        got_BO = np.asarray(tasks.values(config, jnp.asarray(x_BTD)))
    assert got_BO.shape == (3, config.outputs)
    for x_TD, got_O in zip(x_BTD, got_BO, strict=True):
        np.testing.assert_allclose(got_O, np.ravel(brute(config, x_TD)), rtol=1e-9, atol=1e-9)


def test_best_partners_of_planar_point_in_four_directions():
    t_D = np.array([1.0, 0.3])
    partners = FUNCTIONS["pairmax_planar"].weights(4, 2, np.random.default_rng(0)) @ t_D
    cosines = partners @ partners.T / np.linalg.norm(t_D) ** 2
    assert (np.abs(cosines[~np.eye(4, dtype=bool)]) < 1 - 1e-3).sum() >= 10
    np.testing.assert_allclose(np.linalg.norm(partners, axis=1), np.linalg.norm(t_D))


def test_inputs_have_the_papers_distribution():
    plain = tasks.inputs(CASES["pairmax_planar"], jax.random.key(0), (400, 10), "float32")
    assert abs(float(plain.std()) - 1) < 0.03
    norms = np.linalg.norm(
        np.asarray(tasks.inputs(CASES["triangle"], jax.random.key(0), (400, 10), "float32")),
        axis=-1,
    )
    assert norms.min() >= 0.2 - 1e-6
    assert norms.max() <= 4 + 1e-5
    assert abs(np.median(norms) - np.sqrt(2 * 2 * np.log(2))) < 0.06  # Rayleigh, of N(0, 2 I)


def test_fixed_data_and_scale_depend_on_nothing_but_their_key():
    config = CASES["pairmin"]
    x, y = tasks.fixed(config, jax.random.key(3), 4096, 6, "float32")
    again = tasks.fixed(config, jax.random.key(3), 4096, 6, "float32")
    np.testing.assert_array_equal(x, again[0])
    some = np.asarray(y)[:40, 0]
    np.testing.assert_allclose(some, [brute(config, v) for v in np.asarray(x)[:40]], rtol=1e-4)
    standard = tasks.scale(config, 6)
    assert standard == tasks.scale(config, 6)
    big = np.asarray(tasks.fixed(config, jax.random.key(9), 4096, 6, "float32")[1])
    assert abs(big.mean() - standard.mean) < 0.2 * standard.deviation
    assert abs(big.std() / standard.deviation - 1) < 0.2


def test_nmse_is_one_minus_r_squared():
    rng = np.random.default_rng(0)
    y = rng.standard_normal((500, 1))
    found = 0.5 * y + 0.1 * rng.standard_normal((500, 1))
    r2 = 1 - ((y - found) ** 2).sum() / ((y - y.mean()) ** 2).sum()
    assert nmse(found, y) == pytest.approx(1 - r2)
    assert nmse(np.full_like(y, y.mean()), y) == pytest.approx(1.0)
    assert nmse(y, y) == 0.0
    assert nmse(y * np.nan, y) == np.inf


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"target": "nothing"}, "target"),
        ({"D": 5}, "1..4"),
        ({"D": 0}, "D"),
        ({"d": 3}, "d = 3"),
        ({"draw": -1}, "draw"),
    ],
)
def test_impossible_tasks_are_refused(change, said):
    with pytest.raises(ValueError, match=said):
        dataclasses.replace(CASES["pairmax_planar"], **change)


def test_bad_data_and_short_sequences_are_refused():
    y = np.ones((4, 1))
    with pytest.raises(ValueError, match="NaN or infinity"):
        nmse(y, y * np.nan)
    with pytest.raises(ValueError, match="all equal"):
        nmse(y, y)
    with pytest.raises(ValueError, match=r"expected shape \(4, 1\)"):
        nmse(y[:2], y)
    with pytest.raises(ValueError, match="at least 3 tokens, for triangle"):
        CASES["triangle"].require_tokens("tokens", 2)
    with pytest.raises(ValueError, match="at least 3 tokens, for positions"):
        tasks.scale(CASES["positions"], 2)
