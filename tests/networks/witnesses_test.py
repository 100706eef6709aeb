"""Certificates: run again by float64 loops, and never above what a real FFN's weights allow."""

import dataclasses

import jax
import numpy as np
import optax
import pytest

from infoflow_jax.calculus import targets
from infoflow_jax.calculus.meaning import evaluate
from infoflow_jax.networks import decoding, scores, transformer, witnesses
from infoflow_jax.networks.certificate import Certificate, certify
from infoflow_jax.networks.config import NetworkConfig
from reach_jax.ops import optimizers
from tests.networks import reference


def layer(d, heads, n, seed):
    config = NetworkConfig(
        d=d,
        width=heads * n,
        heads=(heads,),
        head_width=n,
        ffn=((),),
        readout=(8,),
        encoder="mlp",
        encoder_widths=(16,),
        dtype="float64",
    )
    rng = np.random.default_rng(seed)
    params = jax.tree.map(lambda s: rng.standard_normal(s.shape) / 2, transformer.shapes(config))
    return config, params


def family(theorem, config, params, free):
    if theorem == "pairs":
        return witnesses.pair_family(config, params, free, 3)
    return witnesses.kth_family(config, params, 3, free, 3)


def known(config, params, x_TD):
    """What c0 knows, by the loops: the readout replaced by the identity."""
    E = config.width
    read = {"kernel_0": np.eye(E), "bias_0": np.zeros(E)}
    plain = dataclasses.replace(config, readout=(), outputs=E)
    return reference.network(plain, {**params, "readout": read}, x_TD)


@pytest.mark.parametrize("theorem", ["pairs", "kth"])
@pytest.mark.parametrize("heads", [1, 2])
def test_a_certificate_holds_by_loops_and_brute_force(theorem, heads):
    config, params = layer(2 if theorem == "pairs" else 1, heads, 1, 0)
    made = family(theorem, config, params, 6)
    found = witnesses.search(config, params, made)
    gap = abs(
        evaluate(made.target, found.a_TD, made.weights)
        - evaluate(made.target, found.b_TD, made.weights)
    )
    assert found.gap == pytest.approx(gap, abs=1e-15)
    distance = np.abs(known(config, params, found.a_TD) - known(config, params, found.b_TD)).sum()
    assert distance <= found.distance <= distance + 1e-11
    # At least the family's own step, and a pair that the layer hardly tells apart.
    assert found.gap >= 0.3 * np.abs(np.diff(made.rank_MG, axis=1)).min()
    assert found.width(0.0) > 10
    assert found.width(found.gap / 3) == pytest.approx(found.width(0.0) / 3)
    assert found.width(found.gap / 2) == 0


def test_more_free_tokens_certify_more():
    config, params = layer(1, 1, 1, 1)
    widths = [
        witnesses.search(config, params, family("kth", config, params, free)).width(0.0)
        for free in (3, 6, 9)
    ]
    assert widths[0] * 3 < widths[1]
    assert widths[1] * 3 < widths[2]


def test_codes_are_the_sums_and_outputs_of_the_definition():
    config, params = layer(1, 2, 2, 2)
    made = family("kth", config, params, 3)
    for ratio in (True, False):
        got_XC = witnesses.codes(config, params, made, ratio)
        for number in (0, 5, 26):
            digits = np.unravel_index(number, (3, 3, 3))
            free = made.free_MGD[np.arange(3), digits]
            x_TD = np.concatenate([made.fixed_KD, free])
            with jax.enable_x64(True):
                heads = transformer.Network(config).apply(
                    {"params": params}, x_TD, method="first_terms"
                )
            score_TH, value_THN = (np.asarray(h) for h in heads)
            weight_TH = np.exp(score_TH - score_TH.max(0))
            out_HN = (weight_TH[..., None] * value_THN).sum(0) / weight_TH.sum(0)[:, None]
            code_HC = got_XC[number].reshape(2, -1)
            mine_HN = code_HC if ratio else code_HC[:, :-1] / code_HC[:, -1:]
            np.testing.assert_allclose(mine_HN, out_HN, rtol=1e-12)


