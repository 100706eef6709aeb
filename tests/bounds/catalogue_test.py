"""The further bounds: what they hold, how inclusions order them, what they say."""

import numpy as np
import pytest

from reach_jax.bounds.bound import Bound, first_bounds
from reach_jax.bounds.catalogue import (
    cone_bound,
    ellipsoid_bound,
    nonuniform_bound,
    sample_bounds,
)
from reach_jax.bounds.ellipsoid import minimum_volume_ellipsoid

RNG = np.random.default_rng(0)
POINTS = RNG.normal(size=(300, 6)) + 3.0


def test_bounds_of_a_sample():
    cone, smallest, covariance = sample_bounds(POINTS, 50304, 2.0**-10, "2^-10", "prompts")
    assert cone.name == "cone, eps = 2^-10"
    assert smallest.name == "minimum-volume ellipsoid, eps = 2^-10"
    lo, hi = POINTS.min(axis=0), POINTS.max(axis=0)
    ball = {b.name: b for b in first_bounds(lo, hi, 50304, "float32", "prompts")}[
        "ball, eps = 2^-10"
    ]
    assert cone.slope < ball.slope  # a part of the ball
    whole = sample_bounds(POINTS, 50304, 2.0**-10, "2^-10", "prompts", coverage=1.0)[2]
    assert smallest.slope < whole.slope  # the least ellipsoid that holds all
    assert covariance.slope < whole.slope
    assert "holds 0.99 of the sample and has rank 6 of 6" in covariance.assumptions
    assert "every prompt lies in the given support" in smallest.assumptions
    assert "output embeddings" in sample_bounds(POINTS, 9, 0.1, "x", "outputs")[1].assumptions


def test_the_cone_is_that_of_the_least_cosine():
    unit = POINTS / np.linalg.norm(POINTS, axis=1, keepdims=True)
    theta = np.arccos(min(a @ b for a in unit for b in unit))
    expected = cone_bound(6, 9, np.abs(POINTS).max(), 0.1, theta, "x").slope
    np.testing.assert_allclose(sample_bounds(POINTS, 9, 0.1, "x", "prompts")[0].slope, expected)


def test_none_is_rigorous_and_each_says_why():
    found = [*sample_bounds(POINTS, 9, 0.1, "0.1", "prompts")]
    found.append(nonuniform_bound(found[0], 9, 5.0))
    assert not any(b.rigorous for b in found)
    assert all(b.theorem and b.assumptions for b in found)
    assert {b.units for b in found} == {"tokens per prompt vector"}


def test_fewer_vectors_than_dimensions_are_named():
    _, smallest, covariance = sample_bounds(RNG.normal(size=(4, 50)), 9, 0.1, "0.1", "prompts")
    for bound in (smallest, covariance):
        assert np.isfinite(bound.slope)
        assert "rank 3 of 50" in bound.assumptions


def test_nonuniform_cells_keep_what_their_base_assumes():
    base = Bound("box", 716.0, False, "Corollary 4.6 on a box", "the box holds")
    cut = nonuniform_bound(base, 50304, 12.87)
    assert round(cut.slope / 90.4, 2) == 6.66
    assert cut.name == "box, non-uniform cells"
    assert cut.assumptions.endswith("the box holds")


def test_an_ellipsoid_of_a_ball_of_points_is_nearly_the_ball():
    directions = RNG.normal(size=(4000, 3))
    points = directions / np.linalg.norm(directions, axis=1, keepdims=True)
    found = ellipsoid_bound(minimum_volume_ellipsoid(points), "x", 2, 0.01, "0.01", "prompts")
    volume = np.log(4 / 3 * np.pi * (1 + 0.005 * np.sqrt(3)) ** 3 / 0.01**3) / np.log(2)
    np.testing.assert_allclose(found.slope, volume, rtol=1e-3)


@pytest.mark.parametrize(("points", "message"), [
    (np.ones((1, 3)), "at least two vectors"),
    (np.array([[1.0, 2], [0, 0]]), "a row of zeros"),
    (np.array([[1.0, np.nan], [0, 1]]), "NaN or inf"),
])  # fmt: skip
def test_bad_samples_are_refused(points, message):
    with pytest.raises(ValueError, match=message):
        sample_bounds(points, 9, 0.1, "0.1", "prompts")
