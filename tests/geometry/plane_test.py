"""The plane holds its three states, and each pixel's token is the argmax there."""

import numpy as np
import pytest

from reach_jax.geometry import plane

STATES = np.random.default_rng(0).standard_normal((3, 7)) + 2


def test_the_plane_holds_the_states_in_their_distances():
    found = plane.through(STATES, 0.5)
    back_3D = found.centre_D + found.points_32 @ found.axes_2D
    np.testing.assert_allclose(back_3D, STATES, atol=1e-12)
    np.testing.assert_allclose(found.axes_2D @ found.axes_2D.T, np.eye(2), atol=1e-12)
    assert found.points_32.var(axis=0)[0] >= found.points_32.var(axis=0)[1]
    left, right, bottom, top = found.extent
    x, y = found.points_32.T
    assert right - left == pytest.approx(2 * np.ptp(x))
    assert (bottom, top) == pytest.approx((y.min() - 0.5 * np.ptp(y), y.max() + 0.5 * np.ptp(y)))


def test_pixels_are_the_argmax_where_they_are():
    head_VD = np.random.default_rng(1).standard_normal((40, 7))
    found = plane.through(STATES, 1.0)
    tokens_YX = plane.tokens(found, head_VD, 30)
    left, right, bottom, top = found.extent
    for row, column in ((0, 0), (0, 29), (29, 0), (17, 4)):
        x = left + (column + 0.5) / 30 * (right - left)
        y = bottom + (row + 0.5) / 30 * (top - bottom)
        point_D = found.centre_D + np.array([x, y]) @ found.axes_2D
        assert tokens_YX[row, column] == (head_VD @ point_D).argmax()
    assert len(np.unique(tokens_YX)) > 1


@pytest.mark.parametrize(
    ("states", "margin", "message"),
    [
        (STATES[:2], 0.1, "^states = "),
        (np.stack([STATES[0]] * 3), 0.1, "^states = 'on one line'"),
        (np.outer([0.0, 1, 2], STATES[0]), 0.1, "^states = 'on one line'"),
        (np.full((3, 4), np.nan), 0.1, "^states = 'not finite'"),
        (STATES, -1.0, "^margin = "),
        (np.ones((3, 1)) * [[1], [2], [4]], 0.1, "^states = 'on one line'"),
    ],
)
def test_bad_input_is_named(states, margin, message):
    with pytest.raises(ValueError, match=message):
        plane.through(states, margin)
    with pytest.raises(ValueError, match=r"^pixels = 0"):
        plane.tokens(plane.through(STATES, 0.1), np.ones((2, 7)), 0)
