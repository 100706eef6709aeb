"""Ellipsoids around sampled vectors, and how many grid points an ellipsoid can hold.

Of minimum volume, with a certificate of how near to the minimum it is, or from the covariance at a
stated coverage. A set of fewer points than dimensions, or a flat one, has no volume in R^D: its
ellipsoid lies in its affine span, and says of which rank. The samples decide the shape, so these
run on concrete arrays; `ellipsoid_slope` is traced, mapped and differentiated like every bound.
Says nothing about vectors that were not sampled.
"""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from reach_jax.bounds.enclosing import enclosing_weights
from reach_jax.bounds.inputs import checked, known, nonnegative, positive
from reach_jax.bounds.logmath import ln_ball_volume, tokens
from sweep_jax.checks import require
from sweep_jax.float64 import in_float64

_HALVINGS = 64  # of the interval that holds ln p; any p gives a valid bound


@dataclass(frozen=True)
class Ellipsoid:
    """`{centre + axes z : |z| <= 1}`, in float64.

    Attributes:
      centre_D: [D] its centre.
      axes_DK: [D, K] its semi-axes, orthogonal columns, the longest first; K is the rank of the
        samples about their mean, 0 for a single point.
      coverage: the share of the samples that lie inside; 1 for all.
      excess: nats by which the volume may exceed the least one within the span, certified by the
        dual; NaN if it was not minimised.
    """

    centre_D: np.ndarray
    axes_DK: np.ndarray
    coverage: float
    excess: float

    @property
    def rank(self) -> int:
        """Dimension of the span; below D the ellipsoid is flat."""
        return self.axes_DK.shape[1]

    @property
    def lengths_D(self) -> np.ndarray:
        """[D] lengths of the semi-axes, descending, zeros for the directions it lacks."""
        largest_K = np.abs(self.axes_DK).max(axis=0)  # squares of tiny lengths underflow
        lengths_K = largest_K * np.linalg.norm(self.axes_DK / largest_K, axis=0)
        return np.concatenate([lengths_K, np.zeros(self.centre_D.size - self.rank)])

    @property
    def ln_span_volume(self) -> float:
        """ln of its volume in the K dimensions that it has; 0 for a point."""
        return float(ln_ball_volume(self.rank)) + float(np.log(self.lengths_D[: self.rank]).sum())

    @property
    def ln_volume(self) -> float:
        """ln of its volume in R^D: -inf if it is flat."""
        return self.ln_span_volume if self.rank == self.centre_D.size else -np.inf


@in_float64
def minimum_volume_ellipsoid(
    points_ND: ArrayLike, tolerance: float = 1e-6, steps: int = 100_000
) -> Ellipsoid:
    """The smallest ellipsoid that holds all points, up to `excess` nats of volume.

    Every point is inside it, whether or not the search ended early: the ellipsoid of the dual
    weights is scaled until it holds them. `excess` is the gap to the dual's lower bound (Todd and
    Yildirim 2007), which is above `tolerance` only when `steps` ran out.

    Args:
      points_ND: [N, D] finite, N and D >= 1; repeated rows change nothing.
      tolerance: nats > 0 at which to stop.
      steps: at most; each costs O(N K + K^2).

    Raises:
      ValueError: an argument is not as above.
    """
    points = np.unique(_points(points_ND), axis=0)
    require(tolerance > 0, "tolerance", tolerance, "nats > 0")
    require(steps >= 1, "steps", steps, "an integer >= 1")
    mean_D, white_NK, unit_DK, spread_K = _whitened(points)
    rank = spread_K.size
    if rank == 0:
        return Ellipsoid(mean_D, unit_DK, 1.0, 0.0)
    weights_N = np.asarray(enclosing_weights(white_NK, tolerance, steps))
    weights_N = weights_N / weights_N.sum()
    centre_K = weights_N @ white_NK
    about_NK = white_NK - centre_K
    root_KK = np.linalg.cholesky((about_NK * weights_N[:, None]).T @ about_NK)
    scale = np.square(np.linalg.solve(root_KK, about_NK.T)).sum(axis=0).max()
    turn_KK, lengths_K, _ = np.linalg.svd(spread_K[:, None] * root_KK)
    return Ellipsoid(
        mean_D + unit_DK @ (spread_K * centre_K),
        unit_DK @ turn_KK * (lengths_K * np.sqrt(scale)),
        1.0,
        float(max(rank / 2 * np.log(scale / rank), 0.0)),
    )


