"""Enclosing ellipsoids against exact ones, scipy's search, moved copies; flat samples."""

import itertools

import jax
import mpmath
import numpy as np
import pytest
from scipy.optimize import minimize

from reach_jax.bounds.ellipsoid import (
    covariance_ellipsoid,
    ellipsoid_slope,
    ln_ellipsoid_points,
    ln_shape_volume,
    minimum_volume_ellipsoid,
)
from reach_jax.bounds.enclosing import enclosing_weights
from reach_jax.bounds.logmath import ln_ball_volume

mpmath.mp.dps = 50
RNG = np.random.default_rng(0)
CUBE = np.array(list(itertools.product([0.0, 1.0], repeat=3)))
CLOUD = RNG.normal(size=(60, 3)) * [1, 10, 0.1]
TURN, _ = np.linalg.qr(RNG.normal(size=(3, 3)))


def farthest(ellipsoid, points):
    """The largest |z| over points = centre + axes z, and how far they are off the span."""
    about = np.asarray(points, float) - ellipsoid.centre_D
    z, *_ = np.linalg.lstsq(ellipsoid.axes_DK, about.T, rcond=None)
    off = np.abs(ellipsoid.axes_DK @ z - about.T).max()
    return np.linalg.norm(z, axis=0).max(), off


@pytest.mark.parametrize("offset", [0.0, 1e4])
def test_cube_corners_have_the_ball_around_them(offset):
    found = minimum_volume_ellipsoid(CUBE + offset)
    np.testing.assert_allclose(found.lengths_D, np.sqrt(3) / 2, rtol=1e-10)
    np.testing.assert_allclose(found.centre_D, 0.5 + offset)
    ball = float(ln_ball_volume(3, np.sqrt(3) / 2))
    assert abs(found.ln_volume - ball) < 1e-9
    assert found.rank == 3


def test_known_ellipsoids():
    square = np.array([[0, 0], [4, 0], [4, 2], [0, 2]])  # semi-axes sqrt(2) half-sides
    np.testing.assert_allclose(
        minimum_volume_ellipsoid(square).lengths_D, np.sqrt(2) * np.array([2, 1])
    )
    simplex = np.eye(4)[:, :3] - 0.25  # affine image of a regular one: volume by the determinant
    edges = simplex[1:] - simplex[0]
    regular = np.exp(float(ln_ball_volume(3))) * 9 * np.sqrt(3) / 8  # circumscribed ball over it
    volume = np.exp(minimum_volume_ellipsoid(simplex).ln_volume)
    np.testing.assert_allclose(volume / (abs(np.linalg.det(edges)) / 6), regular, rtol=1e-9)
    segment = minimum_volume_ellipsoid([[1.0], [3.0], [2.5]])
    np.testing.assert_allclose(np.exp(segment.ln_volume), 2)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_as_small_as_scipy_finds_in_the_plane(seed):
    """Minimise -ln det A over |A x - b| <= 1, A lower triangular, from a large circle."""
    points = np.random.default_rng(seed).normal(size=(12, 2)) * [1, 4]

    def slack(v):
        a = np.array([[v[0], 0], [v[1], v[2]]])
        return 1 - np.square(points @ a.T - v[3:]).sum(axis=1)

    start = [0.05, 0, 0.05, 0, 0]
    best = minimize(
        lambda v: -np.log(v[0] * v[2]),
        start,
        method="SLSQP",
        bounds=[(1e-3, None), (None, None), (1e-3, None), (None, None), (None, None)],
        constraints={"type": "ineq", "fun": slack},
        options={"ftol": 1e-13, "maxiter": 500},
    )
    assert best.success
    assert abs(minimum_volume_ellipsoid(points).ln_volume - (best.fun + np.log(np.pi))) < 2e-6


@pytest.mark.parametrize("steps", [1, 40, 100_000])
def test_every_point_is_inside_however_early_the_search_ends(steps):
    found = minimum_volume_ellipsoid(CLOUD, 1e-8, steps)
    reach, _ = farthest(found, CLOUD)
    assert 1 - 1e-9 < reach < 1 + 1e-9
    least = minimum_volume_ellipsoid(CLOUD, 1e-10).ln_volume
    assert -1e-9 <= found.ln_volume - least <= found.excess + 1e-9  # the certificate holds
    assert (found.excess < 1e-8) == (steps == 100_000)


def test_moving_turning_repeating_and_stretching():
    for make in (minimum_volume_ellipsoid, lambda x: covariance_ellipsoid(x, 0.9)):
        volume = make(CLOUD).ln_volume
        assert abs(make(CLOUD @ TURN + 1e4).ln_volume - volume) < 1e-6
        assert abs(make(np.repeat(CLOUD, 2, axis=0)).ln_volume - volume) < 1e-6
        assert abs(make(CLOUD * 1e-200).ln_volume - (volume - 3 * 200 * np.log(10))) < 1e-6


def test_axes_are_orthogonal_and_sorted():
    axes = minimum_volume_ellipsoid(CLOUD @ TURN).axes_DK
    gram = axes.T @ axes
    np.testing.assert_allclose(gram, np.diag(np.diag(gram)), atol=1e-9)
    assert (np.diff(np.diag(gram)) <= 0).all()


