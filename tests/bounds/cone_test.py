"""The cone's share of a ball against mpmath, the published cones, and samples of a ball."""

import jax
import mpmath
import numpy as np
import pytest

from reach_jax.bounds.cone import angle_of_cosine, cone_slope, ln_cone_fraction

mpmath.mp.dps = 50
# arXiv 2605.22223, Tables 1 and 2: d, V, r, theta; then ln f recomputed.
PUBLISHED = {
    "Pythia-160M": (768, 50304, 63.62, 1.96, -146.1135),
    "Pythia-410M": (1024, 50304, 54.90, 1.87, -226.2767),
    "Pythia-1B": (2048, 50304, 65.68, 2.22, -229.4022),
    "Qwen2.5-0.5B": (896, 151936, 309.0, 2.23, -99.8793),
    "Qwen2.5-1.5B": (1536, 151936, 153.62, 2.34, -130.3885),
    "Llama-3.2-1B": (2048, 128256, 41.06, 1.73, -563.1233),
    "Gemma-3-270M": (640, 262144, 10.74, 1.82, -154.6918),
}
# The notebook at eps = r/2^11: d, theta, measured slope, exact cone ratio.
NOTEBOOK = [
    (2048, 2.219370, 261.4, 5.938624),
    (2560, 2.159577, 197.9, 9.787134),
    (4096, 2.213061, 283.55, 10.948465),
]
RNG = np.random.default_rng(0)
# All of (0, pi), its upper end again, where another branch serves, the corners, and both sides of
# the seam between the branches, where the fraction converges slowest.
SEAM_D = np.repeat([2, 30, 300, 1000, 3000, 10_000, 16384], 2)
SEAM_SIN2 = (SEAM_D + 1) / (SEAM_D + 4) * np.tile([1 - 1e-6, 1 + 1e-7], 7)
D = np.concatenate(
    [RNG.integers(2, 16385, 150), np.arange(2, 42), [2, 3, 16384, 16384, 16384], SEAM_D]
)
THETA = np.concatenate(
    [
        RNG.uniform(0, np.pi, 110),
        RNG.uniform(3, np.pi, 80),
        [1e-9, np.pi, 1e-3, 3.1405, np.pi],
        2 * np.arcsin(np.sqrt(SEAM_SIN2)),
    ]
)


def exact(d, theta):
    """ln of half the regularized incomplete beta function, by mpmath's hypergeometric series."""
    x = mpmath.sin(mpmath.mpf(float(theta)) / 2) ** 2
    half = mpmath.mpf(1) / 2
    a = mpmath.mpf(int(d) - 1) / 2
    return mpmath.log(mpmath.betainc(a, half, 0, x, regularized=True) / 2)


def relative(found, expected):
    return max(
        abs(float((mpmath.mpf(float(x)) - y) / y)) for x, y in zip(found, expected, strict=True)
    )


def test_fraction_against_mpmath():
    expected = [exact(*pair) for pair in zip(D, THETA, strict=True)]
    found = np.asarray(ln_cone_fraction(D, THETA))
    assert found.dtype == np.float64
    assert relative(found, expected) < 1e-12


@pytest.mark.parametrize("model", PUBLISHED)
def test_published_models(model):
    d, _, _, theta, ln_f = PUBLISHED[model]
    assert round(float(ln_cone_fraction(d, theta)), 4) == ln_f


@pytest.mark.parametrize(("d", "theta", "measured", "ratio"), NOTEBOOK)
def test_exact_notebook_ratios(d, theta, measured, ratio):
    assert round(float(cone_slope(d, 50304, 1.0, 2.0**-11, theta)) / measured, 6) == ratio


