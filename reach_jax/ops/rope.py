"""Rotary positions (Su et al. 2021), half-split: channel i turns with channel i + P of 2P."""

import math

import jax
import jax.numpy as jnp
import numpy as np


def frequencies(width: int, base: float) -> np.ndarray:
    """Angle per position of each of P = width/2 channel pairs, base^(-2i/width), float32."""
    exponent_P = np.arange(0, width, 2, dtype=np.float32) / np.float32(max(width, 1))
    return np.float32(1) / np.float32(base) ** exponent_P


def linear(frequencies_P: np.ndarray, factor: float) -> np.ndarray:
    """Position interpolation (Chen et al. 2023): every frequency divided by `factor`."""
    return frequencies_P / np.float32(factor)


def llama3(
    frequencies_P: np.ndarray, factor: float, low: float, high: float, original: int
) -> np.ndarray:
    """The scaling of Llama 3.1: slow pairs are divided by `factor`, fast ones kept.

    A pair that makes fewer than `low` turns in `original` positions is slow, more than `high`
    fast; between the two the share that is kept grows linearly with the turns.
    """
    turns_P = original * frequencies_P.astype(np.float64) / (2 * math.pi)
    kept_P = np.clip((turns_P - low) / (high - low), 0, 1)
    return (frequencies_P * (kept_P + (1 - kept_P) / factor)).astype(np.float32)


def phases(
    positions_T: jax.Array, frequencies_P: np.ndarray | jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Cosine and sine of each position's rotation, both float32 of shape (T, P)."""
    angle_TP = positions_T.astype(jnp.float32)[:, None] * jnp.asarray(frequencies_P)[None, :]
    return jnp.cos(angle_TP), jnp.sin(angle_TP)


def rotate(x_THN: jax.Array, cos_TP: jax.Array, sin_TP: jax.Array) -> jax.Array:
    """Turns the first 2P channels of every head by its position's angle; keeps x's dtype.

    Channels past 2P come through bit by bit.
    """
    P = cos_TP.shape[-1]
    if P == 0:
        return x_THN
    first = x_THN[..., :P].astype(jnp.float32)
    second = x_THN[..., P : 2 * P].astype(jnp.float32)
    cos, sin = cos_TP[:, None, :], sin_TP[:, None, :]
    turned = jnp.concatenate([first * cos - second * sin, second * cos + first * sin], axis=-1)
    return jnp.concatenate([turned.astype(x_THN.dtype), x_THN[..., 2 * P :]], axis=-1)
