"""Cost laws against mpmath and fractions; explicit sizes against the networks themselves."""

from fractions import Fraction

import jax
import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from infoflow_jax.calculus import costs, sizes

whole = st.integers(1, 10**30)  # far beyond 64 bits: nothing may wrap


def close(got, want):
    assert got.dtype == np.float64
    np.testing.assert_allclose(float(got), float(want), rtol=1e-12, atol=1e-9)


@settings(max_examples=50, deadline=None)
@given(T=whole, d=whole, E=whole, n=whole, h=st.integers(1, 9), j=st.integers(2, 50))
def test_exponents_are_the_fractions_that_they_say(T, d, E, n, h, j):
    with mpmath.workdps(60):
        close(costs.global_exponent(T, d, E), mpmath.mpf(T) * d / E - 1)
        decode = Fraction(T * d, E) - 1
        close(
            costs.decode_exponent(T, d, E, 0.5), max(mpmath.mpf(1) / 2, mpmath.mpf(T) * d / E - 1)
        )
        assert (float(costs.decode_exponent(T, d, E, 1.0)) > 1) == (float(decode) > 1)
        close(costs.jth_largest_exponent(T, j, n), Fraction(T - j - 1, n + 1) - 1)
        close(costs.pair_lower_exponent(T, h, n), Fraction(T - h - 1, (n + 1) * h + 1) - 1)
        shortage = Fraction(T - h - (h + j) + 1, (n + 1) * h + 1) - 1
        close(costs.head_shortage_exponent(T, h, h + j, n), shortage)


def test_formulas_of_theorem_2():
    T, k, n = 128, 3, 8
    assert float(costs.kth_lower_exponent(T, k, n)) == 124 / 9 - 1
    assert float(costs.kth_lower_exponent(T, k, n, "stated")) == pytest.approx(124 / 9)
    assert float(costs.kth_lower_exponent(T, k, n, "summary")) == 2 / 8
    same = costs.jth_largest_exponent(T, k, n)
    assert float(same) == float(costs.kth_lower_exponent(T, k, n, "counting"))


def test_counts_stay_in_logarithms():
    """eps^-(T d/E - 1) at T = 10^6: e^(10^7), which no float holds."""
    exponent = costs.global_exponent(10**6, 4, 4)
    close(costs.ln_parameters(exponent, 1e-3), (10**6 - 1) * mpmath.log(1000))
    close(costs.ln_comparisons(3, 10**30, 1e-3), 90 * mpmath.log(10) + mpmath.log(1000))
    np.testing.assert_allclose(
        np.asarray(costs.ln_parameters(np.array([1.0, 2.0]), 0.1)) / np.log(10), [1, 2]
    )


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), T=st.integers(1, 50), beta=st.floats(1e-2, 1e4))
def test_the_soft_maximum_is_off_by_no_more(seed, T, beta):
    scores = np.random.default_rng(seed).random(T)
    weights = np.exp(beta * (scores - scores.max()))
    error = scores.max() - weights @ scores / weights.sum()
    bound = float(costs.softargmax_error(T, beta))
    assert error <= bound + 1e-12
    if T > 1:
        assert float(costs.softargmax_beta(T, bound)) == pytest.approx(beta)


def test_the_bound_of_the_soft_maximum_is_of_the_right_size():
    T, beta = 1000, 50.0
    gap = np.linspace(0, 1, 20001)  # T - 1 scores that are lower by one gap
    error = (gap * (T - 1) * np.exp(-beta * gap) / (1 + (T - 1) * np.exp(-beta * gap))).max()
    assert error == pytest.approx(float(mpmath.lambertw((T - 1) / mpmath.e)) / beta, rel=1e-6)
    assert 0.6 < error / float(costs.softargmax_error(T, beta)) <= 1


