"""Normalisations of a feature axis, computed in float32 whatever the input."""

import jax
import jax.numpy as jnp


def rms_norm(x_TD: jax.Array, weight_D: jax.Array, eps: float) -> jax.Array:
    """Root-mean-square normalisation over the last axis, times `weight_D`; keeps x's dtype."""
    x32_TD = x_TD.astype(jnp.float32)
    scale_T1 = jax.lax.rsqrt(jnp.mean(x32_TD * x32_TD, axis=-1, keepdims=True) + eps)
    weight_1D = weight_D.astype(jnp.float32).reshape((1,) * (x_TD.ndim - 1) + (-1,))
    return (x32_TD * scale_T1 * weight_1D).astype(x_TD.dtype)
