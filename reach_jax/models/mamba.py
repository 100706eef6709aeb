"""Mamba (Gu and Dao 2023): a stack of selective state spaces with the surface of the decoder.

The same calls as `models.decoder.Decoder`, so that nobody who has a model need ask which. Here
positions are an order and no numbers: `positions_T` and `position` are taken and not read. Padding
is taken out before the first layer and put back behind the last, so that no window and no state
ever meets it. Not here: loading weights, sampling.
"""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
from flax import linen as nn

from reach_jax.models.config import MambaConfig, Params
from reach_jax.models.layers import bias, kernel, saving_products
from reach_jax.ops import mlp, norms, readout, ssm

_FASTEST, _SLOWEST = 0.1, 0.001  # time steps of a fresh model's channels, log-uniform


class Memory(NamedTuple):
    """What a layer keeps of all positions so far; its size does not grow."""

    past: jax.Array  # (L, W-1, I), the convolution's last inputs
    state: jax.Array  # (L, I, N), float32


class Layer(nn.Module):
    """One state space behind a norm and around a residual."""

    config: MambaConfig

    @nn.compact
    def __call__(self, x_TD: jax.Array, memory: Memory | None) -> tuple[jax.Array, Memory | None]:
        """Returns the residual (T, D) after this layer, and its part of the memory after it.

        Without a memory `x_TD` is a whole sequence; with one, the position after those remembered.
        """
        c, dtype = self.config, jnp.dtype(self.config.dtype)
        norm_D = self.param("norm", nn.initializers.ones, (c.width,), jnp.float32)
        # Read before the residual is rounded, as the authors' kernel does it.
        normed_TD = norms.rms_norm(x_TD, norm_D, c.norm_eps).astype(dtype)
        raw_TI, gate_TI = self._into(normed_TD, "up"), self._into(normed_TD, "gate")
        kernel_WI = kernel(self, "conv", (c.conv_width, c.inner), c.conv_width)
        bias_I = bias(self, "conv_bias", (c.inner,), c.conv_bias)
        if memory is None:
            mixed_TI = ssm.convolve(raw_TI, kernel_WI, bias_I)
        else:
            mixed_I, past_SI = ssm.convolve_step(raw_TI[0], kernel_WI, bias_I, memory.past)
            mixed_TI = mixed_I[None]
        u_TI = jax.nn.silu(mixed_TI).astype(dtype)
        dt_TI, a_IN, b_TN, c_TN, d_I = self._selection(u_TI)
        if memory is None:
            y_TI = ssm.scan(u_TI, dt_TI, a_IN, b_TN, c_TN, d_I)
        else:
            now = (u_TI[0], dt_TI[0], a_IN, b_TN[0], c_TN[0], d_I)
            y_I, state_IN = ssm.step(*now, memory.state)
            y_TI, memory = y_I[None], Memory(past_SI, state_IN)
        gated_TI = (y_TI * jax.nn.silu(gate_TI.astype(jnp.float32))).astype(dtype)
        down_ID = kernel(self, "down", (c.inner, c.width), c.inner)
        down_D = bias(self, "down_bias", (c.width,), c.projection_bias)
        return x_TD + mlp.affine(gated_TI, down_ID, down_D).astype(x_TD.dtype), memory

    def with_input(self, x_TD: jax.Array, memory: Memory | None) -> tuple[jax.Array, jax.Array]:
        """The residual after this layer and that before it."""
        return self(x_TD, memory)[0], x_TD

    def _into(self, x_TD: jax.Array, name: str) -> jax.Array:
        c = self.config
        kernel_DI = kernel(self, name, (c.width, c.inner), c.width)
        bias_I = bias(self, name + "_bias", (c.inner,), c.projection_bias)
        return mlp.affine(x_TD, kernel_DI, bias_I)

    def _selection(self, u_TI: jax.Array) -> tuple[jax.Array, ...]:
        """Time steps and the space's a, b, c, d; those that decide on forgetting in float32."""
        c, ones = self.config, nn.initializers.ones
        ends = (c.step_rank, c.step_rank + c.state_size)
        kernel_IE = kernel(self, "select", (c.inner, ends[1] + c.state_size), c.inner)
        rank_TR, b_TN, c_TN = jnp.split(u_TI @ kernel_IE, ends, axis=1)
        kernel_RI = kernel(self, "dt", (c.step_rank, c.inner), c.step_rank)
        bias_I = self.param("dt_bias", _first_steps, (c.inner,), jnp.float32)
        raw_TI = jnp.einsum("tr,ri->ti", rank_TR, kernel_RI, preferred_element_type=jnp.float32)
        a_log_IN = self.param("a_log", _first_decays, (c.inner, c.state_size), jnp.float32)
        d_I = self.param("d", ones, (c.inner,), jnp.float32)
        return jax.nn.softplus(raw_TI + bias_I[None]), -jnp.exp(a_log_IN), b_TN, c_TN, d_I


