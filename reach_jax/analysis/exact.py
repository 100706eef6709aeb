"""From exact counts of distinct outputs to the curve that Corollary 4.6 bounds, and its numbers.

All in logarithms, as V^n overflows. Not an estimate: the counts are of all prompts.
"""

import dataclasses
import math
from collections.abc import Sequence

import numpy as np

from reach_jax.analysis.lines import fit_line
from sweep_jax.checks import require

ROUNDING = 1e-9  # of a logarithm of a count, when two are compared


@dataclasses.dataclass(frozen=True)
class ShareCurve:
    """The share of all V^n outputs that some prompt emits, n = 1..N.

    Attributes:
      ln_share_N: natural logarithm of the share.
      plateau: greatest n with a share of exactly 1; 0 if there is none.
      half: the length at which the share falls below 1/2, interpolated in ln share between whole
        lengths; the empty output (n = 0) has share 1. NaN if it stays above.
      effective: `ln count_N / ln V`: the length at which as many outputs as were found at the
        greatest n would be all there are. The tail is `V^(effective - n)` once counts stand still,
        so this stands beside C m.
      tail_rate: slope of ln share against n over n >= `tail_from`, nats a token; at least -ln V,
        and -ln V when counts stand still. NaN with fewer than 3 lengths.
      tail_from: the first length of that fit.
    """

    ln_share_N: np.ndarray
    plateau: int
    half: float
    effective: float
    tail_rate: float
    tail_from: int


def share_curve(counts_N: Sequence[int], vocabulary: int, threshold: float) -> ShareCurve:
    """The curve of `counts_N[n - 1]` distinct outputs of length n.

    Args:
      counts_N: N >= 1 integers, each >= 1, not falling, none above V^n.
      vocabulary: V >= 2.
      threshold: C m of the bound, tokens: where its tail begins, and that of the fit.

    Raises:
      ValueError: counts are not as above.
    """
    require(vocabulary >= 2, "vocabulary", vocabulary, "an integer >= 2")
    counts = [int(count) for count in counts_N]
    rising = counts == sorted(counts) and min(counts, default=0) >= 1
    require(rising, "counts_N", counts, "integers >= 1 that do not fall")
    possible = all(count <= vocabulary**n for n, count in enumerate(counts, 1))
    require(possible, "counts_N", counts, "at most V^n outputs of length n")
    N = len(counts)
    n_N, ln_v = np.arange(1, N + 1), math.log(vocabulary)
    ln_share_N = np.log(np.array(counts, np.float64)) - n_N * ln_v
    plateau = sum(count == vocabulary**n for n, count in enumerate(counts, 1))
    ln_share_N[:plateau] = 0.0  # exactly
    tail_from = max(1, math.ceil(threshold))
    tail = n_N >= tail_from
    enough = np.count_nonzero(tail) >= 3
    rate = fit_line(n_N[tail], ln_share_N[tail]).slope if enough else math.nan
    return ShareCurve(
        ln_share_N,
        plateau,
        _falls_below_half(ln_share_N),
        math.log(counts[-1]) / ln_v,
        rate,
        tail_from,
    )


def _falls_below_half(ln_share_N: np.ndarray) -> float:
    ln_share = np.concatenate([[0.0], ln_share_N])
    below = np.flatnonzero(ln_share < -math.log(2))
    if not below.size:
        return math.nan
    after = int(below[0])
    drop = ln_share[after - 1] - ln_share[after]
    return after - 1 + float((ln_share[after - 1] + math.log(2)) / drop)


def ln_count_bound(ln_reachable: float, length: int, vocabulary: int) -> np.ndarray:
    """ln of the greatest possible count at n = 1..N: of all V^n outputs, or of the reachable ones.

    Args:
      ln_reachable: ln of a bound on the outputs of any one length, as `packing.ln_packing_ball`.
      length: N.
      vocabulary: V >= 2.
    """
    return np.minimum(ln_reachable, np.arange(1, length + 1) * math.log(vocabulary))
