"""Optax under strict dtype promotion. No optimiser of its own."""

from typing import Any

import jax
import optax


def relaxed(optimizer: optax.GradientTransformation) -> optax.GradientTransformation:
    """The same optimiser, its update free to mix dtypes.

    Optax's bias correction raises a float to an int32 count, which
    `jax_numpy_dtype_promotion=strict` refuses; results are the same either way.
    """

    def update(updates: Any, state: Any, params: Any = None) -> tuple[Any, Any]:
        with jax.numpy_dtype_promotion("standard"):
            return optimizer.update(updates, state, params)

    return optax.GradientTransformation(optimizer.init, update)
