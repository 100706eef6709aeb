"""n50 of targets tried at fixed lengths: the centre of a logistic curve, by weighted likelihood.

Success at length n has the chance `1 / (1 + exp((n - n50) / width))`. Every length counts by the
number of targets tried there, so lengths need not have been tried equally often. For thresholds of
single targets see `thresholds`, which assumes no curve.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from sweep_jax.checks import require

RIDGE = 1e-6  # on the squared slope, in log odds for the least step between two lengths


@dataclass(frozen=True)
class Fit:
    """A curve fitted to shares of success.

    Attributes:
      n50: its centre, tokens; where success and failure do not overlap, midway between them.
      width: tokens in which the odds fall by e; a small fraction of a step where they do not
        overlap, 0 where all or none succeeded.
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
    centre, width = _centres(n, k[None], of[None])
    return Fit(float(centre[0]), float(width[0]), censored)


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
    drawn_RN = success[rng.integers(0, K, (resamples, K))].sum(axis=1)
    order = np.argsort(np.asarray(lengths))
    n = np.asarray(lengths, np.float64)[order]
    centres, _ = _centres(n, drawn_RN[:, order].astype(np.float64), np.full((resamples, N), K))
    low, high = np.quantile(centres, [(1 - confidence) / 2, (1 + confidence) / 2])
    low = 0.0 if found.censored == "below" else float(low)
    return Interval(found, low, np.inf if found.censored == "above" else float(high))


def _centres(n: np.ndarray, k_RN: np.ndarray, of_RN: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Centre and width of R data sets at once, n ascending; all or no success gives an end of n.

    Newton's method in (a, b), success having the log odds `a - b z`: concave, so that damping is
    all it needs. The ridge on b only matters where success and failure do not overlap.
    """
    R = len(k_RN)
    whole, none = (k_RN == of_RN).all(axis=1), (k_RN == 0).all(axis=1)
    if n.size == 1:  # a share and no curve
        return np.full(R, n[0]), np.zeros(R)
    step, span = float(np.diff(n).min()), float(n[-1] - n[0])
    z = (n - n.mean()) / step
    at = np.zeros((R, 2))
    at = _newton(z, k_RN, of_RN, at, np.ones(2))
    least = step / (4 * span)  # a curve that does not fall is given the flattest slope
    flat = at[:, 1] < least
    start = np.column_stack([np.zeros(int(flat.sum())), np.full(int(flat.sum()), least)])
    at[flat] = _newton(z, k_RN[flat], of_RN[flat], start, np.array([1.0, 0.0]))
    centre = np.clip(n.mean() + step * at[:, 0] / at[:, 1], n[0] - span, n[-1] + span)
    width = step / at[:, 1]
    centre = np.where(whole, n[-1], np.where(none, n[0], centre))
    return centre, np.where(whole | none, 0.0, width)


def _newton(
    z: np.ndarray, k_RN: np.ndarray, of_RN: np.ndarray, at_R2: np.ndarray, free: np.ndarray
) -> np.ndarray:
    """The (a, b) of least loss, those coordinates with `free` 1 moved."""
    x_N2 = np.column_stack([np.ones_like(z), -z])

    def loss(at_R2: np.ndarray) -> np.ndarray:
        odds = at_R2 @ x_N2.T
        terms = k_RN * np.logaddexp(0, -odds) + (of_RN - k_RN) * np.logaddexp(0, odds)
        return terms.sum(axis=1) + RIDGE * at_R2[:, 1] ** 2

    ridge = 2 * RIDGE * np.array([0.0, 1.0])
    for _ in range(200):
        p = special.expit(at_R2 @ x_N2.T)
        slope = ((of_RN * p - k_RN) @ x_N2 + ridge * at_R2) * free
        curve = np.einsum("rn,ni,nj->rij", of_RN * p * (1 - p), x_N2, x_N2)
        curve = curve * np.outer(free, free) + np.diag(ridge + 1e-9 + (1 - free))
        move = np.linalg.solve(curve, slope[..., None])[..., 0]
        move /= np.maximum(1, np.abs(move).max(axis=1, initial=0.0) / 3)[:, None]
        before = loss(at_R2)
        for _ in range(30):
            worse = loss(at_R2 - move) > before
            if not worse.any():
                break
            move[worse] /= 2
        at_R2 = at_R2 - move
        if np.abs(move).max(initial=0.0) < 1e-9:
            break
    return at_R2
