"""Feed-forward blocks between attention layers."""

import jax


def swiglu(x_TD: jax.Array, gate_DF: jax.Array, up_DF: jax.Array, down_FD: jax.Array) -> jax.Array:
    """Gated feed-forward block, (silu(x gate) * (x up)) down (Shazeer 2020)."""
    return (jax.nn.silu(x_TD @ gate_DF) * (x_TD @ up_DF)) @ down_FD
