"""Exact float counts against every bit pattern, and against walks from float to float."""

import jax
import ml_dtypes
import numpy as np
import pytest

from reach_jax.bounds.floats import count_floats, float_grid_slope, trivial_slope

HALVES = {"float16": np.float16, "bfloat16": ml_dtypes.bfloat16}
# arXiv 2605.22223, Table 2: d, V, r; then, recomputed, C of 16 bits and of float16 in [-r, r].
PUBLISHED = {
    "Pythia-160M": (768, 50304, 63.62, 786.8, 756.8),
    "Pythia-410M": (1024, 50304, 54.90, 1049.0, 1007.9),
    "Pythia-1B": (2048, 50304, 65.68, 2098.0, 2018.6),
    "Qwen2.5-0.5B": (896, 151936, 309.0, 832.9, 808.7),
    "Qwen2.5-1.5B": (1536, 151936, 153.62, 1427.7, 1380.7),
    "Llama-3.2-1B": (2048, 128256, 41.06, 1931.1, 1851.7),
    "Gemma-3-270M": (640, 262144, 10.74, 568.9, 540.3),
}


def count(lo, hi, dtype):
    return int(count_floats(lo, hi, dtype))


def finite_values(dtype):
    """Every finite value of a 16-bit dtype, -0 and +0 as one, ascending."""
    values = np.arange(2**16, dtype=np.uint16).view(dtype)
    return np.unique(values[np.isfinite(values)].astype(np.float64))


@pytest.mark.parametrize("dtype", HALVES)
def test_counts_are_those_of_all_bit_patterns(dtype):
    values = finite_values(HALVES[dtype])
    rng = np.random.default_rng(0)
    exponents = rng.uniform(-45 if dtype == "float16" else -300, 140, (2, 4000))
    ends = rng.choice([-1.0, 1.0], exponents.shape) * np.exp2(exponents.clip(-160))
    ends = np.concatenate(
        [
            ends,
            rng.choice(values, (2, 2000)),  # representable ends
            np.nextafter(rng.choice(values, (2, 2000)), rng.choice([-np.inf, np.inf], (2, 2000))),
            rng.uniform(-3, 3, (2, 2000)),
            rng.choice(values[np.abs(values) < 1e-4], (2, 500)),
        ],
        axis=1,
    )
    lo, hi = np.sort(ends, axis=0)
    expected = np.searchsorted(values, hi, "right") - np.searchsorted(values, lo, "left")
    np.testing.assert_array_equal(count_floats(lo, hi, dtype), expected)
    assert count(-np.inf, np.inf, dtype) == values.size


@pytest.mark.parametrize("start", [
    -3e-44, 0.0, 1.1754942e-38, -1.1754950e-38, 1.0, 0.99999, -2.00001, 6e4, 16777210.0, 3.40275e38,
])  # fmt: skip
def test_float32_counts_are_those_of_a_walk(start):
    lo = np.float32(start)
    walk = [lo]
    while len(walk) < 200:
        walk.append(np.nextafter(walk[-1], np.float32(np.inf)))
    for steps in (0, 1, 7, 60, 199):
        distinct = len({float(x) for x in walk[: steps + 1]})
        assert count(lo, walk[steps], "float32") == distinct
        above = np.nextafter(np.float64(lo), np.inf)  # between lo and its neighbour
        assert count(above, max(above, walk[steps]), "float32") == distinct - 1


def test_float32_total_and_the_ends_of_its_range():
    assert count(-np.inf, np.inf, "float32") == 2**32 - 2**24 - 1
    assert count(3.5e38, np.inf, "float32") == 0
    assert count(-np.inf, -3.5e38, "float32") == 0
    assert count(5e-324, 1.4e-45, "float32") == 0
    assert count(5e-324, 1.5e-45, "float32") == 1


def test_zeros_are_one_value():
    for lo, hi in [(-0.0, 0.0), (0.0, 0.0), (0.0, -0.0), (-5e-324, 5e-324)]:
        assert count(lo, hi, "float16") == 1


def test_subnormal_float32_ends_are_not_flushed():
    assert count(np.float32(0), np.float32(7e-45), "float32") == 6


def test_count_is_traceable():
    lo, hi = np.float32([-1, 0.1, -2]), np.float32([1, 0.2, -1])
    traced = jax.jit(jax.vmap(lambda a, b: count_floats(a, b, "float16")))(lo, hi)
    np.testing.assert_array_equal(traced, count_floats(lo, hi, "float16"))


@pytest.mark.parametrize("model", PUBLISHED)
def test_published_models(model):
    d, vocabulary, r, bits, grid = PUBLISHED[model]
    assert round(float(trivial_slope(d, vocabulary, "bfloat16")), 1) == bits
    side = np.full(d, r)
    assert round(float(float_grid_slope(-side, side, vocabulary, "float16")), 1) == grid


def test_grid_of_the_whole_range_is_just_below_the_trivial_bits():
    for dtype in ("float16", "bfloat16", "float32"):
        whole = float(float_grid_slope(np.full(64, -np.inf), np.full(64, np.inf), 50304, dtype))
        trivial = float(trivial_slope(64, 50304, dtype))
        assert 0.995 * trivial < whole < trivial


def test_a_coordinate_without_floats_leaves_no_prompt():
    slope = float_grid_slope([0.0, 1.0001], [1.0, 1.0002], 10, "float16")
    assert float(slope) == -np.inf


@pytest.mark.parametrize(("lo", "hi", "dtype", "message"), [
    (1.0, 0.0, "float16", "lo <= hi"),
    ([0.0, 2.0], [1.0, 1.0], "float16", "lo <= hi"),
    (np.nan, 1.0, "float16", "lo = nan"),
    (0.0, np.nan, "float16", "hi = nan"),
    (0.0, 1.0, "float64", "dtype = 'float64'"),
    (0.0, 1.0, "int16", "dtype = 'int16'"),
    (0.0, 1.0, "float8_e4m3fn", "dtype = 'float8_e4m3fn'"),
])  # fmt: skip
def test_bad_input_is_refused(lo, hi, dtype, message):
    with pytest.raises(ValueError, match=message):
        count_floats(lo, hi, dtype)
