"""INF-03: known exponents come back from clean data, whatever the grid and the units."""

import numpy as np
import pytest

from infoflow_jax.training import laws

E, A, B, ALPHA, BETA = 1.69, 406.4, 410.7, 0.34, 0.28


def grid(decades, shift):
    """Parameters and data of five budgets 6 N D = 1e17..1e21, around the best N or beside it."""
    sizes = []
    for budget in np.logspace(17, 21, 5):
        best = (ALPHA * A / (BETA * B)) ** (1 / (ALPHA + BETA)) * (budget / 6) ** (
            BETA / (ALPHA + BETA)
        )
        for N in best * np.logspace(-decades, decades, 7) * 10**shift:
            sizes.append((N, budget / 6 / N))
    return np.array(sizes)


def clean(sizes):
    return E + A / sizes[:, 0] ** ALPHA + B / sizes[:, 1] ** BETA


@pytest.mark.parametrize(("decades", "shift"), [(1.5, 0), (0.3, 0), (0.6, 0.5)])
def test_exponents_come_back_from_clean_data(decades, shift):
    sizes = grid(decades, shift)
    law = laws.fit(sizes, clean(sizes))
    np.testing.assert_allclose(law.exponents, (ALPHA, BETA), atol=1e-3)
    a, b = law.exponents
    assert b / (a + b) == pytest.approx(0.4516, abs=1e-3)
    np.testing.assert_allclose(law.coefficients, (A, B), rtol=2e-2)
    assert law.floor == pytest.approx(E, abs=1e-2)
    assert law.problems == ()


def test_other_units_give_the_same_exponents():
    sizes = grid(1.0, 0)
    one, two = laws.fit(sizes, clean(sizes)), laws.fit(sizes * 1e-6, 1e3 * clean(sizes))
    np.testing.assert_allclose(one.exponents, two.exponents, atol=1e-5)


def test_intervals_cover_the_truth_and_failures_are_said():
    sizes = np.logspace(1, 4, 16)[:, None]
    noise = np.exp(0.02 * np.random.default_rng(0).standard_normal(16))
    law = laws.fit(sizes, (0.01 + 3 * sizes[:, 0] ** -0.5) * noise, draws=100)
    low, high = law.intervals[0]
    assert low < 0.5 < high < low + 0.2
    assert "no effect" in "".join(laws.fit(sizes, np.full(16, 2.0)).problems)
    steep = laws.fit(sizes, sizes[:, 0] ** -6.0)
    assert "at the end" in "".join(steep.problems)


@pytest.mark.parametrize(
    ("sizes", "error", "said"),
    [
        (np.ones((3, 1)), np.ones(3), "more than the 3 unknowns"),
        (np.ones((5, 1)), np.full(5, np.nan), "error_N"),
        (-np.ones((5, 1)), np.ones(5), "sizes_NK"),
        (np.ones(5), np.ones(5), "sizes_NK"),
    ],
)
def test_impossible_data_is_refused(sizes, error, said):
    with pytest.raises(ValueError, match=said):
        laws.fit(sizes, error)
