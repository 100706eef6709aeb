import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from reach_jax.bounds.packing import ln_packing_ball
from reach_jax.enumeration.grid import Grid, orders, sorted_twin
from tests.enumeration import reference


@pytest.mark.parametrize(("width", "vectors", "bits"), [(2, 2, 2), (3, 1, 3), (1, 4, 1), (2, 3, 1)])
def test_the_numbers_are_all_prompts(width, vectors, bits):
    grid = Grid(width, vectors, bits, 0.7)
    made = jax.vmap(grid.prompt)(jnp.arange(grid.count, dtype=jnp.uint32))
    expected = reference.all_prompts(width, vectors, bits, 0.7)
    assert made.dtype == jnp.float32
    np.testing.assert_allclose(made, expected, rtol=1e-6, atol=1e-7)
    assert len({row.tobytes() for row in np.asarray(made)}) == grid.count == len(expected)


def test_the_packing_bound_of_the_grid_is_its_number_of_prompts():
    for width, vectors, bits, radius in ((2, 4, 3, 1.0), (4, 1, 6, 0.1), (3, 2, 4, 17.0)):
        grid = Grid(width, vectors, bits, radius)
        np.testing.assert_allclose(np.diff(grid.values()), grid.eps, rtol=1e-4)
        bound = float(ln_packing_ball(width, vectors, radius, grid.eps))
        np.testing.assert_allclose(bound, np.log(grid.count), rtol=1e-12)


@pytest.mark.parametrize("free", [1, 2, 3])
def test_prompts_have_one_twin_exactly_if_they_are_reorderings(free):
    grid = Grid(2, 3, 1, 1.0)
    numbers = np.arange(grid.count)
    twins = sorted_twin(grid, numbers, free)
    prompts = np.asarray(jax.vmap(grid.prompt)(jnp.arange(grid.count, dtype=jnp.uint32)))
    groups = {}
    for number, prompt in enumerate(prompts):
        vectors = [tuple(v) for v in prompt.tolist()]
        groups.setdefault((*sorted(vectors[:free]), "|", *vectors[free:]), []).append(number)
    assert len(groups) == orders(grid, free) == len(np.unique(twins))
    for members in groups.values():
        assert len(np.unique(twins[members])) == 1
        assert twins[members[0]] in members  # a twin is one of them
    np.testing.assert_array_equal(sorted_twin(grid, twins, free), twins)


def test_every_order_of_one_prompt_is_among_its_twins():
    grid = Grid(1, 3, 3, 1.0)
    levels = (5, 0, 3)
    numbers = [a + (b << 3) + (c << 6) for a, b, c in itertools.permutations(levels)]
    assert set(sorted_twin(grid, np.array(numbers), 3)) == {0 + (3 << 3) + (5 << 6)}
    assert set(sorted_twin(grid, np.array(numbers), 1)) == set(numbers)


@pytest.mark.parametrize(
    ("field", "arguments"),
    [
        ("bits \\* vectors \\* width = 25", (5, 5, 1, 1.0)),
        ("width = 0", (0, 1, 1, 1.0)),
        ("vectors = 0", (1, 0, 1, 1.0)),
        ("bits = -1", (1, 1, -1, 1.0)),
        ("radius = 0.0", (1, 1, 1, 0.0)),
        ("radius = nan", (1, 1, 1, float("nan"))),
    ],
)
def test_what_is_no_grid_is_refused_by_name(field, arguments):
    with pytest.raises(ValueError, match=field):
        Grid(*arguments)


def test_more_free_vectors_than_there_are_is_refused():
    grid = Grid(1, 2, 1, 1.0)
    for free in (0, 3):
        with pytest.raises(ValueError, match=f"free = {free}"):
            orders(grid, free)
        with pytest.raises(ValueError, match=f"free = {free}"):
            sorted_twin(grid, np.arange(2), free)
