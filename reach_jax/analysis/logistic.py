"""n50 of targets tried at fixed lengths: the centre of a logistic curve, by weighted likelihood.

Success at length n has the chance `1 / (1 + exp((n - n50) / width))`. Every length counts by the
number of targets tried there, so lengths need not have been tried equally often. For thresholds of
single targets see `thresholds`, which assumes no curve.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import optimize, special

from sweep_jax.checks import require


@dataclass(frozen=True)
class Fit:
    """A curve fitted to shares of success.

    Attributes:
      n50: its centre, tokens; where success and failure do not overlap, midway between them.
      width: tokens in which the odds fall by e; at its lower bound where they do not overlap.
      censored: "above" when more than half still succeeded at the greatest length, so that n50 is
        a lower bound only; "below" when fewer than half did at the least one; else "".
    """

    n50: float
    width: float
    censored: str


@dataclass(frozen=True)
class Interval:
    """A fit with the percentile bootstrap over its targets; a censored side's end is 0 or inf."""

    fit: Fit
    low: float
    high: float


def fit(lengths: ArrayLike, successes: ArrayLike, tries: ArrayLike) -> Fit:
    """The curve of greatest likelihood.

    Args:
      lengths: [N] distinct, tokens.
      successes: [N] targets that succeeded.
      tries: [N] targets tried, >= 1.

    Raises:
      ValueError: no length, shapes differ, or a count is impossible.
    """
    n, k, of = (np.asarray(x, np.float64) for x in (lengths, successes, tries))
    ok = n.ndim == 1 and n.size > 0 and n.shape == k.shape == of.shape
    require(ok, "lengths", n, "[N], N >= 1, with successes and tries of the same shape")
    require(len(set(n.tolist())) == n.size, "lengths", n.tolist(), "distinct lengths")
    possible = bool((of >= 1).all() and (k >= 0).all() and (k <= of).all())
    require(possible, "successes", k.tolist(), f"between 0 and tries = {of.tolist()}")
    order = np.argsort(n)
    n, k, of = n[order], k[order], of[order]
    censored = "above" if k[-1] > of[-1] / 2 else "below" if k[0] < of[0] / 2 else ""
    if (k == of).all():
        return Fit(float(n[-1]), 0.0, censored)
    if (k == 0).all():
        return Fit(float(n[0]), 0.0, censored)
    if n.size == 1:  # a share and no curve
        return Fit(float(n[0]), 0.0, censored)
    span = n[-1] - n[0]
    step = float(np.diff(n).min())

    def loss(at: np.ndarray) -> float:
        z = (n - at[0]) / np.exp(at[1])
        return float(np.sum(k * np.logaddexp(0, z) + (of - k) * np.logaddexp(0, -z)))

    def slope(at: np.ndarray) -> np.ndarray:
        width = np.exp(at[1])
        z = (n - at[0]) / width
        # d loss / dz: failures push the curve left, successes right.
        pull = of * special.expit(z) - (of - k)
        return np.array([-np.sum(pull) / width, -np.sum(pull * z)])

    start = np.interp(0.5, np.sort(1 - k / of), n)
    bounds = [(n[0] - span, n[-1] + span), (np.log(step / 20), np.log(4 * span))]
    best = min(
        (
            optimize.minimize(loss, [start, np.log(w)], jac=slope, bounds=bounds, method="L-BFGS-B")
            for w in (step / 2, span / 4)
        ),
        key=lambda found: found.fun,
    )
    return Fit(float(best.x[0]), float(np.exp(best.x[1])), censored)


def bootstrap(
    lengths: ArrayLike,
    success_KN: ArrayLike,
    seed: int,
    confidence: float = 0.95,
    resamples: int = 400,
) -> Interval:
    """The fit to all targets, and its interval from targets drawn again with replacement.

    Args:
      lengths: [N] distinct, tokens.
      success_KN: [K, N] bool: target by length; every target was tried at every length.
      seed: of the numpy Generator.
      confidence: in (0, 1).
      resamples: number of draws, >= 1.

    Raises:
      ValueError: as for `fit`.
    """
    success = np.asarray(success_KN)
    ok = success.ndim == 2 and success.dtype == bool and len(success) > 0
    require(ok, "success_KN", success.shape, "[K, N] bool with K >= 1")
    require(resamples >= 1, "resamples", resamples, "a whole number >= 1")
    require(0 < confidence < 1, "confidence", confidence, "a number in (0, 1)")
    K, N = success.shape
    found = fit(lengths, success.sum(0), np.full(N, K))
    rng = np.random.default_rng(seed)
    centres = [
        fit(lengths, success[rng.integers(0, K, K)].sum(0), np.full(N, K)).n50
        for _ in range(resamples)
    ]
    low, high = np.quantile(centres, [(1 - confidence) / 2, (1 + confidence) / 2])
    low = 0.0 if found.censored == "below" else float(low)
    return Interval(found, low, np.inf if found.censored == "above" else float(high))
