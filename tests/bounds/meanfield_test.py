"""The bound for any prompt length against mpmath, where the counts themselves still fit."""

import jax
import mpmath
import numpy as np
import pytest

from reach_jax.bounds.meanfield import (
    ln_horizon,
    ln_ln_reachable,
    ln_minus_ln_fraction,
    mean_field,
)

mpmath.mp.dps = 50
RNG = np.random.default_rng(0)
D, V = RNG.integers(1, 16385, 200), RNG.integers(2, 300_000, 200)
R, EPS = np.exp(RNG.uniform(-8, 8, 200)), np.exp(RNG.uniform(-12, 3, 200))
Q = RNG.uniform(1, 500, 200)


def exact_ln_ln(d, r, eps, q):
    ratio = 2 * mpmath.mpf(float(r)) / mpmath.mpf(float(eps))
    return int(d) * mpmath.log1p(ratio) + mpmath.log(
        1 + mpmath.log(1 + ratio ** mpmath.mpf(float(q)))
    )


def test_double_logs_against_mpmath():
    expected = [exact_ln_ln(*args) for args in zip(D, R, EPS, Q, strict=True)]
    found = ln_ln_reachable(D, R, EPS, Q)
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, np.array(expected, float), rtol=1e-12)
    horizon = [x - mpmath.log(mpmath.log(int(v))) for x, v in zip(expected, V, strict=True)]
    np.testing.assert_allclose(ln_horizon(D, V, R, EPS, Q), np.array(horizon, float), rtol=1e-12)


def test_the_theorem_where_its_count_can_be_written_down():
    """d = 1, 2r/eps = 3, q = 2: (e + 9e)^4 outputs, of which log_7 is the horizon."""
    count = (10 * np.e) ** 4
    np.testing.assert_allclose(np.exp(np.exp(float(ln_ln_reachable(1, 1.5, 1.0, 2)))), count)
    tokens = np.exp(float(ln_horizon(1, 7, 1.5, 1.0, 2)))
    np.testing.assert_allclose(tokens, np.log(count) / np.log(7))


def test_more_reach_than_any_fixed_prompt_length():
    """(1 + 2r/eps)^(d m) prompts of m vectors are fewer, as long as m is below the horizon."""
    d, r, eps, m = 3, 1.0, 0.5, 40
    assert float(ln_ln_reachable(d, r, eps)) > np.log(d * m * np.log1p(2 * r / eps))


def test_fraction_beyond_the_horizon():
    ln_horizon_given = RNG.uniform(0, 40000, 100)
    ln_n = ln_horizon_given + np.exp(RNG.uniform(-20, 4, 100))
    expected = [
        mpmath.mpf(n) + mpmath.log(1 - mpmath.exp(mpmath.mpf(h) - mpmath.mpf(n))) + ln_ln_v
        for ln_ln_v in [mpmath.log(mpmath.log(50304))]
        for n, h in zip(ln_n.tolist(), ln_horizon_given.tolist(), strict=True)
    ]
    found = ln_minus_ln_fraction(ln_n, ln_horizon_given, 50304)
    np.testing.assert_allclose(found, np.array(expected, float), rtol=1e-12, atol=1e-12)


def test_fraction_in_plain_numbers():
    """Horizon 10 tokens, n = 13, V = 7: a share of 7^-3; up to the horizon all may be reached."""
    found = float(ln_minus_ln_fraction(np.log(13), np.log(10), 7))
    np.testing.assert_allclose(np.exp(-np.exp(found)), 7.0**-3)
    within = ln_minus_ln_fraction(np.log([5.0, 10.0]), np.log(10.0), 7)
    assert np.asarray(within).tolist() == [-np.inf, -np.inf]


def test_derivative_and_map():
    with jax.enable_x64(True):
        rate = jax.jit(jax.vmap(jax.grad(ln_ln_reachable, argnums=1), (0, 0, None, None)))
        d, r = np.array([2.0, 768.0, 16384.0]), np.array([0.5, 60.0, 300.0])
        found = rate(d, r, 2.0**-10, 2.0)
    x = 2 * r * 2.0**10
    transport = np.log1p(x**2)
    expected = d * x / r / (1 + x) + (2 * x**2 / r / (1 + x**2)) / (1 + transport)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_edges():
    assert float(ln_ln_reachable(5, 0.0, 1.0)) == 0  # one point: e outputs, since ln e = 1
    assert float(ln_ln_reachable(0, 1.0, 2.0)) == pytest.approx(np.log(1 + np.log(2)))


def test_a_horizon_carries_its_assumptions():
    horizon = mean_field(768, 50304, 63.62, 2.0**-10)
    assert round(horizon.ln_length, 1) == 9045.3
    assert (horizon.rigorous, horizon.theorem) == (False, "Corollary 4.10")
    assert horizon.units == "ln of tokens"
    assert "63.62" in horizon.assumptions


@pytest.mark.parametrize(("field", "call"), [
    ("d", lambda: ln_ln_reachable(-1, 1.0, 1.0)),
    ("r", lambda: ln_ln_reachable(2, -1.0, 1.0)),
    ("eps", lambda: ln_ln_reachable(2, 1.0, 0.0)),
    ("q", lambda: ln_ln_reachable(2, 1.0, 1.0, 0.5)),
    ("q", lambda: ln_ln_reachable(2, 1.0, 1.0, np.inf)),
    ("vocabulary", lambda: ln_horizon(2, 1, 1.0, 1.0)),
    ("ln_n", lambda: ln_minus_ln_fraction(np.nan, 1.0, 7)),
    ("ln_horizon", lambda: ln_minus_ln_fraction(1.0, np.nan, 7)),
])  # fmt: skip
def test_bad_input_is_refused_by_name(field, call):
    with pytest.raises(ValueError, match=rf"^{field} = "):
        call()
