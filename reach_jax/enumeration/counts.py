"""Exact counts of what an enumeration emitted: distinct outputs of each length, and equal orders.

Host arithmetic on integers: no sampling, no hashing. Not the place of shares and bounds, which are
`analysis.exact`'s.
"""

import dataclasses

import numpy as np

from reach_jax.enumeration.blocks import Enumeration, Outputs
from reach_jax.enumeration.grid import orders, sorted_twin
from sweep_jax.checks import require


def distinct_by_length(keys_B: np.ndarray, vocabulary: int, length: int) -> list[int]:
    """The number of distinct rows cut to 1, 2, ..., `length` tokens.

    Args:
      keys_B: uint64 rows of `length` tokens in base V, first token first.

    Raises:
      ValueError: there is no row.
    """
    require(keys_B.size > 0, "keys_B", keys_B.shape, "at least one row")
    rows, counts = np.unique(keys_B), []
    for _ in range(length):
        counts.append(int(rows.size))
        cut = rows // np.uint64(vocabulary)
        rows = cut[np.concatenate([[True], cut[1:] != cut[:-1]])]  # sorted, so equals are adjacent
    return counts[::-1]


def entropy_bits(keys_B: np.ndarray) -> float:
    """Shannon entropy, in bits, of the output of a uniformly drawn prompt."""
    _, times = np.unique(keys_B, return_counts=True)
    share = times / keys_B.size
    return float(-(share * np.log2(share)).sum()) + 0.0  # no -0.0


@dataclasses.dataclass(frozen=True)
class Orders:
    """How often the order of the prompt's vectors decides the output.

    Attributes:
      free: leading vectors whose order cannot matter, by theory.
      classes: prompts counted without that order; `classes / V^n` bounds the share as well.
      moved: prompts that are not their own sorted twin under `free`.
      unequal: of those, how many emit something else than their twin. Theory says none; floating
        point adds in another order, so a near tie may fall the other way.
      unequal_margin: the greatest least-margin, of prompt or twin whichever is smaller, of such a
        pair; 0 if there is none.
      any_equal: share of all prompts not in ascending order that emit what all m sorted emits; NaN
        where m = 1.
    """

    free: int
    classes: int
    moved: int
    unequal: int
    unequal_margin: float
    any_equal: float


def compare_orders(spec: Enumeration, outputs: Outputs) -> Orders:
    """Sets every prompt beside the same prompt sorted."""
    grid, free = spec.grid, spec.free
    numbers = np.arange(grid.count, dtype=np.uint64)
    twin = sorted_twin(grid, numbers, free)
    differ = outputs.keys != outputs.keys[twin]
    margin = np.minimum(outputs.margins, outputs.margins[twin])[differ]
    everywhere = sorted_twin(grid, numbers, grid.vectors)
    moved = everywhere != numbers
    equal = outputs.keys == outputs.keys[everywhere]
    return Orders(
        free=free,
        classes=orders(grid, free),
        moved=int((twin != numbers).sum()),
        unequal=int(differ.sum()),
        unequal_margin=float(margin.max(initial=0.0)),
        any_equal=float(equal[moved].mean()) if moved.any() else float("nan"),
    )
