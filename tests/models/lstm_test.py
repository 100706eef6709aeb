"""The LSTM against a float64 loop, its steps against itself, and padding that changes nothing."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from reach_jax.models import kinds
from reach_jax.models.config import LSTMConfig
from tests.models.tiny import CONFIG, MAMBA

LSTM = LSTMConfig(vocab_size=11, layers=2, width=6, tied=False)
T = 7


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def reference(params, x_TD):
    """All hidden vectors of the last layer, gate by gate in float64."""
    for layer in range(LSTM.layers):
        cell = jax.tree.map(lambda x, i=layer: np.asarray(x[i], float), params["layers"]["cell"])
        c = h = np.zeros(LSTM.width)
        out = []
        for x in x_TD:

            def gate(name, x=x, h=h, cell=cell):
                inner, recurrent = cell["i" + name], cell["h" + name]
                return x @ inner["kernel"] + h @ recurrent["kernel"] + recurrent["bias"]

            i, f, o = (sigmoid(gate(name)) for name in "ifo")
            c = f * c + i * np.tanh(gate("g"))
            h = o * np.tanh(c)
            out.append(h)
        x_TD = np.array(out)
    return x_TD


@pytest.fixture(scope="module")
def params():
    shapes = kinds.init(LSTM, jax.random.key(0))
    rng = np.random.default_rng(0)  # biases too, which begin at zero
    return jax.tree.map(lambda x: jnp.asarray(rng.standard_normal(x.shape), x.dtype), shapes)


def test_states_and_steps_equal_the_loop_and_padding_is_passed_over(params):
    module, variables = kinds.module(LSTM), {"params": params}
    x_TD = np.random.default_rng(1).standard_normal((T, LSTM.width)).astype(np.float32)
    want_TD = reference(params, x_TD)

    @jax.jit
    def hidden(x_TD, valid_T):
        return module.apply(variables, x_TD, jnp.zeros(len(valid_T)), valid_T, method="hidden")

    got_TD = hidden(x_TD, jnp.ones(T, bool))
    np.testing.assert_allclose(got_TD, want_TD, atol=1e-5)

    def body(cache, x_D):
        state_D, cache = module.apply(variables, x_D, 0, cache, method="step")
        return cache, state_D

    stepped_TD = jax.jit(lambda: jax.lax.scan(body, kinds.empty_cache(LSTM, 1), x_TD)[1])()
    np.testing.assert_allclose(stepped_TD, want_TD, atol=1e-5)

    places = [1, 2, 4, 5, 7, 8, 9]  # of ten, the others padding
    wide_TD = np.full((10, LSTM.width), 3.0, np.float32)
    wide_TD[places] = x_TD
    valid_T = np.isin(np.arange(10), places)
    spread_TD = hidden(wide_TD, valid_T)
    np.testing.assert_allclose(spread_TD[valid_T], want_TD, atol=1e-5)
    assert not np.asarray(spread_TD[~valid_T]).any()


def test_only_recurrent_models_have_a_memory_that_does_not_grow():
    assert kinds.memory_size(LSTM) == 2 * LSTM.layers * LSTM.width
    per_layer = (MAMBA.conv_width - 1) * MAMBA.inner + MAMBA.inner * MAMBA.state_size
    assert kinds.memory_size(MAMBA) == MAMBA.layers * per_layer
    assert kinds.memory_size(CONFIG) is None


def test_impossible_sizes_are_refused():
    with pytest.raises(ValueError, match="width"):
        dataclasses.replace(LSTM, width=0)
    with pytest.raises(ValueError, match="dtype"):
        dataclasses.replace(LSTM, dtype="int8")
