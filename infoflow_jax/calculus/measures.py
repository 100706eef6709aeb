"""Nodes of a tree and what is counted of them: number, order and dimension of comparison, depth.

With f(v) the number of indices bound above v that its subtree uses, the number of comparisons is
sum_v T^(1 + f(v)), the order max_v (1 + f(v)), the dimension the number of nodes that attain it,
and the depth the longest chain of dependencies (definitions of this project, after arXiv
2605.17930). Reading a token at a fixed position or offset is a node too, of no comparison: it
counts in the depth and in nothing else. Not a plan: which head does what is not decided here.
"""

import itertools
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from infoflow_jax.calculus.alpha import canonical
from infoflow_jax.calculus.tree import (
    Bilinear,
    Cosine,
    Dot,
    Expression,
    Fixed,
    Linear,
    Norm,
    Reduce,
    Ref,
    Scale,
    Shift,
    Sum,
    Target,
    Token,
    children,
)
from infoflow_jax.calculus.validation import check, free_indices
from sweep_jax.checks import require

Kind = Literal["compare", "read", "total"]


@dataclass(frozen=True)
class Node:
    """One thing that a head must do.

    Attributes:
      name: of its definition, or made of its operation and index.
      kind: compare (min, max, argmin, argmax), read (a fixed position or offset), total.
      expression: the `Reduce`, or the `Token` that is read.
      free: the indices bound above it that its subtree uses, outermost first.
      deps: names of the nodes that must be known before.
    """

    name: str
    kind: Kind
    expression: Reduce | Token
    free: tuple[str, ...]
    deps: tuple[str, ...]

    @property
    def f(self) -> int:
        """How many indices bound above it its subtree uses."""
        return len(self.free)

    def coordinates(self, d: int) -> int:
        """Numbers that its host must keep of it: d of a token, one of a score of the key alone."""
        e = self.expression
        if self.kind == "compare" and isinstance(e, Reduce) and e.op in ("min", "max"):
            return 1 if self.f == 0 else d
        if self.kind == "total" and isinstance(e, Reduce):
            return 1 if _is_scalar(e.score) else d
        return d


@dataclass(frozen=True)
class Measures:
    """The nodes of a target, dependencies first, and their counts.

    Attributes:
      nodes: every node once, however often it is used.
      outputs: names of the nodes that the output uses directly.
      each: as of the target.
    """

    nodes: tuple[Node, ...]
    outputs: tuple[str, ...]
    each: str | None

    @cached_property
    def comparisons(self) -> tuple[Node, ...]:
        """The nodes that compare."""
        return tuple(node for node in self.nodes if node.kind == "compare")

    @property
    def order(self) -> int:
        """max_v (1 + f(v)); 0 when nothing is compared."""
        return max((1 + node.f for node in self.comparisons), default=0)

    @property
    def dimension(self) -> int:
        """How many nodes attain the order."""
        return sum(1 + node.f == self.order for node in self.comparisons)

    def number(self, tokens: int) -> int:
        """sum_v T^(1 + f(v)) comparisons for T = `tokens`, an exact integer.

        Raises:
          ValueError: `tokens` is not an integer >= 1.
        """
        ok = isinstance(tokens, int) and tokens >= 1
        require(ok, "T", tokens, "an integer >= 1")
        return sum(tokens ** (1 + node.f) for node in self.comparisons)

    @cached_property
    def _by_name(self) -> dict[str, Node]:
        return {node.name: node for node in self.nodes}

    @cached_property
    def _levels(self) -> dict[tuple[str, bool], int]:
        found: dict[tuple[str, bool], int] = {}
        for node in self.nodes:  # dependencies first
            for only in (False, True):
                before = max((found[name, only] for name in node.deps), default=0)
                found[node.name, only] = before + int(node.kind == "compare" or not only)
        return found

    def level(self, node: Node, compares_only: bool = False) -> int:
        """Length of the longest chain that ends in a node."""
        return self._levels[node.name, compares_only]

    @property
    def depth(self) -> int:
        """Longest chain of nodes."""
        return max((self.level(node) for node in self.nodes), default=0)

    @property
    def comparison_depth(self) -> int:
        """Longest chain of comparisons, reads and totals not counted."""
        return max((self.level(node, True) for node in self.nodes), default=0)

    @property
    def shortest(self) -> int:
        """The least T: room for every exclusion and fixed position, and at least the order."""
        least = max(1, self.order)
        for node in self.nodes:
            e = node.expression
            if isinstance(e, Reduce):
                least = max(least, 1 + len(e.exclude))
            elif isinstance(e.index, Fixed):
                least = max(least, abs(e.index.place))
        return least

    def node(self, name: str) -> Node:
        """The node of that name."""
        return self._by_name[name]

    def require_length(self, tokens: int) -> None:
        """Refuses a sequence that is too short: T below the order, an exclusion or a position.

        Raises:
          ValueError: as said.
        """
        ok = isinstance(tokens, int) and tokens >= self.shortest
        require(ok, "T", tokens, f"an integer >= {self.shortest}, the target's order and places")


def measure(target: Target) -> Measures:
    """The nodes of a target, dependencies first.

    Two nodes are one if they are written alike but for the names of indices; see `alpha`.

    Raises:
      ValueError: the target is not well formed.
    """
    check(target)
    collector = _Collector(dict(target.definitions))
    bound = () if target.each is None else (target.each,)
    outputs = collector.visit(target.output, bound, None)
    return Measures(tuple(collector.nodes), outputs, target.each)


