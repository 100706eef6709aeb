"""The cliff: known curves come back, and what cannot be known is said to be so."""

import numpy as np
import pytest
from scipy import special, stats

from reach_jax.analysis import cliff

LENGTHS = np.arange(4, 41, 2)


def drawn(centre, width, strings=400, seed=0):
    chance_N = special.expit((centre - LENGTHS) / width)
    return np.random.default_rng(seed).random((strings, len(LENGTHS))) < chance_N


def test_centre_and_fall_of_a_known_curve_come_back():
    found = cliff.cliff(LENGTHS, drawn(20.0, 2.0), seed=1)
    assert abs(found.length - 20) < 0.5
    assert found.high - found.low < 1.5
    want = 2 * (stats.logistic(20, 2).ppf(0.9) - 20)
    assert abs(found.fall - want) < 1.0
    assert found.r2 > 0.99
    assert found.censored == ""


def test_the_interval_holds_the_centre_about_as_often_as_it_says():
    ends = [cliff.cliff(LENGTHS, drawn(20.0, 2.0, 100, s), seed=1) for s in range(40)]
    assert sum(e.low < 20 < e.high for e in ends) >= 34  # of 38 expected


def test_a_step_between_two_lengths_is_sharp():
    found = cliff.cliff(LENGTHS, np.tile(LENGTHS <= 12, (64, 1)), seed=0)
    assert found.length == pytest.approx(13, abs=1e-6)
    assert found.fall < 2
    assert found.r2 == pytest.approx(1, abs=1e-3)


def test_r_squared_is_low_where_the_shares_are_no_logistic_curve():
    """Half of the strings at all lengths up to 30, but none at the least."""
    share = np.where(LENGTHS < 8, 0.0, np.where(LENGTHS < 30, 0.6, 0.0))
    copied_KN = np.random.default_rng(0).random((200, len(LENGTHS))) < share
    found = cliff.cliff(LENGTHS, copied_KN, seed=0)
    assert found.r2 < 0.6
    fitted = cliff.curve(LENGTHS, found.length, found.fall / cliff.FALL)
    rest = ((copied_KN.mean(0) - fitted) ** 2).sum()
    assert found.r2 == pytest.approx(1 - rest / ((copied_KN.mean(0).var()) * len(LENGTHS)))


def test_ends_of_the_range_are_censored_and_have_no_r_squared():
    all_ = cliff.cliff(LENGTHS, np.ones((20, len(LENGTHS)), bool), seed=0)
    assert (all_.censored, all_.length, all_.high) == ("above", 40, np.inf)
    assert np.isnan(all_.r2)
    none = cliff.cliff(LENGTHS, np.zeros((20, len(LENGTHS)), bool), seed=0)
    assert (none.censored, none.low) == ("below", 0.0)