def test_the_packed_network_needs_what_the_theorem_says_and_pays_little_more():
    b = 6
    for T0, E, power in ((4, 2, 1), (6, 2, 2)):
        made = decoding.packed(T0, E, b)
        found = witnesses.search(made.config, made.params, witnesses.packing_family(made.config, b))
        # gap 1/b at distance b^-m; the finest digit of a code that is the maximum.
        assert found.width(0.0) == pytest.approx(b**power * found.gap * b, rel=0.01)
        assert found.gap >= 1 / b - 1e-12


def test_no_ffn_within_the_weights_contradicts_its_certificate():
    rng = np.random.default_rng(3)
    config, params = layer(1, 1, 2, 3)
    found = witnesses.search(config, params, family("kth", config, params, 6))
    z_E, other_E = (known(config, params, x) for x in (found.a_TD, found.b_TD))
    for _ in range(20):
        width = int(rng.integers(1, 50))
        b_EF, c_F, a_F = (rng.uniform(-1, 1, s) for s in ((2, width), width, width))
        one, other = (np.maximum(z @ b_EF + c_F, 0) @ a_F for z in (z_E, other_E))
        eps = max(0.0, (found.gap - abs(one - other)) / 2)  # no offset errs by less on both
        assert found.width(eps) <= width + 1e-9


def test_a_constructed_sharp_head_is_certified_too_and_weights_do_not_overflow():
    made = scores.retrieval(np.array([[-1.0]]), 40.0)  # weighs the largest number most
    found = witnesses.search(
        made.config, made.params, witnesses.kth_family(made.config, made.params, 3, 6, 3)
    )
    assert found.width(0.0) > 1e4  # two tokens at 1 leave e^-40 x of any other
    steep = dataclasses.replace(made.config, beta=1e5)
    code_XC = witnesses.codes(
        steep, made.params, witnesses.kth_family(steep, made.params, 3, 6, 3), True
    )
    assert np.isfinite(code_XC).all()


def test_a_trained_layer_is_certified_as_it_is():
    config, start = layer(1, 1, 2, 8)
    x_BTD = np.random.default_rng(6).uniform(-1, 1, (32, 9, 1))
    want_BO = np.sort(x_BTD[..., 0], axis=1)[:, -3:-2]

    adam = optimizers.relaxed(optax.adam(0.02))

    @jax.jit
    def train(params):
        def loss(params):
            found_BO = jax.vmap(lambda x_TD: transformer.apply(config, params, x_TD))(x_BTD)
            return ((found_BO - want_BO) ** 2).mean()

        def step(state, _):
            params, opt = state
            value, slopes = jax.value_and_grad(loss)(params)
            moves, opt = adam.update(slopes, opt, params)
            return (optax.apply_updates(params, moves), opt), value

        (params, _), losses_S = jax.lax.scan(step, (params, adam.init(params)), length=200)
        return params, losses_S

    with jax.enable_x64(True):
        params, losses_S = jax.tree.map(np.asarray, train(start))
    assert losses_S[-1] < want_BO.var() / 2 < losses_S[0]  # it has learnt something
    made = family("kth", config, params, 7)
    found = witnesses.search(config, params, made)
    values = [evaluate(made.target, x, made.weights) for x in (found.a_TD, found.b_TD)]
    assert found.gap == pytest.approx(abs(values[0] - values[1]), abs=1e-15)
    distance = np.abs(known(config, params, found.a_TD) - known(config, params, found.b_TD)).sum()
    assert distance <= found.distance <= distance + 1e-11
    assert found.width(0.0) > 10


def test_what_cannot_be_certified_is_refused():
    config, params = layer(1, 1, 1, 4)
    deep = dataclasses.replace(config, heads=(1, 1), ffn=((), ()))
    x_TD = np.zeros((3, 1))
    with pytest.raises(ValueError, match="layers"):
        certify(deep, params, targets.single(), {"a": np.ones(1)}, x_TD, x_TD)
    with pytest.raises(ValueError, match="inputs"):
        witnesses.search(config, params, family("kth", config, params, 14))
    with pytest.raises(ValueError, match="d = 1"):
        witnesses.pair_family(config, params, 3, 2)
    with pytest.raises(ValueError, match="eps"):
        Certificate(x_TD, x_TD, 0.0, 1.0, 1.0).width(-1.0)
