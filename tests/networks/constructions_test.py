"""Explicit weights: the network stays within its proven bound of the brute-force meaning."""

import jax
import numpy as np
import pytest

from infoflow_jax.calculus.meaning import evaluate
from infoflow_jax.networks import constructions, decoding, ordered, pairs, scores, transformer
from infoflow_jax.networks.construction import draw, sup_error
from tests.networks import reference

ROUNDING = 1e-9


@pytest.mark.parametrize("name", constructions.BUILDERS)
def test_the_network_is_near_the_brute_force_meaning_as_proven(name):
    T = 6
    made = constructions.named(name, T, 8, 50.0, seed=1)
    x_BTD = draw(made, np.random.default_rng(2), 32, T)
    want_BO = np.stack([np.atleast_1d(evaluate(made.target, x, made.weights)) for x in x_BTD])
    np.testing.assert_allclose(made.exact(x_BTD), want_BO, atol=1e-12)
    error = sup_error(made, x_BTD)
    assert error <= made.bound(T) + ROUNDING
    assert error >= 0.01 * made.bound(T)  # the bound says something of this network
    loop_O = reference.network(made.config, made.params, x_BTD[1])
    with jax.enable_x64(True):
        got_O = transformer.apply(made.config, made.params, x_BTD[1])
    np.testing.assert_allclose(got_O, loop_O, atol=1e-10)


def test_theorem_1_error_times_K_squared_does_not_grow_with_T():
    rng, rows = np.random.default_rng(0), []
    for K in (4, 16):
        for T in (8, 128):
            made = pairs.pairmin(3, K, 1e7)
            rows.append(sup_error(made, draw(made, rng, 256, T)) * K**2)
            assert rows[-1] <= made.bound(T) * K**2 <= 0.75 + 1e-3
            assert made.config.ffn[0] == (12 * K + 1,)
    assert min(rows) > 0.4
    assert max(rows) < 0.76


def test_a_bilinear_ffn_leaves_only_the_soft_extremes():
    for beta in (1e2, 1e6):
        made = pairs.pairmin(3, 1, beta, kind="bilinear")
        assert sup_error(made, draw(made, np.random.default_rng(1), 64, 8)) <= made.bound(8)
        assert made.bound(8) == pytest.approx((np.log(8) + np.log(9)) / beta)


def test_a_zero_row_and_a_radius_are_taken():
    A_IDD = np.array([[[0.0, 0.0], [1.0, -2.0]]])
    made = pairs.pairmax(A_IDD, 8, 1e6, radius=3.0)
    assert sup_error(made, draw(made, np.random.default_rng(1), 64, 8)) <= made.bound(8)


@pytest.mark.parametrize("gap", [0.0, 0.5, 2.0, 5.0, 12.0, 40.0])
def test_the_second_largest_near_a_tie_of_the_first_two(gap):
    beta, T = 1e3, 16
    made = ordered.second_largest(np.ones(1), T, beta)
    x_BTD = np.random.default_rng(3).uniform(-1, 0.4, (8, T, 1))
    x_BTD[:, 3], x_BTD[:, 4] = 0.5 + gap / beta, 0.5
    assert sup_error(made, x_BTD) <= made.bound(T)
    with pytest.raises(ValueError, match="T = 17"):
        draw(made, np.random.default_rng(0), 2, T + 1)


@pytest.mark.parametrize(("T", "place", "seen"), [(8, 7, 1.85), (32, 22, 2.38), (128, 55, 2.58)])
def test_the_second_largest_is_bad_where_one_leads_all_others_that_are_equal(T, place, seen):
    """`place` is a worst one of a scan: no 1.5 ln T / beta in sup norm."""
    beta = 1e3
    made = ordered.second_largest(np.ones(1), T, beta)
    x_BTD = np.zeros((256, T, 1))
    x_BTD[:, place - 1, 0] = np.linspace(0, 40, 256) / beta
    error = sup_error(made, x_BTD)
    assert error * beta / np.log(T) == pytest.approx(seen, abs=0.02)
    assert error <= made.bound(T)


def test_one_head_and_positions_find_more_minima_than_heads():
    a_ID = np.random.default_rng(4).standard_normal((8, 3))
    made = scores.by_positions(a_ID, 100.0)
    x_BTD = draw(made, np.random.default_rng(5), 64, 20)
    assert made.config.heads == (1, 1)
    assert made.config.width == 2 * 8 + 2
    assert sup_error(made, x_BTD) <= made.bound(20)


@pytest.mark.parametrize(("b", "m"), [(2, 2), (4, 2), (4, 3), (3, 4), (10, 2)])
def test_the_last_digit_has_the_pieces_of_the_theorem(b, m):
    assert decoding.decoder_pieces(b, m) == 2 * b ** (m - 1) - 1


def test_packed_numbers_come_back_exactly_at_the_width_of_the_law():
    for T0, E, b in ((4, 2, 8), (6, 2, 5), (5, 2, 4)):
        made = decoding.packed(T0, E, b)
        x_BTD = draw(made, np.random.default_rng(6), 128, T0)
        assert sup_error(made, x_BTD) < ROUNDING
        m = -(-T0 // E)
        assert made.config.ffn[0][0] == E * (2 * b ** (m - 1) - 1)


def test_what_cannot_be_built_is_refused():
    for build in (
        lambda: pairs.pairmin(3, 0, 1.0),
        lambda: pairs.pairmin(3, 4, 1.0, kind="gelu"),
        lambda: decoding.packed(4, 5, 2),
        lambda: decoding.packed(9, 1, 16),
        lambda: draw(decoding.packed(4, 2, 2), np.random.default_rng(0), 2, 3),
        lambda: constructions.named("none", 8, 4, 1.0, 0),
    ):
        with pytest.raises(ValueError, match="expected"):
            build()
