"""The packing bound against published constants, mpmath, brute-force counts and its derivative."""

import itertools

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest

from reach_jax.bounds.box import box_slope
from reach_jax.bounds.packing import (
    ball_slope,
    ln_packing_ball,
    ln_packing_cube,
    ln_reachable_fraction,
    threshold,
)

mpmath.mp.dps = 50
# arXiv 2605.22223, Tables 1 and 2: d, V, r, and C recomputed at eps = 2^-10 and eps = r/2^11.
PUBLISHED = {
    "Pythia-160M": (768, 50304, 63.62, 835.5, 590.1),
    "Pythia-410M": (1024, 50304, 54.90, 1100.1, 786.8),
    "Pythia-1B": (2048, 50304, 65.68, 2234.1, 1573.6),
    "Qwen2.5-0.5B": (896, 151936, 309.0, 1003.1, 624.7),
    "Qwen2.5-1.5B": (1536, 151936, 153.62, 1629.7, 1070.8),
    "Llama-3.2-1B": (2048, 128256, 41.06, 1974.5, 1448.4),
    "Gemma-3-270M": (640, 262144, 10.74, 512.9, 426.7),
}
# The notebook published with it (eps = r/2^11): d, r, measured slope, ball ratio.
NOTEBOOK = [
    (2048, 59.90625, 261.4, 6.019802),
    (2560, 52.21875, 197.9, 9.939214),
    (4096, 50.96875, 283.55, 11.099110),
]


@pytest.mark.parametrize("model", PUBLISHED)
def test_published_constants(model):
    d, vocabulary, r, absolute, relative = PUBLISHED[model]
    assert round(float(ball_slope(d, vocabulary, r, 2**-10)), 1) == absolute
    assert round(float(ball_slope(d, vocabulary, r, r / 2**11)), 1) == relative


@pytest.mark.parametrize(("d", "r", "measured", "ratio"), NOTEBOOK)
def test_notebook_ratios(d, r, measured, ratio):
    assert round(float(ball_slope(d, 50304, r, r / 2**11)) / measured, 6) == ratio


def test_slope_is_vmappable_over_models():
    d, vocabulary, r, absolute, _ = map(np.array, zip(*PUBLISHED.values(), strict=True))
    slopes = jax.jit(jax.vmap(ball_slope, (0, 0, 0, None)))(d, vocabulary, r, 2**-10)
    np.testing.assert_allclose(slopes, absolute, atol=0.05)
    np.testing.assert_allclose(ball_slope(d, vocabulary, r, 2**-10), slopes, rtol=1e-6)


def test_ln_packing_against_mpmath():
    rng = np.random.default_rng(0)
    d, m = rng.integers(1, 16385, 200), rng.integers(1, 4097, 200)
    r, eps = np.exp(rng.uniform(-15, 8, 200)), np.exp(rng.uniform(-12, 3, 200))
    exact = [
        int(i) * int(j) * mpmath.log1p(2 * mpmath.mpf(x) / mpmath.mpf(e))
        for i, j, x, e in zip(d, m, r, eps, strict=True)
    ]
    np.testing.assert_allclose(ln_packing_ball(d, m, r, eps), np.array(exact, float), rtol=1e-12)


@pytest.mark.parametrize(("r", "eps"), [(1.0, 0.5), (1.0, 0.7), (2.0, 1.0), (0.4, 1.0)])
def test_no_packing_of_a_small_ball_beats_the_bound(r, eps):
    """The points of a square grid of spacing eps inside the disc are a packing."""
    steps = np.arange(-10, 11) * eps
    inside = sum(x * x + y * y <= r * r for x, y in itertools.product(steps, steps))
    assert np.log(inside) <= float(ln_packing_ball(2, 1, r, eps))


@pytest.mark.parametrize(("r", "eps"), [(1.0, 0.5), (1.0, 0.75), (2.0, 1.5), (0.25, 1.0), (0, 1)])
def test_cube_packing_is_that_of_the_best_search(r, eps):
    """The largest set of points of a fine grid of the square that keep distance eps, by greed."""
    steps = np.linspace(-r, r, 17)
    chosen = []
    for point in itertools.product(steps, steps):  # from a corner on, greed is optimal in a square
        if all(max(abs(a - b) for a, b in zip(point, q, strict=True)) >= eps for q in chosen):
            chosen.append(point)
    np.testing.assert_allclose(np.exp(float(ln_packing_cube(2, 1, r, eps))), len(chosen))
    assert len(chosen) <= np.exp(float(ln_packing_ball(2, 1, r, eps))) * (1 + 1e-12)


