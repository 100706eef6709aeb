"""The shipped constructions by name, made of a few numbers; weights of targets are drawn.

What each one is, and the proof of its bound, stands where it is built. A compiled one is named by
its target and heads, as "pairmax 3 in 2 2 1"; its plan is the planner's.
"""

import math
import re
from collections.abc import Callable

import numpy as np

from infoflow_jax.calculus import schedule, targets
from infoflow_jax.calculus.architecture import Architecture, Rules
from infoflow_jax.calculus.measures import measure
from infoflow_jax.calculus.setting import Setting
from infoflow_jax.calculus.tree import Target
from infoflow_jax.networks import decoding, forms, ordered, pairs, scores
from infoflow_jax.networks.compiler import compile_tree
from infoflow_jax.networks.construction import Construction
from sweep_jax.checks import require

DIM = 3  # d of the tokens, where the theorem leaves it open
FOLD = 2  # D of pairmax
RETRIEVED = 4  # D of D-retrieval

Build = Callable[[np.random.Generator, int, int, float], Construction]


def _a(rng: np.random.Generator, D: int) -> np.ndarray:
    return rng.standard_normal((D, DIM)) / DIM**0.5


def _matrices(rng: np.random.Generator) -> np.ndarray:
    return rng.standard_normal((FOLD, DIM, DIM)) / DIM


# (generator, T, resolution, beta); a builder that needs no resolution leaves it alone.
BUILDERS: dict[str, Build] = {
    "pairmin": lambda rng, T, K, beta: pairs.pairmin(DIM, K, beta),
    "pairmin_bilinear": lambda rng, T, K, beta: pairs.pairmin(DIM, 1, beta, kind="bilinear"),
    "pairmax": lambda rng, T, K, beta: pairs.pairmax(_matrices(rng), K, beta),
    "retrieval": lambda rng, T, K, beta: scores.retrieval(_a(rng, RETRIEVED), beta),
    "retrieval_smooth": lambda rng, T, K, beta: scores.retrieval(_a(rng, RETRIEVED), beta, K),
    "retrieval_positions": lambda rng, T, K, beta: scores.by_positions(_a(rng, RETRIEVED), beta),
    "second_largest": lambda rng, T, K, beta: ordered.second_largest(_a(rng, 1)[0], T, beta),
    "positions": lambda rng, T, K, beta: scores.positions(DIM, 3, beta),
    "maximum": lambda rng, T, K, beta: decoding.maximum(T, K),
    "packed_2": lambda rng, T, K, beta: decoding.packed(T, -(-T // 2), K),
    "packed_3": lambda rng, T, K, beta: decoding.packed(T, -(-T // 3), K),
}


def named(name: str, T: int, resolution: int, beta: float, seed: int) -> Construction:
    """The construction of that name for T tokens.

    Args:
      name: a key of `BUILDERS`.
      T: tokens; some constructions are made for one T or up to one.
      resolution: K of an interpolant, n of the maximum, or b of the digits.
      beta: of the scores, where there are any.
      seed: of the target's weights.

    Raises:
      ValueError: an unknown name or an impossible number.
    """
    require(name in BUILDERS, "name", name, f"one of {list(BUILDERS)}")
    require(resolution >= 1, "resolution", resolution, "an integer >= 1")
    require(4 <= T <= 4096, "tokens", T, "an integer in 4..4096")
    return BUILDERS[name](np.random.default_rng(seed), T, resolution, beta)


def planned(text: str, T: int) -> tuple[Target, schedule.Schedule]:
    """The target and the complete plan of a text as "pairmax 3 in 2 2 1": name, D and heads.

    Raises:
      ValueError: another text, an unknown target, what has no compiled form, or heads that do not
        suffice.
    """
    match = re.fullmatch(r"(\w+) (\d+) in (\d+(?: \d+)*)", text)
    require(match is not None, "plan", text, "a target, its D and heads, as 'pairmax 3 in 2 2 1'")
    assert match is not None
    heads = tuple(int(h) for h in match[3].split())
    tree = targets.named(match[1], int(match[2]))
    measures = measure(tree)
    forms.check(measures)
    Architecture(heads, math.lcm(*heads), DIM, T)  # refuses what is no architecture
    plan = schedule.best(Setting(measures, T, DIM, False, Rules()), heads)
    require(not plan.unplaced, "plan", text, f"heads that leave a place for {plan.unplaced}")
    return tree, plan


def compiled(text: str, T: int, eps: float, seed: int) -> Construction:
    """A plan as a network within eps of its target for up to T tokens; see `planned`.

    Args:
      text: target, D and heads.
      T: tokens.
      eps: of the sup error.
      seed: of the target's weights.

    Raises:
      ValueError: what `planned` or the compiler refuses.
    """
    tree, plan = planned(text, T)
    weights = targets.draw_weights(tree, DIM, np.random.default_rng(seed))
    return compile_tree(tree, weights, plan, DIM, T, eps)
