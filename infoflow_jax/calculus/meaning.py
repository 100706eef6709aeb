"""The meaning of a target: its value on a real input, by brute force in float64.

Loops over all indices, in NumPy and plain Python, on purpose: this is what everything else here is
tested against. Not for training data, which the samplers make with arrays.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from infoflow_jax.calculus.measures import Node, measure
from infoflow_jax.calculus.tree import (
    Bilinear,
    Cosine,
    Dot,
    Expression,
    Fixed,
    Linear,
    Norm,
    Part,
    Reduce,
    Ref,
    Scale,
    Shift,
    Sum,
    Target,
    Token,
    Var,
    children,
)
from sweep_jax.checks import require

Weights = Mapping[str, ArrayLike]
Context = Mapping[str, int]


def weight_shapes(target: Target, d: int) -> dict[str, tuple[int, ...]]:
    """Name -> shape of every weight that a target names, in order of appearance.

    Raises:
      ValueError: one name stands for a vector and for a matrix, or a coordinate is beyond d.
    """
    shapes: dict[str, tuple[int, ...]] = {}

    def visit(expression: Expression) -> None:
        if isinstance(expression, Linear | Bilinear):
            shape = (d,) if isinstance(expression, Linear) else (d, d)
            known = shapes.setdefault(expression.weight, shape)
            require(known == shape, f"weight {expression.weight}", shape, f"shape {known}")
        if isinstance(expression, Part):
            require(expression.place <= d, "part", expression.place, f"at most d = {d}")
        for child in children(expression):
            visit(child)

    for expression in (*(item for _, item in target.definitions), target.output):
        visit(expression)
    return shapes


class Evaluator:
    """A target on one input."""

    def __init__(self, target: Target, x_TD: ArrayLike, weights: Weights) -> None:
        """Takes the input [T, d], T >= 1, and every weight that the target names.

        Raises:
          ValueError: the target is not well formed, the input is not [T, d] with finite numbers,
            T is too short for the target, or a weight is missing or has another shape.
        """
        self.measures = measure(target)
        self.target = target
        self.x_TD = np.asarray(x_TD, np.float64)
        ok = self.x_TD.ndim == 2 and min(self.x_TD.shape) >= 1
        require(ok, "x_TD", self.x_TD.shape, "[T, d]")
        require(bool(np.isfinite(self.x_TD).all()), "x_TD", "NaN or infinity", "finite numbers")
        self.tokens, self.d = self.x_TD.shape
        self.measures.require_length(self.tokens)
        self.weights = {}
        for name, shape in weight_shapes(target, self.d).items():
            require(name in weights, "weights", sorted(weights), f"a weight {name!r} {shape}")
            self.weights[name] = np.asarray(weights[name], np.float64)
            got = self.weights[name].shape
            require(got == shape, f"weights[{name!r}]", got, f"shape {shape}")
        self._found: dict[str, Any] = {}
        self._definitions = dict(target.definitions)

    def value(self) -> np.ndarray:
        """The target: a scalar [] or vector [d]; with `each`, one a token, [T] or [T, d]."""
        if self.target.each is None:
            return np.asarray(self._value(self.target.output, {}))
        rows = [self._value(self.target.output, {self.target.each: t}) for t in range(self.tokens)]
        return np.stack([np.asarray(row) for row in rows])

    def choice(self, node: Node, context: Context) -> int | None:
        """The position, from 0, of what a comparison picks or a read reads; None outside 1..T.

        Args:
          context: a position from 0 for every index of `node.free`.
        """
        expression = node.expression
        if isinstance(expression, Token):
            return self._index(expression.index, context)
        return self._reduce(expression, context)[1]

    def _reduce(self, node: Reduce, context: Context) -> tuple[Any, int]:
        out = {self._index(item, context) for item in node.exclude}
        left = [t for t in range(self.tokens) if t not in out]
        scores = [self._value(node.score, {**context, node.over: t}) for t in left]
        if node.op == "total":
            return np.sum(scores, axis=0), -1
        best = np.argmin(scores) if node.op in ("min", "argmin") else np.argmax(scores)
        return scores[best], left[best]

    def _index(self, index: Expression, context: Context) -> int | None:
        """A position from 0, or None if it is outside the sequence."""
        match index:
            case Var(name=name):
                return context[name]
            case Fixed(place=place):
                return place - 1 if place > 0 else self.tokens + place
            case Shift(of=name, by=by):
                place = context[name] + by
                return place if 0 <= place < self.tokens else None
            case Ref(name=name):
                return self._definition(name)
            case Reduce():
                return self._reduce(index, context)[1]
        raise AssertionError(index)  # validation lets nothing else through

    def _definition(self, name: str) -> Any:
        if name not in self._found:
            self._found[name] = self._value(self._definitions[name], {})
        return self._found[name]

    def _value(self, expression: Expression, context: Context) -> Any:
        def inner(child: Expression) -> Any:
            return self._value(child, context)

        match expression:
            case Token(index=index):
                place = self._index(index, context)
                return np.zeros(self.d) if place is None else self.x_TD[place]
            case Linear(weight=name, term=term):
                return self.weights[name] @ inner(term)
            case Dot(left=left, right=right):
                return inner(left) @ inner(right)
            case Bilinear(left=left, weight=name, right=right):
                return inner(left) @ self.weights[name] @ inner(right)
            case Norm(term=term):
                return np.linalg.norm(inner(term))
            case Part(term=term, place=place):
                require(place <= self.d, "part", place, f"a coordinate of 1..{self.d}")
                return inner(term)[place - 1]
            case Cosine(term=term, period=period):
                return np.cos(2 * np.pi * inner(term) / period)
            case Sum(terms=terms):
                return sum((inner(term) for term in terms[1:]), inner(terms[0]))
            case Scale(factor=factor, term=term):
                return factor * inner(term)
            case Ref(name=name):
                return self._definition(name)
            case Reduce(op=op):
                value, place = self._reduce(expression, context)
                return place if op in Reduce.finds else value
        raise AssertionError(expression)


def evaluate(target: Target, x_TD: ArrayLike, weights: Weights | None = None) -> np.ndarray:
    """A target's value on one input [T, d], by brute force; see `Evaluator`."""
    return Evaluator(target, x_TD, weights or {}).value()
