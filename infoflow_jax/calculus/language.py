"""The words of the language: functions that build the dataclasses of `tree`.

They take indices the short way: a text is a bound index, an integer a fixed position. Nothing is
checked here beyond that; `validation` says what is wrong with a whole target.
"""

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
    Shift,
    Target,
    Token,
    Var,
)
from sweep_jax.checks import require


def x(index: "str | int | Expression") -> Token:
    """The token at a bound index, a fixed position (1 first, -1 last), or a found one."""
    if isinstance(index, str):
        return Token(Var(index))
    return Token(Fixed(index) if isinstance(index, int) else index)


def shift(of: str, by: int) -> Shift:
    """The index `by` positions after the bound index `of`."""
    return Shift(of, by)


def the(name: str) -> Ref:
    """What the definition of that name found."""
    return Ref(name)


def linear(weight: str, term: Expression) -> Linear:
    """Inner product with a named weight vector."""
    return Linear(weight, term)


def dot(left: Expression, right: Expression) -> Dot:
    """Inner product."""
    return Dot(left, right)


def bilinear(left: Expression, weight: str, right: Expression) -> Bilinear:
    """left^T A right with a named weight matrix A."""
    return Bilinear(left, weight, right)


def norm(term: Expression) -> Norm:
    """Euclidean norm."""
    return Norm(term)


def part(term: Expression, place: int) -> Part:
    """One coordinate, counted from 1."""
    return Part(term, place)


def cosine(term: Expression, period: float) -> Cosine:
    """cos(2 pi term / period)."""
    return Cosine(term, float(period))


def minimum(over: str, score: Expression, exclude: tuple[Expression, ...] = ()) -> Reduce:
    """The least score over an index."""
    return Reduce("min", over, score, tuple(exclude))


def maximum(over: str, score: Expression, exclude: tuple[Expression, ...] = ()) -> Reduce:
    """The greatest score over an index."""
    return Reduce("max", over, score, tuple(exclude))


def argmin(over: str, score: Expression, exclude: tuple[Expression, ...] = ()) -> Reduce:
    """Where the least score is."""
    return Reduce("argmin", over, score, tuple(exclude))


def argmax(over: str, score: Expression, exclude: tuple[Expression, ...] = ()) -> Reduce:
    """Where the greatest score is."""
    return Reduce("argmax", over, score, tuple(exclude))


def total(over: str, score: Expression, exclude: tuple[Expression, ...] = ()) -> Reduce:
    """The sum over an index: no comparison."""
    return Reduce("total", over, score, tuple(exclude))


def add(terms: "list[Expression]") -> Expression:
    """The sum of a list; of one term, the term.

    Raises:
      ValueError: no term.
    """
    require(len(terms) > 0, "terms", terms, "at least one")
    result = terms[0]
    for term in terms[1:]:
        result = result + term
    return result


def target(
    output: Expression, each: str | None = None, define: "dict[str, Expression] | None" = None
) -> Target:
    """A target; see `tree.Target`."""
    return Target(output, tuple((define or {}).items()), each)
