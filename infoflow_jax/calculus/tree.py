"""Comparison trees: the small language in which a target is written, as frozen dataclasses.

    first = argmax(over="t", score=linear("a", x("t")))
    output = minimum(over="t", score=minimum(over="s", score=dot(x("s"), x("t"))))

`x("s")` is the token at an index that a minimum, maximum, argmin, argmax or total binds, `x(3)`
that at a fixed position (the first is 1, the last -1), `x(shift("s", -1))` the one before s,
`x(first)` the one at a found index. Weights ("a") are names: only their use decides what a network
needs, and their values are given when a tree is evaluated. Every tree prints itself in the syntax
that `text.parse` reads. Not the place of types (`validation`), meaning (`meaning`) or counting
(`measures`).
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

Operation = Literal["min", "max", "argmin", "argmax", "total"]
CALLS: dict[Operation, str] = {
    "min": "minimum",
    "max": "maximum",
    "argmin": "argmin",
    "argmax": "argmax",
    "total": "total",
}


class Expression:
    """A part of a tree; sums and multiples are written as in Python."""

    def __add__(self, other: "Expression") -> "Sum":
        left = self.terms if isinstance(self, Sum) else (self,)
        right = other.terms if isinstance(other, Sum) else (other,)
        return Sum((*left, *right))

    def __rmul__(self, factor: float) -> "Scale":
        return Scale(float(factor), self)

    def __neg__(self) -> "Scale":
        return Scale(-1.0, self)

    def __sub__(self, other: "Expression") -> "Sum":
        return self + (-other)


@dataclass(frozen=True)
class Var(Expression):
    """An index that something above binds."""

    name: str

    def __str__(self) -> str:
        return f'"{self.name}"'


@dataclass(frozen=True)
class Fixed(Expression):
    """A position, counted from 1, or from the end as -1."""

    place: int

    def __str__(self) -> str:
        return str(self.place)


@dataclass(frozen=True)
class Shift(Expression):
    """The position `by` after the bound index `of`; outside 1..T its token is the zero vector."""

    of: str
    by: int

    def __str__(self) -> str:
        return f'shift("{self.of}", {self.by})'


@dataclass(frozen=True)
class Ref(Expression):
    """What a definition of the target found."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Token(Expression):
    """The token at an index: a vector of d coordinates."""

    index: Expression

    def __str__(self) -> str:
        return f"x({self.index})"


@dataclass(frozen=True)
class Linear(Expression):
    """Inner product with the weight vector [d] of that name."""

    weight: str
    term: Expression

    def __str__(self) -> str:
        return f'linear("{self.weight}", {self.term})'


@dataclass(frozen=True)
class Dot(Expression):
    """Inner product of two vectors."""

    left: Expression
    right: Expression

    def __str__(self) -> str:
        return f"dot({self.left}, {self.right})"


@dataclass(frozen=True)
class Bilinear(Expression):
    """left^T A right with the weight matrix A [d, d] of that name."""

    left: Expression
    weight: str
    right: Expression

    def __str__(self) -> str:
        return f'bilinear({self.left}, "{self.weight}", {self.right})'


@dataclass(frozen=True)
class Norm(Expression):
    """Euclidean norm of a vector."""

    term: Expression

    def __str__(self) -> str:
        return f"norm({self.term})"


@dataclass(frozen=True)
class Part(Expression):
    """One coordinate of a vector, counted from 1."""

    term: Expression
    place: int

    def __str__(self) -> str:
        return f"part({self.term}, {self.place})"


@dataclass(frozen=True)
class Cosine(Expression):
    """cos(2 pi term / period) of a scalar: the feature that finds sums modulo the period."""

    term: Expression
    period: float

    def __str__(self) -> str:
        return f"cosine({self.term}, {self.period!r})"


@dataclass(frozen=True)
class Sum(Expression):
    """Sum of scalars, or of vectors."""

    terms: tuple[Expression, ...]

    def __str__(self) -> str:
        return " + ".join(str(term) for term in self.terms)


@dataclass(frozen=True)
class Scale(Expression):
    """A number times a scalar or a vector."""

    factor: float
    term: Expression

    def __str__(self) -> str:
        inner = f"({self.term})" if isinstance(self.term, Sum | Scale) else str(self.term)
        return f"{self.factor!r} * {inner}"


@dataclass(frozen=True)
class Reduce(Expression):
    """A node: the least or greatest score over an index, where it is, or the sum over it.

    Attributes:
      op: min and max give the score, argmin and argmax the index; of equal scores the first wins.
      over: the index that it binds, 1..T.
      score: a scalar; of a total a scalar or a vector.
      exclude: indices left out, found by argmin or argmax nodes.
    """

    op: Operation
    over: str
    score: Expression
    exclude: tuple[Expression, ...] = ()

    finds: ClassVar[tuple[str, ...]] = ("argmin", "argmax")

    def __str__(self) -> str:
        out = "".join(f"{item}, " for item in self.exclude)
        left_out = f", exclude=({out.rstrip()})" if self.exclude else ""
        return f'{CALLS[self.op]}(over="{self.over}", score={self.score}{left_out})'


@dataclass(frozen=True)
class Target:
    """A function of a sequence of tokens.

    Attributes:
      output: a scalar or a vector.
      definitions: (name, expression) that `output` and each other may use by name; closed.
      each: None when the output is read at c0; else the index of the token that it is read at,
        bound above everything, so that there are T outputs.
    """

    output: Expression
    definitions: tuple[tuple[str, Expression], ...] = ()
    each: str | None = None

    def __str__(self) -> str:
        lines = [f"{name} = {expression}" for name, expression in self.definitions]
        end = str(self.output) if self.each is None else f'each("{self.each}", {self.output})'
        return "\n".join([*lines, f"output = {end}"])


def children(expression: Expression) -> tuple[Expression, ...]:
    """The expressions directly inside one; references are not followed."""
    match expression:
        case Token(index=inner):
            return (inner,)
        case Linear(term=inner) | Norm(term=inner) | Part(term=inner) | Cosine(term=inner):
            return (inner,)
        case Scale(term=inner):
            return (inner,)
        case Dot(left=left, right=right) | Bilinear(left=left, right=right):
            return (left, right)
        case Sum(terms=terms):
            return terms
        case Reduce(score=score, exclude=exclude):
            return (score, *exclude)
    return ()
