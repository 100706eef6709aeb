"""The shipped targets by name, and weights for them. Sources: arXiv 2605.17930 unless said.

Samplers of inputs are not here: a target is a function, not a distribution.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from infoflow_jax.calculus.language import (
    add,
    argmax,
    bilinear,
    cosine,
    dot,
    linear,
    maximum,
    minimum,
    norm,
    part,
    shift,
    target,
    the,
    x,
)
from infoflow_jax.calculus.meaning import weight_shapes
from infoflow_jax.calculus.tree import Expression, Target
from sweep_jax.checks import require

MODULUS = 16  # of Match2 and Match3


def single(D: int = 1) -> Target:
    """max_t f(x_t), f linear."""
    return target(maximum(over="t", score=linear("a", x("t"))))


def retrieval(D: int) -> Target:
    """sum_i min_t a_i^T x_t: D-retrieval (arXiv 2510.06662)."""
    return target(add([minimum(over="t", score=linear(f"a{i}", x("t"))) for i in _upto(D)]))


def kth(D: int) -> Target:
    """The D-th largest a^T x_t, with multiplicity."""
    score = linear("a", x("t"))
    define: dict[str, Expression] = {}
    for i in range(1, D):
        define[f"z{i}"] = argmax("t", score, tuple(the(f"z{j}") for j in range(1, i)))
    return target(maximum("t", score, tuple(the(name) for name in define)), define=define)


def pairmin(D: int = 1) -> Target:
    """min_{s,t} <x_s, x_t>: the target of Theorem 1; s = t allowed."""
    return target(minimum(over="t", score=minimum(over="s", score=dot(x("s"), x("t")))))


def pairmax(D: int) -> Target:
    """sum_i max_{s,t} x_s^T A_i x_t: intrinsic dimension D at order 2."""
    pairs: list[Expression] = [
        maximum(over="t", score=maximum(over="s", score=bilinear(x("s"), f"A{i}", x("t"))))
        for i in _upto(D)
    ]
    return target(add(pairs))


def triangle(D: int = 1) -> Target:
    """min_{r,s,t} |x_r + x_s + x_t|, equal indices allowed."""
    side = norm(x("r") + x("s") + x("t"))
    return target(minimum("r", minimum("s", minimum("t", side))))


def match2(D: int = 1) -> Target:
    """At each t: max_s cos(2 pi (x_s + x_t) / M), 1 iff some s has x_s + x_t = 0 mod M.

    Tokens' first coordinate is an integer (Sanford et al., arXiv 2306.02896).
    """
    together = part(x("s"), 1) + part(x("t"), 1)
    return target(maximum("s", cosine(together, MODULUS)), each="t")


def match3(D: int = 1) -> Target:
    """At each t: the same over pairs, x_r + x_s + x_t = 0 mod M (arXiv 2306.02896)."""
    together = part(x("r"), 1) + part(x("s"), 1) + part(x("t"), 1)
    return target(maximum("s", maximum("r", cosine(together, MODULUS))), each="t")


def khop(D: int) -> Target:
    """a^T x after D hops from the last token, a hop being argmax_s x^T A x_s (2402.09268)."""
    define: dict[str, Expression] = {}
    here: Expression = x(-1)
    for i in _upto(D):
        define[f"hop{i}"] = argmax("s", bilinear(here, "A", x("s")))
        here = x(the(f"hop{i}"))
    return target(linear("a", here), define=define)


def induction(D: int = 1) -> Target:
    """The token whose predecessor is most like the last token: an induction head."""
    found = argmax("s", dot(x(shift("s", -1)), x(-1)))
    return target(x(the("found")), define={"found": found})


def positions(D: int = 3) -> Target:
    """x(1) + ... + x(D)."""
    return target(add([x(i) for i in _upto(D)]))


@dataclass(frozen=True)
class Shipped:
    """A target by name: how it is made of D, and the D that is taken where it has no choice."""

    build: Callable[[int], Target]
    free: bool  # whether D matters
    what: str


MOST = 64  # D: far more than any network here is asked for
SHIPPED = {
    "single": Shipped(single, False, "max_t f(x_t)"),
    "retrieval": Shipped(retrieval, True, "D-retrieval"),
    "kth": Shipped(kth, True, "D-th largest"),
    "pairmin": Shipped(pairmin, False, "min_{s,t} <x_s, x_t>"),
    "pairmax": Shipped(pairmax, True, "sum_{i<=D} max_{s,t} x_s^T A_i x_t"),
    "triangle": Shipped(triangle, False, "min_{r,s,t} norm(x_r + x_s + x_t)"),
    "match2": Shipped(match2, False, "Match2"),
    "match3": Shipped(match3, False, "Match3"),
    "khop": Shipped(khop, True, "D-hop"),
    "induction": Shipped(induction, False, "induction head"),
    "positions": Shipped(positions, True, "x(1) + ... + x(D)"),
}


def named(name: str, D: int) -> Target:
    """The shipped target of that name with dimension D, which some targets do not have.

    Raises:
      ValueError: an unknown name, or D < 1.
    """
    require(name in SHIPPED, "target", name, f"one of {list(SHIPPED)}")
    require(1 <= D <= MOST, "D", D, f"an integer in 1..{MOST}")
    return SHIPPED[name].build(D)


def draw_weights(tree: Target, d: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Standard normal weights for every name in the tree, float64."""
    return {name: rng.standard_normal(s) for name, s in weight_shapes(tree, d).items()}


def _upto(D: int) -> range:
    require(isinstance(D, int) and D >= 1, "D", D, "an integer >= 1")
    return range(1, D + 1)
