"""Decoders that differ in positions only: as a configuration, as arrays, and step by step."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from reach_jax.models import decoder, kinds
from tests.models.tiny import CONFIG, make_params

T = 9
PARAMS = make_params(CONFIG)
NONE = dataclasses.replace(CONFIG, rotary_width=0)
VARIANTS = {
    "rope": CONFIG,
    "nope": NONE,
    "alibi": dataclasses.replace(NONE, alibi=True),
    "hard": dataclasses.replace(NONE, masked_heads=4),
}
INPUTS_TD = np.random.default_rng(0).standard_normal((T, CONFIG.width)).astype(np.float32)


@functools.partial(jax.jit, static_argnums=0)
def hidden(config, inputs_TD, positions_T, rules=None):
    variables, valid_T = {"params": PARAMS}, jnp.ones(T, bool)
    named = {} if rules is None else {"rules": rules}
    apply = functools.partial(decoder.Decoder(config).apply, method="hidden")
    return apply(variables, inputs_TD, positions_T, valid_T, **named)


@jax.jit
def steps(inputs_TD, rules):
    step = functools.partial(decoder.Decoder(CONFIG).apply, {"params": PARAMS}, method="step")

    def body(cache, item):
        state_D, cache = step(*item, cache, rules=rules)
        return cache, state_D

    cache = kinds.empty_cache(CONFIG, T + 2)
    return jax.lax.scan(body, cache, (inputs_TD, jnp.arange(T)))[1]


@pytest.mark.parametrize("name", VARIANTS)
def test_positions_as_arrays_equal_the_configuration_and_the_cache(name):
    config = VARIANTS[name]
    want_TD = hidden(config, INPUTS_TD, jnp.arange(T))
    rules = decoder.rules(config)
    np.testing.assert_allclose(hidden(CONFIG, INPUTS_TD, jnp.arange(T), rules), want_TD, atol=2e-5)
    np.testing.assert_allclose(steps(INPUTS_TD, rules), want_TD, atol=2e-5)
    shifted_TD = hidden(CONFIG, INPUTS_TD, 40 + jnp.arange(T), rules)
    np.testing.assert_allclose(shifted_TD, want_TD, atol=5e-4)  # distances only


def test_the_variants_are_different_models():
    states = [hidden(CONFIG, INPUTS_TD, jnp.arange(T), decoder.rules(c)) for c in VARIANTS.values()]
    for i in range(len(states)):
        for j in range(i):
            assert float(jnp.abs(states[i] - states[j]).max()) > 0.05


def test_positions_that_arrays_cannot_say_and_too_many_masked_heads_are_refused():
    with pytest.raises(ValueError, match="rotary_width"):
        decoder.rules(dataclasses.replace(CONFIG, rotary_width=2))
    local = dataclasses.replace(CONFIG, local_layers=(True, False), window=3)
    with pytest.raises(ValueError, match="local_layers"):
        decoder.rules(local)
    with pytest.raises(ValueError, match="masked_heads"):
        dataclasses.replace(CONFIG, masked_heads=7)
