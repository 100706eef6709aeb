"""Where a plan's nodes are kept: slots, heads, forms and losses, in the order of layers.

What they are for and the proof of the bound is `compiler`'s, which writes the weights.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from infoflow_jax.calculus.measures import Node, measure
from infoflow_jax.calculus.schedule import Placement, Schedule
from infoflow_jax.calculus.tree import Reduce, Target
from infoflow_jax.networks.forms import Form, Loss, Reader, Value, check, refuse


@dataclass(frozen=True)
class Piece:
    """A placed node: its head, score, slots and the size r m of each product's coordinates."""

    at: Placement
    head: int
    form: Form  # the key's part holds -B at c0
    sign: float  # of the score in the softmax
    sum_slot: int
    y_slots: tuple[int, ...]
    product_slot: int | None
    sizes: tuple[np.ndarray, ...]  # (2, d) of each atom: r and m


class Layout:
    """Slots, forms and losses of all placed nodes, in the order of layers."""

    def __init__(
        self, target: Target, plan: Schedule, weights: Mapping[str, np.ndarray], d: int, R: float
    ) -> None:
        measures = measure(target)
        check(measures)
        for name in plan.unplaced:
            refuse(name, f"has no place in heads {plan.heads}")
        atoms = 2 * len(str(target))  # more than there can be
        E = d + 2 + len(plan.placements) * (2 + d * atoms)
        self.d, self.one, self.flag, self.next = d, d, d + 1, d + 2
        self.reader = Reader(target, measures, weights, d, E)
        self.bound_E = np.zeros(E)
        self.bound_E[:d] = R
        self.bound_E[[self.one, self.flag]] = 1.0
        self.c0_slots: set[int] = {self.flag}
        self.values: dict[tuple[str, str], Value] = {}
        self.pieces: list[Piece] = []
        used: dict[tuple[str, int], int] = {}
        for at in sorted(plan.placements, key=lambda p: p.layer):
            if at.host == "places" or plan.fetched:
                refuse(at.node, "is found at positions or taken over from tokens")
            head = used.get((at.host, at.layer), 0)
            used[at.host, at.layer] = head + 1
            self._place(measures.node(at.node), at, head)
        form = self.reader.score(target.output, "output", None, lambda n, key: self._of(n, "c0"))
        if form.query_E[:d].any() or form.atoms:
            refuse("output", "uses tokens")
        self.output = Value(form.query_E, form.loss)

    def _of(self, node: Node, host: str) -> Value:
        if (node.name, host) not in self.values:
            refuse(node.name, f"is not known at {host} where it is needed")
        return self.values[node.name, host]

    def _slots(self, at: Placement, bound: ArrayLike, count: int = 1) -> int:
        first, self.next = self.next, self.next + count
        self.bound_E[first : self.next] = bound
        if at.host == "c0":
            self.c0_slots |= set(range(first, self.next))
        return first

    def _place(self, node: Node, at: Placement, head: int) -> None:
        e = node.expression
        assert isinstance(e, Reduce)  # `check` let nothing else through
        form = self.reader.score(
            e.score, node.name, e.over, lambda n, key: self._of(n, "tokens" if key else at.host)
        )
        sizes = tuple(
            np.stack([np.abs(L) @ self.bound_E, np.abs(R) @ self.bound_E]) for L, R in form.atoms
        )
        products = sum(float((size[0] * size[1]).sum()) for size in sizes)
        sign = 1.0 if e.op == "max" else -1.0
        reach = float(np.abs(form.key_E) @ self.bound_E)
        form.key_E[self.flag] = -sign * (reach + products + 1.0)
        sum_slot = self._slots(at, reach + products + 1.0)
        y_slots = tuple(self._slots(at, size[1], self.d) for size in sizes)
        product = self._slots(at, 1.25 * products) if sizes else None
        value_E = form.query_E.copy()
        value_E[sum_slot] += 1.0
        if product is not None:
            value_E[product] += 1.0
        soft = Loss(1.0, 0.0, products / 4) if at.layer == 1 else Loss(0.0, 1.0, products / 4)
        self.values[node.name, at.host] = Value(value_E, form.loss.plus(soft))
        self.pieces.append(Piece(at, head, form, sign, sum_slot, y_slots, product, sizes))
