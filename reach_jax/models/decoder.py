"""One decoder-only transformer as thin linen modules: unbatched, scanned over stacked layers.

A sequence is a (T, D) array; batching is the caller's `vmap`. Parameters are a plain dict, the
key/value cache a plain value that goes in and comes out. Not here: loading weights, sampling.
"""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from flax import linen as nn

from reach_jax.models.config import DecoderConfig
from reach_jax.ops import attention, masks, mlp, norms, readout, rope

Params = dict[str, Any]


class Cache(NamedTuple):
    """Keys and values of the positions so far, one slot each: (L, S, K, N)."""

    keys: jax.Array
    values: jax.Array


class Context(NamedTuple):
    """What every layer shares: rotary phases, the mask, and the slot that a cache writes to."""

    cos: jax.Array
    sin: jax.Array
    mask_TS: jax.Array
    slot: jax.Array | int = 0


def _kernel(module: nn.Module, name: str, shape: tuple[int, ...], fan_in: int) -> jax.Array:
    init = nn.initializers.normal(fan_in**-0.5)
    return module.param(name, init, shape, jnp.dtype(module.config.dtype))


class RMSNorm(nn.Module):
    """Root-mean-square norm with a weight."""

    config: DecoderConfig

    @nn.compact
    def __call__(self, x_TD: jax.Array) -> jax.Array:
        """Normalises the last axis."""
        weight_D = self.param("weight", nn.initializers.ones, (self.config.width,), jnp.float32)
        return norms.rms_norm(x_TD, weight_D, self.config.norm_eps)


class Attention(nn.Module):
    """Rotary self-attention; with a cache, its keys and values are written and read there."""

    config: DecoderConfig

    @nn.compact
    def __call__(
        self, x_TD: jax.Array, context: Context, cache: Cache | None
    ) -> tuple[jax.Array, Cache | None]:
        """Returns the block's output (T, D) and the cache with this call's slots filled."""
        c = self.config
        q_DHN = _kernel(self, "q", (c.width, c.heads, c.head_width), c.width)
        k_DKN = _kernel(self, "k", (c.width, c.kv_heads, c.head_width), c.width)
        v_DKN = _kernel(self, "v", (c.width, c.kv_heads, c.head_width), c.width)
        o_HND = _kernel(self, "o", (c.heads, c.head_width, c.width), c.heads * c.head_width)
        q_THN = rope.rotate(jnp.einsum("td,dhn->thn", x_TD, q_DHN), context.cos, context.sin)
        k_SKN = rope.rotate(jnp.einsum("td,dkn->tkn", x_TD, k_DKN), context.cos, context.sin)
        v_SKN = jnp.einsum("td,dkn->tkn", x_TD, v_DKN)
        if cache is not None:
            at = (context.slot, 0, 0)
            k_SKN = jax.lax.dynamic_update_slice(cache.keys, k_SKN, at)
            v_SKN = jax.lax.dynamic_update_slice(cache.values, v_SKN, at)
            cache = Cache(k_SKN, v_SKN)
        out_THN = attention.attend(q_THN, k_SKN, v_SKN, context.mask_TS)
        return jnp.einsum("thn,hnd->td", out_THN, o_HND), cache


class Layer(nn.Module):
    """Attention and feed-forward, each behind a norm and around a residual."""

    config: DecoderConfig

    @nn.compact
    def __call__(
        self, x_TD: jax.Array, context: Context, cache: Cache | None
    ) -> tuple[jax.Array, Cache | None]:
        """Returns the states after this layer and its part of the cache."""
        c = self.config
        normed_TD = RMSNorm(c, name="attention_norm")(x_TD)
        mixed_TD, cache = Attention(c, name="attention")(normed_TD, context, cache)
        x_TD = x_TD + mixed_TD
        gate_DF = _kernel(self, "gate", (c.width, c.mlp_width), c.width)
        up_DF = _kernel(self, "up", (c.width, c.mlp_width), c.width)
        down_FD = _kernel(self, "down", (c.mlp_width, c.width), c.mlp_width)
        normed_TD = RMSNorm(c, name="mlp_norm")(x_TD)
        return x_TD + mlp.swiglu(normed_TD, gate_DF, up_DF, down_FD), cache


class Decoder(nn.Module):
    """The decoder between input vectors and last-layer states; `embed` and `head` are its ends."""

    config: DecoderConfig

    def setup(self) -> None:
        """Declares the embedding, the scanned layers and the final norm."""
        c = self.config
        dtype = jnp.dtype(c.dtype)
        init = nn.initializers.normal(c.width**-0.5)
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
        )
        self.layers = stack(c)
        self.final_norm = RMSNorm(c)

    def embed(self, tokens_T: jax.Array) -> jax.Array:
        """Input vectors of tokens, (T, D)."""
        return self.embedding_VD[tokens_T]

    def head(self) -> jax.Array:
        """The unembedding matrix, (V, D)."""
        return self.embedding_VD if self.config.tied else self.head_VD

    def hidden(self, inputs_TD: jax.Array, positions_T: jax.Array, valid_T: jax.Array) -> jax.Array:
        """Last-layer states after the final norm, (T, D).

        Args:
          inputs_TD: input vectors: embedded tokens, soft prompts, or both; cast to the config's
            dtype, so that a float32 prompt can be optimised against a bfloat16 model.
          positions_T: rotary position of each; padding does not count.
          valid_T: False where a position is padding.
        """
        cos, sin = rope.phases(positions_T, self.config.head_width, self.config.rope_base)
        inputs_TD = inputs_TD.astype(jnp.dtype(self.config.dtype))
        x_TD, _ = self.layers(inputs_TD, Context(cos, sin, masks.causal(valid_T)), None)
        return self.final_norm(x_TD)

    def step(
        self, input_D: jax.Array, position: jax.Array, cache: Cache
    ) -> tuple[jax.Array, Cache]:
        """State (D,) of one more position, given the cache of all earlier ones."""
        cos, sin = rope.phases(position[None], self.config.head_width, self.config.rope_base)
        mask_1S = masks.cached(position, cache.keys.shape[1])
        context = Context(cos, sin, mask_1S, position)
        input_D = input_D.astype(jnp.dtype(self.config.dtype))
        x_1D, cache = self.layers(input_D[None], context, cache)
        return self.final_norm(x_1D)[0], cache

    def __call__(self, tokens_T: jax.Array) -> jax.Array:
        """Logits (T, V) of a plain token sequence: the whole model, as `init` needs it."""
        T = tokens_T.shape[0]
        hidden_TD = self.hidden(self.embed(tokens_T), jnp.arange(T), jnp.ones(T, bool))
        return readout.logits(hidden_TD, self.head())


@functools.partial(jax.jit, static_argnames="config")
def init(config: DecoderConfig, key: jax.Array) -> Params:
    """Fresh parameters, normal with standard deviation fan_in^-1/2."""
    return Decoder(config).init(key, jnp.zeros(2, jnp.int32))["params"]


def empty_cache(config: DecoderConfig, slots: int) -> Cache:
    """A cache for `slots` positions, zero everywhere."""
    shape = (config.layers, slots, config.kv_heads, config.head_width)
    return Cache(*(jnp.zeros(shape, jnp.dtype(config.dtype)) for _ in range(2)))
