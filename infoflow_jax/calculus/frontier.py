"""The smallest architectures that find a target: the frontier of layers, heads and width."""

import math
from dataclasses import dataclass

from infoflow_jax.calculus import doubling
from infoflow_jax.calculus.architecture import Budget
from infoflow_jax.calculus.schedule import Schedule, smallest
from infoflow_jax.calculus.setting import Setting


@dataclass(frozen=True)
class Point:
    """An architecture that finds the target, and its schedule.

    Attributes:
      heads: h_l of every layer.
      width: the least E, a multiple of each h_l, at which decoding costs no more than e0.
      schedule: its plan.
    """

    heads: tuple[int, ...]
    width: int
    schedule: Schedule

    @property
    def size(self) -> tuple[int, int, int]:
        """(L, sum of h_l, E)."""
        return len(self.heads), sum(self.heads), self.width


def frontier(setting: Setting, budget: Budget, baseline: float) -> tuple[Point, ...]:
    """Architectures of which none has as few layers, heads and width as another; by layers.

    Args:
      setting: what is planned for.
      budget: layers, and heads of one layer, at most.
      baseline: e0.

    Returns:
      Nothing if no architecture within the budget finds it by the rules.
    """
    found = []
    for layers in range(1, budget.layers + 1):
        load = None
        while plan := smallest(setting, layers, budget.heads, load):
            found.append(_point(plan, baseline))
            load = plan.load - 1
        chain = (
            doubling.schedule(setting, (1,) * layers) if setting.rules.pointer_doubling else None
        )
        if chain is not None:
            found.append(_point(chain, baseline))
    kept = [p for p in found if not any(_below(other, p) for other in found)]
    unique = {point.size: point for point in reversed(kept)}
    return tuple(sorted(unique.values(), key=lambda point: point.size))


def _point(plan: Schedule, baseline: float) -> Point:
    """load/E - 1 <= e0 is E >= load/(1 + e0)."""
    step = math.lcm(*plan.heads)
    least = math.ceil(plan.load / (1 + baseline) - 1e-9)
    return Point(plan.heads, step * math.ceil(max(least, 1) / step), plan)


def _below(one: Point, other: Point) -> bool:
    pairs = list(zip(one.size, other.size, strict=True))
    return all(a <= b for a, b in pairs) and one.size != other.size


def fewest_heads(points: tuple[Point, ...]) -> Point | None:
    """The point with the smallest sum of heads, then the fewest layers, then the least width."""
    return min(points, key=lambda p: (p.size[1], p.size[0], p.size[2]), default=None)


def fewest_layers(points: tuple[Point, ...]) -> Point | None:
    """The point with the fewest layers, then the smallest sum of heads, then the least width."""
    return min(points, key=lambda p: p.size, default=None)
