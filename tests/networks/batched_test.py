"""The batch's layout changes no number: against float64 loops, and its sums against einsum."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from infoflow_jax.networks import batched
from tests.networks import reference
from tests.networks.transformer_test import CONFIGS, noisy


@pytest.mark.parametrize("name", CONFIGS)
def test_every_sequence_gets_what_the_definition_gives_it(name):
    config = CONFIGS[name]
    params = noisy(config, 0)
    x_BTD = np.random.default_rng(1).standard_normal((2, 5, config.d))
    mask_LH = np.array([[True, False, True], [False, True, True]])[: config.layers]
    masked = name != "companion"
    run = jax.jit(lambda p, x: batched.apply(config, p, x, mask_LH if masked else None))
    got_BO = run(jax.tree.map(np.float32, params), np.float32(x_BTD))
    for got_O, x_TD in zip(got_BO, x_BTD, strict=True):
        want_O = reference.network(config, params, x_TD, mask_LH if masked else None)
        np.testing.assert_allclose(got_O, want_O, atol=1e-4 * (1 + np.abs(want_O).max()))


@pytest.mark.parametrize("terms", [3, batched._WRITTEN_OUT + 1])
def test_sums_and_their_gradients_are_those_of_einsum(terms):
    rng = np.random.default_rng(2)
    with jax.enable_x64(True):
        x, y = rng.standard_normal((2, 3, terms, 5)), rng.standard_normal((2, 4, terms, 5))
        weight = rng.standard_normal((2, 3, 4, 5))

        def ours(x, y):
            return jnp.sum(weight * batched._contract(x, y, jnp.bool_(True)))

        def theirs(x, y):
            return jnp.sum(weight * jnp.einsum("hirb,hjrb->hijb", x, y))

        found, wanted = (jax.jit(jax.value_and_grad(f, (0, 1)))(x, y) for f in (ours, theirs))
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-12), found, wanted)


def test_a_number_that_is_not_finite_is_not_hidden():
    config = CONFIGS["relu"]
    params = jax.tree.map(np.float32, noisy(config, 3))
    run = jax.jit(lambda x: batched.apply(config, params, x))
    for bad in (np.nan, np.inf):
        assert not np.isfinite(run(np.full((1, 5, config.d), bad, np.float32))).any()
