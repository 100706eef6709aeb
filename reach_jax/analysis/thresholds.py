"""From each target's threshold to n50 and the success curve, with intervals.

A target's threshold is the greatest length reached on it, in tokens; since reaching n tokens
reaches every prefix, success at length n is S(n) = the share of targets with threshold >= n. A
threshold is censored when a cap ended the search: the true one is at least that. Not a fit: no
shape of the success curve is assumed.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from sweep_jax.checks import require


@dataclass(frozen=True)
class Estimate:
    """A median with its interval, in tokens.

    Attributes:
      value: n50; a lower bound on it where censored targets decide it.
      low: lower end of the interval.
      high: upper end; inf where censored or too few targets leave it open.
      count: number of targets.
      censored_count: how many of them are censored.
      lower_bound_only: whether the value or an end rests on a censored target.
    """

    value: float
    low: float
    high: float
    count: int
    censored_count: int
    lower_bound_only: bool


@dataclass(frozen=True)
class SuccessCurve:
    """The survival curve of the thresholds, with its pointwise Wilson interval.

    Not Kaplan and Meier's estimator past a censored target: a search that ran out of steps was not
    stopped at random, so its lot may not be guessed from the others'. `floor` is what is sure.

    Attributes:
      n: [N] lengths 0..n_max in tokens.
      share: [N] S(n); NaN beyond the least censored threshold, where it was not observed.
      low: [N] lower end; NaN with the share.
      high: [N] upper end; NaN with the share.
      floor: [N] the share if every censored target had ended at its threshold; equal to the share
        where that was observed.
      capped: thresholds of the censored targets, ascending.
    """

    n: np.ndarray
    share: np.ndarray
    low: np.ndarray
    high: np.ndarray
    floor: np.ndarray
    capped: np.ndarray


def n50(thresholds: ArrayLike, censored: ArrayLike, confidence: float = 0.95) -> Estimate:
    """The median threshold and its exact distribution-free interval.

    The median is the middle order statistic, or the midpoint of the two middle ones. (A logistic
    curve fitted to S(n) has its centre about half a token higher, as S steps down after a
    threshold.) The interval is [x_(k), x_(K+1-k)] with the greatest k for which
    P(Binomial(K, 1/2) < k) <= (1 - confidence)/2: it covers the median at least that often for any
    distribution, ties included. For 16 targets it is [x_(4), x_(13)], and covers 97.9 %; below 6
    targets no k exists at 95 %, so the ends are 0 and inf.

    Args:
      thresholds: [K] whole numbers >= 0, tokens.
      censored: [K] bool, whether each is only a lower bound.
      confidence: in (0, 1).

    Raises:
      ValueError: no target, shapes differ, or a value is not as above.
    """
    values, capped = _targets(thresholds, censored)
    require(0 < confidence < 1, "confidence", confidence, "a number in (0, 1)")
    count = values.size
    # The least j with P(Binomial <= j) >= alpha/2 has P(Binomial < j) < alpha/2: j is our k, or
    # one short of it when equality holds.
    k = int(stats.binom.ppf((1 - confidence) / 2, count, 0.5))
    known = _median_and_ends(values, k)
    if_never_capped = _median_and_ends(np.where(capped, np.inf, values), k)
    return Estimate(
        value=known[0],
        low=known[1],
        high=if_never_capped[2],
        count=count,
        censored_count=int(capped.sum()),
        lower_bound_only=known != if_never_capped,
    )


def success_curve(
    thresholds: ArrayLike, censored: ArrayLike, n_max: int, confidence: float = 0.95
) -> SuccessCurve:
    """S(n) for n = 0..n_max with the Wilson score interval of a share.

    Args:
      thresholds: [K] whole numbers >= 0, tokens.
      censored: [K] bool, whether each is only a lower bound.
      n_max: greatest length, >= 0.
      confidence: in (0, 1).

    Raises:
      ValueError: as for `n50`, or n_max is negative.
    """
    values, capped = _targets(thresholds, censored)
    require(0 < confidence < 1, "confidence", confidence, "a number in (0, 1)")
    require(n_max >= 0, "n_max", n_max, "a whole number >= 0")
    n = np.arange(n_max + 1)
    share = (values[:, None] >= n).mean(axis=0)
    z2 = stats.norm.ppf((1 + confidence) / 2) ** 2 / values.size
    centre = (share + z2 / 2) / (1 + z2)
    half = np.sqrt(z2 * (share * (1 - share) + z2 / 4)) / (1 + z2)
    # At a share of 0 or 1 the end is exact, and not a rounding error beside it.
    low = np.where(share == 0, 0.0, centre - half)
    high = np.where(share == 1, 1.0, centre + half)
    seen = n <= np.min(values[capped], initial=np.inf)
    shown, low, high = (np.where(seen, curve, np.nan) for curve in (share, low, high))
    return SuccessCurve(n, shown, low, high, floor=share, capped=np.sort(values[capped]))


def _targets(thresholds: ArrayLike, censored: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    values, capped = np.asarray(thresholds, np.float64), np.asarray(censored)
    require(values.ndim == 1 and values.size > 0, "thresholds", thresholds, "[K] with K >= 1")
    whole = np.isfinite(values) & (values >= 0) & (values == np.floor(values))
    require(bool(whole.all()), "thresholds", thresholds, "whole numbers >= 0")
    ok = capped.shape == values.shape and capped.dtype == bool
    require(ok, "censored", censored, f"bool of shape {values.shape}")
    return values, capped


def _median_and_ends(values: np.ndarray, k: int) -> tuple[float, float, float]:
    """The median, x_(k) and x_(K+1-k); with k = 0 the ends are 0 and inf."""
    ranked = np.sort(values)
    middle = (ranked[(ranked.size - 1) // 2] + ranked[ranked.size // 2]) / 2
    if k == 0:
        return float(middle), 0.0, np.inf
    return float(middle), float(ranked[k - 1]), float(ranked[-k])