def test_extensions():
    assert float(costs.rank_shortage(5, 3)) == 2
    assert float(costs.rank_shortage(3, 5)) == 0
    assert float(costs.statistic_exponent(4, 8, 1.0)) == 1
    assert float(costs.statistic_exponent(40, 8, 1.0)) == 4


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: costs.ln_parameters(1.0, 1.0), "eps = 1.0: expected a number in \\(0, 1\\)"),
        (lambda: costs.ln_parameters(1.0, 0.0), "eps = 0.0"),
        (lambda: costs.ln_parameters(1.0, float("nan")), "eps = nan"),
        (lambda: costs.ln_comparisons(-1, 4, 0.1), "order = -1"),
        (lambda: costs.global_exponent(0, 1, 1), "T = 0: expected an integer >= 1"),
        (lambda: costs.global_exponent(4, 1, 2.5), "E = 2.5: expected an integer"),
        (lambda: costs.global_exponent(True, 1, 2), "T = True: expected an integer"),
        (lambda: costs.jth_largest_exponent(9, 1, 2), "j = 1: expected an integer >= 2"),
        (lambda: costs.kth_lower_exponent(9, 2, 2, "other"), "formula = 'other'"),
        (lambda: costs.head_shortage_exponent(9, 3, 3, 2), "h = 3: expected less than D = 3"),
        (lambda: costs.decode_exponent(1, 1, 1, 0.0), "baseline = 0.0"),
        (lambda: costs.softargmax_error(4, -1.0), "beta = -1.0"),
        (lambda: costs.softargmax_beta(4, "x"), "eps = 'x'"),
        (lambda: sizes.pair_network(4, 0, 0.1), "d = 0"),
        (lambda: sizes.pair_network(4, 2, 2.0), "eps = 2.0"),
        (lambda: sizes.memorised_max_units(0, 0.1), "T = 0"),
        (lambda: sizes.ln_last_digit_pieces(0.5, 0.1), "m = 0.5"),
        (lambda: sizes.digits(1, 0, 1), "d = 0"),
    ],
)
def test_bad_numbers_are_named(call, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        call()


def test_laws_are_in_float64_whatever_the_caller_has():
    assert not jax.config.jax_enable_x64
    assert float(costs.global_exponent(2**24 + 1, 1, 1)) == 2.0**24


@pytest.mark.parametrize(("d", "knots"), [(1, 4), (3, 4), (3, 16), (3, 64)])
def test_products_by_interpolated_squares(d, knots):
    """numpy's interpolation on the worst inputs of a fine grid, and on random ones."""
    nodes = np.linspace(-2, 2, 2 * knots + 1)

    def square(u):
        return np.interp(u, nodes, nodes**2)

    grid = np.linspace(0, 1, 8 * knots + 1)
    x, y = (side.ravel() for side in np.meshgrid(grid, grid))
    error = np.abs((square(x + y) - square(x - y)) / 4 - x * y).max()
    assert 0.999 < d * error / sizes.product_error(d, knots) <= 1 + 1e-9


@pytest.mark.parametrize("T", [8, 32, 128])
def test_the_pair_network_is_within_eps_and_its_width_does_not_grow_with_T(T):
    d, eps = 3, 0.05
    size = sizes.pair_network(T, d, eps)
    assert size.width == sizes.pair_network(8, d, eps).width
    assert size.error <= eps * (1 + 1e-9)
    # The soft heads and the interpolated products themselves, in numpy.
    rng, nodes = np.random.default_rng(T), np.linspace(-2, 2, 2 * size.knots + 1)
    for _ in range(20):
        X = rng.random((T, d))
        weights = np.exp(-size.beta * (X @ X.T - (X @ X.T).min(1, keepdims=True)))
        a = weights @ X / weights.sum(1, keepdims=True)
        halves = [np.interp(X + s * a, nodes, nodes**2) for s in (1, -1)]
        q = ((halves[0] - halves[1]) / 4).sum(1)
        soft = np.exp(-size.beta * (q - q.min()))
        assert abs(soft @ q / soft.sum() - (X @ X.T).min()) <= eps
    halved = sizes.pair_network(T, d, eps / 4)
    assert abs(halved.width / size.width - 2) < 0.15  # eps^-1/2


@pytest.mark.parametrize(("base", "m"), [(10, 1), (10, 2), (4, 3), (2, 5)])
def test_pieces_of_the_decoder_of_the_last_digit(base, m):
    """Its ramps and steps counted on a grid: x -> b^m (x mod b^(1-m)), made continuous."""
    ramps = base ** (m - 1)
    step = 1e-3 / ramps  # the width of a jump
    knots = np.sort([0.0, 1.0, *[k / ramps + s for k in range(1, ramps) for s in (-step, 0.0)]])
    values = np.mod(np.where(np.isin(knots, np.arange(1, ramps + 1) / ramps), 0, knots), 1 / ramps)
    values[-1] = 1 / ramps
    slopes = np.diff(values) / np.diff(knots)
    pieces = 1 + np.count_nonzero(np.abs(np.diff(slopes)) > 1e-6)
    assert np.exp(float(sizes.ln_last_digit_pieces(float(m), 1 / base))) == pytest.approx(pieces)
    assert sizes.digits(6, 2, 4) == 3


def test_pieces_beyond_any_float():
    with mpmath.workdps(30):
        want = mpmath.log(2 * mpmath.mpf(10) ** 299 - 1)
        close(sizes.ln_last_digit_pieces(300.0, 0.1), want)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), T=st.integers(1, 20), eps=st.floats(0.01, 0.9))
def test_the_memorising_network_of_the_companion_finds_the_maximum(seed, T, eps):
    first, second, out = sizes.memorised_max_units(T, eps)
    n = second // 2
    assert (first, out) == (T * n, 1)
    assert n >= 1 / eps > n - 1
    x = np.random.default_rng(seed).random(T)
    relu = lambda u: np.maximum(u, 0)  # noqa: E731
    S = relu(x[:, None] - np.arange(n) / n).sum(0)
    error = (relu(S) - relu(S - 1 / n)).sum() - x.max()
    assert -1e-12 <= error < 1 / n <= eps + 1e-12
