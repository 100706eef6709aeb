"""Small integer programs whose variables have names, solved exactly by HiGHS.

Goals come in order: the second is sought among the optima of the first, and so on. Knows nothing of
heads and layers.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import scipy.sparse
from scipy.optimize import Bounds, LinearConstraint, milp

Name = tuple[Any, ...]
Terms = Mapping[Name, int]


class Program:
    """Integer variables, linear rows and goals."""

    def __init__(self) -> None:
        self._place: dict[Name, int] = {}
        self._lower: list[int] = []
        self._upper: list[int] = []
        self._rows: list[tuple[dict[int, int], float, float]] = []

    def __contains__(self, name: Name) -> bool:
        return name in self._place

    def variable(self, name: Name, upper: int, lower: int = 0) -> None:
        """A new integer variable in [lower, upper]."""
        assert name not in self._place, name
        self._place[name] = len(self._place)
        self._lower.append(lower)
        self._upper.append(upper)

    def names(self) -> list[Name]:
        """Of all variables, in order."""
        return list(self._place)

    def row(self, terms: Terms, low: float = -np.inf, high: float = np.inf) -> None:
        """low <= sum of terms <= high."""
        self._rows.append(({self._place[name]: k for name, k in terms.items()}, low, high))

    def solve(self, goals: Sequence[Terms]) -> dict[Name, int] | None:
        """Values that minimise the goals in order, or None if no values satisfy the rows.

        Raises:
          RuntimeError: the solver gave up.
        """
        found: np.ndarray | None = None
        kept = len(self._rows)
        for goal in goals:
            found = self._minimise(goal)
            if found is None:
                break
            best = sum(k * int(found[self._place[name]]) for name, k in goal.items())
            self.row(goal, high=best)
        del self._rows[kept:]
        if found is None:
            return None
        return {name: int(found[place]) for name, place in self._place.items()}

    def _minimise(self, goal: Terms) -> np.ndarray | None:
        cost = np.zeros(len(self._place))
        for name, k in goal.items():
            cost[self._place[name]] = k
        entries = [
            (row, column, value)
            for row, (terms, _, _) in enumerate(self._rows)
            for column, value in terms.items()
        ]
        rows, columns, values = (list(part) for part in zip(*entries, strict=True))
        shape = (len(self._rows), len(self._place))
        matrix = scipy.sparse.csr_array((np.array(values, float), (rows, columns)), shape=shape)
        low, high = (np.array([row[i] for row in self._rows], float) for i in (1, 2))
        result = milp(
            cost,
            integrality=np.ones(len(cost), np.int64),
            bounds=Bounds(np.array(self._lower, float), np.array(self._upper, float)),
            constraints=LinearConstraint(matrix, low, high),
            options={"mip_rel_gap": 0.0},
        )
        if result.status == 2:  # infeasible
            return None
        if result.status != 0:
            raise RuntimeError(f"integer program: {result.message}")
        return np.round(result.x).astype(np.int64)
