"""A target with its dimension, weights and inputs: fresh batches from keys, fixed sets, NMSE.

What a network gives and gets is standardised with numbers fixed once at one length, so that it is
one function of sequences of any length.
"""

import functools
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

from infoflow_jax.calculus.tree import Target
from infoflow_jax.tasks.functions import FUNCTIONS, Function
from sweep_jax.checks import require

_SCALE_EXAMPLES = 4096


@dataclass(frozen=True)
class TaskConfig:
    """What is to be learned."""

    target: str  # key of FUNCTIONS
    D: int  # comparisons summed, or which largest, or positions
    d: int  # coordinates of a token
    draw: int  # which random weights

    def __post_init__(self) -> None:
        known = list(FUNCTIONS)
        require(self.target in FUNCTIONS, "target", self.target, f"one of {known}")
        most = self.function.most
        require(1 <= self.D <= most, "D", self.D, f"an integer in 1..{most} for {self.target}")
        flat = self.d == 2 if self.function.plane else self.d >= 1
        require(flat, "d", self.d, "2" if self.function.plane else "an integer >= 1")
        require(0 <= self.draw < 2**31, "draw", self.draw, "an integer in [0, 2^31)")

    @property
    def function(self) -> Function:
        """The target's entry."""
        return FUNCTIONS[self.target]

    @property
    def outputs(self) -> int:
        """O."""
        return self.d if self.function.vector else 1

    @property
    def shortest(self) -> int:
        """The least T that makes sense: the order of the target, or D."""
        return self.function.order or self.D

    @property
    def tree(self) -> Target | None:
        """The target for the planner."""
        return self.function.tree(self.D) if self.function.tree else None

    def require_tokens(self, field: str, tokens: int) -> None:
        """Refuses sequences shorter than the target's order.

        Raises:
          ValueError: `tokens` is below `shortest`.
        """
        least = self.shortest
        require(tokens >= least, field, tokens, f"at least {least} tokens, for {self.target}")

    def weights(self) -> np.ndarray:
        """The target's weights, (D, ...), float64."""
        rng = np.random.default_rng(self.draw)
        return self.function.weights(self.D, self.d, rng)


def inputs(config: TaskConfig, key: jax.Array, shape: tuple[int, ...], dtype: str) -> jax.Array:
    """Sequences `shape` + (d,), for shape (B, T)."""
    how = config.function
    x_BTD = how.scale * jax.random.normal(key, (*shape, config.d), jnp.dtype(dtype))
    if how.norms is None:
        return x_BTD
    norm_BT1 = jnp.linalg.norm(x_BTD, axis=-1, keepdims=True)
    return x_BTD * (jnp.clip(norm_BT1, *how.norms) / norm_BT1)


def values(config: TaskConfig, x_BTD: jax.Array) -> jax.Array:
    """The target of each sequence, (B, O)."""
    weights = jnp.asarray(config.weights(), x_BTD.dtype)
    return jax.vmap(functools.partial(config.function.value, weights))(x_BTD)


@functools.partial(jax.jit, static_argnames=("config", "examples", "tokens", "dtype"))
def fixed(
    config: TaskConfig, key: jax.Array, examples: int, tokens: int, dtype: str
) -> tuple[jax.Array, jax.Array]:
    """A data set: inputs (N, T, d) and targets (N, O), not standardised."""
    x_NTD = inputs(config, key, (examples, tokens), dtype)
    one = functools.partial(config.function.value, jnp.asarray(config.weights(), x_NTD.dtype))
    return x_NTD, jax.lax.map(one, x_NTD, batch_size=32)


@dataclass(frozen=True)
class Scale:
    """Standardised = (target - mean) / deviation, both plain numbers."""

    mean: float
    deviation: float


def scale(config: TaskConfig, tokens: int) -> Scale:
    """Mean and standard deviation of the target at T = `tokens`, over 4096 fixed inputs.

    Raises:
      ValueError: the target does not vary there.
    """
    config.require_tokens("tokens", tokens)
    _, y_NO = fixed(config, jax.random.key(config.draw), _SCALE_EXAMPLES, tokens, "float32")
    y = np.asarray(y_NO, np.float64)
    deviation = float(np.sqrt(np.mean((y - y.mean()) ** 2)))
    ok = np.isfinite(deviation) and deviation > 1e-6
    require(bool(ok), "target", f"{config.target}, standard deviation {deviation:g}", "one > 1e-6")
    return Scale(float(y.mean()), deviation)


def nmse(found_NO: ArrayLike, target_NO: ArrayLike) -> float:
    """Mean squared error over the targets' variance, 1 - R^2 (arXiv 2510.06662); inf if not finite.

    Args:
      found_NO: what a network gave, (N, O); numbers that are not finite make the result inf.
      target_NO: what it should have given.

    Raises:
      ValueError: other shapes, targets that are not finite, or that do not vary.
    """
    found, target = np.asarray(found_NO, np.float64), np.asarray(target_NO, np.float64)
    require(found.shape == target.shape, "found_NO", found.shape, f"shape {target.shape}")
    finite = bool(np.isfinite(target).all())
    require(finite, "target_NO", "NaN or infinity", "finite numbers")
    spread = float(np.mean((target - target.mean(0)) ** 2))
    require(spread > 0, "target_NO", "all equal", "targets that vary")
    if not np.isfinite(found).all():
        return float("inf")
    return float(np.mean((found - target) ** 2)) / spread
