"""The transformer against float64 loops, and what it must not depend on."""

import dataclasses
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from infoflow_jax.networks import transformer
from infoflow_jax.networks.config import NetworkConfig
from tests.networks import reference

BASE = NetworkConfig(
    d=3, width=10, heads=(2, 3), head_width=4, ffn=((7,), (6, 5)), readout=(4,), outputs=2
)
CONFIGS = {
    "relu": BASE,
    "gelu, positions": dataclasses.replace(
        BASE, kind="gelu", encoder="mlp", encoder_widths=(9,), positions="circle", period=12
    ),
    "bilinear, both": dataclasses.replace(
        BASE, kind="bilinear", residual="both", positions="first", period=3, beta=3.0
    ),
    "companion": NetworkConfig(
        d=4,
        width=16,
        heads=(2,),
        head_width=8,
        ffn=((),),
        readout=(32,),
        kind="gelu",
        residual="none",
        encoder="mlp",
        encoder_widths=(32,),
    ),
    "no encoder": dataclasses.replace(BASE, encoder="none", positions="first", period=4),
}


def noisy(config, seed):
    """Parameters with no zero bias, which could hide a dropped one; float64 in NumPy."""
    rng = np.random.default_rng(seed)
    scale = {1: 0.5, 2: 0.5, 3: 0.5}
    return jax.tree.map(
        lambda leaf: scale[leaf.ndim] * rng.standard_normal(leaf.shape), transformer.shapes(config)
    )


def multiplications(jaxpr):
    """In the `dot_general`s of a program, those inside its calls too."""
    total = 0
    for eqn in jaxpr.eqns:
        if eqn.primitive.name == "dot_general":
            (summed, _), _ = eqn.params["dimension_numbers"]
            inner = [eqn.invars[0].aval.shape[axis] for axis in summed]
            total += math.prod(eqn.outvars[0].aval.shape) * math.prod(inner)
        for value in eqn.params.values():
            if hasattr(value, "jaxpr"):
                total += multiplications(value.jaxpr)
    return total


@pytest.mark.parametrize("name", CONFIGS)
def test_its_products_are_those_of_the_program(name):
    config = CONFIGS[name]
    x_TD = jnp.zeros((3, config.d))
    traced = jax.make_jaxpr(transformer.apply, static_argnums=0)(
        config, transformer.shapes(config), x_TD
    )
    assert config.products(3) == multiplications(traced.jaxpr)


@pytest.mark.parametrize("name", CONFIGS)
def test_it_is_the_loops_of_the_definition(name):
    config = CONFIGS[name]
    wide = dataclasses.replace(config, dtype="float64")
    params = noisy(config, 0)
    half = jax.tree.map(np.float32, params)
    for tokens in (1, 7):
        x_TD = np.random.default_rng(1).standard_normal((tokens, config.d))
        want_O = reference.network(config, params, x_TD)
        got_O = transformer.apply(config, half, np.float32(x_TD))
        assert got_O.dtype == jnp.float32
        np.testing.assert_allclose(got_O, want_O, atol=1e-4 * (1 + np.abs(want_O).max()))
        with jax.enable_x64(True):
            got_O = transformer.apply(wide, params, x_TD)
        np.testing.assert_allclose(got_O, want_O, rtol=1e-11, atol=1e-12)


def test_a_masked_head_is_absent_and_masks_run_side_by_side():
    params, x_TD = noisy(BASE, 2), np.random.default_rng(3).standard_normal((5, 3))
    masks = np.array([[[1, 1, 0], [1, 0, 1]], [[1, 0, 0], [0, 1, 1]], [[1, 1, 1], [1, 1, 1]]], bool)
    half = jax.tree.map(np.float32, params)
    many = jax.vmap(lambda m: transformer.apply(BASE, half, np.float32(x_TD), m))(masks)
    for got_O, mask_LH in zip(many, masks, strict=True):
        want_O = reference.network(BASE, params, x_TD, mask_LH)
        np.testing.assert_allclose(got_O, want_O, atol=1e-4)
    grads = jax.jit(jax.grad(lambda p: transformer.apply(BASE, p, x_TD, masks[1]).sum()))(half)
    assert not np.asarray(grads["layer_0"]["value"][:, 1]).any()  # off: nothing to learn
    assert np.asarray(grads["layer_0"]["value"][:, 0]).any()


def test_without_positions_the_order_of_tokens_does_not_matter_and_with_them_it_does():
    x_TD = np.float32(np.random.default_rng(4).standard_normal((6, 3)))
    for name, same in (("relu", True), ("gelu, positions", False)):
        config = CONFIGS[name]
        params = jax.tree.map(np.float32, noisy(config, 5))
        one_O, other_O = (transformer.apply(config, params, x) for x in (x_TD, x_TD[::-1]))
        assert (np.abs(one_O - other_O).max() < 1e-5) == same


def test_what_a_one_layer_network_knows_is_what_its_readout_gets():
    config = CONFIGS["companion"]
    params = jax.tree.map(np.float32, noisy(config, 6))
    x_TD = np.float32(np.random.default_rng(7).standard_normal((5, 4)))
    net = transformer.Network(config)
    known_E = net.apply({"params": params}, x_TD, method="first_mixed")
    states = net.apply({"params": params}, x_TD, method="states")
    np.testing.assert_array_equal(known_E, states[-1][0])
    assert [s.shape for s in states] == [(6, 16), (1, 16)]


def test_fresh_parameters_have_their_count_and_seeds_can_be_mapped():
    counts = transformer.parameters(BASE)
    assert counts["ffn"] == (10 * 7 + 7 + 7 * 10 + 10) + (10 * 6 + 6 + 6 * 5 + 5 + 5 * 10 + 10)
    assert counts["attention"] == 10 + (2 + 3) * 4 * 10 * 4
    config = CONFIGS["companion"]
    keys = jax.random.split(jax.random.key(0), 3)
    many = jax.vmap(lambda key: transformer.init(config, key))(keys)
    counts = transformer.parameters(config)
    assert sum(counts.values()) == sum(leaf[0].size for leaf in jax.tree.leaves(many))
    out_BO = jax.vmap(lambda p: transformer.apply(config, p, jnp.ones((4, 4))))(many)
    assert len(set(np.asarray(out_BO)[:, 0].tolist())) == 3


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"heads": (2, 0)}, "heads"),
        ({"ffn": ((7,),)}, "ffn"),
        ({"ffn": ((0,), ())}, "ffn"),
        ({"kind": "tanh"}, "kind"),
        ({"encoder": "mlp"}, "encoder_widths"),
        ({"positions": "circle"}, "period"),
        ({"encoder": "none", "width": 2}, "width"),
        ({"beta": 0.0}, "beta"),
    ],
)
def test_impossible_networks_are_refused(change, field):
    with pytest.raises(ValueError, match=field):
        dataclasses.replace(BASE, **change)


def test_positions_beyond_the_circle_are_refused():
    config = CONFIGS["gelu, positions"]
    with pytest.raises(ValueError, match="period"):
        transformer.position_features(config, 13)
