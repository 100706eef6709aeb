"""Products with narrow weights: against float64 sums of the rounded operands."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from reach_jax.ops import products

SPECS = (
    ("td,df->tf", (5, 16), (16, 7)),
    ("td,dhn->thn", (5, 16), (16, 3, 4)),
    ("thn,hnd->td", (5, 3, 4), (3, 4, 9)),
    ("nd,vd->nv", (5, 16), (11, 16)),
)


def rounded(x) -> np.ndarray:
    return np.asarray(jnp.asarray(x).astype(jnp.bfloat16).astype(jnp.float32), np.float64)


@pytest.mark.parametrize(("spec", "of_x", "of_w"), SPECS)
def test_operands_are_rounded_and_the_sum_is_not(spec, of_x, of_w):
    rng = np.random.default_rng(0)
    x, w = (rng.standard_normal(shape).astype(np.float32) for shape in (of_x, of_w))
    weight = jnp.asarray(w).astype(jnp.bfloat16)
    out, pull = jax.vjp(lambda x, w: products.product(spec, x, w), jnp.asarray(x), weight)
    assert out.dtype == jnp.float32
    np.testing.assert_allclose(out, np.einsum(spec, rounded(x), rounded(w)), rtol=1e-5, atol=1e-5)
    # Nearer to the rounded operands' sum than bfloat16 could say, and not to the unrounded one's.
    assert np.abs(np.einsum(spec, x, w) - out).max() > 1e-3

    g = rng.standard_normal(out.shape).astype(np.float32)
    to_x, to_w = pull(jnp.asarray(g))
    a, b, c = spec.replace("->", ",").split(",")
    expected = np.einsum(f"{c},{b}->{a}", rounded(g), rounded(w))
    np.testing.assert_allclose(to_x, expected, rtol=1e-5, atol=1e-5)
    expected = np.einsum(f"{a},{c}->{b}", rounded(x), g)
    np.testing.assert_allclose(np.asarray(to_w, np.float64), expected, rtol=1e-2, atol=1e-2)
    assert (to_x.dtype, to_w.dtype) == (jnp.float32, jnp.bfloat16)


def test_equal_formats_are_a_plain_einsum():
    x, w = jnp.ones((2, 3)), jnp.ones((3, 4))
    text = str(jax.make_jaxpr(lambda x, w: products.product("td,df->tf", x, w))(x, w))
    assert "custom_vjp" not in text
    assert "bf16" not in text
