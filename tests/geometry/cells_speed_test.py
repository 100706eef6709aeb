"""The three rates: of the work that was done, and shares of their medians and of the best."""

import itertools

import numpy as np
import pytest

from reach_jax.geometry import cells, cells_speed
from reach_jax.geometry.cells_speed import Speed


def test_rates_count_the_multiply_adds_of_a_turn(monkeypatch):
    """With a clock that advances one second a look, a rate is the work of one turn."""
    clock = itertools.count()
    monkeypatch.setattr(cells_speed.time, "perf_counter", lambda: float(next(clock)))
    head = cells.chunked(np.random.default_rng(0).standard_normal((1500, 8)))
    speed = cells_speed.measure(head, turns=2, square=512)
    flop = 2 * 512 * 2048 * 8  # a tile of points, rows padded to two chunks of 1024
    np.testing.assert_allclose(speed.loop_R, 1e-9 * flop * (2 * 512**3 // flop), rtol=1e-9)
    np.testing.assert_allclose(speed.square_R, 2e-9 * 512**3, rtol=1e-9)
    np.testing.assert_allclose(speed.tiles_R, 1e-9 * flop / 2 * (4 * 512**3 // flop), rtol=1e-9)


def test_shares():
    speed = Speed(np.array([6.0, 1, 4]), np.array([8.0, 10, 2]), np.array([5.0, 5, 5]))
    assert (speed.share, speed.best_share, speed.tiles_share) == (0.5, 0.6, 0.8)


@pytest.mark.parametrize("field", ["turns", "square"])
def test_bad_input_is_named(field):
    with pytest.raises(ValueError, match=f"^{field} = 0"):
        cells_speed.measure(cells.chunked(np.ones((2, 2))), **{field: 0})
