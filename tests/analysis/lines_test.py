"""Lines against scipy, published fits and corner cases; coverage of the slope's interval."""

import dataclasses

import numpy as np
import pytest
from scipy import stats

from reach_jax.analysis.lines import fit_line, fit_through_origin, slope_interval

# n50 at m = 1.. and the published slope and R^2 (arXiv 2605.22223, PG-19, decoded figures).
PUBLISHED = [
    ([88.9, 182.4, 277.5, 366.7, 448.6], 90.37, 0.999),
    ([209.8, 496.6, 758.8, 993.8], 261.42, 0.998),
    ([45.2, 144.5, 277.7, 454.7, 578.9], 137.77, 0.992),
    ([17.1, 42.4, 89.5, 141.2, 190.4], 44.54, 0.987),
]


@pytest.mark.parametrize(("y", "slope", "r2"), PUBLISHED)
def test_published_lines(y, slope, r2):
    line = fit_line(np.arange(1, len(y) + 1), y)
    np.testing.assert_allclose(line.slope, slope, atol=0.06)  # n50 is printed to one digit
    np.testing.assert_allclose(line.r2_centred, r2, atol=6e-4)


def test_line_against_scipy_and_projections():
    rng = np.random.default_rng(0)
    for offset in (0, 1e6):
        x, y = rng.normal(size=20) + offset, rng.normal(size=20) - offset
        line, exact = fit_line(x, y), stats.linregress(x, y)
        np.testing.assert_allclose([line.slope, line.intercept], [exact.slope, exact.intercept])
        np.testing.assert_allclose([line.r2_centred, line.corr2], exact.rvalue**2, rtol=1e-6)
    x, y = rng.normal(size=20), rng.normal(size=20)
    (slope,), (sse,), *_ = np.linalg.lstsq(x[:, None], y)
    line = fit_through_origin(x, y)
    np.testing.assert_allclose(line.slope, slope)
    np.testing.assert_allclose(line.r2_uncentred, 1 - sse / np.sum(y**2))
    np.testing.assert_allclose(line.r2_centred, 1 - sse / np.sum((y - y.mean()) ** 2))


def test_the_three_r2_of_a_line_through_the_origin():
    line = fit_through_origin([1, 2, 3, 4], [5, 6, 5, 6])
    np.testing.assert_allclose(line.slope, 1.8666667, rtol=1e-7)
    np.testing.assert_allclose(line.r2_uncentred, 0.8568306, rtol=1e-7)
    np.testing.assert_allclose(line.r2_centred, -16.4666667, rtol=1e-7)
    np.testing.assert_allclose(line.corr2, 0.2, rtol=1e-7)
    assert (line.intercept, line.reason) == (0, "")


@pytest.mark.parametrize(("fit", "x", "y", "defined", "reason"), [
    (fit_line, [2], [3], {}, "fewer than two distinct x"),
    (fit_line, [2, 2], [3, 4], {}, "fewer than two distinct x"),
    (fit_line, [1, 2, 4], [3, 3, 3],
     {"slope": 0, "intercept": 3, "r2_uncentred": 1}, "y is constant"),
    (fit_line, [1, 2], [0, 0], {"slope": 0, "intercept": 0}, "every y is 0"),
    (fit_through_origin, [2], [3],
     {"slope": 1.5, "intercept": 0, "r2_uncentred": 1}, "y is constant"),
    (fit_through_origin, [1, 2, 3], [2, 2, 2],
     {"slope": 6 / 7, "intercept": 0, "r2_uncentred": 6 / 7}, "y is constant"),
    (fit_through_origin, [2, 2], [3, 5],
     {"slope": 2, "intercept": 0, "r2_uncentred": 32 / 34, "r2_centred": 0}, "x is constant"),
    (fit_through_origin, [0, 0], [3, 4], {"intercept": 0}, "every x is 0"),
])  # fmt: skip
def test_what_is_not_defined_is_nan_with_a_reason(fit, x, y, defined, reason):
    line = fit(x, y)
    assert line.reason == reason
    for field in ("slope", "intercept", "r2_centred", "r2_uncentred", "corr2"):
        np.testing.assert_allclose(getattr(line, field), defined.get(field, np.nan), err_msg=field)