def test_slope_against_mpmath_and_mapped_over_models():
    d, vocabulary, r, theta, _ = (np.array(x) for x in zip(*PUBLISHED.values(), strict=True))
    expected = [
        (i * mpmath.log1p(2 * mpmath.mpf(x) * 1024) + exact(i, t)) / mpmath.log(int(v))
        for i, v, x, t in zip(d.tolist(), vocabulary, r.tolist(), theta.tolist(), strict=True)
    ]
    with jax.enable_x64(True):
        slopes = jax.jit(jax.vmap(cone_slope, (0, 0, 0, None, 0)))(
            d, vocabulary, r, 2.0**-10, theta
        )
    assert relative(slopes, expected) < 1e-12
    assert relative(cone_slope(d, vocabulary, r, 2.0**-10, theta), expected) < 1e-12


def test_fraction_is_that_of_samples():
    """Directions of normal vectors are uniform; a share of 400000 is good to a thousandth."""
    for d, theta in [(2, 1.0), (3, 2.0), (5, 2.6), (8, 3.1)]:
        x = np.random.default_rng(d).normal(size=(400_000, d))
        inside = x[:, 0] >= np.cos(theta / 2) * np.linalg.norm(x, axis=1)
        assert abs(inside.mean() - np.exp(float(ln_cone_fraction(d, theta)))) < 4e-3


def test_known_shares():
    np.testing.assert_allclose(
        ln_cone_fraction(2, [0.5, 3.0]), np.log(np.array([0.5, 3]) / 2 / np.pi)
    )
    np.testing.assert_allclose(ln_cone_fraction(3, 2.0), np.log((1 - np.cos(1.0)) / 2), rtol=1e-14)
    np.testing.assert_allclose(ln_cone_fraction([1, 7, 16384], np.pi), np.log(0.5), rtol=1e-14)
    np.testing.assert_allclose(ln_cone_fraction(1, [0.0, 1.0]), np.log(0.5), rtol=1e-14)
    assert float(ln_cone_fraction(2, 0.0)) == -np.inf


def test_gradient_against_mpmath():
    d, theta = D[:40], THETA[:40]
    step = mpmath.mpf(10) ** -20

    def shifted(i, t, sign):
        x = mpmath.sin((mpmath.mpf(float(t)) + sign * step) / 2) ** 2
        a = mpmath.mpf(int(i) - 1) / 2
        return mpmath.log(mpmath.betainc(a, 0.5, 0, x, regularized=True))

    expected = [
        (shifted(i, t, 1) - shifted(i, t, -1)) / (2 * step) for i, t in zip(d, theta, strict=True)
    ]
    with jax.enable_x64(True):
        found = jax.jit(jax.vmap(jax.grad(ln_cone_fraction, argnums=1)))(d.astype(float), theta)
    assert relative(found, expected) < 1e-10


def test_angle_of_a_cosine_keeps_small_angles():
    np.testing.assert_allclose(angle_of_cosine([1, 0, -1]), [0, np.pi / 2, np.pi], rtol=1e-15)
    cosine = 1 - 1e-12
    expected = float(mpmath.acos(mpmath.mpf(cosine)))
    np.testing.assert_allclose(angle_of_cosine(cosine), expected, rtol=1e-14)


@pytest.mark.parametrize(("field", "call"), [
    ("d", lambda: ln_cone_fraction(0, 1.0)),
    ("d", lambda: ln_cone_fraction(2.5, 1.0)),
    ("theta", lambda: ln_cone_fraction(3, -0.1)),
    ("theta", lambda: ln_cone_fraction(3, 3.2)),
    ("theta", lambda: cone_slope(3, 10, 1.0, 1.0, np.nan)),
    ("eps", lambda: cone_slope(3, 10, 1.0, 0.0, 1.0)),
    ("r", lambda: cone_slope(3, 10, -1.0, 1.0, 1.0)),
    ("cosine", lambda: angle_of_cosine(1.1)),
])  # fmt: skip
def test_bad_input_is_refused_by_name(field, call):
    with pytest.raises(ValueError, match=rf"^{field} = "):
        call()
