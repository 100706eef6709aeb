"""Volumes and grid logarithms against mpmath at 50 digits, in every dimension that is used."""

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest

from reach_jax.bounds.logmath import ln_ball_volume, ln_grid_points, tokens

mpmath.mp.dps = 50
# ln V_d of the unit ball, from mpmath.
UNIT = {
    1: 0.6931471805599453,
    2: 1.144729886,
    69: -50.86174920,
    70: -52.07062960,
    342: -515.9659153,
    1024: -2099.958770,
    2048: -4906.008482,
    4096: -11227.54417,
}


def exact_volume(d, r):
    return (
        d * mpmath.log(mpmath.pi) / 2 + d * mpmath.log(r) - mpmath.loggamma(mpmath.mpf(d) / 2 + 1)
    )


@pytest.mark.parametrize("r", [1, 1.0, np.float32(1), jnp.float32(1), jnp.bfloat16(1)])
@pytest.mark.parametrize("d", UNIT)
def test_unit_ball_table(d, r):
    volume = ln_ball_volume(d, r)
    assert volume.dtype == np.float64
    np.testing.assert_allclose(volume, UNIT[d], rtol=1e-9)
    np.testing.assert_allclose(ln_ball_volume(jnp.int32(d), r), UNIT[d], rtol=1e-9)


def test_volume_against_mpmath():
    rng = np.random.default_rng(0)
    d = np.concatenate([rng.integers(1, 16385, 300), np.arange(0, 40), [16384]])
    r = np.exp(rng.uniform(-12, 12, d.size))
    exact = [exact_volume(int(n), mpmath.mpf(x)) for n, x in zip(d, r, strict=True)]
    # Where the terms cancel, the error is that of the terms.
    terms = 1e-15 * d * (1 + np.abs(np.log(r)))
    error = np.abs(np.asarray(ln_ball_volume(d, r)) - np.array(exact, np.float64))
    assert np.all(error <= 1e-12 * np.abs(np.array(exact, np.float64)) + terms)


def test_point_and_empty_balls():
    for d, r, expected in [(0, 3.0, 0), (0, 0.0, 0), (5, 0.0, -np.inf)]:
        assert float(ln_ball_volume(d, r)) == expected


def test_float32_radius_keeps_five_digits():
    for d in UNIT:
        np.testing.assert_allclose(
            ln_ball_volume(d, np.float32(0.1)), float(exact_volume(d, mpmath.mpf("0.1"))), rtol=1e-5
        )


@pytest.mark.parametrize("d", [-1, 2.5, np.nan, np.inf, True, "3", [1, -2], 1j])
def test_bad_dimension_is_refused(d):
    with pytest.raises(ValueError, match=r"d = .*whole number >= 0"):
        ln_ball_volume(d)


@pytest.mark.parametrize(("field", "width", "eps"), [
    ("width", -1.0, 1.0), ("width", np.inf, 1.0), ("eps", 1.0, 0.0), ("eps", 1.0, np.nan),
])  # fmt: skip
def test_bad_intervals_are_refused(field, width, eps):
    with pytest.raises(ValueError, match=f"{field} = "):
        ln_grid_points(width, eps)


def test_grid_points_keep_small_ratios():
    rng = np.random.default_rng(1)
    width, eps = np.exp(rng.uniform(-40, 10, 300)), np.exp(rng.uniform(-10, 5, 300))
    exact = [mpmath.log1p(mpmath.mpf(w) / mpmath.mpf(e)) for w, e in zip(width, eps, strict=True)]
    np.testing.assert_allclose(ln_grid_points(width, eps), np.array(exact, float), rtol=1e-12)


def test_tokens_of_all_outputs_of_a_length():
    np.testing.assert_allclose(tokens(7 * np.log(50304), 50304), 7, rtol=1e-15)
    with pytest.raises(ValueError, match="vocabulary = 1"):
        tokens(1.0, 1)


def test_volume_is_traceable_and_its_gradient_is_d_over_r():
    with jax.enable_x64(True):
        gradient = jax.jit(jax.vmap(jax.grad(ln_ball_volume, argnums=1)))
        d, r = np.array([3.0, 700.0, 16384.0]), np.array([0.5, 60.0, 309.0])
        np.testing.assert_allclose(gradient(d, r), d / r, rtol=1e-13)
