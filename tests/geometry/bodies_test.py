"""Points lie in their body, as many as asked for, with the moments of a uniform distribution."""

import jax
import numpy as np
import pytest

from reach_jax.geometry import bodies

KEY = jax.random.key(3)


def gather(batches):
    return np.concatenate([np.asarray(b, np.float64) for b in batches])


def test_ball():
    x_ND = gather(bodies.ball(KEY, 20_000, 3, 2.0, 4096))
    radius_N = np.linalg.norm(x_ND, axis=1)
    assert x_ND.shape == (20_000, 3)
    assert radius_N.max() <= 2.0 + 1e-5
    assert (radius_N < 1).mean() == pytest.approx(1 / 8, abs=0.01)  # volume goes with the cube
    np.testing.assert_allclose(np.cov(x_ND.T), np.eye(3) * 4 / 5, atol=0.03)
    assert len(np.unique(x_ND, axis=0)) == 20_000  # no batch is drawn twice


def test_box():
    lo, hi = np.array([-1.0, 2.0, 0.0]), np.array([1.0, 2.5, 0.0])
    x_ND = gather(bodies.box(KEY, 5000, lo, hi, 999))
    assert len(x_ND) == 5000
    assert (x_ND >= lo).all()
    assert (x_ND <= hi).all()
    np.testing.assert_allclose(x_ND.mean(axis=0), (lo + hi) / 2, atol=0.03)
    np.testing.assert_allclose(x_ND.var(axis=0), (hi - lo) ** 2 / 12, atol=0.01)


def test_ellipsoid_has_the_mean_and_covariance_that_were_asked_for():
    mean, root = np.array([5.0, -3.0, 0.0]), np.array([[2.0, 0, 0], [1, 0.5, 0], [0, 0, 0.1]])
    covariance = root @ root.T
    x_ND = gather(bodies.ellipsoid(KEY, 40_000, mean, covariance, 8192))
    np.testing.assert_allclose(x_ND.mean(axis=0), mean, atol=0.04)
    np.testing.assert_allclose(np.cov(x_ND.T), covariance, atol=0.08)
    centred = x_ND - mean
    square_N = np.einsum("nd,de,ne->n", centred, np.linalg.inv(covariance), centred)
    assert square_N.max() <= 5 * (1 + 1e-4)
    assert square_N.max() > 4.9


def test_a_flat_ellipsoid_stays_in_its_plane():
    normal = np.array([1.0, 2.0, 2.0]) / 3
    covariance = np.eye(3) - np.outer(normal, normal)
    x_ND = gather(bodies.ellipsoid(KEY, 1000, np.ones(3), covariance, 100))
    np.testing.assert_allclose((x_ND - 1) @ normal, 0, atol=1e-5)
    assert np.linalg.norm(x_ND - 1, axis=1).max() == pytest.approx(2, abs=0.05)  # rank 2: sqrt(4)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: bodies.ball(KEY, 5, 0, 1.0, 2), "^width = 0"),
        (lambda: bodies.ball(KEY, 5, 2, 0.0, 2), "^radius = 0"),
        (lambda: bodies.ball(KEY, 5, 2, np.nan, 2), "^radius = nan"),
        (lambda: bodies.ball(KEY, 5, 2, 1.0, 0), "^batch = 0"),
        (lambda: bodies.ball(KEY, -1, 2, 1.0, 2), "^points = -1"),
        (lambda: bodies.box(KEY, 5, np.ones(2), np.zeros(2), 2), "^lo, hi = "),
        (lambda: bodies.box(KEY, 5, np.ones(2), np.array([1, np.inf]), 2), "^lo, hi = "),
        (lambda: bodies.box(KEY, 5, np.ones(0), np.ones(0), 2), "^width = 0"),
        (lambda: bodies.ellipsoid(KEY, 5, np.ones(2), np.zeros((2, 2)), 2), "^rank of the cov"),
        (lambda: bodies.ellipsoid(KEY, 5, np.ones(2), np.eye(3), 2), "^covariance = "),
        (lambda: bodies.ellipsoid(KEY, 5, np.ones(2), np.full((2, 2), np.nan), 2), "^covariance"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        next(call())
