"""Capacity, token gain and information gain of a prompt at a fixed length (arXiv 2502.13063).

A gain is over the model left alone: the same text behind the same prefix, without the prompt. Both
are judged on the tokens that both of them predict, so the first one is left out where no prefix
stands before it. The published code takes the best cross entropy of any step; here both gains are
of one prompt, the one with most tokens right, so ours is never the larger of the two.
"""

import math
from collections.abc import Mapping

import numpy as np

CAPACITY_ACCURACY = 0.99


def gains(
    right_N: np.ndarray, nll_N: np.ndarray, base_right_N: np.ndarray, base_nll_N: np.ndarray
) -> dict[str, float]:
    """Token gain (tokens) and information gain (nats, and bits) of one text.

    Args:
      right_N: which tokens are right under teacher forcing after the prompt.
      nll_N: their -log p, nats.
      base_right_N: the same without the prompt.
      base_nll_N: likewise.
    """
    gained = float(np.sum(base_nll_N, dtype=np.float64) - np.sum(nll_N, dtype=np.float64))
    return {
        "token_gain": float(np.sum(right_N) - np.sum(base_right_N)),
        "information_gain_nats": gained,
        "information_gain_bits": gained / math.log(2),
    }


def capacity(accuracy_by_length: Mapping[int, float]) -> int:
    """The longest tested length whose mean accuracy is at least .99; 0 if there is none."""
    reached = [n for n, share in accuracy_by_length.items() if share >= CAPACITY_ACCURACY]
    return max(reached, default=0)
