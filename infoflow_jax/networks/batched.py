"""The transformer on a batch, laid out for a CPU: features first, the batch last.

The same function as `jax.vmap` of `transformer.apply`, which is the definition and what a GPU runs;
nothing here but another order of axes. XLA on a CPU is fast at products of two matrices and at
loops whose last axis is long, and slow at attention's many tiny products and the transposes around
them. So states are (E, P, B): an affine map is one product of matrices, and attention's sums are
written out, so that the batch is the inner loop.
"""

import functools
import math

import jax
import jax.numpy as jnp

from infoflow_jax.networks.config import NetworkConfig, Params
from infoflow_jax.networks.transformer import position_features
from reach_jax.ops import mlp

_WRITTEN_OUT = 40  # terms of a sum; longer ones would be long to compile


def apply(
    config: NetworkConfig, params: Params, x_BTD: jax.Array, mask_LH: jax.Array | None = None
) -> jax.Array:
    """Outputs (B, O) of sequences (B, T, d); the other arguments as in `transformer.Network`."""
    batch, tokens, _ = x_BTD.shape
    placed_PT = position_features(config, tokens).T
    placed_PTB = jnp.broadcast_to(placed_PT[:, :, None], (*placed_PT.shape, batch))
    x_EPB = jnp.concatenate([x_BTD.astype(placed_PTB.dtype).transpose(2, 1, 0), placed_PTB])
    if config.encoder == "none":
        x_EPB = jnp.pad(x_EPB, [(0, config.width - x_EPB.shape[0]), (0, 0), (0, 0)])
    else:
        x_EPB = _mlp(params["encoder"], config.encoder_kind, x_EPB)
    c0_EPB = jnp.broadcast_to(params["c0"][:, None, None], (config.width, 1, batch))
    x_EPB = jnp.concatenate([x_EPB, c0_EPB], axis=1)
    always = ~(x_BTD[0, 0, 0] > math.inf)  # true of NaN as well
    for place in range(config.layers):
        layer = params[f"layer_{place}"]
        queries_EQB = x_EPB[:, -1:] if place == config.layers - 1 else x_EPB
        keys_EPB = x_EPB if place > 0 else x_EPB[:, :-1]
        keep_H = None if mask_LH is None else mask_LH[place]
        y_EQB = _attention(config, layer, queries_EQB, keys_EPB, keep_H, always)
        if config.residual != "none":
            y_EQB = queries_EQB + y_EQB
        x_EPB = y_EQB
        if config.ffn[place]:
            x_EPB = _mlp(layer["ffn"], config.kind, y_EQB)
            if config.residual == "both":
                x_EPB = y_EQB + x_EPB
    return _mlp(params["readout"], config.kind, x_EPB)[:, 0].T


def _linear(kernel_DF: jax.Array, x_DPB: jax.Array) -> jax.Array:
    """kernel^T x as one product of matrices, (F, P, B)."""
    flat_FX = kernel_DF.T @ x_DPB.reshape(x_DPB.shape[0], -1)
    return flat_FX.reshape(-1, *x_DPB.shape[1:])


def _mlp(params: Params, kind: str, x_DPB: jax.Array) -> jax.Array:
    """As `transformer.Mlp`."""

    def affine(name: str, x_DPB: jax.Array) -> jax.Array:
        return _linear(params[f"kernel_{name}"], x_DPB) + params[f"bias_{name}"][:, None, None]

    last = sum(name.startswith("kernel_") and "gate" not in name for name in params) - 1
    for place in range(last):
        up_FPB = affine(str(place), x_DPB)
        if kind == "bilinear":
            x_DPB = mlp.feed_forward(up_FPB, affine(f"gate_{place}", x_DPB), "identity")
        else:
            x_DPB = mlp.feed_forward(up_FPB, None, kind)
    return affine(str(last), x_DPB)


def _attention(
    config: NetworkConfig,
    params: Params,
    queries_EQB: jax.Array,
    keys_EPB: jax.Array,
    keep_H: jax.Array | None,
    always: jax.Array,
) -> jax.Array:
    """The heads' sum, (E, Q, B)."""

    def split(name: str, x_EPB: jax.Array) -> jax.Array:
        kernel_EHN = params[name]
        flat_EF = kernel_EHN.reshape(kernel_EHN.shape[0], -1)
        return _linear(flat_EF, x_EPB).reshape(*kernel_EHN.shape[1:], *x_EPB.shape[1:])

    query_HNQB, key_HNPB = split("query", queries_EQB), split("key", keys_EPB)
    value_HNPB = split("value", keys_EPB)
    score_HQPB = _contract(query_HNQB.swapaxes(1, 2), key_HNPB.swapaxes(1, 2), always)
    weight_HQPB = jax.nn.softmax(config.beta * score_HQPB, axis=2)
    heads_HNQB = _contract(value_HNPB, weight_HQPB, always)
    if keep_H is not None:
        kept_H = keep_H[: heads_HNQB.shape[0]].astype(heads_HNQB.dtype)
        heads_HNQB = heads_HNQB * kept_H[:, None, None, None]
    output_HNE = params["output"]
    joined = heads_HNQB.reshape(-1, *heads_HNQB.shape[2:])
    return _linear(output_HNE.reshape(-1, output_HNE.shape[2]), joined)


@jax.custom_vjp
def _contract(x_HIRB: jax.Array, y_HJRB: jax.Array, always: jax.Array) -> jax.Array:
    """sum_r x[h,i,r,b] y[h,j,r,b], (H, I, J, B); `always` is a scalar that is true.

    The condition on what only we know to be true keeps XLA from fusing the sum into the loops
    before and behind it, which would compute it anew for every reader and in their index order.
    """

    def total(x_HIRB: jax.Array, y_HJRB: jax.Array) -> jax.Array:
        terms = x_HIRB.shape[2]
        if terms > _WRITTEN_OUT:
            return jnp.einsum("hirb,hjrb->hijb", x_HIRB, y_HJRB)
        each = [x_HIRB[:, :, None, r] * y_HJRB[:, None, :, r] for r in range(terms)]
        return functools.reduce(jnp.add, each)

    H, _, _, B = x_HIRB.shape
    shape = (H, x_HIRB.shape[1], y_HJRB.shape[1], B)
    none = jnp.zeros(shape, x_HIRB.dtype)
    return jax.lax.cond(always, total, lambda x_HIRB, y_HJRB: none, x_HIRB, y_HJRB)


def _contract_forward(
    x_HIRB: jax.Array, y_HJRB: jax.Array, always: jax.Array
) -> tuple[jax.Array, tuple[jax.Array, ...]]:
    return _contract(x_HIRB, y_HJRB, always), (x_HIRB, y_HJRB, always)


def _contract_backward(
    kept: tuple[jax.Array, ...], grad_HIJB: jax.Array
) -> tuple[jax.Array | None, ...]:
    x_HIRB, y_HJRB, always = kept
    to_x = _contract(grad_HIJB, y_HJRB.swapaxes(1, 2), always)
    to_y = _contract(grad_HIJB.swapaxes(1, 2), x_HIRB.swapaxes(1, 2), always)
    return to_x, to_y, None


_contract.defvjp(_contract_forward, _contract_backward)
