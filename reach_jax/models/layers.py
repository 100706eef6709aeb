"""The parts of a decoder's layer as thin linen modules over `reach_jax.ops`; unbatched.

Which parameters exist, and what joins them, is the configuration's to say; the mathematics is in
`ops`. Not here: embeddings, the stack of layers, masks.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from flax import linen as nn

from reach_jax.models.config import DecoderConfig
from reach_jax.ops import attention, mlp, norms, products, rope


class Cache(NamedTuple):
    """Keys and values of the positions so far, one slot each: (L, S, K, N)."""

    keys: jax.Array
    values: jax.Array


class View(NamedTuple):
    """What a kind of layer sees of the sequence: rotary phases, mask, and a bias by head."""

    cos_TP: jax.Array
    sin_TP: jax.Array
    mask_TS: jax.Array
    bias_HTS: jax.Array | None = None


class Context(NamedTuple):
    """What every layer shares: how it sees, and the slot that a cache writes to."""

    everywhere: View
    local: View | None  # of the layers that see only a window
    slot: jax.Array | int = 0

    def view(self, is_local: jax.Array | None) -> View:
        """The view of one layer; `is_local` is a boolean scalar, or None where no layer is."""
        if self.local is None or is_local is None:
            return self.everywhere
        return jax.tree.map(lambda a, b: jnp.where(is_local, a, b), self.local, self.everywhere)


def kernel(module: nn.Module, name: str, shape: tuple[int, ...], fan_in: int) -> jax.Array:
    """A matrix of the module, first normal with standard deviation fan_in^-1/2."""
    init = nn.initializers.normal(fan_in**-0.5)
    return module.param(name, init, shape, jnp.dtype(module.config.dtype))


def bias(module: nn.Module, name: str, shape: tuple[int, ...], present: bool) -> jax.Array | None:
    """A bias of the module, first zero, or None where the configuration has none."""
    if not present:
        return None
    return module.param(name, nn.initializers.zeros, shape, jnp.dtype(module.config.dtype))


def saving_products(layer: type[nn.Module]) -> type[nn.Module]:
    """The layer, of which a backward pass keeps the products with weights and makes the rest again.

    Half the memory of keeping all, and no slower: what is made again is cheap, and reading it back
    from memory is not.
    """
    policy = jax.checkpoint_policies.dots_with_no_batch_dims_saveable
    methods = ["__call__", "with_input"]
    return nn.remat(layer, policy=policy, prevent_cse=False, methods=methods)


class Norm(nn.Module):
    """The configuration's norm over a last axis of `width`."""

    config: DecoderConfig
    width: int

    @nn.compact
    def __call__(self, x_TD: jax.Array) -> jax.Array:
        """Normalises the last axis."""
        c, shape = self.config, (self.width,)
        if c.norm == "rms_offset":
            weight_D = self.param("weight", nn.initializers.zeros, shape, jnp.float32)
            return norms.rms_norm_offset(x_TD, weight_D, c.norm_eps)
        weight_D = self.param("weight", nn.initializers.ones, shape, jnp.float32)
        if c.norm == "rms":
            return norms.rms_norm(x_TD, weight_D, c.norm_eps)
        bias_D = self.param("bias", nn.initializers.zeros, shape, jnp.float32)
        return norms.layer_norm(x_TD, weight_D, bias_D, c.norm_eps)


class Attention(nn.Module):
    """Self-attention; with a cache, its keys and values are written and read there."""

    config: DecoderConfig

    @nn.compact
    def __call__(
        self, x_TD: jax.Array, view: View, slot: jax.Array | int, cache: Cache | None
    ) -> tuple[jax.Array, Cache | None]:
        """Returns the block's output (T, D) and the cache with this call's slots filled."""
        c = self.config
        q_THN, k_SKN = (
            rope.rotate(heads_THN, view.cos_TP, view.sin_TP)
            for heads_THN in (self._normed(x_TD, "q", c.heads), self._normed(x_TD, "k", c.kv_heads))
        )
        v_SKN = self._heads(x_TD, "v", c.kv_heads)
        # Made last: a kernel's first value depends on how many were made before it.
        o_HND = kernel(self, "o", (c.heads, c.head_width, c.width), c.heads * c.head_width)
        o_D = bias(self, "o_bias", (c.width,), c.o_bias)
        if cache is not None:
            k_SKN = jax.lax.dynamic_update_slice(cache.keys, k_SKN, (slot, 0, 0))
            v_SKN = jax.lax.dynamic_update_slice(cache.values, v_SKN, (slot, 0, 0))
            cache = Cache(k_SKN, v_SKN)
        out_THN = attention.attend(q_THN, k_SKN, v_SKN, view.mask_TS, c.score_scale, view.bias_HTS)
        out_TD = products.product("thn,hnd->td", out_THN, o_HND)
        return (out_TD if o_D is None else out_TD + o_D[None]), cache

    def _heads(self, x_TD: jax.Array, name: str, heads: int) -> jax.Array:
        c = self.config
        kernel_DHN = kernel(self, name, (c.width, heads, c.head_width), c.width)
        bias_HN = bias(self, name + "_bias", (heads, c.head_width), c.qkv_bias)
        out_THN = products.product("td,dhn->thn", x_TD, kernel_DHN)
        return out_THN if bias_HN is None else out_THN + bias_HN[None]

    def _normed(self, x_TD: jax.Array, name: str, heads: int) -> jax.Array:
        out_THN = self._heads(x_TD, name, heads)
        c = self.config
        return Norm(c, c.head_width, name=name + "_norm")(out_THN) if c.qk_norm else out_THN


class Layer(nn.Module):
    """Attention and feed-forward, each behind a norm and around a residual."""

    config: DecoderConfig

    @nn.compact
    def __call__(
        self, x_TD: jax.Array, context: Context, cache: Cache | None, is_local: jax.Array | None
    ) -> tuple[jax.Array, Cache | None]:
        """Returns the states after this layer and its part of the cache."""
        c, view = self.config, context.view(is_local)
        normed_TD = Norm(c, c.width, name="attention_norm")(x_TD)
        mixed_TD, cache = Attention(c, name="attention")(normed_TD, view, context.slot, cache)
        if c.sandwich:
            mixed_TD = Norm(c, c.width, name="attention_out_norm")(mixed_TD)
        before_TD = x_TD if c.parallel else x_TD + mixed_TD
        fed_TD = self._feed_forward(Norm(c, c.width, name="mlp_norm")(before_TD))
        if c.sandwich:
            fed_TD = Norm(c, c.width, name="mlp_out_norm")(fed_TD)
        return (fed_TD + mixed_TD + x_TD if c.parallel else before_TD + fed_TD), cache

    def with_input(
        self, x_TD: jax.Array, context: Context, cache: Cache | None, is_local: jax.Array | None
    ) -> tuple[jax.Array, jax.Array]:
        """The states after this layer and those before it."""
        return self(x_TD, context, cache, is_local)[0], x_TD

    def _feed_forward(self, x_TD: jax.Array) -> jax.Array:
        c = self.config

        def inner(name: str) -> jax.Array:
            kernel_DF = kernel(self, name, (c.width, c.mlp_width), c.width)
            return mlp.affine(x_TD, kernel_DF, bias(self, name + "_bias", (F,), c.mlp_bias))

        F = c.mlp_width
        gate_TF = inner("gate") if c.gated else None
        hidden_TF = mlp.feed_forward(inner("up"), gate_TF, c.activation)
        down_FD = kernel(self, "down", (F, c.width), F)
        return mlp.affine(hidden_TF, down_FD, bias(self, "down_bias", (c.width,), c.mlp_bias))