def test_largest_sizes_neither_overflow_nor_lose_digits():
    exact = 16384 * 4096 * mpmath.log1p(2 * mpmath.mpf(309) / mpmath.mpf(2) ** -24)
    for found in (
        ln_packing_ball(16384, 4096, 309.0, 2.0**-24),
        ln_packing_cube(16384, 4096, 309.0, 2.0**-24),
    ):
        np.testing.assert_allclose(float(found), float(exact), rtol=1e-12)
    fraction = float(ln_reachable_fraction(1e6, 4096, 10**12, 262144))
    np.testing.assert_allclose(fraction, (1e6 * 4096 - 1e12) * np.log(262144), rtol=1e-12)


def test_gradient_in_r_is_the_closed_form():
    with jax.enable_x64(True):
        gradient = jax.jit(jax.grad(ball_slope, argnums=2))
        for d, vocabulary, r, *_ in PUBLISHED.values():
            closed = d * 2 / (2**-10 + 2 * r) / np.log(vocabulary)
            np.testing.assert_allclose(gradient(d, vocabulary, r, 2**-10), closed, rtol=1e-13)


def test_reachable_fraction_is_one_up_to_the_threshold_then_falls_by_v_a_token():
    slope, m, vocabulary = 2.5, 4, 7
    assert float(threshold(slope, m)) == 10
    n = np.array([0, 9, 10, 11, 13, 10**6])
    expected = np.array([0, 0, 0, -1, -3, 10 - 10**6]) * np.log(7)
    np.testing.assert_allclose(ln_reachable_fraction(slope, m, n, vocabulary), expected, rtol=1e-15)


def test_fraction_bounds_a_count_by_hand():
    """10 states of one prompt vector reach at most 10 of the 2^n outputs."""
    slope = np.log(10) / np.log(2)
    for n in range(12):
        bound = np.exp(float(ln_reachable_fraction(slope, 1, n, 2)))
        np.testing.assert_allclose(bound, min(1, 10 / 2**n), rtol=1e-12)


def test_box_of_a_cube_is_the_ball_and_flat_sides_cost_nothing():
    np.testing.assert_allclose(
        box_slope(np.full(768, 2 * 63.62), 50304, 2**-10), ball_slope(768, 50304, 63.62, 2**-10)
    )
    assert float(box_slope([3.0, 0.0, 0.0], 4, 1.0)) == 1


def test_box_against_mpmath_and_over_leading_axes():
    widths_MD = np.exp(np.random.default_rng(2).uniform(-8, 8, (5, 900)))
    exact = [
        mpmath.fsum(mpmath.log1p(mpmath.mpf(w) * 1024) for w in widths_D) / mpmath.log(32000)
        for widths_D in widths_MD
    ]
    slopes = box_slope(widths_MD, 32000, 2**-10)
    np.testing.assert_allclose(slopes, np.array(exact, float), rtol=1e-12)
    mapped = jax.vmap(box_slope, (0, None, None))(jnp.float32(widths_MD), 32000, 2**-10)
    np.testing.assert_allclose(mapped, slopes, rtol=1e-6)


@pytest.mark.parametrize(("field", "call"), [
    ("d", lambda: ball_slope(-1, 10, 1.0, 1.0)),
    ("vocabulary", lambda: ball_slope(2, 1, 1.0, 1.0)),
    ("r", lambda: ball_slope(2, 10, -1.0, 1.0)),
    ("eps", lambda: ball_slope(2, 10, 1.0, 0.0)),
    ("m", lambda: ln_packing_ball(2, 0.5, 1.0, 1.0)),
    ("eps", lambda: ln_packing_cube(2, 1, 1.0, -1.0)),
    ("r", lambda: ln_packing_cube(2, 1, np.nan, 1.0)),
    ("n", lambda: ln_reachable_fraction(1.0, 1, -1, 10)),
    ("slope", lambda: threshold(np.nan, 1)),
    ("width", lambda: box_slope([1.0, -1.0], 10, 1.0)),
])  # fmt: skip
def test_bad_input_is_refused_by_name(field, call):
    with pytest.raises(ValueError, match=rf"^{field} = "):
        call()
