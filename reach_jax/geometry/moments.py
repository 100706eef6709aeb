"""Mean and covariance of a stream of vectors, and the ellipsoid that they make: rank and volume.

Means of batches are merged (Chan, Golub and LeVeque 1983), so an offset far larger than the spread
costs no digits. Memory is D x D, whatever the number of vectors. Not the smallest ellipsoid that
holds the samples.
"""

import dataclasses

import numpy as np
from scipy.special import gammaln

from sweep_jax.checks import require


@dataclasses.dataclass(frozen=True)
class Ellipsoid:
    """The ellipsoid of inertia: uniform mass in it has the covariance that it was made of.

    A flat one has its volume in the subspace that it spans: `rank` dimensions, not D.
    """

    rank: int
    width: int  # D
    ln_volume: float  # of dimension `rank`; 0 for a point
    least_axis: float  # half-axes within the subspace; NaN for a point
    greatest_axis: float

    @property
    def flat(self) -> bool:
        """Whether its volume in all D dimensions is zero."""
        return self.rank < self.width


class Moments:
    """Takes batches of vectors and gives mean and covariance at any time."""

    def __init__(self, width: int) -> None:
        """Starts empty; `width` is D.

        Raises:
          ValueError: D < 1.
        """
        require(width >= 1, "width", width, "an integer >= 1")
        self.count = 0
        self._mean_D = np.zeros(width)
        self._scatter_DD = np.zeros((width, width))

    def add(self, batch_ND: np.ndarray) -> None:
        """Takes N more vectors.

        Raises:
          ValueError: a wrong width, or a value that is not finite.
        """
        x_ND = np.asarray(batch_ND, np.float64)
        width = self._mean_D.size
        require(x_ND.shape[1:] == (width,), "shape", x_ND.shape, f"(N, {width})")
        require(bool(np.isfinite(x_ND).all()), "vectors", "not finite", "finite numbers")
        n, N = self.count, len(x_ND)
        if N == 0:
            return
        mean_D = x_ND.mean(axis=0)
        centred_ND = x_ND - mean_D
        step_D = mean_D - self._mean_D
        between_DD = np.outer(step_D, step_D) * (n * N / (n + N))
        self._scatter_DD += centred_ND.T @ centred_ND + between_DD
        self._mean_D = self._mean_D + step_D * (N / (n + N))
        self.count = n + N

    @property
    def mean_D(self) -> np.ndarray:
        """The mean; ValueError if there is no vector."""
        require(self.count >= 1, "vectors", self.count, "at least one")
        return self._mean_D.copy()

    @property
    def covariance_DD(self) -> np.ndarray:
        """Scatter over n (not n - 1), zero for one vector; ValueError if there is none."""
        require(self.count >= 1, "vectors", self.count, "at least one")
        return self._scatter_DD / self.count


def ellipsoid(covariance_DD: np.ndarray) -> Ellipsoid:
    """Rank, volume and axes of the ellipsoid of inertia of a covariance.

    Half-axes are `sqrt((rank + 2) eigenvalue)`. Eigenvalues at or below `max(D, 100) eps` times the
    greatest count as zero, eps that of float64; n samples give a rank of at most n - 1.

    Raises:
      ValueError: not a finite square matrix of D >= 1.
    """
    covariance = np.asarray(covariance_DD, np.float64)
    D = len(covariance)
    require(covariance.shape == (D, D) and D >= 1, "covariance", covariance.shape, "(D, D), D >= 1")
    require(bool(np.isfinite(covariance).all()), "covariance", "not finite", "finite numbers")
    values_D = np.linalg.eigvalsh(covariance)
    kept = values_D[values_D > max(values_D[-1], 0) * max(D, 100) * np.finfo(np.float64).eps]
    rank = len(kept)
    if rank == 0:
        return Ellipsoid(0, D, 0.0, np.nan, np.nan)
    axes = np.sqrt((rank + 2) * kept)
    ln_ball = rank / 2 * np.log(np.pi) - gammaln(rank / 2 + 1)
    ln_volume = float(ln_ball + np.log(axes).sum())
    return Ellipsoid(rank, D, ln_volume, float(axes[0]), float(axes[-1]))
