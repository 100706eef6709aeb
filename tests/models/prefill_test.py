"""Several positions into the cache at once: what steps say, unless they see each other in full."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from reach_jax.models import decoder
from reach_jax.ops import masks
from tests.models.tiny import CONFIG, make_params

WINDOWED = dataclasses.replace(CONFIG, local_layers=(True, False), window=2)
SLOTS, P = 7, 4


def inputs():
    return np.random.default_rng(0).standard_normal((P, CONFIG.width)).astype(np.float32)


@pytest.mark.parametrize("config", [CONFIG, WINDOWED])
def test_prefill_equals_steps(config):
    variables = {"params": make_params(config)}
    apply = functools.partial(decoder.Decoder(config).apply, variables)

    @jax.jit
    def both(x_PD):
        empty = decoder.empty_cache(config, SLOTS)

        def body(cache, item):
            hidden_D, cache = apply(*item, cache, method="step")
            return cache, hidden_D

        cache, steps_PD = jax.lax.scan(body, empty, (x_PD, jnp.arange(P)))
        return (steps_PD, cache), apply(x_PD, empty, method="prefill")

    for one, other in zip(*map(jax.tree.leaves, both(inputs())), strict=True):
        np.testing.assert_allclose(one, other, atol=2e-5)


def test_in_full_every_position_feels_the_last_and_none_the_empty_slots():
    variables = {"params": make_params(CONFIG)}

    @functools.partial(jax.jit, static_argnums=1)
    def run(x_PD, slots):
        cache = decoder.empty_cache(CONFIG, slots)
        return decoder.Decoder(CONFIG).apply(variables, x_PD, cache, True, method="prefill")[0]

    x_PD = inputs()
    states_PD = run(x_PD, SLOTS)
    np.testing.assert_allclose(states_PD, run(x_PD, P), atol=2e-5)
    changed_PD = x_PD.copy()
    changed_PD[-1] += 1
    moved = np.abs(run(changed_PD, SLOTS) - states_PD).max(axis=1)
    assert (moved > 1e-3).all()


def test_masks_of_given_positions():
    full = masks.prefix(2, 4, True)
    np.testing.assert_array_equal(full, [[1, 1, 0, 0]] * 2)
    for window in (None, 2):
        rows = [masks.cached(jnp.int32(t), 5, window)[0] for t in range(3)]
        np.testing.assert_array_equal(masks.prefix(3, 5, False, window), np.stack(rows))


def test_what_does_not_fit_is_refused():
    for config, slots, full, field in (
        (CONFIG, 3, False, "inputs_PD"),
        (WINDOWED, SLOTS, True, "full"),
    ):
        cache = decoder.empty_cache(config, slots)
        model = decoder.Decoder(config)
        with pytest.raises(ValueError, match=field):
            model.apply({"params": make_params(config)}, inputs(), cache, full, method="prefill")
