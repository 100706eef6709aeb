"""States and weights against loops, rollout by hand."""

import jax
import numpy as np
import pytest

from infoflow_jax.networks.config import NetworkConfig
from infoflow_jax.networks.construction import zeros
from infoflow_jax.probing import trace
from tests.networks import reference
from tests.probing import cases

CONFIG = NetworkConfig(2, 6, (1, 2), 3, ((4,), ()), kind="gelu", residual="both", beta=0.8,
                       dtype="float64")  # fmt: skip
MASK_LH = np.array([[True, False], [False, True]])


@pytest.fixture(scope="module")
def seen():
    rng = np.random.default_rng(0)
    params = jax.tree.map(lambda leaf: rng.standard_normal(leaf.shape), zeros(CONFIG))
    x_NTD = rng.standard_normal((3, 4, 2))
    return params, x_NTD, *trace.observe(CONFIG, params, MASK_LH, x_NTD)


def test_states_and_weights_are_those_of_the_loops(seen):
    params, x_NTD, states_NLPE, weights_NLHPS = seen
    for x_TD, states_LPE, weights_LHPS in zip(x_NTD, states_NLPE, weights_NLHPS, strict=True):
        before = reference.layers(CONFIG, params, x_TD, MASK_LH)
        np.testing.assert_allclose(states_LPE[0], before[1], atol=1e-12)
        np.testing.assert_allclose(states_LPE[1, -1], before[2][-1], atol=1e-12)
        assert not states_LPE[1, :-1].any()
        for layer, head in ((0, 0), (1, 1)):
            w = params[f"layer_{layer}"]
            for q in range(5) if layer == 0 else (4,):
                keys = before[layer][:4] if layer == 0 else before[layer]
                query = before[layer][q] @ w["query"][:, head]
                scores = np.array([0.8 * query @ (k @ w["key"][:, head]) for k in keys])
                want = np.pad(cases.softmax(scores), (0, 5 - len(keys)))
                np.testing.assert_allclose(weights_LHPS[layer, head, q], want, atol=1e-12)
        assert not weights_LHPS[0, 1].any()  # the layer lacks it
        assert not weights_LHPS[1, 0].any()  # masked
        assert not weights_LHPS[1, :, :-1].any()


def test_rollout_halves_what_attention_gives_and_skips_heads_that_are_off(seen):
    *_, weights_NLHPS = seen
    with jax.enable_x64(True):
        rolled_LPS = np.asarray(trace.rollout(CONFIG, weights_NLHPS[0]))
    first, second = weights_NLHPS[0, 0, 0], weights_NLHPS[0, 1, 1]
    one = 0.5 * (np.eye(5) + first)
    np.testing.assert_allclose(rolled_LPS[0], one[:, :4], atol=1e-12)
    np.testing.assert_allclose(rolled_LPS[1, 4], (0.5 * (one[4] + second[4] @ one))[:4])
    with jax.enable_x64(True):
        config, params = cases.one_head(3.0)
        x_NTD = np.array([[[0.1], [0.7], [-0.4]]])
        _, weights = trace.observe(config, params, None, x_NTD)
        bare = NetworkConfig(1, 2, (1,), 1, ((),), residual="none", encoder="none")
        alone = trace.rollout(bare, weights[0])
    np.testing.assert_allclose(alone[0, 3], cases.softmax(3.0 * x_NTD[0, :, 0]), atol=1e-12)
