"""How measured dependence agrees with known sets: precision and recall, and heads with nodes.

Inputs, not entries, are what is independent: intervals resample inputs. The tolerance from which on
a dependence counts is chosen on the even inputs and judged on the odd ones.
"""

from typing import NamedTuple

import numpy as np
from scipy import optimize

from sweep_jax.checks import require

TOLERANCES = tuple(float(t) for t in np.logspace(-9, 1, 41))
_DRAWS = 500


class Agreement(NamedTuple):
    """At one tolerance; each share with its 95 % interval over inputs, NaN where nothing counts.

    Attributes:
      tolerance: a score above it counts.
      precision: share of what counts that is in the known set: (value, low, high).
      recall: share of the known set that counts.
      equal: share of states whose set is exactly the known one.
    """

    tolerance: float
    precision: tuple[float, float, float]
    recall: tuple[float, float, float]
    equal: float


def counts(member_NQS: np.ndarray, known_NQS: np.ndarray) -> np.ndarray:
    """True positives, false positives and false negatives of every input, (N, 3)."""
    pairs = ((1, 1), (1, 0), (0, 1))
    each = [((member_NQS == m) & (known_NQS == k)).sum((1, 2)) for m, k in pairs]
    return np.stack(each, 1)


def curve(score_NQS: np.ndarray, known_NQS: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Precision and recall over all inputs at each of `TOLERANCES`; NaN where nothing counts."""
    total_C3 = _totals(score_NQS, known_NQS)
    return _shares(total_C3)


def agree(score_NQS: np.ndarray, known_NQS: np.ndarray, seed: int) -> Agreement:
    """Agreement at the tolerance that fits best.

    Args:
      score_NQS: dependence of Q states on S tokens, N >= 4 inputs.
      known_NQS: the sets, bool.
      seed: of the intervals' draws.

    Raises:
      ValueError: fewer inputs, or other shapes.
    """
    ok = score_NQS.shape == known_NQS.shape and len(score_NQS) >= 4
    require(ok, "score_NQS", score_NQS.shape, f"{known_NQS.shape}, with N >= 4")
    hit_C, extra_C, missed_C = _totals(score_NQS[::2], known_NQS[::2]).T
    fit_C = 2 * hit_C / np.maximum(2 * hit_C + extra_C + missed_C, 1)
    best = np.flatnonzero(fit_C == fit_C.max())
    tolerance = TOLERANCES[best[len(best) // 2]]  # the middle of a plateau
    return at(score_NQS[1::2], known_NQS[1::2], tolerance, seed)


def at(score_NQS: np.ndarray, known_NQS: np.ndarray, tolerance: float, seed: int) -> Agreement:
    """Agreement at a given tolerance, on all inputs."""
    member_NQS = score_NQS > tolerance
    counts_N3 = counts(member_NQS, known_NQS)
    rng = np.random.default_rng(seed)
    rows_RN = rng.integers(len(counts_N3), size=(_DRAWS, len(counts_N3)))
    drawn = _shares(counts_N3[rows_RN].sum(1))
    value = _shares(counts_N3.sum(0)[None])
    found = []
    for one, many in zip(value, drawn, strict=True):
        sound = many[np.isfinite(many)]
        ends = np.quantile(sound, (0.025, 0.975)) if len(sound) else (np.nan, np.nan)
        found.append((float(one[0]), float(ends[0]), float(ends[1])))
    equal = float((member_NQS == known_NQS).all(-1).mean())
    return Agreement(tolerance, found[0], found[1], equal)


def match(share_HI: np.ndarray) -> list[tuple[int, int]]:
    """Pairs (head, node) whose shares have the greatest sum, each head and node at most once."""
    heads, nodes = optimize.linear_sum_assignment(share_HI, maximize=True)
    return list(zip(heads.tolist(), nodes.tolist(), strict=True))


def shares(picked_NHP: np.ndarray, wanted_INP: np.ndarray) -> np.ndarray:
    """How often each head looks at what each node wants, (H, I), over queries that want a key."""
    found = []
    for wanted_NP in wanted_INP:
        asked_NP = wanted_NP >= 0
        same_NHP = (picked_NHP == wanted_NP[:, None]) & asked_NP[:, None]
        found.append(same_NHP.sum((0, 2)) / max(int(asked_NP.sum()), 1))
    return np.stack(found, 1)


def _totals(score_NQS: np.ndarray, known_NQS: np.ndarray) -> np.ndarray:
    return np.stack([counts(score_NQS > t, known_NQS).sum(0) for t in TOLERANCES])


def _shares(counts_R3: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Precision and recall of each row of counts."""
    hit, extra, missed = counts_R3.T.astype(np.float64)
    with np.errstate(invalid="ignore"):
        return hit / (hit + extra), hit / (hit + missed)
