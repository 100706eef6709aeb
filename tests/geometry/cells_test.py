"""Winners and counts against NumPy, intervals against binomial tails, shares with a formula."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from reach_jax.geometry import bodies, cells

RNG = np.random.default_rng(0)


@pytest.mark.parametrize(("V", "N"), [(7, 5), (1024, 512), (2500, 1024)])
@pytest.mark.parametrize("with_offset", [False, True])
def test_winners_are_the_argmax(V, N, with_offset):
    head_VD = RNG.standard_normal((V, 6)).astype(np.float32)
    offset_V = RNG.standard_normal(V).astype(np.float32) if with_offset else None
    points_ND = RNG.standard_normal((N, 6)).astype(np.float32)
    logits_NV = points_ND.astype(float) @ head_VD.astype(float).T
    logits_NV += 0 if offset_V is None else offset_V
    got_N = np.asarray(cells.winners(points_ND, cells.chunked(head_VD, offset_V)))
    gap_N = logits_NV.max(axis=1) - logits_NV[np.arange(N), got_N]
    assert gap_N.max() < 1e-5  # float32 may choose the other of two that are as good as equal
    assert (got_N == logits_NV.argmax(axis=1)).mean() > 0.99


def test_exact_ties_go_to_the_lowest_token_across_chunks():
    head_VD = np.zeros((3000, 2), np.float32)
    head_VD[[1500, 1700, 2900]] = [1, 0]
    points_ND = np.array([[1.0, 0], [-1, 0], [0, 1]], np.float32)
    got_N = cells.winners(points_ND, cells.chunked(head_VD))
    np.testing.assert_array_equal(got_N, [1500, 0, 0])


def test_the_offset_of_the_norm_gives_nearest_neighbours():
    head_VD = RNG.standard_normal((50, 4)) * RNG.uniform(0.2, 2, (50, 1))
    points_ND = RNG.standard_normal((200, 4)).astype(np.float32)
    head = cells.chunked(head_VD, cells.nearest_offset(head_VD))
    distance_NV = np.linalg.norm(points_ND[:, None] - head_VD[None], axis=2)
    np.testing.assert_array_equal(cells.winners(points_ND[:192], head), distance_NV.argmin(1)[:192])
    assert (distance_NV.argmin(1) != (points_ND @ head_VD.T).argmax(1)).any()


def test_counts_do_not_depend_on_the_batches():
    head_VD = RNG.standard_normal((40, 3))
    points_ND = RNG.standard_normal((1500, 3)).astype(np.float32)
    head = cells.chunked(head_VD)
    want_V = np.bincount((points_ND @ head_VD.T.astype(np.float32)).argmax(1), minlength=40)
    for sizes in ([], [700, 701], [3, 3, 1200]):
        got_V = cells.count(np.split(points_ND, sizes), head, 40)
        np.testing.assert_array_equal(got_V, want_V)
    assert got_V.sum() == 1500


def test_shares_of_a_plane_are_the_angles_of_its_cells():
    """Three rows at 0, 90 and 180 degrees: cells of 90, 90 and 180 degrees but for the split."""
    angle_V = np.radians([0.0, 90.0, 200.0])
    head_VD = np.column_stack([np.cos(angle_V), np.sin(angle_V)])
    want_V = np.array([(90 + 160) / 2, (90 + 110) / 2, (110 + 160) / 2]) / 360
    draws = bodies.ball(jax.random.key(0), 40_000, 2, 3.0, 8192)
    found = cells.shares(cells.count(draws, cells.chunked(head_VD), 3), 0.999)
    assert found.share_V.sum() == pytest.approx(1, abs=1e-12)
    assert ((found.low_V < want_V) & (want_V < found.high_V)).all()
    assert (found.high_V - found.low_V).max() < 0.02


def test_intervals_are_those_of_the_binomial_tails():
    counts_V = np.array([0, 1, 30, 69])
    found = cells.shares(counts_V, 0.9)
    n = 100
    for k, low, high in zip(counts_V[1:], found.low_V[1:], found.high_V[1:], strict=True):
        assert stats.binom.sf(k - 1, n, low) == pytest.approx(0.05, rel=1e-9)
        assert stats.binom.cdf(k, n, high) == pytest.approx(0.05, rel=1e-9)
    assert found.low_V[0] == 0
    assert stats.binom.pmf(0, n, found.high_V[0]) == pytest.approx(0.1, rel=1e-9)
    full = cells.shares(np.array([0, 5]), 0.95)
    assert (full.high_V[1], full.share_V[1]) == (1, 1)
    assert full.low_V[1] == pytest.approx(0.025 ** (1 / 5))


def test_summaries():
    found = cells.shares(np.array([50, 0, 30, 20]))
    assert (found.hit, found.holding(0.5), found.holding(0.8), found.holding(1.0)) == (3, 1, 2, 3)
    assert found.mean_log_share == pytest.approx(-np.log([0.5, 0.3, 0.2]).mean())
    assert found.least_mean_log_share < -np.log(np.r_[found.share_V[[0, 2, 3]], 1e-9]).mean()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: cells.chunked(np.zeros((0, 3))), "^head = "),
        (lambda: cells.chunked(np.zeros((3, 0))), "^head = "),
        (lambda: cells.chunked(np.array([[np.nan]])), "^head and offset = 'not finite'"),
        (lambda: cells.chunked(np.ones((2, 2)), np.ones(3)), "^offset = "),
        (lambda: cells.count([np.ones((2, 3))], cells.chunked(np.ones((2, 2))), 2), "^points = "),
        (
            lambda: cells.count([[[np.nan, 0.0]]], cells.chunked(np.ones((2, 2))), 2),
            "^points = 'not finite'",
        ),
        (lambda: cells.shares(np.zeros(4, int)), "^points = 0"),
        (lambda: cells.shares(np.ones(4, int), 1.0), "^confidence = "),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_logits_of_all_points_are_never_alive():
    """The compiled loop needs far less than points x vocabulary."""
    head = cells.chunked(np.ones((20_000, 16), np.float32))
    points = jax.ShapeDtypeStruct((8192, 16), jnp.float32)
    memory = cells.winners.lower(points, head).compile().memory_analysis()
    assert memory.temp_size_in_bytes < 0.05 * 4 * 8192 * 20_000
