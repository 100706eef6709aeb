"""The support of a set against brute force over all vectors and all pairs."""

import itertools

import chex
import jax.numpy as jnp
import numpy as np
import pytest

from reach_jax.geometry import support
from reach_jax.geometry.support import Measure


def measure(x_ND, sizes=None):
    """The support of `x_ND`, fed in batches of the given sizes."""
    m = Measure(x_ND.shape[1])
    for batch_ND in np.split(x_ND, np.cumsum(sizes or [])):
        m.add(batch_ND)
    return m.support()


def vectors(n, D=5, seed=0):
    """A cloud away from the origin, so that its cosines average to something."""
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, D)) * np.arange(1, D + 1) - 0.7


def pair_cosines(x_ND):
    return [float(a @ b / np.sqrt((a @ a) * (b @ b))) for a, b in itertools.combinations(x_ND, 2)]


@pytest.mark.parametrize("sizes", [None, [1, 1, 20], [0, 30, 0], [13] * 3])
def test_support_equals_brute_force(sizes):
    x_ND = vectors(40)
    got = measure(x_ND, sizes)
    assert got.count == got.compared == 40
    np.testing.assert_allclose(got.r_inf, max(abs(v) for row in x_ND for v in row))
    np.testing.assert_allclose(got.r_2, max(sum(v * v for v in row) ** 0.5 for row in x_ND))
    np.testing.assert_allclose(got.r_1, max(sum(abs(v) for v in row) for row in x_ND))
    np.testing.assert_array_equal(got.lo_D, [min(column) for column in x_ND.T])
    np.testing.assert_array_equal(got.hi_D, [max(column) for column in x_ND.T])
    cosines = pair_cosines(x_ND)
    np.testing.assert_allclose(got.mean_cosine, np.mean(cosines), rtol=1e-12)
    np.testing.assert_allclose(got.least_cosine, min(cosines), rtol=1e-12)
    assert abs(np.mean(cosines)) > 0.01


def test_order_does_not_matter():
    x_ND = vectors(30, seed=1)
    shuffled_ND = np.random.default_rng(2).permutation(x_ND)
    one, other = measure(x_ND, [7]), measure(shuffled_ND, [19])
    chex.assert_trees_all_close(vars(one), vars(other), rtol=1e-12)


def test_the_least_cosine_is_over_the_first_vectors_only(monkeypatch):
    monkeypatch.setattr(support, "KEPT", 6)
    x_ND = vectors(15, seed=3)
    x_ND[12] = -x_ND[0]  # the least of all pairs comes after the first six
    got = measure(x_ND, [4, 4])
    assert (got.count, got.compared) == (15, 6)
    np.testing.assert_allclose(got.least_cosine, min(pair_cosines(x_ND[:6])), rtol=1e-12)
    np.testing.assert_allclose(got.mean_cosine, np.mean(pair_cosines(x_ND)), rtol=1e-12)
    assert got.least_cosine > -0.999
    np.testing.assert_allclose(measure(x_ND[:13][::-6]).least_cosine, -1)  # rows 12, 6 and 0


def test_memory_stays_within_the_cap():
    m = Measure(2)
    for seed in range(3):
        m.add(vectors(support.KEPT - 100, D=2, seed=seed))
    found = m.support()
    assert (found.count, found.compared) == (3 * (support.KEPT - 100), support.KEPT)


def test_one_vector_has_no_cosines():
    got = measure(np.array([[3.0, -4.0]]))
    assert (got.count, got.compared, got.r_inf, got.r_2) == (1, 1, 4.0, 5.0)
    np.testing.assert_array_equal(got.lo_D, got.hi_D)
    assert np.isnan([got.mean_cosine, got.least_cosine]).all()


def test_duplicates_count_as_pairs():
    got = measure(np.tile([[1.0, 2.0]], (5, 1)) * np.arange(1, 6)[:, None])
    np.testing.assert_allclose([got.mean_cosine, got.least_cosine], 1, rtol=1e-12)
    np.testing.assert_allclose(measure(np.array([[1.0, 0], [0, 2], [1, 0]])).mean_cosine, 1 / 3)


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.bfloat16])
def test_narrow_batches_are_measured_in_float64(dtype):
    x_ND = vectors(100, seed=4).astype(dtype)
    wide_ND = x_ND.astype(np.float64)
    chex.assert_trees_all_equal(vars(measure(x_ND)), vars(measure(wide_ND)))
    cosines = pair_cosines(wide_ND)
    np.testing.assert_allclose(measure(x_ND).mean_cosine, np.mean(cosines), rtol=1e-12)


def test_more_vectors_leave_an_earlier_answer_alone():
    m = Measure(3)
    m.add(vectors(4, D=3))
    before = m.support()
    kept = before.lo_D.copy()
    m.add(100 * vectors(4, D=3, seed=9))
    np.testing.assert_array_equal(before.lo_D, kept)
    assert m.support().r_inf > before.r_inf


@pytest.mark.parametrize(
    ("batch", "message"),
    [
        (np.ones((2, 4)), r"^shape = \(2, 4\): expected \(N, 3\)"),
        (np.ones(3), r"^shape = \(3,\): expected"),
        (np.array([[1.0, np.nan, 0.0]]), "^vectors = 'not finite'"),
        (np.array([[1.0, np.inf, 0.0]]), "^vectors = 'not finite'"),
        (np.array([[1.0, 0, 0], [0, 0, 0]]), "^vectors = 'a zero vector'"),
    ],
)
def test_bad_batches_are_refused_and_leave_no_trace(batch, message):
    m = Measure(3)
    m.add(vectors(4, D=3))
    before = m.support()
    with pytest.raises(ValueError, match=message):
        m.add(batch)
    chex.assert_trees_all_equal(vars(m.support()), vars(before))


def test_no_dimensions_are_refused():
    with pytest.raises(ValueError, match=r"^width = 0"):
        Measure(0)


def test_nothing_has_no_support():
    m = Measure(3)
    m.add(np.zeros((0, 3)))
    with pytest.raises(ValueError, match=r"^vectors = 0: expected at least one"):
        m.support()
