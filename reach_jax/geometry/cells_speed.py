"""How fast cells are counted, as a share of the rate at which this machine multiplies matrices.

The loop, a large square product and a product of the loop's own tile sizes run in turn, in one
process, so that other work on the machine slows all three. Not a profile, and no part of counting.
"""

import functools
import time
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from reach_jax.geometry import cells
from sweep_jax.checks import require

SQUARE = 2048  # rows and columns of the matrices that give the machine's rate
_POINTS = 2**18  # at most


class Speed(NamedTuple):
    """Rates in GFLOP/s, one a turn; only multiply-adds of the products count."""

    loop_R: np.ndarray
    square_R: np.ndarray
    tiles_R: np.ndarray

    @property
    def share(self) -> float:
        """The loop's median rate over the square product's."""
        return float(np.median(self.loop_R) / np.median(self.square_R))

    @property
    def best_share(self) -> float:
        """The loop's best turn over the square product's: what other work disturbs least."""
        return float(self.loop_R.max() / self.square_R.max())

    @property
    def tiles_share(self) -> float:
        """The loop's median rate over that of the product of its tile sizes."""
        return float(np.median(self.loop_R) / np.median(self.tiles_R))


def measure(head: cells.Head, turns: int = 5, square: int = SQUARE) -> Speed:
    """Times `cells.winners` on random points beside two bare float32 products.

    Each part does about as much work a turn as the square product, the loop at least one tile of
    points. The product of the tile sizes, rows of the head x points, writes its result out.

    Args:
      head: from `cells.chunked`.
      turns: how often each is timed, after one call that is not.
      square: rows and columns of the square product.

    Raises:
      ValueError: turns or square below 1.
    """
    require(turns >= 1, "turns", turns, "an integer >= 1")
    require(square >= 1, "square", square, "an integer >= 1")
    K, C, D = head.rows_KCD.shape
    tile_flop, square_flop = 2 * cells.TILE * C * D, 2 * square**3
    tiles = min(max(1, square_flop // (K * tile_flop)), _POINTS // cells.TILE)
    points_key, square_key = jax.random.split(jax.random.key(0))
    points_ND = jax.random.normal(points_key, (tiles * cells.TILE, D))
    square_SS = jax.random.normal(square_key, (square, square))
    rows_CD, points_TD = head.rows_KCD[0], points_ND[: cells.TILE]
    product = jax.jit(functools.partial(jnp.einsum, "cd,td->ct"))
    runs: list[tuple[Callable[[], jax.Array], int, int]] = [
        (lambda: cells.winners(points_ND, head), 1, K * tiles * tile_flop),
        (lambda: product(square_SS, square_SS), 1, square_flop),
        (lambda: product(rows_CD, points_TD), max(1, square_flop // tile_flop), tile_flop),
    ]
    for run, _, _ in runs:
        run().block_until_ready()
    rates_PR = np.zeros((len(runs), turns))
    for turn in range(turns):
        for place, (run, times, flop) in enumerate(runs):
            began = time.perf_counter()
            for _ in range(times):
                run().block_until_ready()
            rates_PR[place, turn] = 1e-9 * flop * times / (time.perf_counter() - began)
    return Speed(*rates_PR)
