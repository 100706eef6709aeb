"""Straight lines through n50 against the number of prompt vectors, and what they explain.

There are three different numbers called R^2 and their names here say which. Not a smoother, and
never an extrapolation: a line says nothing beyond the m that it was fitted on.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from reach_jax.analysis.thresholds import n50
from sweep_jax.checks import require

NAN = float("nan")


@dataclass(frozen=True)
class Line:
    """A least-squares line; what is not defined is NaN and `reason` says why.

    Attributes:
      slope: units of y per unit of x.
      intercept: units of y; 0 for a line through the origin.
      r2_centred: `1 - SSE / sum (y - mean y)^2`; negative when worse than a constant.
      r2_uncentred: `1 - SSE / sum y^2`; not comparable with the centred one.
      corr2: squared correlation of x and y, whatever the line.
      reason: empty when all are defined.
    """

    slope: float
    intercept: float
    r2_centred: float
    r2_uncentred: float
    corr2: float
    reason: str


@dataclass(frozen=True)
class SlopeInterval:
    """A line through n50(m) and the bootstrap interval of its slope, tokens per prompt vector.

    Attributes:
      line: the fit to the observed n50.
      low: lower end of the slope's interval; NaN with the slope; -inf when some fitted m has too
        few targets to bound its n50.
      high: upper end; inf likewise.
      fitted: the m used, ascending.
      left_out: the m left out because censored targets decide their n50 or its interval.
    """

    line: Line
    low: float
    high: float
    fitted: tuple[int, ...]
    left_out: tuple[int, ...]


def fit_line(x: ArrayLike, y: ArrayLike) -> Line:
    """Least squares with an intercept.

    Args:
      x: [N] finite.
      y: [N] finite.

    Raises:
      ValueError: no points, shapes differ, or a value is not finite.
    """
    x, y = _points(x, y)
    if np.ptp(x) == 0:
        return Line(NAN, NAN, NAN, NAN, NAN, "fewer than two distinct x")
    centred = x - x.mean()
    slope = float(centred @ (y - y.mean()) / (centred @ centred))
    return _line(x, y, slope, float(y.mean() - slope * x.mean()))


def fit_through_origin(x: ArrayLike, y: ArrayLike) -> Line:
    """Least squares with intercept 0.

    Arguments and errors as for `fit_line`.
    """
    x, y = _points(x, y)
    if not x.any():
        return Line(NAN, 0.0, NAN, NAN, NAN, "every x is 0")
    return _line(x, y, float(x @ y / (x @ x)), 0.0)


def slope_interval(
    thresholds_by_m: Mapping[int, ArrayLike],
    censored_by_m: Mapping[int, ArrayLike],
    seed: int,
    through_origin: bool = False,
    confidence: float = 0.95,
    resamples: int = 4000,
) -> SlopeInterval:
    """The line through n50(m), with a percentile bootstrap over the targets within each m.

    Each m's targets are drawn again with replacement, apart from those of other m: when the same
    strings serve every m, their being alike is not used. The interval holds for the m fitted.

    Args:
      thresholds_by_m: m -> [K] thresholds, whole numbers >= 0, tokens.
      censored_by_m: m -> [K] bool, for the same m.
      seed: of the numpy Generator.
      through_origin: whether the intercept is 0.
      confidence: in (0, 1).
      resamples: number of bootstrap draws, >= 1.

    Raises:
      ValueError: no m, the mappings' m differ, or as for `n50`.
    """
    by_m = {int(m): thresholds_by_m[m] for m in sorted(thresholds_by_m)}
    require(len(by_m) > 0, "thresholds_by_m", by_m, "at least one m")
    same = set(by_m) == set(censored_by_m)
    require(same, "censored_by_m", sorted(censored_by_m), f"the m {list(by_m)}")
    require(resamples >= 1, "resamples", resamples, "a whole number >= 1")
    estimates = {m: n50(by_m[m], censored_by_m[m], confidence) for m in by_m}
    # An open end from too few targets is no reason to leave an m out; a censored target is.
    left_out = tuple(m for m, e in estimates.items() if e.lower_bound_only)
    fitted = tuple(m for m in by_m if m not in left_out)
    if not fitted:
        line = Line(NAN, NAN, NAN, NAN, NAN, "censored targets decide n50 at every m")
        return SlopeInterval(line, NAN, NAN, fitted, left_out)
    fit = fit_through_origin if through_origin else fit_line
    x = np.asarray(fitted, np.float64)
    line = fit(x, [estimates[m].value for m in fitted])
    if np.isnan(line.slope):
        return SlopeInterval(line, NAN, NAN, fitted, left_out)
    if any(np.isinf(estimates[m].high) for m in fitted):
        return SlopeInterval(line, -np.inf, np.inf, fitted, left_out)
    rng = np.random.default_rng(seed)
    medians = np.stack([_resampled_medians(by_m[m], resamples, rng) for m in fitted])
    # The slope of either fit is linear in the medians.
    lever = x if through_origin else x - x.mean()
    slopes = lever @ medians / (lever @ lever)
    low, high = np.quantile(slopes, [(1 - confidence) / 2, (1 + confidence) / 2])
    return SlopeInterval(line, float(low), float(high), fitted, left_out)


def _points(x: ArrayLike, y: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    x, y = np.asarray(x, np.float64), np.asarray(y, np.float64)
    ok = x.ndim == 1 and x.size > 0 and x.shape == y.shape
    require(ok, "x, y", (x.shape, y.shape), "both [N] with N >= 1")
    require(bool(np.isfinite(x).all() and np.isfinite(y).all()), "x, y", (x, y), "finite values")
    return x, y


def _line(x: np.ndarray, y: np.ndarray, slope: float, intercept: float) -> Line:
    error = y - slope * x - intercept
    sse, total = float(error @ error), float(y @ y)
    r2_uncentred = 1 - sse / total if total > 0 else NAN
    if np.ptp(y) == 0:
        reason = "y is constant" if total > 0 else "every y is 0"
        return Line(slope, intercept, NAN, r2_uncentred, NAN, reason)
    dx, dy = x - x.mean(), y - y.mean()
    if np.ptp(x) == 0:
        r2_centred = 1 - sse / float(dy @ dy)
        return Line(slope, intercept, r2_centred, r2_uncentred, NAN, "x is constant")
    corr2 = float((dx @ dy) ** 2 / ((dx @ dx) * (dy @ dy)))
    return Line(slope, intercept, 1 - sse / float(dy @ dy), r2_uncentred, corr2, "")


def _resampled_medians(
    thresholds: ArrayLike, resamples: int, rng: np.random.Generator
) -> np.ndarray:
    values = np.asarray(thresholds, np.float64)
    return np.median(rng.choice(values, (resamples, values.size)), axis=1)
