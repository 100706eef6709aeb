"""The share of a set that each token's argmax cell takes, by Monte Carlo and with intervals.

The cell of token i is where its logit is the greatest, `{x : (f_i - f_j).x >= 0 for all j}` plus an
offset where there is one; a cone from the origin where there is none. Points and vocabulary go
through in chunks, so that a tile of logits stays in a processor's cache and the array of points x
vocabulary never exists. Not here: where the points come from (`bodies`, `states`), and whether a
cell that no point hit is empty (`unreachable`).
"""

import dataclasses
from collections.abc import Iterable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from scipy import stats

from sweep_jax.checks import require

TILE = 512  # points whose logits are alive at once
_CHUNK = 1024  # rows of the head that they meet at once


class Head(NamedTuple):
    """An unembedding matrix cut into chunks, padded with rows that never win."""

    rows_KCD: jax.Array
    offsets_KC: jax.Array  # added to the logits; -inf on padding


def chunked(head_VD: ArrayLike, offset_V: ArrayLike | None = None) -> Head:
    """Cuts a head, in float32.

    Args:
      head_VD: the unembedding matrix.
      offset_V: what is added to the logits: an output bias, or `nearest_offset(head_VD)`.

    Raises:
      ValueError: V or D is 0, an offset of another length, or a number that is not finite.
    """
    rows_VD = np.asarray(head_VD, np.float32)
    require(rows_VD.ndim == 2 and rows_VD.size > 0, "head", rows_VD.shape, "(V, D), both >= 1")
    V, D = rows_VD.shape
    offsets_V = np.zeros(V, np.float32) if offset_V is None else np.asarray(offset_V, np.float32)
    require(offsets_V.shape == (V,), "offset", offsets_V.shape, f"({V},)")
    finite = bool(np.isfinite(rows_VD).all() and np.isfinite(offsets_V).all())
    require(finite, "head and offset", "not finite", "finite numbers")
    size = min(V, _CHUNK)
    padding = -V % size
    rows_VD = np.pad(rows_VD, ((0, padding), (0, 0)))
    offsets_V = np.pad(offsets_V, (0, padding), constant_values=-np.inf)
    return Head(jnp.asarray(rows_VD.reshape(-1, size, D)), jnp.asarray(offsets_V.reshape(-1, size)))


def nearest_offset(head_VD: ArrayLike) -> np.ndarray:
    """`-|f_i|^2 / 2`: with it, the argmax cell of a token is its Euclidean Voronoi cell.

    That is the cell which the analysis published with arXiv 2605.22223 counts; the offset makes
    `argmax f_i.x - |f_i|^2 / 2 = argmin |x - f_i|`.
    """
    return -0.5 * np.square(np.asarray(head_VD, np.float64)).sum(axis=1)


@jax.jit
def winners(points_ND: jax.Array, head: Head) -> jax.Array:
    """The token whose logit is the greatest at each point, the lowest id among exact ties; (N,).

    N is a multiple of `min(N, 512)`.
    """
    N, D = points_ND.shape
    tile = min(N, TILE)
    starts_K = jnp.arange(head.rows_KCD.shape[0], dtype=jnp.int32) * head.rows_KCD.shape[1]

    def one(points_TD: jax.Array) -> jax.Array:
        def chunk(
            best: tuple[jax.Array, jax.Array], part: tuple[jax.Array, jax.Array, jax.Array]
        ) -> tuple[tuple[jax.Array, jax.Array], None]:
            rows_CD, offsets_C, start = part
            logits_CT = jnp.einsum("cd,td->ct", rows_CD, points_TD) + offsets_C[:, None]
            # A maximum and a comparison are several times faster than XLA's argmax on a CPU.
            best_T = logits_CT.max(axis=0)
            place_CT = jax.lax.broadcasted_iota(jnp.int32, logits_CT.shape, 0)
            hit_CT = logits_CT == best_T[None, :]
            first_T = jnp.where(hit_CT, place_CT, logits_CT.shape[0]).min(axis=0)
            value_T, token_T = best
            better_T = best_T > value_T
            value_T = jnp.where(better_T, best_T, value_T)
            return (value_T, jnp.where(better_T, start + first_T, token_T)), None

        empty = (jnp.full(tile, -jnp.inf, jnp.float32), jnp.zeros(tile, jnp.int32))
        (_, token_T), _ = jax.lax.scan(chunk, empty, (head.rows_KCD, head.offsets_KC, starts_K))
        return token_T

    return jax.lax.map(one, points_ND.reshape(-1, tile, D)).reshape(N)


