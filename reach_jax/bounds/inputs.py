"""The door of this package: bad input refused by name before any arithmetic, values as float64.

Values are checked only where they are known; a value being traced (`jit`, `vmap`, `grad`) passes.
A `jit` entered outside `jax.enable_x64(True)` rounds its arguments to float32 before they get here.
Not for arithmetic, and never a place to repair a value.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from sweep_jax.checks import require


def known(value: ArrayLike) -> bool:
    """Whether the value can be looked at now, so is not being traced."""
    return not isinstance(value, jax.core.Tracer)


def checked(
    field: str, value: ArrayLike, ok: Callable[[np.ndarray], np.ndarray], expected: str
) -> Array:
    """The value as float64. Call it inside `in_float64`.

    A known value goes through numpy, since XLA on a CPU flushes subnormal numbers when it converts.

    Raises:
      ValueError: `value` is not numeric, or somewhere not `ok`.
    """
    if not known(value):
        return jnp.asarray(value, jnp.float64)
    raw = np.asarray(value)
    require(jnp.issubdtype(raw.dtype, np.number), field, value, expected)
    require(not jnp.issubdtype(raw.dtype, np.complexfloating), field, value, expected)
    real = raw.astype(np.float64)
    require(bool(np.all(ok(real))), field, value, expected)
    return jnp.asarray(real)


def nonnegative(field: str, value: ArrayLike) -> Array:
    """A finite float64 of at least 0."""
    return checked(field, value, lambda x: np.isfinite(x) & (x >= 0), "a finite number >= 0")


def positive(field: str, value: ArrayLike) -> Array:
    """A finite float64 above 0."""
    return checked(field, value, lambda x: np.isfinite(x) & (x > 0), "a finite number > 0")


def whole(field: str, value: ArrayLike, at_least: int) -> Array:
    """A float64 that is a whole number of at least `at_least`: a dimension, a count, a length."""

    def ok(x: np.ndarray) -> np.ndarray:
        return np.isfinite(x) & (x >= at_least) & (x == np.floor(x))

    return checked(field, value, ok, f"a whole number >= {at_least}")
