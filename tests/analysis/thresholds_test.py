"""n50, its interval's coverage, what censoring does to it, and the success curve against scipy."""

import numpy as np
import pytest
from scipy import stats

from reach_jax.analysis.thresholds import n50, success_curve

RNG = np.random.default_rng(0)


def uncensored(values, **kwargs):
    return n50(values, np.zeros(len(values), bool), **kwargs)


def test_median_of_odd_and_even_counts():
    assert uncensored([9, 1, 4]).value == 4
    assert uncensored([9, 1, 4, 6]).value == 5
    assert uncensored([3]).value == 3
    values = RNG.integers(0, 1000, 101)
    assert uncensored(values).value == np.median(values)


@pytest.mark.parametrize("count", [1, 5, 6, 7, 16, 20, 50, 101])
@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.95, 0.99])
def test_interval_is_the_narrowest_symmetric_pair_of_order_statistics(count, confidence):
    """Against scipy's exact quantile test, which is another implementation of the same idea."""
    estimate = uncensored(np.arange(count) + 1, confidence=confidence)
    exact = stats.quantile_test(np.arange(count) + 1.0, p=0.5).confidence_interval(confidence)
    low = 0 if np.isnan(exact.low) else exact.low
    high = np.inf if np.isnan(exact.high) else exact.high
    assert (estimate.low, estimate.high) == (low, high)


def test_sixteen_targets_use_the_fourth_and_thirteenth():
    estimate = uncensored(np.arange(1, 17) * 10)
    assert (estimate.low, estimate.value, estimate.high) == (40, 85, 130)
    assert (estimate.count, estimate.censored_count) == (16, 0)
    assert not estimate.lower_bound_only


@pytest.mark.parametrize("draw", [
    lambda rng, size: np.floor(rng.lognormal(3, 1, size)),
    lambda rng, size: rng.geometric(0.02, size),
    lambda rng, size: rng.integers(0, 3, size),  # ties everywhere; median 1
], ids=["lognormal", "geometric", "three values"])  # fmt: skip
def test_interval_of_16_targets_covers_the_median_95_times_in_100(draw):
    rng = np.random.default_rng(1)
    median = np.median(draw(rng, 400_001))
    samples = draw(rng, (2000, 16))
    intervals = [uncensored(sample) for sample in samples]
    covered = np.mean([e.low <= median <= e.high for e in intervals])
    assert covered > 0.965  # exactly 0.979 without ties; percentiles of a bootstrap give 0.94


def test_censored_targets_above_the_interval_change_nothing():
    values = np.arange(1, 17) * 10
    capped = values > 130
    with_caps = n50(np.where(capped, 135, values), capped)
    assert with_caps.censored_count == 3
    assert not with_caps.lower_bound_only
    free = uncensored(values)
    assert (with_caps.value, with_caps.low, with_caps.high) == (free.value, free.low, free.high)


def test_interval_opens_when_censored_targets_reach_its_end_and_the_value_is_a_lower_bound():
    values = np.arange(1, 17) * 10
    end_open = n50(np.minimum(values, 120), values > 120)
    assert (end_open.value, end_open.low, end_open.high) == (85, 40, np.inf)
    assert end_open.lower_bound_only
    all_capped = n50(np.full(16, 50), np.ones(16, bool))
    assert (all_capped.value, all_capped.low, all_capped.high) == (50, 50, np.inf)
    assert all_capped.lower_bound_only


def test_a_low_cap_counts_as_possibly_high():
    estimate = n50([1, 20, 30], [True, False, False], confidence=0.2)
    assert estimate.value == 20
    assert estimate.lower_bound_only  # the target stopped at 1 may reach more than 30


def test_censoring_keeps_the_intervals_promise():
    rng = np.random.default_rng(2)
    truth = np.floor(rng.lognormal(3, 1, (1000, 16)))
    caps = rng.integers(5, 60, truth.shape)
    median = np.median(np.floor(rng.lognormal(3, 1, 400_001)))
    covered = 0
    for thresholds, cap in zip(truth, caps, strict=True):
        estimate = n50(np.minimum(thresholds, cap), thresholds > cap)
        covered += estimate.low <= median <= estimate.high
    assert covered > 965


@pytest.mark.parametrize("confidence", [0.8, 0.95])
def test_success_curve_is_scipys_wilson_interval(confidence):
    values = RNG.integers(0, 30, 16)
    curve = success_curve(values, np.zeros(16, bool), 32, confidence)
    for n, share, low, high in zip(curve.n, curve.share, curve.low, curve.high, strict=True):
        reached = int(np.sum(values >= n))
        exact = stats.binomtest(reached, 16).proportion_ci(confidence, method="wilson")
        np.testing.assert_allclose([share, low, high], [reached / 16, *exact], atol=1e-15)
    assert (curve.share[0], curve.share[-1], curve.n[-1]) == (1, 0, 32)


def test_success_curve_ends_where_a_cap_hides_the_rest():
    curve = success_curve([2, 5, 9], [False, True, False], 10)
    np.testing.assert_allclose(curve.share[:6], np.array([3, 3, 3, 2, 2, 2]) / 3)
    for part in (curve.share, curve.low, curve.high):
        assert np.isnan(part[6:]).all()
        assert np.isfinite(part[:6]).all()


@pytest.mark.parametrize(("thresholds", "censored", "field"), [
    ([], [], "thresholds"),
    ([1.5], [False], "thresholds"),
    ([-1], [False], "thresholds"),
    ([np.inf], [False], "thresholds"),
    ([[1]], [[False]], "thresholds"),
    ([1, 2], [False], "censored"),
    ([1], [0], "censored"),
])  # fmt: skip
def test_bad_targets_are_refused_by_name(thresholds, censored, field):
    with pytest.raises(ValueError, match=f"^{field} = "):
        n50(thresholds, censored)
    with pytest.raises(ValueError, match=f"^{field} = "):
        success_curve(thresholds, censored, 3)


def test_bad_settings_are_refused():
    with pytest.raises(ValueError, match=r"confidence = 95"):
        uncensored([1], confidence=95)
    with pytest.raises(ValueError, match="n_max = -1"):
        success_curve([1], [False], -1)


def test_the_floor_counts_a_censored_target_as_ended():
    thresholds, censored = [2, 5, 5, 9], [False, True, False, True]
    curve = success_curve(thresholds, censored, 10)
    for n in range(11):
        assert curve.floor[n] == sum(t >= n for t in thresholds) / 4
        assert np.isnan(curve.share[n]) if n > 5 else curve.share[n] == curve.floor[n]
    assert curve.capped.tolist() == [5, 9]