@pytest.mark.parametrize(("x", "y"), [([], []), ([1, 2], [1]), ([1, np.nan], [1, 2]), (1, 2)])
def test_bad_points_are_refused(x, y):
    for fit in (fit_line, fit_through_origin):
        with pytest.raises(ValueError, match=r"^x, y = "):
            fit(x, y)


def draws(rng, lengths, count=16, noise=0.15):
    """Thresholds of targets whose true median is 40 m + 10."""
    return {
        m: np.floor((40 * m + 10.5) * rng.lognormal(0, noise, count)).astype(int) for m in lengths
    }


def none_censored(by_m):
    return {m: np.zeros(len(values), bool) for m, values in by_m.items()}


def test_slope_interval_covers_the_true_slope():
    rng = np.random.default_rng(3)
    covered = 0
    for seed in range(400):
        by_m = draws(rng, (1, 2, 3, 4, 5))
        found = slope_interval(by_m, none_censored(by_m), seed, resamples=400)
        covered += found.low <= 40 <= found.high
    assert 0.91 < covered / 400 < 0.99


@pytest.mark.parametrize("through_origin", [False, True])
def test_slope_interval_is_the_spread_of_refitted_lines(through_origin):
    """The same bootstrap done plainly: resample, median, fit."""
    by_m = draws(np.random.default_rng(4), (4, 1, 2))
    found = slope_interval(by_m, none_censored(by_m), 0, through_origin, resamples=4000)
    fit = fit_through_origin if through_origin else fit_line
    assert found.line == fit([1, 2, 4], [np.median(by_m[m]) for m in (1, 2, 4)])
    assert (found.fitted, found.left_out) == ((1, 2, 4), ())
    rng = np.random.default_rng(5)
    slopes = [
        fit([1, 2, 4], [np.median(rng.choice(by_m[m], 16)) for m in (1, 2, 4)]).slope
        for _ in range(2000)
    ]
    np.testing.assert_allclose(
        [found.low, found.high], np.quantile(slopes, [0.025, 0.975]), atol=0.3 * np.std(slopes)
    )


def test_slope_interval_repeats_with_its_seed():
    by_m = draws(np.random.default_rng(6), (1, 2, 3))
    first, again, other = (slope_interval(by_m, none_censored(by_m), s) for s in (0, 0, 1))
    assert first == again
    assert first != other


def test_censored_lengths_are_left_out_and_named():
    by_m = draws(np.random.default_rng(7), (1, 2, 3, 4))
    censored = none_censored(by_m)
    without_4 = {m: by_m[m] for m in (1, 2, 3)}
    censored[4] = by_m[4] > 100
    by_m[4] = np.minimum(by_m[4], 100)
    found = slope_interval(by_m, censored, 0)
    assert (found.fitted, found.left_out) == ((1, 2, 3), (4,))
    expected = slope_interval(without_4, none_censored(without_4), 0)
    assert found == dataclasses.replace(expected, left_out=(4,))
    nothing = slope_interval({1: [5] * 8}, {1: [True] * 8}, 0)
    assert np.isnan([nothing.line.slope, nothing.low, nothing.high]).all()
    assert nothing.line.reason == "censored targets decide n50 at every m"


def test_too_few_targets_leave_the_interval_open():
    found = slope_interval({1: [3, 4], 2: [6, 8]}, {1: [False] * 2, 2: [False] * 2}, 0)
    assert (found.line.slope, found.low, found.high) == (3.5, -np.inf, np.inf)


def test_bad_mappings_are_refused():
    with pytest.raises(ValueError, match="thresholds_by_m"):
        slope_interval({}, {}, 0)
    with pytest.raises(ValueError, match="censored_by_m"):
        slope_interval({1: [3]}, {2: [False]}, 0)
    with pytest.raises(ValueError, match="resamples = 0"):
        slope_interval({1: [3]}, {1: [False]}, 0, resamples=0)
