"""Cells of unequal size against mpmath, every product written out, and the central limit."""

import itertools

import jax
import mpmath
import numpy as np
import pytest

from reach_jax.bounds.cells import (
    ln_median_products,
    mean_rate,
    nonuniform_slope,
    product_rate,
)

mpmath.mp.dps = 50
RNG = np.random.default_rng(0)
WIDE = np.exp(RNG.normal(0, 3, 20_000))  # shares over ten decades
ONE_BIG = np.concatenate([WIDE, [4 * WIDE.sum()]])  # a token with .8 of the volume


def test_closed_form_against_mpmath():
    hits = np.exp(RNG.uniform(-300, 300, (4, 500)))
    expected = [
        mpmath.log(mpmath.fsum(map(mpmath.mpf, row)))
        - mpmath.fsum(mpmath.log(mpmath.mpf(x)) for x in row) / len(row)
        for row in hits.tolist()
    ]
    found = mean_rate(hits)
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, np.array(expected, float), rtol=1e-12)
    mapped = jax.jit(jax.vmap(mean_rate))(np.float32(hits.clip(1e-30, 1e30)))
    np.testing.assert_allclose(mapped, mean_rate(np.float32(hits.clip(1e-30, 1e30))), rtol=1e-6)


def test_equal_cells_cost_ln_v_and_unequal_ones_more():
    for rate in (mean_rate, product_rate):
        np.testing.assert_allclose(rate(np.full(512, 3.0)), np.log(512), rtol=1e-14)
    assert float(mean_rate([1.0, 2.0, 3.0])) > np.log(3)
    np.testing.assert_allclose(
        nonuniform_slope(700.0, 512, mean_rate(np.ones(512))), 700, rtol=1e-14
    )


def test_tokens_without_a_hit_are_left_out():
    with_zeros = np.concatenate([[0.0], WIDE, [0, 0]])
    for rate in (mean_rate, product_rate):
        np.testing.assert_allclose(rate(with_zeros), rate(WIDE), rtol=1e-13)


@pytest.mark.parametrize("size", [2, 3, 5])
def test_medians_are_those_of_every_product(size):
    """Where no other product is near the median, so that it is one number."""
    hits = RNG.dirichlet(np.ones(size))
    lengths = (1, 3, 5, 7) if size % 2 else (1, 3, 5)
    logs = np.log(hits)
    for n, found in zip(lengths, ln_median_products(hits, lengths), strict=True):
        sums = sorted(sum(pick) for pick in itertools.product(logs, repeat=n))
        step = np.ptp(logs) / 4095
        half = len(sums) // 2
        low, high = sums[half - 1], sums[half]
        assert low - (n + 1) * step <= float(found) <= high + (n + 1) * step


def test_medians_of_a_symmetric_lattice_are_exact():
    """Shares 1/7, 2/7, 4/7: products are powers of two over 7^n, as often above 2^n as below."""
    lengths = (3, 5, 8)
    found = ln_median_products([1.0, 2.0, 4.0], lengths, bins=5)
    for n, median in zip(lengths, found, strict=True):
        powers = [sum(pick) for pick in itertools.product(range(3), repeat=n)]
        expected = np.median(powers) * np.log(2) - n * np.log(7)
        np.testing.assert_allclose(float(median), expected, rtol=1e-12)


@pytest.mark.parametrize("hits", [WIDE, ONE_BIG], ids=["wide", "one big cell"])
def test_product_rate_tends_to_the_closed_form(hits):
    closed = float(mean_rate(hits))
    assert abs(float(product_rate(hits)) / closed - 1) < 1e-6
    medians = np.asarray(ln_median_products(hits, (32, 64)))
    logs = np.log(hits / hits.sum())
    for n, median in zip((32, 64), medians, strict=True):
        drawn = logs[np.random.default_rng(n).integers(0, logs.size, (20_000, n))].sum(axis=1)
        assert abs(median - np.median(drawn)) < 5 * 1.25 * drawn.std() / np.sqrt(20_000)


def test_traced_rates_are_the_same():
    with jax.enable_x64(True):
        traced = jax.jit(product_rate, static_argnums=(1, 2))(WIDE, (8, 16), 256)
        gradient = jax.jit(jax.grad(mean_rate))(WIDE)
    np.testing.assert_allclose(traced, product_rate(WIDE, (8, 16), 256), rtol=1e-12)
    np.testing.assert_allclose(
        gradient, 1 / WIDE.sum() - 1 / WIDE / WIDE.size, rtol=1e-9, atol=1e-15
    )


@pytest.mark.parametrize(("box", "vocabulary", "s", "measured", "ratio"), [
    (716.0, 50304, 12.87, 90.4, 6.66), (916.1, 50304, 14.54, 112.4, 6.07),
    (1758.9, 50304, 14.71, 287.4, 4.50), (778.2, 151936, 16.50, 71.0, 7.93),
    (1217.9, 151936, 16.87, 79.6, 10.82), (1634.3, 128256, 15.79, 137.8, 8.83),
    (495.3, 262144, 13.03, 44.54, 10.65),
])  # fmt: skip
def test_published_models_with_their_columns_put_right(box, vocabulary, s, measured, ratio):
    assert round(float(nonuniform_slope(box, vocabulary, s)) / measured, 2) == ratio


@pytest.mark.parametrize(("message", "call"), [
    ("hits_V = ", lambda: mean_rate([1.0, -1.0])),
    ("hits_V = ", lambda: mean_rate([1.0, np.nan])),
    ("hits_V = 'a row of zeros'", lambda: mean_rate([0.0, 0.0])),
    ("hits_V = ", lambda: mean_rate(np.zeros((2, 0)))),
    (r"hits_V = \(1, 2\)", lambda: ln_median_products([[1.0, 2.0]], (1, 2))),
    ("lengths = ", lambda: ln_median_products([1.0], ())),
    ("lengths = ", lambda: ln_median_products([1.0], (0,))),
    ("lengths = ", lambda: product_rate([1.0], (4, 4))),
    ("bins = 1", lambda: ln_median_products([1.0], (2,), bins=1)),
    ("slope = ", lambda: nonuniform_slope(-1.0, 10, 1.0)),
    ("rate = 0", lambda: nonuniform_slope(1.0, 10, 0.0)),
    ("vocabulary = 1", lambda: nonuniform_slope(1.0, 1, 1.0)),
])  # fmt: skip
def test_bad_input_is_refused_by_name(message, call):
    with pytest.raises(ValueError, match=rf"^{message}"):
        call()
