"""The centre of a curve: recovered from its own draws, its likelihood really the greatest."""

import numpy as np
import pytest

from reach_jax.analysis.logistic import bootstrap, fit

LENGTHS = np.arange(10, 200, 10)


def draws(centre, width, K, seed=0):
    """Success of K targets, each by its own threshold: a logistic curve in the mean."""
    rng = np.random.default_rng(seed)
    thresholds = centre + width * rng.logistic(size=K)
    return LENGTHS[None] <= thresholds[:, None]


@pytest.mark.parametrize(("centre", "width"), [(88.9, 12.0), (54, 4.0), (120, 25.0)])
def test_a_curve_is_found_again(centre, width):
    success = draws(centre, width, 20_000)
    found = fit(LENGTHS, success.sum(0), np.full(len(LENGTHS), len(success)))
    np.testing.assert_allclose([found.n50, found.width], [centre, width], rtol=0.03)
    assert found.censored == ""


def test_no_curve_on_a_grid_is_likelier():
    k = draws(70, 15.0, 30).sum(0)

    def loss(centre, width):
        p = 1 / (1 + np.exp((LENGTHS - centre) / width))
        return -np.sum(k * np.log(p) + (30 - k) * np.log(1 - p))

    found = fit(LENGTHS, k, np.full(len(k), 30))
    best = loss(found.n50, found.width)
    grid = [loss(c, w) for c in np.linspace(30, 120, 91) for w in np.linspace(5, 40, 71)]
    assert best <= min(grid) + 1e-5


def test_lengths_count_by_their_tries():
    """Half the targets at one length: as if each had been tried half as often."""
    k, of = np.array([20, 15, 3, 0]), np.array([20, 20, 20, 20])
    n = [10, 20, 30, 40]
    heavy = fit(n, k * [1, 1, 9, 1], of * [1, 1, 9, 1])
    light = fit(n, k, of)
    assert abs(heavy.n50 - light.n50) > 0.01
    twice = fit(n, 2 * k, 2 * of)
    np.testing.assert_allclose([twice.n50, twice.width], [light.n50, light.width], rtol=1e-4)


def test_where_nothing_overlaps_the_centre_is_midway():
    found = fit([10, 20, 30, 40], [5, 5, 0, 0], [5] * 4)
    np.testing.assert_allclose(found.n50, 25, atol=0.1)


@pytest.mark.parametrize(
    ("k", "side"),
    [([5, 5, 5], "above"), ([5, 5, 4], "above"), ([0, 0, 0], "below"), ([1, 0, 0], "below"),
     ([5, 2, 0], "")],
)  # fmt: skip
def test_what_the_lengths_do_not_decide_is_flagged(k, side):
    found = fit([10, 20, 30], k, [5, 5, 5])
    assert found.censored == side
    if side:
        assert found.n50 >= 25 if side == "above" else found.n50 <= 15
    success = np.arange(5)[:, None] < np.array(k)[None]
    interval = bootstrap([10, 20, 30], success, seed=0, resamples=20)
    assert (interval.high == np.inf) == (side == "above")
    assert (interval.low == 0) == (side == "below")


def test_the_interval_covers_about_as_often_as_it_says():
    """60 experiments of 40 targets; fewer than 48 of 60 covered has a chance below 1e-5 at 95 %."""
    covered = 0
    for seed in range(60):
        found = bootstrap(LENGTHS, draws(90, 12.0, 40, seed), seed, resamples=60)
        covered += found.low <= 90 <= found.high
    assert covered >= 48


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([], [], []), "lengths = "),
        (([1, 1], [0, 0], [1, 1]), "distinct lengths"),
        (([1, 2], [0, 3], [2, 2]), "successes = "),
    ],
)
def test_impossible_counts(arguments, message):
    with pytest.raises(ValueError, match=message):
        fit(*arguments)
