"""The support of a set of vectors in one pass: radius, box, cosines. Memory does not grow with it.

Sums are float64 on the host. The mean cosine over all pairs is exact; the least cosine is over
the pairs of the first `KEPT` vectors only, and says of how many. Not a sampler, not a bound.
"""

import dataclasses

import numpy as np

from sweep_jax.checks import require

KEPT = 2048  # vectors whose pairs give the least cosine


@dataclasses.dataclass(frozen=True)
class Support:
    """What was measured of `count` vectors of width D."""

    count: int
    r_inf: float  # greatest l_inf norm
    r_2: float  # greatest l_2 norm
    r_1: float  # greatest l_1 norm
    lo_D: np.ndarray  # least value of each coordinate
    hi_D: np.ndarray  # greatest value
    mean_cosine: float  # over all pairs of different vectors; NaN for fewer than two
    least_cosine: float  # over the pairs of the first `compared` vectors; NaN for fewer than two
    compared: int


class Measure:
    """Takes batches of vectors and gives their `Support` at any time."""

    def __init__(self, width: int) -> None:
        """Starts empty; `width` is D.

        Raises:
          ValueError: D < 1.
        """
        require(width >= 1, "width", width, "an integer >= 1")
        self._width = width
        self._count, self._r_inf, self._r_2, self._r_1 = 0, 0.0, 0.0, 0.0
        self._lo_D, self._hi_D = np.full(width, np.inf), np.full(width, -np.inf)
        self._units_D = np.zeros(width)
        self._kept_KD = np.zeros((0, width))

    def add(self, batch_ND: np.ndarray) -> None:
        """Takes N more vectors.

        Raises:
          ValueError: a wrong width, a value that is not finite, or a vector of zeros.
        """
        x_ND = np.asarray(batch_ND, np.float64)
        require(x_ND.shape[1:] == (self._width,), "shape", x_ND.shape, f"(N, {self._width})")
        require(bool(np.isfinite(x_ND).all()), "vectors", "not finite", "finite numbers")
        if not len(x_ND):
            return
        norm_N = np.linalg.norm(x_ND, axis=1)
        require(bool((norm_N > 0).all()), "vectors", "a zero vector", "vectors with a direction")
        unit_ND = x_ND / norm_N[:, None]
        self._count += len(x_ND)
        self._r_inf = max(self._r_inf, float(np.abs(x_ND).max()))
        self._r_2 = max(self._r_2, float(norm_N.max()))
        self._r_1 = max(self._r_1, float(np.abs(x_ND).sum(axis=1).max()))
        self._lo_D = np.minimum(self._lo_D, x_ND.min(axis=0))
        self._hi_D = np.maximum(self._hi_D, x_ND.max(axis=0))
        self._units_D += unit_ND.sum(axis=0)
        self._kept_KD = np.concatenate([self._kept_KD, unit_ND])[:KEPT]

    def support(self) -> Support:
        """What the batches so far amount to.

        Raises:
          ValueError: no vector was given.
        """
        n, kept = self._count, len(self._kept_KD)
        require(n >= 1, "vectors", n, "at least one")
        mean = (self._units_D @ self._units_D - n) / (n * (n - 1)) if n > 1 else np.nan
        least = float((self._kept_KD @ self._kept_KD.T).min()) if kept > 1 else np.nan
        radii = (self._r_inf, self._r_2, self._r_1)
        return Support(n, *radii, self._lo_D, self._hi_D, float(mean), least, kept)