@pytest.mark.parametrize("offset", [0.0, 1e4])
def test_points_in_a_plane_have_a_volume_in_it(offset):
    flat = np.c_[RNG.normal(size=(30, 2)), np.zeros(30)]
    turned = flat @ TURN + offset
    for make in (minimum_volume_ellipsoid, lambda x: covariance_ellipsoid(x, 1.0)):
        found, expected = make(turned), make(flat[:, :2])
        assert (found.rank, found.ln_volume) == (2, -np.inf)
        assert abs(found.ln_span_volume - expected.ln_volume) < 1e-6
        reach, off = farthest(found, turned)
        assert reach < 1 + 1e-6
        assert off < 1e-9
        np.testing.assert_allclose(found.lengths_D[2], 0)


def test_fewer_points_than_dimensions():
    points = RNG.normal(size=(50, 2048))
    found = minimum_volume_ellipsoid(points)
    assert (found.rank, found.ln_volume, found.lengths_D.shape) == (49, -np.inf, (2048,))
    # A simplex is an affine image of the regular one, so each point is on the boundary.
    z = np.linalg.lstsq(found.axes_DK, (points - found.centre_D).T, rcond=None)[0]
    np.testing.assert_allclose(np.linalg.norm(z, axis=0), 1, rtol=1e-9)
    assert np.isfinite(found.ln_span_volume)
    assert np.isfinite(float(ellipsoid_slope(found.lengths_D, 50304, 2.0**-10)))


def test_one_point_and_its_copies():
    for points in ([[3.0, 4.0]], [[3.0, 4.0]] * 5):
        for found in (minimum_volume_ellipsoid(points), covariance_ellipsoid(points, 0.5)):
            assert (found.rank, found.ln_span_volume, found.ln_volume) == (0, 0, -np.inf)
            np.testing.assert_array_equal(found.centre_D, [3, 4])
            np.testing.assert_array_equal(found.lengths_D, [0, 0])


def test_covariance_ellipsoid_holds_the_share_it_says():
    points = RNG.standard_t(3, size=(200, 4))
    for coverage in (0.5, 0.9, 1.0):
        found = covariance_ellipsoid(points, coverage)
        z = np.linalg.solve(found.axes_DK, (points - found.centre_D).T)
        inside = np.linalg.norm(z, axis=0) <= 1 + 1e-12
        assert inside.sum() == coverage * 200
        assert found.coverage == coverage
        shape = np.cov(points.T, bias=True)
        ratio = found.axes_DK @ found.axes_DK.T / shape
        np.testing.assert_allclose(ratio, ratio[0, 0], rtol=1e-9)
        np.testing.assert_allclose(found.ln_volume, float(ln_shape_volume(shape, ratio[0, 0])))
        assert np.isnan(found.excess)


def test_volume_of_a_covariance_in_2048_dimensions():
    """ln det = -4000 exactly; the determinant itself underflows."""
    ln_variances = RNG.normal(size=2048)
    ln_variances += (-4000 - ln_variances.sum()) / 2048
    expected = float(mpmath.mpf(-2000) + 1024 * mpmath.log(mpmath.pi) - mpmath.loggamma(1025))
    shape = np.diag(np.exp(ln_variances))
    assert np.linalg.det(shape) == 0
    np.testing.assert_allclose(float(ln_shape_volume(shape)), expected, rtol=1e-12)
    np.testing.assert_allclose(
        float(ln_shape_volume(shape, 4.0)), expected + 2048 * np.log(2), rtol=1e-12
    )


def test_shape_volume_is_differentiable_and_says_when_there_is_none():
    shape = CLOUD.T @ CLOUD
    with jax.enable_x64(True):
        gradient = np.asarray(jax.jit(jax.grad(ln_shape_volume))(shape))
    symmetric = (gradient + gradient.T) / 2
    np.testing.assert_allclose(symmetric, np.linalg.inv(shape) / 2, rtol=1e-9, atol=1e-12)
    flat = np.diag([1.0, 0.0])
    assert np.isnan(float(jax.jit(ln_shape_volume)(flat)))


def test_weights_are_a_distribution_on_few_points():
    weights = np.asarray(enclosing_weights(RNG.normal(size=(300, 2)), 1e-9, 10_000))
    np.testing.assert_allclose(weights.sum(), 1, rtol=1e-9)
    assert (weights >= 0).all()
    assert np.count_nonzero(weights) <= 5  # D (D + 3) / 2 suffice


def exact_points(lengths, eps):
    """The formula of the docstring at the p where its derivative vanishes, by bisection."""
    a2, d = [mpmath.mpf(x) ** 2 for x in lengths], len(lengths)
    rho2 = mpmath.mpf(eps) ** 2 * d / 4
    low, high = mpmath.mpf(10) ** -40, mpmath.mpf(10) ** 40
    for _ in range(400):
        p = mpmath.sqrt(low * high)
        slope = sum((rho2 - x / p**2) / ((1 + 1 / p) * x + (1 + p) * rho2) for x in a2)
        low, high = (low, p) if slope > 0 else (p, high)
    ln_volume = d * mpmath.log(mpmath.pi) / 2 - mpmath.loggamma(mpmath.mpf(d) / 2 + 1)
    stretched = sum(mpmath.log((1 + 1 / p) * x + (1 + p) * rho2) for x in a2) / 2
    return ln_volume + stretched - d * mpmath.log(mpmath.mpf(eps))