class Mamba(nn.Module):
    """The model between input vectors and last-layer states; `embed` and `head` are its ends."""

    config: MambaConfig

    def setup(self) -> None:
        """Declares the embedding, the scanned layers and the final norm."""
        c = self.config
        init = nn.initializers.normal(c.width**-0.5)
        self.embedding_VD = self.param(
            "embedding", init, (c.vocab_size, c.width), jnp.dtype(c.dtype)
        )
        if not c.tied:
            self.head_VD = self.param("head", init, (c.vocab_size, c.width), jnp.dtype(c.dtype))
        stack = nn.scan(
            saving_products(Layer),
            variable_axes={"params": 0},
            split_rngs={"params": True},
            in_axes=0,
            out_axes=0,
            length=c.layers,
            methods=["__call__", "with_input"],
        )
        self.layers = stack(c)
        self.final_norm_D = self.param("final_norm", nn.initializers.ones, (c.width,), jnp.float32)

    def embed(self, tokens_T: jax.Array) -> jax.Array:
        """Input vectors of tokens, (T, D)."""
        return self.embedding_VD[tokens_T]

    def head(self) -> jax.Array:
        """The unembedding matrix, (V, D)."""
        return self.embedding_VD if self.config.tied else self.head_VD

    def hidden(self, inputs_TD: jax.Array, positions_T: jax.Array, valid_T: jax.Array) -> jax.Array:
        """Last-layer states after the final norm, (T, D); zero where a position is padding.

        Args:
          inputs_TD: input vectors: embedded tokens, soft prompts, or both; cast to the config's
            dtype, so that a float32 prompt can be optimised against a bfloat16 model.
          positions_T: not read.
          valid_T: False where a position is padding, before, between or behind the others.
        """
        x_TD, _ = self.layers(self._residual(_gathered(inputs_TD, valid_T)), None)
        return _spread(self._final(x_TD), valid_T)

    def states(self, inputs_TD: jax.Array, positions_T: jax.Array, valid_T: jax.Array) -> jax.Array:
        """The input of each layer, then what `hidden` returns: (L+1, T, D); arguments as there.

        In the residual's dtype.
        """
        x_TD = self._residual(_gathered(inputs_TD, valid_T))
        x_TD, before_LTD = self.layers.with_input(x_TD, None)
        final_1TD = self._final(x_TD)[None].astype(x_TD.dtype)
        states_LTD = jnp.concatenate([before_LTD, final_1TD])
        return jax.vmap(_spread, in_axes=(0, None))(states_LTD, valid_T)

    def step(
        self, input_D: jax.Array, position: jax.Array, cache: Memory
    ) -> tuple[jax.Array, Memory]:
        """State (D,) of one more position, given the memory of all earlier ones."""
        x_1D, cache = self.layers(self._residual(input_D[None]), cache)
        return self._final(x_1D)[0], cache

    def __call__(self, tokens_T: jax.Array) -> jax.Array:
        """Logits (T, V) of a plain token sequence: the whole model, as `init` needs it."""
        T = tokens_T.shape[0]
        hidden_TD = self.hidden(self.embed(tokens_T), jnp.arange(T), jnp.ones(T, bool))
        return readout.logits(hidden_TD, self.head())

    def _residual(self, inputs_TD: jax.Array) -> jax.Array:
        x_TD = inputs_TD.astype(jnp.dtype(self.config.dtype))
        return x_TD.astype(jnp.float32) if self.config.float32_residual else x_TD

    def _final(self, x_TD: jax.Array) -> jax.Array:
        normed_TD = norms.rms_norm(x_TD, self.final_norm_D, self.config.norm_eps)
        return normed_TD.astype(jnp.dtype(self.config.dtype))


def _gathered(x_TD: jax.Array, valid_T: jax.Array) -> jax.Array:
    """The valid rows in front, in their order, and rows of zeros behind, which nothing looks at.

    To mask the channels instead is not enough: a bias makes zeros into something, and the
    convolution would still count a row between two others as a place.
    """
    order_T = jnp.argsort(~valid_T, stable=True)
    return _permuted(jnp.where(valid_T[:, None], x_TD, 0), order_T)


def _spread(x_TD: jax.Array, valid_T: jax.Array) -> jax.Array:
    """`_gathered` undone; zeros where a position is padding."""
    back_T = jnp.argsort(jnp.argsort(~valid_T, stable=True))
    return jnp.where(valid_T[:, None], _permuted(x_TD, back_T), 0)


def _permuted(x_TD: jax.Array, order_T: jax.Array) -> jax.Array:
    return x_TD.at[order_T].get(unique_indices=True, mode="promise_in_bounds")


def _first_decays(key: jax.Array, shape: tuple[int, int], dtype: jnp.dtype) -> jax.Array:
    """log 1 .. log N in every channel (S4D-Real)."""
    return jnp.tile(jnp.log(jnp.arange(1, shape[1] + 1, dtype=dtype)), (shape[0], 1))


def _first_steps(key: jax.Array, shape: tuple[int], dtype: jnp.dtype) -> jax.Array:
    """Biases whose softplus is log-uniform from the slowest to the fastest time step."""
    low, high = jnp.log(jnp.array([_SLOWEST, _FASTEST], dtype))
    dt_I = jnp.exp(jax.random.uniform(key, shape, dtype, low, high))
    return dt_I + jnp.log(-jnp.expm1(-dt_I))


@functools.partial(jax.jit, static_argnames="config")
def init(config: MambaConfig, key: jax.Array) -> Params:
    """Fresh parameters: matrices normal with standard deviation fan_in^-1/2, the paper's decays."""
    return Mamba(config).init(key, jnp.zeros(2, jnp.int32))["params"]


def empty_memory(config: MambaConfig) -> Memory:
    """The memory of nothing."""
    past = (config.layers, config.conv_width - 1, config.inner)
    state = (config.layers, config.inner, config.state_size)
    return Memory(jnp.zeros(past, jnp.dtype(config.dtype)), jnp.zeros(state, jnp.float32))
