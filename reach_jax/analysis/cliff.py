"""Where copying breaks: the length at which half of the strings still come out, and how sharply.

A logistic curve fitted to the shares of strings copied at each length (`logistic`); its centre is
the cliff and its width the sharpness. Of a model that never learnt its own training lengths there
is no cliff, and the caller does not ask for one.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from reach_jax.analysis import logistic

FALL = 2 * math.log(9)  # widths between 90 % and 10 % of a logistic curve


@dataclass(frozen=True)
class Cliff:
    """A cliff, in letters.

    Attributes:
      length: at which half of the strings are copied; censored as `logistic.Fit.n50`.
      low: lower end of its interval, strings drawn again with replacement; 0 if unbounded.
      high: upper end; inf if unbounded.
      fall: letters over which the share falls from 90 % to 10 %; where shares jump between two
        tested lengths, a fraction of their distance, which stands for "less than that".
      r2: 1 - SSE/SST of the shares about the curve; NaN where all shares are equal.
      censored: "above" when more than half are copied at the greatest length tested, "below" when
        fewer than half at the least one, else "".
    """

    length: float
    low: float
    high: float
    fall: float
    r2: float
    censored: str


def cliff(lengths: ArrayLike, copied_KN: ArrayLike, seed: int, confidence: float = 0.95) -> Cliff:
    """The cliff of one model.

    Args:
      lengths: [N] distinct, letters.
      copied_KN: [K, N] bool: string by length; strings of different lengths need not be related.
      seed: of the bootstrap.
      confidence: in (0, 1).

    Raises:
      ValueError: as for `logistic.bootstrap`.
    """
    found = logistic.bootstrap(lengths, copied_KN, seed, confidence)
    share_N = np.asarray(copied_KN).mean(axis=0)
    fit = found.fit
    r2 = r_squared(share_N, curve(lengths, fit.n50, fit.width))
    return Cliff(fit.n50, found.low, found.high, FALL * fit.width, r2, fit.censored)


def curve(lengths: ArrayLike, length: float, width: float) -> np.ndarray:
    """The share that a logistic curve gives; a width of 0 is a step, that counts half at it."""
    n = np.asarray(lengths, np.float64)
    if width == 0:
        return np.where(n < length, 1.0, np.where(n > length, 0.0, 0.5))
    return special.expit((length - n) / width)


def r_squared(share_N: np.ndarray, fitted_N: np.ndarray) -> float:
    """1 - SSE/SST; NaN where all shares are equal."""
    total = float(((share_N - share_N.mean()) ** 2).sum())
    return 1 - float(((share_N - fitted_N) ** 2).sum()) / total if total > 0 else math.nan
