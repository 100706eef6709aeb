import mpmath
import numpy as np
import pytest

from reach_jax.analysis.wasserstein import wasserstein
from reach_jax.bounds.lipschitz import ln_attention_lipschitz


@pytest.mark.parametrize(
    ("a", "v", "radius"),
    [([0.3], [2.0], 1.0), ([0.1, 4.0, 0.0], [1.0, 0.5, 3.0], 2.0), ([50.0], [1.0], 10.0)],
)
def test_the_formula_in_many_digits(a, v, radius):
    mpmath.mp.dps = 60
    total = mpmath.mpf(1)
    for one_a, one_v in zip(a, v, strict=True):
        x = mpmath.mpf(one_a) * radius**2
        total += one_v * (x + (1 + 2 * x) * mpmath.e ** (2 * x))
    found = float(ln_attention_lipschitz(a, v, radius))
    np.testing.assert_allclose(found, float(mpmath.log(total)), rtol=1e-12)


def test_without_attention_it_is_the_residual_and_without_scores_a_mean():
    assert float(ln_attention_lipschitz([1.0], [0.0], 3.0)) == 0.0
    np.testing.assert_allclose(np.exp(ln_attention_lipschitz([0.0], [2.0], 3.0)), 3.0, rtol=1e-14)


@pytest.mark.parametrize("a", [1.0, 4.0])
@pytest.mark.parametrize("q", [1, 2])
def test_no_pair_on_the_line_is_carried_further(a, q):
    """One head in one dimension, A = a, V = -3, R = 1: random clouds and clouds at the ends."""
    rng = np.random.default_rng(0)

    def push(x):
        weights = np.exp(a * x[:, None] * x[None, :])
        return x + (weights * -3 * x[None, :]).sum(1) / weights.sum(1)

    limit = np.exp(float(ln_attention_lipschitz([a], [3.0], 1.0)))
    worst = 0.0
    for _ in range(300):
        x, y = rng.uniform(-1, 1, (2, 6))
        if rng.random() < 0.5:
            x, y = np.sign(x), np.where(rng.random(6) < 0.2, -np.sign(x), np.sign(x))
        before = wasserstein(x[:, None], y[:, None], q)
        if before > 0:
            after = wasserstein(push(x)[:, None], push(y)[:, None], q)
            worst = max(worst, after / before)
    assert 1.5 < worst <= limit


def test_values_out_of_range_are_refused_by_name():
    for arguments, field in (
        (([-1.0], [1.0], 1.0), "norm_a_H"),
        (([1.0], [np.inf], 1.0), "norm_v_H"),
        (([1.0], [1.0], -2.0), "radius"),
    ):
        with pytest.raises(ValueError, match=field):
            ln_attention_lipschitz(*arguments)
