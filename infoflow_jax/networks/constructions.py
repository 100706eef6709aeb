"""The shipped constructions by name, made of a few numbers; weights of targets are drawn.

What each one is, and the proof of its bound, stands where it is built.
"""

from collections.abc import Callable

import numpy as np

from infoflow_jax.networks import decoding, ordered, pairs, scores
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