class _Collector:
    """Walks a tree once; nodes that differ in names of indices only are one node."""

    def __init__(self, definitions: dict[str, Expression]) -> None:
        self.definitions = definitions
        self.nodes: list[Node] = []
        self.known: dict[Expression, str] = {}  # canonical expression -> name of its node
        self.same: dict[str, str] = {}  # definition -> the node that it is
        self.seen: dict[str, tuple[str, ...]] = {}

    def visit(
        self, expression: Expression, bound: tuple[str, ...], name: str | None
    ) -> tuple[str, ...]:
        """Names of the nodes directly inside `expression`; itself, if it is one."""
        if isinstance(expression, Ref):
            if expression.name not in self.seen:
                inner = self.definitions[expression.name]
                found = self.visit(inner, (), expression.name)
                self.seen[expression.name] = found
                if _kind(inner) is not None:
                    self.same[expression.name] = found[0]
            return self.seen[expression.name]
        inside = (*bound, expression.over) if isinstance(expression, Reduce) else bound
        deps = [n for child in children(expression) for n in self.visit(child, inside, None)]
        names = tuple(dict.fromkeys(deps))
        kind = _kind(expression)
        if kind is None:
            return names
        assert isinstance(expression, Reduce | Token)
        used = free_indices(expression)
        free = tuple(index for index in bound if index in used)
        key = canonical(expression, free, self.same)
        if key not in self.known:
            self.known[key] = name or self._name(expression)
            self.nodes.append(Node(self.known[key], kind, expression, free, names))
        return (self.known[key],)

    def _name(self, expression: Reduce | Token) -> str:
        if isinstance(expression, Token):
            return str(expression).replace('"', "")
        stem = f"{expression.op}_{expression.over}"
        taken = {node.name for node in self.nodes} | set(self.definitions)
        return next(f"{stem}{i}" for i in itertools.count(1) if f"{stem}{i}" not in taken)


def _kind(expression: Expression) -> Kind | None:
    """What a head must do of an expression itself; None of one that is no node."""
    match expression:
        case Reduce(op=op):
            return "total" if op == "total" else "compare"
        case Token(index=Fixed() | Shift()):
            return "read"
    return None


def _is_scalar(expression: Expression) -> bool:
    match expression:
        case Sum(terms=terms):
            return _is_scalar(terms[0])
        case Scale(term=term):
            return _is_scalar(term)
        case Reduce(op=op, score=score):
            return op != "total" or _is_scalar(score)
        case Ref():
            return False  # kept as a token: the larger of the two
    return not isinstance(expression, Token)


def score_rank(node: Node, d: int) -> int | None:
    """Rank of a node's score as a function of (context, key): coordinates of query and key needed.

    An extension of this project, not in the papers' cost laws: a head whose queries and keys have
    n coordinates can hold a score of rank at most n. What the context alone adds cancels in the
    softmax; a norm is compared by its square. None when no finite rank is known.
    """
    expression = node.expression
    if not isinstance(expression, Reduce) or node.kind != "compare":
        return 0
    return _rank(expression.score, expression.over, d)


def key_decides(node: Node) -> bool:
    """Whether the key alone, with what it knows of itself, decides a node's score.

    Then a sum is a sufficient statistic that one head finds by equal weights on all keys.
    """
    expression = node.expression
    assert isinstance(expression, Reduce)
    return _side(expression.score, expression.over) == "key"


def _rank(score: Expression, over: str, d: int) -> int | None:
    context = _side(score, over)
    if context == "query":
        return 0
    if context == "key":
        return 1
    match score:
        case Dot() | Bilinear():
            sides = {_side(child, over) for child in children(score)}
            return d if sides == {"query", "key"} else None
        case Norm(term=Sum(terms=terms)):
            separate = {_side(term, over) for term in terms} <= {"query", "key"}
            return d + 1 if separate else None
        case Cosine():
            return 2 if _is_sum(score.term, over) else None
        case Scale(term=term):
            return _rank(term, over, d)
        case Sum(terms=terms):
            ranks = [_rank(term, over, d) for term in terms]
            keys = sum(_side(term, over) == "key" for term in terms)
            known = [rank for rank in ranks if rank is not None]
            return sum(known) - max(0, keys - 1) if len(known) == len(ranks) else None
        case Linear(term=term) if _is_sum(term, over):
            return 1
    return None


def _side(expression: Expression, over: str) -> str:
    """Whether only the key, only the query, or both decide an expression.

    A subtree that depends on a token-hosted node of the key is the key's: the key carries it.
    """
    used = free_indices(expression)
    if over not in used:
        return "query"
    return "key" if used == {over} and not _has_read_of_query(expression) else "both"


def _has_read_of_query(expression: Expression) -> bool:
    if isinstance(expression, Ref):
        return True
    if isinstance(expression, Token) and isinstance(expression.index, Fixed):
        return True
    if isinstance(expression, Reduce):
        return False
    return any(_has_read_of_query(child) for child in children(expression))


def _is_sum(expression: Expression, over: str) -> bool:
    """Whether an expression is additive in query and key: linear maps of a sum of tokens."""
    match expression:
        case Sum(terms=terms):
            return all(_is_sum(term, over) for term in terms)
        case Scale(term=term) | Linear(term=term):
            return _is_sum(term, over)
        case _ if hasattr(expression, "place") and children(expression):  # Part
            return _is_sum(children(expression)[0], over)
    return _side(expression, over) in ("query", "key")
