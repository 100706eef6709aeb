"""Normalisations of a feature axis, computed in float32 whatever the input; they keep its dtype.

Where the result is rounded to a shorter dtype differs between models, and is part of the model.
"""

import jax
import jax.numpy as jnp


def _row(vector_D: jax.Array, like: jax.Array) -> jax.Array:
    return vector_D.reshape((1,) * (like.ndim - 1) + (-1,))


def _over_rms(x_TD: jax.Array, eps: float) -> jax.Array:
    x32_TD = x_TD.astype(jnp.float32)
    return x32_TD * jax.lax.rsqrt(jnp.mean(x32_TD * x32_TD, axis=-1, keepdims=True) + eps)


def rms_norm(x_TD: jax.Array, weight_D: jax.Array, eps: float) -> jax.Array:
    """x over its root mean square, rounded to x's dtype, then times `weight_D` (Llama's order)."""
    return _over_rms(x_TD, eps).astype(x_TD.dtype) * _row(weight_D, x_TD).astype(x_TD.dtype)


def rms_norm_offset(x_TD: jax.Array, weight_D: jax.Array, eps: float) -> jax.Array:
    """x over its root mean square times 1 + `weight_D`, rounded at the end (Gemma's order)."""
    factor_D = 1.0 + _row(weight_D, x_TD).astype(jnp.float32)
    return (_over_rms(x_TD, eps) * factor_D).astype(x_TD.dtype)


def layer_norm(x_TD: jax.Array, weight_D: jax.Array, bias_D: jax.Array, eps: float) -> jax.Array:
    """x at mean 0 and variance 1, times `weight_D`, plus `bias_D`; rounded at the end."""
    x32_TD = x_TD.astype(jnp.float32)
    centred_TD = x32_TD - jnp.mean(x32_TD, axis=-1, keepdims=True)
    variance_T1 = jnp.mean(centred_TD * centred_TD, axis=-1, keepdims=True)
    unit_TD = centred_TD * jax.lax.rsqrt(variance_T1 + eps)
    weight_1D, bias_1D = (_row(v, x_TD).astype(jnp.float32) for v in (weight_D, bias_D))
    return (unit_TD * weight_1D + bias_1D).astype(x_TD.dtype)
