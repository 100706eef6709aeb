"""The bounds beyond the first list, each with its theorem and what it assumes.

Cone, ellipsoids and cells of unequal size; `sample_bounds` gives all that a sample of vectors
decides. Not the place of any formula, and none of these is rigorous for float prompts: each says
in its assumptions what would have to hold.
"""

import numpy as np
from jax.typing import ArrayLike

from reach_jax.bounds.bound import INSIDE, Bound, Support
from reach_jax.bounds.cells import nonuniform_slope
from reach_jax.bounds.cone import angle_of_cosine, cone_slope
from reach_jax.bounds.ellipsoid import (
    Ellipsoid,
    covariance_ellipsoid,
    ellipsoid_slope,
    minimum_volume_ellipsoid,
)
from sweep_jax.checks import require


def cone_bound(d: int, vocabulary: int, r: float, eps: float, theta: float, label: str) -> Bound:
    """The ball cut down to a cone; arguments and errors as for `cone_slope`.

    Args:
      label: how the precision is written, as "2^-10".
    """
    return Bound(
        name=f"cone, eps = {label}",
        slope=float(cone_slope(d, vocabulary, r, eps, theta)),
        rigorous=False,
        theorem="Corollary 4.6 on a cone",
        assumptions=(
            f"the network is constant on cubes of side eps = {label}; every prompt lies in one cone"
            " of half the widest angle between two support vectors, which need not hold them all"
        ),
    )


def ellipsoid_bound(
    ellipsoid: Ellipsoid, kind: str, vocabulary: int, eps: float, label: str, support_of: Support
) -> Bound:
    """The grid points of an ellipsoid; arguments and errors as for `ellipsoid_slope`.

    Args:
      kind: which ellipsoid, as "minimum-volume".
      label: how the precision is written.
      support_of: whose vectors it was drawn around.
    """
    return Bound(
        name=f"{kind} ellipsoid, eps = {label}",
        slope=float(ellipsoid_slope(ellipsoid.lengths_D, vocabulary, eps)),
        rigorous=False,
        theorem="Theorem 4.5 on an ellipsoid",
        assumptions=(
            f"the network is constant on cubes of side eps = {label}; every prompt lies in the"
            f" ellipsoid, which holds {ellipsoid.coverage:.4g} of the sample and has rank"
            f" {ellipsoid.rank} of {ellipsoid.centre_D.size}; {INSIDE[support_of]}"
        ),
    )


def nonuniform_bound(base: Bound, vocabulary: int, rate: float) -> Bound:
    """`base` cut down by the rate s of its cells; errors as for `nonuniform_slope`."""
    return Bound(
        name=f"{base.name}, non-uniform cells",
        slope=float(nonuniform_slope(base.slope, vocabulary, rate)),
        rigorous=False,
        theorem=f"{base.theorem}, median output",
        assumptions=(
            "the shares of prompts that choose the tokens of an output are independent draws from"
            f" the shares of cells (s = {rate:.4g} nats a token); {base.assumptions}"
        ),
    )


def sample_bounds(
    points_ND: ArrayLike,
    vocabulary: int,
    eps: float,
    label: str,
    support_of: Support,
    coverage: float = 0.99,
) -> tuple[Bound, ...]:
    """Cone, minimum-volume ellipsoid and covariance ellipsoid of a sample, in this order.

    The cone is that of all pairs, so memory is N^2 + N D numbers. A sample of fewer vectors than
    dimensions is allowed: its ellipsoids are flat, and their assumptions name the rank.

    Args:
      points_ND: [N, D] finite, N >= 2, no row of zeros.
      vocabulary: V >= 2.
      eps: precision > 0 in the unit of the points, called `label`.
      support_of: whose vectors they are.
      coverage: of the covariance ellipsoid, in (0, 1].

    Raises:
      ValueError: an argument is not as above.
    """
    smallest = minimum_volume_ellipsoid(points_ND)  # first, as it checks the points
    points = np.asarray(points_ND).astype(np.float64)
    require(len(points) >= 2, "points_ND", points.shape, "at least two vectors")
    norms_N = np.linalg.norm(points, axis=1)
    require(bool(norms_N.all()), "points_ND", "a row of zeros", "vectors with a direction")
    unit_ND = points / norms_N[:, None]
    theta = float(angle_of_cosine(np.clip((unit_ND @ unit_ND.T).min(), -1, 1)))
    covariance = covariance_ellipsoid(points, coverage)
    r, d = float(np.abs(points).max()), points.shape[1]
    return (
        cone_bound(d, vocabulary, r, eps, theta, label),
        ellipsoid_bound(smallest, "minimum-volume", vocabulary, eps, label, support_of),
        ellipsoid_bound(covariance, "covariance", vocabulary, eps, label, support_of),
    )
