import dataclasses

import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from reach_jax.enumeration import counts, decode
from reach_jax.enumeration.blocks import Outputs
from tests.enumeration import cases


def test_distinct_rows_of_every_length_are_those_of_python_sets():
    rng = np.random.default_rng(0)
    for vocabulary, length in ((2, 64), (3, 7), (4, 32), (7, 5)):
        rows = rng.integers(0, vocabulary, (200, length)).astype(np.uint8)
        rows[100:] = rows[:100]
        rows[150:, -2:] = rng.integers(0, vocabulary, (50, 2))
        found = counts.distinct_by_length(decode.pack(rows, vocabulary), vocabulary, length)
        assert found == [len({tuple(row[:n]) for row in rows}) for n in range(1, length + 1)]


def test_no_rows_is_refused():
    with pytest.raises(ValueError, match="at least one row"):
        counts.distinct_by_length(np.zeros(0, np.uint64), 2, 3)


def test_entropy_is_that_of_the_outputs():
    keys = np.array([3, 3, 9, 9, 9, 1, 2, 7], np.uint64)
    want = stats.entropy([2, 3, 1, 1, 1], base=2)
    np.testing.assert_allclose(counts.entropy_bits(keys), want, rtol=1e-12)
    assert counts.entropy_bits(np.zeros(5, np.uint64)) == 0.0


def outputs_of(spec):
    numbers = jnp.arange(spec.grid.count, dtype=jnp.uint32)
    params = cases.params(spec.model)
    tokens, margins = decode.decode_block(
        spec.model, spec.layout, spec.grid, params, numbers, spec.length
    )
    keys = decode.pack(np.asarray(tokens), spec.model.vocab_size)
    return Outputs(keys, np.asarray(margins), 0.0, 0.0)


def test_permuted_prompts_coincide_without_positions_and_not_with_them():
    free = cases.spec("full", "token", vectors=3, bits=1, rotary_width=0)
    found = counts.compare_orders(free, outputs_of(free))
    assert (found.free, found.classes) == (3, 20)  # multisets of 3 out of 4 vectors
    assert found.moved == 64 - 20
    assert found.unequal == 0
    assert found.any_equal == 1.0
    placed = cases.spec("causal", "vector", vectors=3, bits=1)
    found = counts.compare_orders(placed, outputs_of(placed))
    assert (found.free, found.classes, found.moved, found.unequal) == (1, 64, 0, 0)
    assert found.any_equal < 1.0


def test_a_prompt_that_differs_from_its_twin_is_counted_with_the_smaller_margin():
    spec = cases.spec("full", "token", vectors=2, bits=1, rotary_width=0)
    spec = dataclasses.replace(spec, length=1)
    keys = np.zeros(16, np.uint64)
    keys[0b0100] = 1  # vectors (0, 1) as bits 00, 01: its twin is 0b0100, of 0b0001 too
    margins = np.full(16, 0.5, np.float32)
    margins[0b0001] = 0.25
    found = counts.compare_orders(spec, Outputs(keys, margins, 0.0, 0.0))
    assert (found.moved, found.unequal, found.unequal_margin) == (6, 1, 0.25)
    assert found.any_equal == pytest.approx(5 / 6)


def test_one_vector_has_no_order():
    spec = cases.spec(vectors=1, bits=1)
    found = counts.compare_orders(spec, Outputs(np.arange(4, dtype=np.uint64), np.ones(4), 0, 0))
    assert found.moved == 0
    assert np.isnan(found.any_equal)