def count(batches: Iterable[ArrayLike], head: Head, vocabulary: int) -> np.ndarray:
    """How many points fall into each token's cell, int64 of shape (V,).

    Args:
      batches: arrays (N, D) of points, of any N each; one compilation for each N.
      head: from `chunked`.
      vocabulary: V, without the padding.

    Raises:
      ValueError: a batch of another width, or a coordinate that is not finite.
    """
    D = head.rows_KCD.shape[2]
    counts_V = np.zeros(vocabulary, np.int64)
    for batch in batches:
        points_ND = jnp.asarray(batch, jnp.float32)
        require(points_ND.shape[1:] == (D,), "points", points_ND.shape, f"(N, {D})")
        require(bool(jnp.isfinite(points_ND).all()), "points", "not finite", "finite numbers")
        N = points_ND.shape[0]
        if N == 0:
            continue
        tail = -N % TILE if N > TILE else 0  # points repeated, not counted
        ids_N = np.asarray(winners(jnp.pad(points_ND, ((0, tail), (0, 0)), mode="edge"), head))[:N]
        counts_V += np.bincount(ids_N, minlength=vocabulary)
    return counts_V


@dataclasses.dataclass(frozen=True)
class Shares:
    """The shares of a set that the cells take, with a confidence interval for each token alone."""

    points: int
    share_V: np.ndarray
    low_V: np.ndarray
    high_V: np.ndarray

    @property
    def hit(self) -> int:
        """Tokens that a point fell to."""
        return int((self.share_V > 0).sum())

    def holding(self, part: float) -> int:
        """How many of the largest cells together hold `part` of the set, by the estimate."""
        return int(np.searchsorted(np.cumsum(np.sort(self.share_V)[::-1]), part - 1e-12)) + 1

    @property
    def mean_log_share(self) -> float:
        """Mean of `-ln share` in nats over the tokens that were hit, as the published analysis
        takes it; smaller than over all tokens, whose cells it leaves out."""
        return float(-np.log(self.share_V[self.share_V > 0]).mean())

    @property
    def least_mean_log_share(self) -> float:
        """Mean of `-ln high` over all tokens: what -ln share is at least, where nothing is hit."""
        return float(-np.log(self.high_V).mean())


def shares(counts_V: np.ndarray, confidence: float = 0.95) -> Shares:
    """Shares and exact binomial intervals (Clopper and Pearson 1934).

    A token that was never hit gets [0, 1 - (1 - confidence)^(1/points)], which is one-sided: the
    familiar 3 / points at 95 %. Intervals hold for each token alone, not for all at once.

    Raises:
      ValueError: no points, or a confidence outside (0, 1).
    """
    counts = np.asarray(counts_V, np.float64)
    points = int(counts.sum())
    require(points >= 1, "points", points, "at least one")
    require(0 < confidence < 1, "confidence", confidence, "in (0, 1)")
    tail = (1 - confidence) / 2
    with np.errstate(invalid="ignore"):
        low = np.where(counts > 0, stats.beta.ppf(tail, counts, points - counts + 1), 0.0)
        high = np.where(counts < points, stats.beta.ppf(1 - tail, counts + 1, points - counts), 1.0)
    high = np.where(counts == 0, -np.expm1(np.log1p(-confidence) / points), high)
    return Shares(points, counts / points, low, high)
