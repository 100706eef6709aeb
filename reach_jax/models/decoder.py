"""One decoder-only transformer, unbatched, scanned over stacked layers: five families by options.

A sequence is a (T, D) array; batching is the caller's `vmap`. Parameters are a plain dict, the
key/value cache a plain value that goes in and comes out. Not here: loading weights, sampling.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from flax import linen as nn

from reach_jax.models.config import DecoderConfig, Params
from reach_jax.models.layers import Cache, Context, Layer, Norm, View, saving_products
from reach_jax.ops import masks, readout, rope
from sweep_jax.checks import require


def frequencies(config: DecoderConfig, local: bool = False) -> np.ndarray:
    """Rotary angles per position of a layer's channel pairs, float32 of shape (turning/2,)."""
    if local and config.local_rope_base is not None:
        return rope.frequencies(config.turning, config.local_rope_base)
    plain_P, scaling = rope.frequencies(config.turning, config.rope_base), config.rope_scaling
    if scaling is None:
        return plain_P
    if scaling.kind == "linear":
        return rope.linear(plain_P, scaling.factor)
    return rope.llama3(plain_P, scaling.factor, scaling.low, scaling.high, scaling.original)


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
        if c.learned_positions:
            self.positions_SD = self.param("positions", init, (c.context, c.width), dtype)
        stack = nn.scan(
            saving_products(Layer),
            variable_axes={"params": 0},
            split_rngs={"params": True},
            in_axes=(nn.broadcast, 0, 0),
            out_axes=0,
            length=c.layers,
            methods=["__call__", "with_input"],
        )
        self.layers = stack(c)
        self.final_norm = Norm(c, c.width)

    def embed(self, tokens_T: jax.Array) -> jax.Array:
        """Input vectors of tokens, (T, D); the scale that some families give them is included."""
        embedded_TD, scale = self.embedding_VD[tokens_T], self.config.embedding_scale
        return embedded_TD if scale is None else embedded_TD * jnp.asarray(scale, embedded_TD.dtype)

    def head(self) -> jax.Array:
        """The unembedding matrix, (V, D)."""
        return self.embedding_VD if self.config.tied else self.head_VD

    def hidden(self, inputs_TD: jax.Array, positions_T: jax.Array, valid_T: jax.Array) -> jax.Array:
        """Last-layer states after the final norm, (T, D).

        Args:
          inputs_TD: input vectors: embedded tokens, soft prompts, or both; cast to the config's
            dtype, so that a float32 prompt can be optimised against a bfloat16 model.
          positions_T: position of each, rotary or in the table; padding does not count.
          valid_T: False where a position is padding.

        Raises:
          ValueError: T is more than the table of learned positions holds.
        """
        context = self._context(positions_T, valid_T)
        x_TD = self._placed(inputs_TD, positions_T, inputs_TD.shape[0])
        x_TD, _ = self.layers(x_TD, context, None, self._is_local())
        return self.final_norm(x_TD)

    def states(self, inputs_TD: jax.Array, positions_T: jax.Array, valid_T: jax.Array) -> jax.Array:
        """The input of each layer, then what `hidden` returns: (L+1, T, D); arguments as there."""
        context = self._context(positions_T, valid_T)
        x_TD = self._placed(inputs_TD, positions_T, inputs_TD.shape[0])
        x_TD, before_LTD = self.layers.with_input(x_TD, context, None, self._is_local())
        return jnp.concatenate([before_LTD, self.final_norm(x_TD)[None]])

    def step(
        self, input_D: jax.Array, position: jax.Array, cache: Cache
    ) -> tuple[jax.Array, Cache]:
        """State (D,) of one more position, given the cache of all earlier ones.

        Raises:
          ValueError: the cache has more slots than the table of learned positions has rows.
        """
        slots = cache.keys.shape[1]
        everywhere = self._view(position[None], masks.cached(position, slots))
        local = None
        if any(self.config.local_layers):
            window = masks.cached(position, slots, self.config.window)
            local = self._view(position[None], window, local=True)
        x_1D = self._placed(input_D[None], position[None], slots)
        x_1D, cache = self.layers(
            x_1D, Context(everywhere, local, position), cache, self._is_local()
        )
        return self.final_norm(x_1D)[0], cache

    def prefill(
        self, inputs_PD: jax.Array, cache: Cache, full: bool = False
    ) -> tuple[jax.Array, Cache]:
        """States (P, D) of the first P positions at once, and the cache with their slots filled.

        Args:
          inputs_PD: what stands at positions 0..P-1.
          cache: an empty one.
          full: each of the P positions sees all of them, as in a prefix language model; else
            itself and those before it, as `P` calls of `step` would have it.

        Raises:
          ValueError: P is more than the cache's slots, or `full` in a model with windows.
        """
        P, slots = inputs_PD.shape[0], cache.keys.shape[1]
        require(slots >= P, "inputs_PD", P, f"at most the {slots} slots of the cache")
        local, positions_P = None, jnp.arange(P)
        if any(self.config.local_layers):
            require(not full, "full", full, "False where layers see only a window")
            window_PS = masks.prefix(P, slots, False, self.config.window)
            local = self._view(positions_P, window_PS, local=True)
        everywhere = self._view(positions_P, masks.prefix(P, slots, full))
        x_PD = self._placed(inputs_PD, positions_P, slots)
        x_PD, cache = self.layers(x_PD, Context(everywhere, local, 0), cache, self._is_local())
        return self.final_norm(x_PD), cache

    def __call__(self, tokens_T: jax.Array) -> jax.Array:
        """Logits (T, V) of a plain token sequence: the whole model, as `init` needs it."""
        T = tokens_T.shape[0]
        hidden_TD = self.hidden(self.embed(tokens_T), jnp.arange(T), jnp.ones(T, bool))
        return readout.logits(hidden_TD, self.head())

    def _placed(self, inputs_TD: jax.Array, positions_T: jax.Array, length: int) -> jax.Array:
        """Inputs in the model's dtype, with the learned positions where there are any."""
        c = self.config
        x_TD = inputs_TD.astype(jnp.dtype(c.dtype))
        if not c.learned_positions:
            return x_TD
        rows = self.positions_SD.shape[0]
        require(length <= rows, "length", length, f"at most the {rows} learned positions")
        # Out of the table is NaN and never the last row, to which a plain lookup would clamp.
        return x_TD + self.positions_SD.at[positions_T].get(mode="fill", fill_value=jnp.nan)

    def _context(self, positions_T: jax.Array, valid_T: jax.Array) -> Context:
        everywhere = self._view(positions_T, masks.causal(valid_T))
        if not any(self.config.local_layers):
            return Context(everywhere, None)
        window_TT = masks.causal(valid_T, self.config.window)
        return Context(everywhere, self._view(positions_T, window_TT, local=True))

    def _view(self, positions_T: jax.Array, mask_TS: jax.Array, local: bool = False) -> View:
        return View(*rope.phases(positions_T, frequencies(self.config, local)), mask_TS)

    def _is_local(self) -> jax.Array | None:
        flags = self.config.local_layers
        return jnp.array(flags) if any(flags) else None


@functools.partial(jax.jit, static_argnames="config")
def init(config: DecoderConfig, key: jax.Array) -> Params:
    """Fresh parameters, normal with standard deviation fan_in^-1/2."""
    return Decoder(config).init(key, jnp.zeros(2, jnp.int32))["params"]


def empty_cache(config: DecoderConfig, slots: int) -> Cache:
    """A cache for `slots` positions, zero everywhere."""
    shape = (config.layers, slots, config.kv_heads, config.head_width)
    return Cache(*(jnp.zeros(shape, jnp.dtype(config.dtype)) for _ in range(2)))
