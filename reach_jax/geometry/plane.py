"""The plane through three states, and the token that wins at each of its points. Draws nothing."""

from typing import NamedTuple

import numpy as np

from reach_jax.geometry import cells
from sweep_jax.checks import require


class Plane(NamedTuple):
    """A plane in D dimensions with its own coordinates."""

    centre_D: np.ndarray
    axes_2D: np.ndarray  # orthonormal; the first has the most variance
    points_32: np.ndarray  # the three states in these coordinates
    extent: tuple[float, float, float, float]  # left, right, bottom, top


def through(states_3D: np.ndarray, margin: float) -> Plane:
    """The principal plane of three states, which holds all of them.

    Args:
      states_3D: three vectors.
      margin: what the extent adds on each side, in widths of the three states.

    Raises:
      ValueError: not three finite vectors, a margin below 0, or three on one line.
    """
    x_3D = np.asarray(states_3D, np.float64)
    require(x_3D.ndim == 2 and len(x_3D) == 3, "states", x_3D.shape, "(3, D)")
    require(bool(np.isfinite(x_3D).all()), "states", "not finite", "finite numbers")
    require(margin >= 0, "margin", margin, "a number >= 0")
    centre_D = x_3D.mean(axis=0)
    _, size, axes = np.linalg.svd(x_3D - centre_D, full_matrices=False)
    spans = len(size) >= 2 and size[1] > 1e-6 * max(size[0], 1e-300)
    require(bool(spans), "states", "on one line", "three that span a plane")
    points_32 = (x_3D - centre_D) @ axes[:2].T
    low, high = points_32.min(axis=0), points_32.max(axis=0)
    low, high = low - margin * (high - low), high + margin * (high - low)
    extent = (float(low[0]), float(high[0]), float(low[1]), float(high[1]))
    return Plane(centre_D, axes[:2], points_32, extent)


def tokens(plane: Plane, head_VD: np.ndarray, pixels: int) -> np.ndarray:
    """The argmax token in the middle of each pixel, (pixels, pixels), the lowest row first.

    Raises:
      ValueError: pixels below 1, or a head that does not fit.
    """
    require(pixels >= 1, "pixels", pixels, "an integer >= 1")
    left, right, bottom, top = plane.extent
    middle = (np.arange(pixels) + 0.5) / pixels
    x, y = left + middle * (right - left), bottom + middle * (top - bottom)
    grid_N2 = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
    points_ND = (plane.centre_D + grid_N2 @ plane.axes_2D).astype(np.float32)
    tail = -len(points_ND) % 512
    padded_ND = np.pad(points_ND, ((0, tail), (0, 0)), mode="edge")
    won_N = np.asarray(cells.winners(padded_ND, cells.chunked(head_VD)))[: len(points_ND)]
    return won_N.reshape(pixels, pixels)
