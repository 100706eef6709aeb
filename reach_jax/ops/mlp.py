"""Feed-forward blocks between attention layers."""

import functools
from collections.abc import Callable

import jax

from reach_jax.ops import products

ACTIVATIONS: dict[str, Callable[[jax.Array], jax.Array]] = {
    "silu": jax.nn.silu,
    "relu": jax.nn.relu,
    "identity": lambda up_TF: up_TF,  # with a gate: the bilinear block
    "gelu": functools.partial(jax.nn.gelu, approximate=False),
    "gelu_tanh": functools.partial(jax.nn.gelu, approximate=True),
}


def affine(x_TD: jax.Array, kernel_DF: jax.Array, bias_F: jax.Array | None = None) -> jax.Array:
    """x kernel + bias, (T, F)."""
    y_TF = products.product("td,df->tf", x_TD, kernel_DF)
    return y_TF if bias_F is None else y_TF + bias_F[None]


def feed_forward(
    up_TF: jax.Array, gate_TF: jax.Array | None, activation: str = "silu"
) -> jax.Array:
    """act(up), or with a gate act(gate) * up (Shazeer 2020), (T, F)."""
    act = ACTIVATIONS[activation]
    return act(up_TF) if gate_TF is None else act(gate_TF) * up_TF