@in_float64
def covariance_ellipsoid(points_ND: ArrayLike, coverage: float) -> Ellipsoid:
    """The ellipsoid of the samples' covariance, scaled to hold a share of the samples.

    Centred at their mean; the smallest of its kind with at least `coverage * N` samples inside, so
    no distribution is assumed. Repeated rows count as often as they occur.

    Args:
      points_ND: [N, D] finite, N and D >= 1.
      coverage: in (0, 1]; 1 holds every sample.

    Raises:
      ValueError: an argument is not as above.
    """
    points = _points(points_ND)
    require(0 < coverage <= 1, "coverage", coverage, "a share in (0, 1]")
    mean_D, white_NK, unit_DK, spread_K = _whitened(points)
    inside = max(int(np.ceil(coverage * len(points) - 1e-9)), 1)
    scale = np.sort(np.square(white_NK).sum(axis=1))[inside - 1]
    axes_DK = unit_DK * (spread_K * np.sqrt(scale))
    return Ellipsoid(mean_D, axes_DK, inside / len(points), float("nan"))


@in_float64
def ln_ellipsoid_points(lengths_D: ArrayLike, eps: ArrayLike) -> Array:
    """ln of a bound on the points of an ellipsoid that keep distance eps in the l_inf norm.

    The cubes of side eps around them are disjoint and lie in the ellipsoid widened by a ball of
    radius `rho = eps sqrt(D)/2`, hence for any p > 0 in the ellipsoid of squared semi-axes
    `(1 + 1/p) a_i^2 + (1 + p) rho^2`; p is the one of least volume. In one dimension this is
    `1 + 2a/eps`, as for the ball. A ball for a cube is generous: a single point already counts as
    nearly `(pi e/2)^(D/2)` of them.

    Args:
      lengths_D: [..., D] lengths of the semi-axes, >= 0.
      eps: precision > 0, in their unit; a scalar.

    Returns:
      [...] float64.

    Raises:
      ValueError: D = 0, a length is negative, eps is not positive, or a value is not finite.
    """
    lengths_D, eps = nonnegative("lengths_D", lengths_D), positive("eps", eps)
    require(
        lengths_D.ndim >= 1 and lengths_D.shape[-1] >= 1, "lengths_D", lengths_D.shape, "D >= 1"
    )
    d = lengths_D.shape[-1]
    rho = 0.5 * eps * jnp.sqrt(float(d))
    ratios_D = lengths_D / rho
    p = jax.lax.stop_gradient(_least_volume_p(jax.lax.stop_gradient(ratios_D)))[..., None]
    # Over rho^2: (1 + 1/p)(z^2 + p), whose root is the factor by which rho is stretched.
    stretch = 0.5 * jnp.sum(jnp.log(jnp.square(ratios_D) + p), axis=-1)
    stretch = stretch + 0.5 * d * jnp.log1p(1 / p[..., 0])
    return ln_ball_volume(d) + 0.5 * d * jnp.log(d / 4) + stretch


