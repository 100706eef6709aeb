"""Moments against NumPy's, and ellipsoids of flat, tiny, repeated and shifted sets (CEL-03)."""

import itertools

import numpy as np
import pytest

from reach_jax.geometry.moments import Moments, ellipsoid


def moments(x_ND, sizes=()):
    m = Moments(x_ND.shape[1])
    for batch_ND in np.split(x_ND, np.cumsum(sizes).astype(int)):
        m.add(batch_ND)
    return m


@pytest.mark.parametrize("sizes", [(), (1, 1), (0, 13, 20), (40,)])
@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_they_are_those_of_all_vectors_at_once(sizes, offset):
    x_ND = np.random.default_rng(0).standard_normal((60, 4)) * [1, 2, 3, 0.1] + offset
    m = moments(x_ND, sizes)
    np.testing.assert_allclose(m.mean_D, x_ND.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(m.covariance_DD, np.cov(x_ND.T, bias=True), rtol=1e-7, atol=1e-9)
    assert m.count == 60


def test_fewer_samples_than_dimensions_span_what_they_can():
    x_ND = np.random.default_rng(1).standard_normal((50, 2048))
    found = ellipsoid(moments(x_ND, (20,)).covariance_DD)
    assert (found.rank, found.width, found.flat) == (49, 2048, True)
    values = np.linalg.svd(x_ND - x_ND.mean(axis=0), compute_uv=False)[:49] ** 2 / 50
    want = 0.5 * np.log(values).sum() + 24.5 * np.log(51 * np.pi)
    want -= sum(np.log(k / 2) for k in range(1, 50, 2)) + 0.5 * np.log(np.pi)  # ln Gamma(25.5)
    assert found.ln_volume == pytest.approx(want, rel=1e-9)


def test_points_in_a_plane_duplicates_and_one_point():
    rng = np.random.default_rng(2)
    plane = rng.standard_normal((30, 2)) @ rng.standard_normal((2, 5))
    assert ellipsoid(moments(plane).covariance_DD).rank == 2
    assert ellipsoid(moments(plane + 1e3).covariance_DD).rank == 2
    one = moments(np.array([[1.0, 2, 3]]))
    np.testing.assert_array_equal(one.covariance_DD, 0)
    point = ellipsoid(one.covariance_DD)
    assert (point.rank, point.ln_volume, point.flat) == (0, 0.0, True)
    assert np.isnan(point.least_axis)
    twice = ellipsoid(moments(np.tile(plane, (2, 1))).covariance_DD)
    assert twice.ln_volume == pytest.approx(ellipsoid(moments(plane).covariance_DD).ln_volume)


def test_corners_of_a_cube_far_from_the_origin():
    corners = np.array(list(itertools.product([0.0, 1.0], repeat=3)))
    rotation = np.linalg.qr(np.random.default_rng(3).standard_normal((3, 3)))[0]
    want = np.log(4 / 3 * np.pi * (5 / 4) ** 1.5)  # covariance 1/4, half-axes sqrt(5/4)
    for moved in (corners, corners + 1e4, corners @ rotation.T - 1e4):
        found = ellipsoid(moments(moved, (3,)).covariance_DD)
        assert found.ln_volume == pytest.approx(want, abs=1e-6)
        assert found.least_axis == pytest.approx(found.greatest_axis) == pytest.approx(5**0.5 / 2)


def test_a_determinant_that_underflows():
    found = ellipsoid(np.diag(np.full(2048, np.exp(-4000 / 2048))))
    assert np.linalg.det(np.diag(np.full(2048, np.exp(-4000 / 2048)))) == 0
    unit = ellipsoid(np.eye(2048))
    assert found.rank == 2048
    assert found.ln_volume - unit.ln_volume == pytest.approx(-2000, rel=1e-12)
    ln_unit_ball = -4906.008482  # of 2048 dimensions
    assert unit.ln_volume == pytest.approx(ln_unit_ball + 1024 * np.log(2050), rel=1e-9)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Moments(0), "^width = 0"),
        (lambda: Moments(2).add(np.ones((3, 3))), "^shape = "),
        (lambda: Moments(2).add(np.array([[1, np.nan]])), "^vectors = 'not finite'"),
        (lambda: Moments(2).mean_D, "^vectors = 0"),
        (lambda: Moments(2).covariance_DD, "^vectors = 0"),
        (lambda: ellipsoid(np.ones((2, 3))), "^covariance = "),
        (lambda: ellipsoid(np.full((2, 2), np.inf)), "^covariance = "),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
