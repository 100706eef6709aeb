"""What a score says of the states of its query and its key: linear forms and bilinear atoms.

A score of the compiled kind is k.key + q.query + sum_atoms (L query) . (R key), the states being
vectors of slots. Closed trees of order at most 2 of minima and maxima have only such scores; any
other thing is refused here by name. Not the place of weights, which `compiler` writes.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from infoflow_jax.calculus.alpha import canonical
from infoflow_jax.calculus.measures import Measures, Node
from infoflow_jax.calculus.tree import (
    Bilinear,
    Dot,
    Expression,
    Linear,
    Reduce,
    Ref,
    Scale,
    Sum,
    Target,
    Token,
    Var,
)
from infoflow_jax.calculus.validation import free_indices
from sweep_jax.checks import require


@dataclass(frozen=True)
class Loss:
    """An error: log_T ln T / beta + log_next ln(T + 1) / beta + product / K^2."""

    log_T: float = 0.0
    log_next: float = 0.0
    product: float = 0.0

    def plus(self, other: "Loss", factor: float = 1.0) -> "Loss":
        """The sum of this and |factor| times the other."""
        size = abs(factor)
        return Loss(
            self.log_T + size * other.log_T,
            self.log_next + size * other.log_next,
            self.product + size * other.product,
        )


@dataclass(frozen=True)
class Value:
    """A node's value as a linear form of its host's slots, (E,), and how far off it may be."""

    form_E: np.ndarray
    loss: Loss


@dataclass(frozen=True)
class Form:
    """A score. `atoms` are pairs (L, R), each (d, E), for (L query) . (R key)."""

    key_E: np.ndarray
    query_E: np.ndarray
    atoms: tuple[tuple[np.ndarray, np.ndarray], ...]
    loss: Loss

    def scaled(self, factor: float) -> "Form":
        """The multiple."""
        atoms = tuple((factor * L, R) for L, R in self.atoms)
        loss = Loss().plus(self.loss, factor)
        return Form(factor * self.key_E, factor * self.query_E, atoms, loss)

    def plus(self, other: "Form") -> "Form":
        """The sum."""
        return Form(
            self.key_E + other.key_E,
            self.query_E + other.query_E,
            (*self.atoms, *other.atoms),
            self.loss.plus(other.loss),
        )


def refuse(place: str, reason: str) -> None:
    """ValueError that names the node."""
    require(
        False, "tree", f"{place}: {reason}", "min/max of linear and bilinear scores, order <= 2"
    )


def check(measures: Measures) -> None:
    """Refuses what has no compiled form whatever the plan.

    Raises:
      ValueError: naming the node and the reason.
    """
    if measures.each is not None:
        refuse("output", "is read at every token; only c0 is compiled")
    if not measures.nodes:
        refuse("output", "compares nothing")
    for node in measures.nodes:
        e = node.expression
        if isinstance(e, Token):
            refuse(node.name, "reads a position")
        elif e.op in Reduce.finds:
            # Where two scores tie the found token jumps, and a network is continuous.
            refuse(node.name, f"{e.op} jumps at ties, so no network is near it in sup norm")
        elif e.op == "total":
            refuse(node.name, "is a sum over all tokens")
        elif e.exclude:
            refuse(node.name, "excludes indices")
        elif node.f > 1:
            refuse(node.name, f"is of order {1 + node.f}")


class Reader:
    """Expressions of one target as forms; the first d slots of a state are the token's."""

    def __init__(
        self, target: Target, measures: Measures, weights: Mapping[str, np.ndarray], d: int, E: int
    ) -> None:
        """Takes weights [d] and [d, d] by name, and E slots to a state."""
        self.defined = dict(target.definitions)
        self.nodes = {canonical(node.expression, node.free): node for node in measures.nodes}
        self.weights, self.d, self.E = weights, d, E

    def score(
        self, e: Expression, place: str, over: str | None, value: Callable[[Node, bool], Value]
    ) -> Form:
        """The form of a scalar expression.

        Args:
          e: the expression.
          place: what to call it in a refusal.
          over: the key's index; every other index is the query's. None: all is the query's.
          value: of a node, at the key (True) or at the query.

        Raises:
          ValueError: it has no such form.
        """
        nothing = np.zeros(self.E)
        match e:
            case Sum(terms=terms):
                form = self.score(terms[0], place, over, value)
                for term in terms[1:]:
                    form = form.plus(self.score(term, place, over, value))
                return form
            case Scale(factor=factor, term=term):
                return self.score(term, place, over, value).scaled(factor)
            case Ref(name=name):
                return self.score(self.defined[name], place, over, value)
            case Reduce():
                free = tuple(free_indices(e))  # at most one, as the order is at most 2
                node, at_key = self.nodes[canonical(e, free)], over in free
                found = value(node, at_key)
                key_E, query_E = (found.form_E, nothing) if at_key else (nothing, found.form_E)
                return Form(key_E, query_E, (), found.loss)
            case Linear(weight=name, term=term):
                key_DE, query_DE = self.vector(term, place, over)
                a_D = self.weights[name]
                return Form(a_D @ key_DE, a_D @ query_DE, (), Loss())
            case Dot(left=left, right=right):
                return self._product(left, np.eye(self.d), right, place, over)
            case Bilinear(left=left, weight=name, right=right):
                return self._product(left, self.weights[name], right, place, over)
        refuse(place, f"{e} is neither linear nor bilinear")
        raise AssertionError

    def _product(
        self, left: Expression, A_DD: np.ndarray, right: Expression, place: str, over: str | None
    ) -> Form:
        key_l, query_l = self.vector(left, place, over)
        key_r, query_r = self.vector(right, place, over)
        own = (key_l.any() and key_r.any()) or (query_l.any() and query_r.any())
        if own:
            refuse(place, "multiplies tokens of one index with each other")
        pairs = ((A_DD.T @ query_l, key_r), (A_DD @ query_r, key_l))
        atoms = tuple((L, R) for L, R in pairs if L.any() and R.any())
        return Form(np.zeros(self.E), np.zeros(self.E), atoms, Loss())

    def vector(self, e: Expression, place: str, over: str | None) -> tuple[np.ndarray, np.ndarray]:
        """A vector expression as matrices (d, E) of the key's and of the query's slots."""
        match e:
            case Token(index=Var(name=name)):
                token_DE, none_DE = np.eye(self.d, self.E), np.zeros((self.d, self.E))
                return (token_DE, none_DE) if name == over else (none_DE, token_DE)
            case Scale(factor=factor, term=term):
                key_DE, query_DE = self.vector(term, place, over)
                return factor * key_DE, factor * query_DE
            case Sum(terms=terms):
                parts = [self.vector(term, place, over) for term in terms]
                return sum(p[0] for p in parts), sum(p[1] for p in parts)  # type: ignore[return-value]
        refuse(place, f"{e} is not a sum of tokens at bound indices")
        raise AssertionError
