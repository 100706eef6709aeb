"""The whole enumeration against one in numpy, prompt by prompt and token by token."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from reach_jax.enumeration import decode
from tests.enumeration import cases, reference


def decoded(spec, seed=0):
    numbers = jnp.arange(spec.grid.count, dtype=jnp.uint32)
    params = cases.params(spec.model, seed)
    out = decode.decode_block(spec.model, spec.layout, spec.grid, params, numbers, spec.length)
    return [np.asarray(x) for x in out]


def expected(spec, seed=0):
    g = spec.grid
    prompts = reference.all_prompts(g.width, g.vectors, g.bits, g.radius)
    full = spec.layout.attention == "full"
    params = cases.params(spec.model, seed)
    return reference.greedy(params, spec.model, prompts, full, spec.layout.end, spec.length)


@pytest.mark.parametrize(
    ("attention", "end", "rotary_width"),
    [
        ("causal", "vector", None),
        ("causal", "token", 0),
        ("full", "vector", 0),
        ("full", "token", None),
    ],
)
def test_every_prompt_emits_what_numpy_says(attention, end, rotary_width):
    spec = cases.spec(attention, end, rotary_width=rotary_width)
    tokens, margins = decoded(spec)
    wanted, wanted_margins = expected(spec)
    np.testing.assert_array_equal(tokens, wanted)
    np.testing.assert_allclose(margins, wanted_margins, atol=1e-4)
    assert len({row.tobytes() for row in tokens}) > 4  # it says several things


@pytest.mark.parametrize(
    "changes",
    [
        {"width": 4, "vectors": 2, "bits": 1, "vocab_size": 7, "heads": 1, "head_width": 4},
        {"width": 2, "vectors": 4, "bits": 1, "vocab_size": 2, "length": 1},
        {"width": 1, "vectors": 3, "bits": 3, "vocab_size": 2, "layers": 3, "length": 9},
    ],
)
def test_other_sizes_agree_too(changes):
    spec = cases.spec(**changes)
    tokens, _ = decoded(spec, seed=1)
    np.testing.assert_array_equal(tokens, expected(spec, seed=1)[0])


def test_an_exact_tie_goes_to_the_lowest_token_and_has_margin_zero():
    spec = cases.spec()
    params = cases.params(spec.model)
    same = params | {"head": jnp.ones_like(params["head"])}
    numbers = jnp.arange(spec.grid.count, dtype=jnp.uint32)
    tokens, margins = decode.decode_block(
        spec.model, spec.layout, spec.grid, same, numbers, spec.length
    )
    assert not np.asarray(tokens).any()
    assert not np.asarray(margins).any()


@pytest.mark.parametrize(
    ("layers", "rotary_width", "attention", "end", "free"),
    [
        (2, 0, "full", "token", 3),
        (2, 0, "full", "vector", 2),
        (2, 0, "causal", "token", 1),  # a causal mask is a position from the second layer on
        (1, 0, "causal", "token", 3),
        (1, 0, "causal", "vector", 2),
        (1, None, "full", "token", 1),
    ],
)
def test_exactly_the_free_vectors_can_change_places(layers, rotary_width, attention, end, free):
    spec = cases.spec(attention, end, layers=layers, rotary_width=rotary_width)
    assert decode.free_vectors(spec.model, spec.layout, 3) == free
    params = cases.params(spec.model)
    prompt_MD = np.random.default_rng(3).standard_normal((3, 2)).astype(np.float32)
    orders_BMD = jnp.asarray(prompt_MD[[[0, 1, 2], [1, 0, 2], [0, 2, 1]]])
    one = functools.partial(decode.decode_one, spec.model, spec.layout, params, length=1)
    margins = np.asarray(jax.jit(jax.vmap(one))(orders_BMD)[1])  # they feel what tokens need not
    first_two, last_two = abs(margins[1:] - margins[0]) < 1e-5
    assert (first_two, last_two) == (free >= 2, free == 3)


def test_rows_have_one_number_each_up_to_the_last_that_fits():
    for vocabulary in (2, 3, 4, 10, 256):
        N = decode.longest_row(vocabulary)
        assert vocabulary**N <= 2**64 < vocabulary ** (N + 1)
        rng = np.random.default_rng(vocabulary)
        rows = rng.integers(0, vocabulary, (50, N)).astype(np.uint8)
        rows[0], rows[1] = 0, vocabulary - 1
        keys = decode.pack(rows, vocabulary)
        for key, row in zip(keys.tolist(), rows.tolist(), strict=True):
            assert key == sum(t * vocabulary ** (N - 1 - i) for i, t in enumerate(row))
        with pytest.raises(ValueError, match=f"length = {N + 1}"):
            decode.pack(np.zeros((1, N + 1), np.uint8), vocabulary)


@pytest.mark.parametrize("vocabulary", [1, 257])
def test_a_vocabulary_that_no_byte_holds_is_refused(vocabulary):
    with pytest.raises(ValueError, match=f"vocab_size = {vocabulary}"):
        decode.longest_row(vocabulary)


def test_an_unknown_layout_is_refused():
    with pytest.raises(ValueError, match="attention = 'all'"):
        decode.Layout("all", "token")
    with pytest.raises(ValueError, match="end = 'begin'"):
        decode.Layout("full", "begin")
