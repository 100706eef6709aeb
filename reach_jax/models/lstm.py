"""A stack of LSTM layers with the surface of the decoder: the memory that cannot grow.

The cell is flax's. As in `models.mamba`, positions are an order and no numbers: `positions_T` and
`position` are taken and not read; padding leaves the state as it was. Not here: loading weights.
"""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
from flax import linen as nn

from reach_jax.models.config import LSTMConfig, Params
from reach_jax.ops import readout


class Memory(NamedTuple):
    """What the layers keep of all positions so far; its size does not grow."""

    cell: jax.Array  # (L, D)
    hidden: jax.Array  # (L, D)


class Layer(nn.Module):
    """One LSTM over a sequence."""

    config: LSTMConfig

    @nn.compact
    def __call__(
        self, x_TD: jax.Array, valid_T: jax.Array, memory: Memory
    ) -> tuple[jax.Array, Memory]:
        """Hidden vectors (T, D), zero at padding, and this layer's part of the memory after."""
        dtype = jnp.dtype(self.config.dtype)
        cell = nn.OptimizedLSTMCell(self.config.width, dtype=dtype, param_dtype=dtype, name="cell")

        def body(
            cell: nn.Module, carry: tuple[jax.Array, jax.Array], item: tuple[jax.Array, jax.Array]
        ) -> tuple[tuple[jax.Array, jax.Array], jax.Array]:
            x_D, valid = item
            after, y_D = cell(carry, x_D)
            kept = jax.tree.map(lambda new, old: jnp.where(valid, new, old), after, carry)
            return kept, jnp.where(valid, y_D, 0)

        over = nn.scan(body, variable_broadcast="params", split_rngs={"params": False})
        carry, y_TD = over(cell, (memory.cell, memory.hidden), (x_TD, valid_T))
        return y_TD, Memory(*carry)

    def with_input(
        self, x_TD: jax.Array, valid_T: jax.Array, memory: Memory
    ) -> tuple[jax.Array, jax.Array]:
        """The hidden vectors of this layer and what came in."""
        return self(x_TD, valid_T, memory)[0], x_TD


class LSTM(nn.Module):
    """The model between input vectors and last-layer states; `embed` and `head` are its ends."""

    config: LSTMConfig

    def setup(self) -> None:
        """Declares the embedding and the stacked layers."""
        c = self.config
        init, dtype = nn.initializers.normal(c.width**-0.5), jnp.dtype(c.dtype)
        self.embedding_VD = self.param("embedding", init, (c.vocab_size, c.width), dtype)
        if not c.tied:
            self.head_VD = self.param("head", init, (c.vocab_size, c.width), dtype)
        stack = nn.scan(
            Layer,
            variable_axes={"params": 0},
            split_rngs={"params": True},
            in_axes=(nn.broadcast, 0),
            out_axes=0,
            length=c.layers,
            methods=["__call__", "with_input"],
        )
        self.layers = stack(c)

    def embed(self, tokens_T: jax.Array) -> jax.Array:
        """Input vectors of tokens, (T, D)."""
        return self.embedding_VD[tokens_T]

    def head(self) -> jax.Array:
        """The unembedding matrix, (V, D)."""
        return self.embedding_VD if self.config.tied else self.head_VD

    def hidden(self, inputs_TD: jax.Array, positions_T: jax.Array, valid_T: jax.Array) -> jax.Array:
        """The last layer's hidden vectors, (T, D); zero where a position is padding.

        Args:
          inputs_TD: input vectors, cast to the config's dtype.
          positions_T: not read.
          valid_T: False where a position is padding.
        """
        memory = empty_memory(self.config)
        return self.layers(self._cast(inputs_TD), valid_T, memory)[0]

    def states(self, inputs_TD: jax.Array, positions_T: jax.Array, valid_T: jax.Array) -> jax.Array:
        """The input of each layer, then what `hidden` returns: (L+1, T, D); arguments as there."""
        memory = empty_memory(self.config)
        y_TD, before_LTD = self.layers.with_input(self._cast(inputs_TD), valid_T, memory)
        return jnp.concatenate([before_LTD, y_TD[None]])

    def step(
        self, input_D: jax.Array, position: jax.Array, cache: Memory
    ) -> tuple[jax.Array, Memory]:
        """State (D,) of one more position, given the memory of all earlier ones."""
        y_1D, cache = self.layers(self._cast(input_D[None]), jnp.ones(1, bool), cache)
        return y_1D[0], cache

    def __call__(self, tokens_T: jax.Array) -> jax.Array:
        """Logits (T, V) of a plain token sequence: the whole model, as `init` needs it."""
        T = tokens_T.shape[0]
        hidden_TD = self.hidden(self.embed(tokens_T), jnp.arange(T), jnp.ones(T, bool))
        return readout.logits(hidden_TD, self.head())

    def _cast(self, inputs_TD: jax.Array) -> jax.Array:
        return inputs_TD.astype(jnp.dtype(self.config.dtype))


@functools.partial(jax.jit, static_argnames="config")
def init(config: LSTMConfig, key: jax.Array) -> Params:
    """Fresh parameters: flax's for the cells, embeddings with standard deviation D^-1/2."""
    return LSTM(config).init(key, jnp.zeros(2, jnp.int32))["params"]


def empty_memory(config: LSTMConfig) -> Memory:
    """The memory of nothing."""
    zeros_LD = jnp.zeros((config.layers, config.width), jnp.dtype(config.dtype))
    return Memory(zeros_LD, zeros_LD)
