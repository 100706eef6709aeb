import itertools

import numpy as np
import pytest
from scipy import stats

from reach_jax.analysis.wasserstein import wasserstein


@pytest.mark.parametrize("q", [1, 2, 3.5])
def test_it_is_the_best_of_all_permutations(q):
    rng = np.random.default_rng(0)
    for _ in range(5):
        x, y = rng.standard_normal((2, 5, 3))
        costs = [
            np.mean([np.linalg.norm(a - b) ** q for a, b in zip(x, y[list(order)], strict=True)])
            for order in itertools.permutations(range(5))
        ]
        np.testing.assert_allclose(wasserstein(x, y, q), min(costs) ** (1 / q), rtol=1e-12)


def test_in_one_dimension_it_is_scipys():
    x, y = np.random.default_rng(1).standard_normal((2, 40))
    want = stats.wasserstein_distance(x, y)
    np.testing.assert_allclose(wasserstein(x[:, None], y[:, None], 1), want, rtol=1e-12)


def test_a_shift_is_its_length_and_an_order_is_nothing():
    x = np.random.default_rng(2).standard_normal((9, 2))
    np.testing.assert_allclose(wasserstein(x, x + np.array([[3.0, 4.0]]), 2), 5.0, rtol=1e-12)
    assert wasserstein(x, x[::-1], 1) == 0.0


def test_what_has_no_distance_is_refused():
    x = np.zeros((3, 2))
    for bad in (np.zeros((2, 2)), np.zeros(3), np.zeros((3, 0))):
        with pytest.raises(ValueError, match="x_SD, y_SD"):
            wasserstein(x, bad, 1)
    with pytest.raises(ValueError, match="finite"):
        wasserstein(x, x + np.nan, 1)
    for q in (0.5, np.inf, np.nan):
        with pytest.raises(ValueError, match="q ="):
            wasserstein(x, x, q)