def test_grid_points_against_mpmath():
    cases = [
        (np.exp(RNG.uniform(-6, 6, d)), float(np.exp(RNG.uniform(-8, 2))))
        for d in (1, 2, 5, 17, 40)
    ]
    cases.append((np.array([3.0, 0.0, 0.0, 1.0]), 0.25))
    for lengths, eps in cases:
        np.testing.assert_allclose(
            float(ln_ellipsoid_points(lengths, eps)), float(exact_points(lengths, eps)), rtol=1e-12
        )


def test_grid_points_of_an_interval_and_of_balls():
    np.testing.assert_allclose(float(ln_ellipsoid_points([3.0], 0.1)), np.log1p(60), rtol=1e-13)
    for d in (2, 768, 16384):
        found = float(ln_ellipsoid_points(np.full(d, 60.0), 2.0**-10))
        stretched = 60 + 2.0**-11 * np.sqrt(d)
        expected = float(ln_ball_volume(d, stretched)) + d * 10 * np.log(2)
        np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_no_grid_inside_an_ellipse_has_more_points():
    for eps in (0.1, 0.5, 2.0, 20.0):
        steps = np.arange(-100, 101) * eps
        x, y = np.meshgrid(steps, steps)
        inside = np.count_nonzero((x / 3) ** 2 + y**2 <= 1)
        assert np.log(inside) <= float(ln_ellipsoid_points([3.0, 1.0], eps))


def test_slope_is_differentiable_and_mapped():
    lengths = np.exp(RNG.uniform(-2, 4, (3, 30)))
    with jax.enable_x64(True):
        slopes = jax.jit(jax.vmap(ellipsoid_slope, (0, 0, None)))(
            lengths, np.array([10, 50304, 262144]), 2.0**-10
        )
        gradient = jax.jit(jax.grad(lambda x: ellipsoid_slope(x, 10, 0.5)))(lengths[0])
    for row, vocabulary, slope in zip(lengths, (10, 50304, 262144), slopes, strict=True):
        np.testing.assert_allclose(slope, float(ellipsoid_slope(row, vocabulary, 2.0**-10)))
    step = 1e-5 * lengths[0, 3] * np.eye(30)[3]
    above, below = (float(ellipsoid_slope(lengths[0] + s, 10, 0.5)) for s in (step, -step))
    np.testing.assert_allclose(gradient[3], (above - below) / (2 * step[3]), rtol=1e-7)


@pytest.mark.parametrize(("message", "call"), [
    ("points_ND = 'NaN or inf'", lambda: minimum_volume_ellipsoid([[0.0, np.nan]])),
    ("points_ND = 'NaN or inf'", lambda: covariance_ellipsoid([[0.0, np.inf]], 0.5)),
    (r"points_ND = \(0, 3\)", lambda: minimum_volume_ellipsoid(np.zeros((0, 3)))),
    (r"points_ND = \(3, 0\)", lambda: covariance_ellipsoid(np.zeros((3, 0)), 1.0)),
    (r"points_ND = \(3,\)", lambda: minimum_volume_ellipsoid([1.0, 2.0, 3.0])),
    ("points_ND = dtype", lambda: minimum_volume_ellipsoid([[True, False]])),
    ("points_ND = dtype", lambda: minimum_volume_ellipsoid([[1j, 0]])),
    ("tolerance = 0", lambda: minimum_volume_ellipsoid(CUBE, 0.0)),
    ("steps = 0", lambda: minimum_volume_ellipsoid(CUBE, 1e-6, 0)),
    ("coverage = 0", lambda: covariance_ellipsoid(CUBE, 0.0)),
    ("coverage = 1.5", lambda: covariance_ellipsoid(CUBE, 1.5)),
    ("lengths_D = ", lambda: ellipsoid_slope([1.0, -1.0], 10, 1.0)),
    (r"lengths_D = \(0,\)", lambda: ellipsoid_slope([], 10, 1.0)),
    ("eps = ", lambda: ellipsoid_slope([1.0], 10, 0.0)),
    ("vocabulary = ", lambda: ellipsoid_slope([1.0], 1, 1.0)),
    ("shape_DD = ", lambda: ln_shape_volume(np.zeros((2, 3)))),
    ("shape_DD = 'no factor'", lambda: ln_shape_volume(np.diag([1.0, 0.0]))),
    ("shape_DD = 'no factor'", lambda: ln_shape_volume(-np.eye(2))),
    ("scale = ", lambda: ln_shape_volume(np.eye(2), -1.0)),
])  # fmt: skip
def test_bad_input_is_refused_by_name(message, call):
    with pytest.raises(ValueError, match=rf"^{message}"):
        call()
