"""All prompts of m vectors with k bits a coordinate, numbered; and which of them are reorderings.

A coordinate takes 2^k values, evenly from -r to r with both ends, so their distance is
`eps = 2r / (2^k - 1)` and `1 + 2r/eps = 2^k`: the packing bound of Theorem 4.5 (arXiv 2605.22223),
`(1 + 2r/eps)^(d m)`, is exactly the number of prompts. Not a sampler: every number is a prompt.
"""

import dataclasses
import math

import jax
import jax.numpy as jnp
import numpy as np

from sweep_jax.checks import require

MAX_BITS = 24


@dataclasses.dataclass(frozen=True)
class Grid:
    """The prompts; number i holds the level of coordinate c of vector j in its bits k (d j + c)."""

    width: int  # d, coordinates of a vector
    vectors: int  # m
    bits: int  # k, of a coordinate
    radius: float  # r, the largest coordinate

    def __post_init__(self) -> None:
        for name in ("width", "vectors", "bits"):
            require(getattr(self, name) >= 1, name, getattr(self, name), "an integer >= 1")
        expected = f"at most {MAX_BITS} = k m d"
        require(self.prompt_bits <= MAX_BITS, "bits * vectors * width", self.prompt_bits, expected)
        ok = math.isfinite(self.radius) and self.radius > 0
        require(ok, "radius", self.radius, "a finite number > 0")

    @property
    def prompt_bits(self) -> int:
        """k m d: the logarithm of the number of prompts, base 2."""
        return self.bits * self.vectors * self.width

    @property
    def count(self) -> int:
        """The number of prompts, 2^(k m d)."""
        return 1 << self.prompt_bits

    @property
    def eps(self) -> float:
        """Distance of two neighbouring values of a coordinate."""
        return 2.0 * self.radius / ((1 << self.bits) - 1)

    def values(self) -> np.ndarray:
        """The 2^k values of a coordinate, ascending, float32; a table, so that none is rounded
        differently by different programs."""
        return np.linspace(-self.radius, self.radius, 1 << self.bits).astype(np.float32)

    def prompt(self, number: jax.Array) -> jax.Array:
        """Prompt (M, D), float32, of a uint32 scalar."""
        place_MD = np.arange(self.vectors * self.width, dtype=np.uint32)
        shift_MD = (self.bits * place_MD).reshape(self.vectors, self.width)
        level_MD = (number >> jnp.asarray(shift_MD)) & jnp.uint32((1 << self.bits) - 1)
        return jnp.asarray(self.values())[level_MD.astype(jnp.int32)]


def sorted_twin(grid: Grid, numbers_B: np.ndarray, free: int) -> np.ndarray:
    """The numbers of the same prompts with their first `free` vectors in ascending order, (B,).

    Two prompts that differ in the order of those vectors, and in nothing else, have one twin.

    Raises:
      ValueError: `free` is not in [1, m].
    """
    require(1 <= free <= grid.vectors, "free", free, f"in [1, m = {grid.vectors}]")
    step = grid.bits * grid.width
    shift_M = np.arange(grid.vectors, dtype=np.uint64) * np.uint64(step)
    vectors_BM = (numbers_B.astype(np.uint64)[:, None] >> shift_M) & np.uint64((1 << step) - 1)
    vectors_BM[:, :free] = np.sort(vectors_BM[:, :free], axis=1)
    return (vectors_BM << shift_M).sum(axis=1, dtype=np.uint64)


def orders(grid: Grid, free: int) -> int:
    """How many prompts there are when the order of the first `free` vectors does not count.

    Multisets of `free` out of the 2^(k d) vectors, `C(2^(k d) + free - 1, free)`, times the others.

    Raises:
      ValueError: `free` is not in [1, m].
    """
    require(1 <= free <= grid.vectors, "free", free, f"in [1, m = {grid.vectors}]")
    vectors = 1 << (grid.bits * grid.width)
    return math.comb(vectors + free - 1, free) * vectors ** (grid.vectors - free)
