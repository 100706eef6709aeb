"""Rotary positions (Su et al. 2021), half-split: channel i turns with channel i + N/2."""

import jax
import jax.numpy as jnp


def phases(positions_T: jax.Array, head_width: int, base: float) -> tuple[jax.Array, jax.Array]:
    """Cosine and sine of each position's rotation, both float32 of shape (T, N/2)."""
    exponent = jnp.arange(head_width // 2, dtype=jnp.float32) / (head_width // 2)
    inverse_frequency = jnp.float32(base) ** -exponent
    angle = positions_T.astype(jnp.float32)[:, None] * inverse_frequency[None, :]
    return jnp.cos(angle), jnp.sin(angle)


def rotate(x_THN: jax.Array, cos_TP: jax.Array, sin_TP: jax.Array) -> jax.Array:
    """Turns every head's channel pairs by its position's angle; keeps x's dtype."""
    first, second = jnp.split(x_THN.astype(jnp.float32), 2, axis=-1)
    cos, sin = cos_TP[:, None, :], sin_TP[:, None, :]
    turned = jnp.concatenate([first * cos - second * sin, second * cos + first * sin], axis=-1)
    return turned.astype(x_THN.dtype)