@in_float64
def ln_shape_volume(shape_DD: ArrayLike, scale: ArrayLike = 1.0) -> Array:
    """ln of the volume of `{x : x^T S^-1 x <= scale}`, S a covariance for one.

    `ln V_D + (D ln scale + ln det S)/2` through the Cholesky factor, so no determinant is formed:
    nothing underflows. For moments gathered from a stream; no sample is needed.

    Args:
      shape_DD: [D, D] symmetric and positive definite, D >= 1; its lower triangle is read.
      scale: > 0; a scalar.

    Returns:
      A scalar; NaN where S is being traced and not positive definite.

    Raises:
      ValueError: not a square matrix of finite numbers with D >= 1, scale is not positive, or S is
        not positive definite up to rounding (a flat sample's: use `covariance_ellipsoid`).
    """
    shape = checked("shape_DD", shape_DD, np.isfinite, "finite numbers")
    square = shape.ndim == 2 and shape.shape[0] == shape.shape[1] >= 1
    require(square, "shape_DD", shape.shape, "[D, D] with D >= 1")
    d, scale = shape.shape[0], positive("scale", scale)
    pivots_D = jnp.diagonal(jnp.linalg.cholesky(shape, symmetrize_input=False))
    ln_root = jnp.sum(jnp.log(pivots_D))
    if known(shape_DD):
        require(bool(jnp.isfinite(ln_root)), "shape_DD", "no factor", "a positive definite matrix")
    return ln_ball_volume(d) + 0.5 * d * jnp.log(scale) + ln_root


@in_float64
def ellipsoid_slope(lengths_D: ArrayLike, vocabulary: ArrayLike, eps: ArrayLike) -> Array:
    """C of an ellipsoid on a uniform grid, in tokens per prompt vector.

    Arguments, shapes and errors as for `ln_ellipsoid_points` and `tokens`.
    """
    return tokens(ln_ellipsoid_points(lengths_D, eps), vocabulary)


def _least_volume_p(ratios_D: Array) -> Array:
    """The p > 0 at which `sum ln((1 + 1/p)(z_i^2 + p))` is least: it is convex in ln p."""
    squares_D = jnp.square(ratios_D)
    low = jnp.log(jnp.maximum(jnp.min(ratios_D, axis=-1), 1e-30))
    high = jnp.log(jnp.maximum(jnp.max(ratios_D, axis=-1), 1e-30))

    def halve(_: int, ends: tuple[Array, Array]) -> tuple[Array, Array]:
        low, high = ends
        middle = (low + high) / 2
        p = jnp.exp(middle)[..., None]
        rising = jnp.sum((p * p - squares_D) / (squares_D + p), axis=-1) > 0
        return jnp.where(rising, low, middle), jnp.where(rising, middle, high)

    low, high = jax.lax.fori_loop(0, _HALVINGS, halve, (low, high))
    return jnp.exp((low + high) / 2)


def _points(points_ND: ArrayLike) -> np.ndarray:
    """[N, D] float64 on the host."""
    points = np.asarray(points_ND)
    ok = points.ndim == 2 and min(points.shape) >= 1
    require(ok, "points_ND", points.shape, "[N, D] with N >= 1 and D >= 1")
    real = np.issubdtype(points.dtype, np.floating) or np.issubdtype(points.dtype, np.integer)
    require(real or jnp.issubdtype(points.dtype, jnp.floating), "points_ND", points.dtype, "reals")
    points = points.astype(np.float64)
    require(bool(np.isfinite(points).all()), "points_ND", "NaN or inf", "finite numbers")
    return points


def _whitened(points: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """mean_D, white_NK, unit_DK, spread_K: `points = mean + (white * spread) @ unit.T`.

    White has mean 0 and covariance 1, the columns of unit are orthonormal, spread is descending.

    The rank K leaves out what rounding of coordinates of this size and of the decomposition make.
    """
    n, d = points.shape
    mean_D = points.mean(axis=0)
    left, lengths, right = np.linalg.svd(points - mean_D, full_matrices=False)
    unit = np.finfo(np.float64).eps
    rounding = unit * (max(n, d) * lengths[0] + 4 * (n**0.5 + d**0.5) * np.abs(points).max())
    rank = int(np.count_nonzero(lengths > rounding))
    return mean_D, left[:, :rank] * n**0.5, right[:rank].T, lengths[:rank] / n**0.5
