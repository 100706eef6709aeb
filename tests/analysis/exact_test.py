import math

import numpy as np
import pytest

from reach_jax.analysis.exact import ln_count_bound, share_curve
from reach_jax.bounds.packing import ball_slope, ln_packing_ball, ln_reachable_fraction


def test_a_curve_that_uses_every_prompt_is_the_bound_itself():
    """V = 2 and 32 prompts with an output of their own each: 2, 4, 8, 16, 32, 32, 32, ..."""
    curve = share_curve([min(2**n, 32) for n in range(1, 11)], 2, 5.0)
    assert (curve.plateau, curve.tail_from) == (5, 5)
    np.testing.assert_allclose(curve.ln_share_N, math.log(2) * np.minimum(0, 5 - np.arange(1, 11)))
    np.testing.assert_allclose(curve.half, 6.0)  # a share of exactly 1/2 is at 6
    np.testing.assert_allclose(curve.effective, 5.0)
    np.testing.assert_allclose(curve.tail_rate, -math.log(2))


def test_growing_counts_flatten_the_tail_by_their_own_rate():
    counts = [3**n // 1 for n in range(1, 9)]
    curve = share_curve(counts, 4, 2.5)
    assert (curve.plateau, curve.tail_from) == (0, 3)
    np.testing.assert_allclose(curve.tail_rate, math.log(3 / 4))
    np.testing.assert_allclose(curve.half, math.log(0.5) / math.log(0.75))


def test_what_is_not_there_is_nan():
    curve = share_curve([2, 4], 2, 9.0)
    assert curve.plateau == 2
    assert math.isnan(curve.half)
    assert math.isnan(curve.tail_rate)


def test_the_bound_on_counts_is_the_bound_on_shares():
    d, m, r, eps, V, N = 2, 2, 1.0, 2 / 7, 4, 12
    ln_bound = float(ln_packing_ball(d, m, r, eps))
    n = np.arange(1, N + 1)
    share = np.asarray(ln_reachable_fraction(ball_slope(d, V, r, eps), m, n, V))
    want = share + n * math.log(V)
    np.testing.assert_allclose(ln_count_bound(ln_bound, N, V), want, rtol=1e-12)


@pytest.mark.parametrize(
    ("counts", "vocabulary", "message"),
    [
        ([3], 2, "at most V\\^n"),
        ([2, 1], 2, "do not fall"),
        ([0, 1], 2, "integers >= 1"),
        ([], 2, "integers >= 1"),
        ([1], 1, "vocabulary = 1"),
    ],
)
def test_counts_that_cannot_be_are_refused(counts, vocabulary, message):
    with pytest.raises(ValueError, match=message):
        share_curve(counts, vocabulary, 1.0)
