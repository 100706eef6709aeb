"""Exponents from errors at several sizes: error = floor + sum_k A_k size_k^-a_k, all >= 0.

For given exponents the rest is linear, so only the exponents are searched (variable projection),
from a grid of starts, on relative errors, in units of the sizes' geometric means. Not a parabola
through the least errors, which is biased even without noise (arXiv 2603.22339).
"""

import itertools
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import least_squares, nnls

from sweep_jax.checks import require

LOWEST, HIGHEST = 1e-2, 4.0  # exponents searched
_NOTHING = 1e-9  # share of the error below which a size has no effect
_STARTS = (0.1, 0.3, 0.7, 1.5)


@dataclass(frozen=True)
class Law:
    """A fit.

    Attributes:
      exponents: a_k.
      coefficients: A_k, in the units of the sizes given.
      floor: the error at infinite size.
      residual: root mean square of the relative errors.
      problems: an exponent at the end of the range, or a size of no effect; empty if sound.
      intervals: of each exponent, 95 % by resampled residuals; () if not asked for.
    """

    exponents: tuple[float, ...]
    coefficients: tuple[float, ...]
    floor: float
    residual: float
    problems: tuple[str, ...]
    intervals: tuple[tuple[float, float], ...] = ()


def fit(sizes_NK: ArrayLike, error_N: ArrayLike, draws: int = 0, seed: int = 0) -> Law:
    """Fits the law.

    Args:
      sizes_NK: N measurements of K sizes > 0.
      error_N: their errors > 0.
      draws: bootstrap samples for the intervals; 0 for none.
      seed: of the samples.

    Raises:
      ValueError: numbers that are not finite and positive, or no more measurements than unknowns.
    """
    sizes, error = np.asarray(sizes_NK, np.float64), np.asarray(error_N, np.float64)
    ok = sizes.ndim == 2 and error.shape == sizes.shape[:1]
    require(ok, "sizes_NK", sizes.shape, f"[{error.size}, K]")
    for name, given in (("sizes_NK", sizes), ("error_N", error)):
        positive = bool(np.isfinite(given).all() and (given > 0).all())
        require(positive, name, "0, negative, NaN or infinite", "finite numbers > 0")
    unknown = 2 * sizes.shape[1] + 1
    require(len(error) > unknown, "error_N", len(error), f"more than the {unknown} unknowns")
    unit_K = np.exp(np.log(sizes).mean(0))
    scaled = sizes / unit_K
    starts = itertools.product(_STARTS, repeat=sizes.shape[1])
    tried = [_search(scaled, error, np.array(start)) for start in starts]
    cost, a_K = min(tried, key=lambda item: item[0])
    linear = _linear(scaled, error, a_K)
    made = _design(scaled, a_K) @ linear
    problems = []
    for k, a in enumerate(a_K):
        if not LOWEST * 1.01 < a < HIGHEST * 0.99:
            problems.append(f"exponent {k} is at the end of {LOWEST}..{HIGHEST}")
        if (linear[1 + k] * scaled[:, k] ** -a).max() < _NOTHING * error.mean():
            problems.append(f"size {k} has no effect")
    intervals = []
    if draws:
        rng = np.random.default_rng(seed)
        ratio = error / made
        again = []
        for _ in range(draws):
            redrawn = made * rng.choice(ratio, len(ratio))
            again.append(_search(scaled, redrawn, a_K)[1])
        ends = np.quantile(again, (0.025, 0.975), axis=0)
        intervals = [(float(low), float(high)) for low, high in ends.T]
    return Law(
        tuple(map(float, a_K)),
        tuple(map(float, linear[1:] * unit_K**a_K)),
        float(linear[0]),
        float(np.sqrt(2 * cost / len(error))),
        tuple(problems),
        tuple(intervals),
    )


def _design(sizes: np.ndarray, a_K: np.ndarray) -> np.ndarray:
    return np.concatenate([np.ones((len(sizes), 1)), sizes**-a_K], 1)


def _linear(sizes: np.ndarray, error: np.ndarray, a_K: np.ndarray) -> np.ndarray:
    """Floor and coefficients >= 0 for these exponents."""
    return nnls(_design(sizes, a_K) / error[:, None], np.ones(len(error)))[0]


def _search(sizes: np.ndarray, error: np.ndarray, start: np.ndarray) -> tuple[float, np.ndarray]:
    def residual(a_K: np.ndarray) -> np.ndarray:
        return _design(sizes, a_K) @ _linear(sizes, error, a_K) / error - 1

    found = least_squares(
        residual, start, bounds=(LOWEST, HIGHEST), xtol=1e-14, ftol=1e-14, gtol=1e-14
    )
    return float(found.cost), found.x
