"""What is wrong with a target, as reasons; nothing is computed from a target that has one.

Types (scalar, vector, index), bound indices, known and acyclic definitions. Not a check of sizes: a
sequence too short for a target is refused where it is evaluated or planned for.
"""

import math
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter

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


@dataclass(frozen=True)
class Reason:
    """Why something cannot be: the node or the part, and the reason."""

    node: str
    reason: str

    def __str__(self) -> str:
        return f"{self.node}: {self.reason}"


def references(expression: Expression) -> set[str]:
    """Names of the definitions that an expression uses directly."""
    if isinstance(expression, Ref):
        return {expression.name}
    return set().union(*(references(child) for child in children(expression)))


def reasons(target: Target) -> tuple[Reason, ...]:
    """Everything that is wrong with a target; empty when it is well formed."""
    defined = dict(target.definitions)
    found = [
        Reason(name, f"uses {used!r}, which is not defined; defined are {sorted(defined)}")
        for name, expression in (*target.definitions, ("output", target.output))
        for used in sorted(references(expression) - set(defined))
    ]
    if len(defined) < len(target.definitions):
        found.append(Reason("definitions", "a name is defined twice"))
    if found:
        return tuple(found)
    graph = {name: references(expression) for name, expression in target.definitions}
    try:
        order = list(TopologicalSorter(graph).static_order())
    except CycleError as error:
        return (Reason(error.args[1][0], f"is cyclic: {' needs '.join(error.args[1][::-1])}"),)
    kinds: dict[str, str] = {}
    for name in order:
        kinds[name] = _kind(defined[name], name, (), kinds, found)
    if target.each is not None and not _is_name(target.each):
        return (Reason("output", f"is read at each {target.each!r}, expected an index"),)
    bound = () if target.each is None else (target.each,)
    kind = _kind(target.output, "output", bound, kinds, found)
    if kind == "index":
        found.append(Reason("output", "is an index; expected a scalar or a vector, as x(index)"))
    unused = set(defined) - _used(target.output, defined)
    found += [Reason(name, "is defined and never used") for name in sorted(unused)]
    return tuple(dict.fromkeys(found))


def check(target: Target) -> None:
    """Refuses a target that is not well formed.

    Raises:
      ValueError: with the first reason and how many there are.
    """
    found = reasons(target)
    if found:
        more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
        raise ValueError(f"target: {found[0]}{more}")


def _used(expression: Expression, defined: dict[str, Expression]) -> set[str]:
    names: set[str] = set()
    todo = list(references(expression))
    while todo:
        name = todo.pop()
        if name not in names:
            names.add(name)
            todo += references(defined[name])
    return names


def _kind(
    expression: Expression,
    place: str,
    bound: tuple[str, ...],
    kinds: dict[str, str],
    found: list[Reason],
) -> str:
    """Type of an expression; "unknown" after an error, which is added to `found` once."""

    def wrong(reason: str) -> str:
        found.append(Reason(place, f"{reason}, in {expression}"))
        return "unknown"

    def inner(child: Expression, also: tuple[str, ...] = ()) -> str:
        return _kind(child, place, (*bound, *also), kinds, found)

    def expect(child: Expression, *wanted: str) -> None:
        got = inner(child)
        if got not in (*wanted, "unknown"):
            wrong(f"{child} is of type {got}, expected {' or '.join(wanted)}")

    if isinstance(expression, Linear | Bilinear) and not isinstance(expression.weight, str):
        return wrong("expected the name of a weight")
    match expression:
        case Var(name=name):
            return "index" if name in bound else wrong(f"index {name!r} is unbound")
        case Shift(of=name, by=by):
            if not _is_integer(by):
                return wrong(f"a shift by {by!r}, expected an integer")
            return "index" if name in bound else wrong(f"index {name!r} is unbound")
        case Fixed(place=position):
            if not _is_integer(position):
                return wrong(f"position {position!r}, expected an integer")
            return "index" if position != 0 else wrong("position 0; the first is 1, the last -1")
        case Ref(name=name):
            return kinds[name]
        case Token(index=index):
            expect(index, "index")
            return "vector"
        case Dot(left=left, right=right) | Bilinear(left=left, right=right):
            expect(left, "vector")
            expect(right, "vector")
            return "scalar"
        case Linear(term=term) | Norm(term=term):
            expect(term, "vector")
            return "scalar"
        case Part(term=term, place=coordinate):
            expect(term, "vector")
            ok = _is_integer(coordinate) and coordinate >= 1
            return "scalar" if ok else wrong("coordinates are integers counted from 1")
        case Cosine(term=term, period=period):
            expect(term, "scalar")
            ok = isinstance(period, int | float) and 0 < period < math.inf
            return "scalar" if ok else wrong("expected a period > 0")
        case Scale(factor=factor, term=term):
            if not math.isfinite(factor):
                return wrong("expected a finite factor")
            got = inner(term)
            return got if got != "index" else wrong("an index cannot be scaled")
        case Sum(terms=terms):
            types = {inner(term) for term in terms} - {"unknown"}
            if "index" in types or len(types) > 1:
                return wrong(f"a sum of {' and '.join(sorted(types))}")
            return types.pop() if types else "unknown"
        case Reduce(op=op, over=over, score=score, exclude=exclude):
            if not _is_name(over) or over in bound:
                return wrong(f"index {over!r} is bound twice or is no name")
            got = inner(score, (over,))
            allowed = ("scalar", "vector") if op == "total" else ("scalar",)
            if got not in (*allowed, "unknown"):
                return wrong(f"the score is of type {got}, expected {' or '.join(allowed)}")
            if over not in free_indices(score):
                return wrong(f"the score does not use the index {over!r}")
            for item in exclude:
                expect(item, "index")
                if not isinstance(item, Ref | Reduce):
                    return wrong("only found indices can be excluded")
            return {"min": "scalar", "max": "scalar", "total": got}.get(op, "index")
    return wrong("not of the language")


def _is_name(value: object) -> bool:
    return isinstance(value, str) and value.isidentifier()


def _is_integer(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def free_indices(expression: Expression) -> set[str]:
    """Indices that an expression uses and does not bind; definitions are closed."""
    match expression:
        case Var(name=name) | Shift(of=name):
            return {name}
        case Reduce(over=over):
            return set().union(*(free_indices(c) for c in children(expression))) - {over}
    return set().union(*(free_indices(child) for child in children(expression)))
