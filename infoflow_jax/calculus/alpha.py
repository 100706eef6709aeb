"""Expressions up to the names of their indices: what decides whether two nodes are one.

    maximum("t", linear("a", x("t")))  and  maximum("s", linear("a", x("s")))

are one node. Only names are compared: sums in another order are other expressions. Nothing that is
printed comes from here.
"""

import dataclasses
from collections.abc import Mapping, Sequence

from infoflow_jax.calculus.tree import Expression, Reduce, Ref, Shift, Var


def canonical(
    expression: Expression, free: Sequence[str], same: Mapping[str, str] | None = None
) -> Expression:
    """The expression with its indices numbered: free ones first, bound ones as they come.

    Two expressions are one function of their free indices, in that order, if this is equal.

    Args:
      expression: well formed, so that no index is bound twice on one path.
      free: its free indices, the outermost first.
      same: name of a definition -> the name that stands for all that are equal to it.
    """
    names = {name: str(place) for place, name in enumerate(free)}
    return _Renamer(len(free), same or {}).visit(expression, names)


class _Renamer:
    def __init__(self, first: int, same: Mapping[str, str]) -> None:
        self.next = first
        self.same = same

    def visit(self, e: Expression, names: Mapping[str, str]) -> Expression:
        match e:
            case Var(name=name):
                return Var(names[name])
            case Shift(of=name, by=by):
                return Shift(names[name], by)
            case Ref(name=name):
                return Ref(self.same.get(name, name))
            case Reduce(op=op, over=over, score=score, exclude=exclude):
                mine = str(self.next)
                self.next += 1
                inside = {**names, over: mine}
                out = tuple(self.visit(item, names) for item in exclude)
                return Reduce(op, mine, self.visit(score, inside), out)
        changed = {
            field.name: self._part(getattr(e, field.name), names)
            for field in dataclasses.fields(e)  # type: ignore[arg-type]
        }
        return dataclasses.replace(e, **changed)  # type: ignore[type-var]

    def _part(self, value: object, names: Mapping[str, str]) -> object:
        if isinstance(value, Expression):
            return self.visit(value, names)
        if isinstance(value, tuple):
            return tuple(self._part(item, names) for item in value)
        return value
