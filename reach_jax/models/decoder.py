"""One decoder-only transformer, unbatched, scanned over stacked layers: five families by options.

A sequence is a (T, D) array; batching is the caller's `vmap`. Parameters are a plain dict, the
key/value cache a plain value that goes in and comes out. Not here: loading weights, sampling.
"""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from flax import linen as nn

from reach_jax.models.config import DecoderConfig, Params
from reach_jax.models.layers import Cache, Context, Layer, Norm, View, saving_products
from reach_jax.ops import alibi, masks, readout, rope
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


class Rules(NamedTuple):
    """How positions enter a decoder, as arrays: models that differ in nothing else share a program.

    `rules` makes them. Given to a call, they stand in place of what the configuration says.
    """

    frequencies_P: jax.Array  # P = N/2, zero where nothing turns
    slopes_H: jax.Array
    windows_H: jax.Array


def rules(config: DecoderConfig) -> Rules:
    """What `config` says of positions.

    Raises:
      ValueError: a part of a head turns, or layers differ: arrays of this form cannot say so.
    """
    whole = config.turning in (0, config.head_width)
    require(whole, "rotary_width", config.rotary_width, "0 or all of a head")
    require(not any(config.local_layers), "local_layers", config.local_layers, "none")
    P, H = config.head_width // 2, config.heads
    turning_P = frequencies(config) if config.turning else np.zeros(P, np.float32)
    slopes_H = alibi.slopes(H) if config.alibi else np.zeros(H, np.float32)
    windows_H = alibi.windows(H, config.masked_heads)
    return Rules(*(jnp.asarray(x) for x in (turning_P, slopes_H, windows_H)))


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

    def hidden(
        self,
        inputs_TD: jax.Array,
        positions_T: jax.Array,
        valid_T: jax.Array,
        rules: Rules | None = None,
    ) -> jax.Array:
        """Last-layer states after the final norm, (T, D).

        Args:
          inputs_TD: input vectors: embedded tokens, soft prompts, or both; cast to the config's
            dtype, so that a float32 prompt can be optimised against a bfloat16 model.
          positions_T: position of each, rotary or in the table; padding does not count.
          valid_T: False where a position is padding.
          rules: of positions, in place of the configuration's.

        Raises:
          ValueError: T is more than the table of learned positions holds.
        """
        context = self._context(positions_T, valid_T, rules)
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
        self, input_D: jax.Array, position: jax.Array, cache: Cache, rules: Rules | None = None
    ) -> tuple[jax.Array, Cache]:
        """State (D,) of one more position, given the cache of all earlier ones.

        Args:
          input_D: what stands there.
          position: its place, from 0.
          cache: of those before it.
          rules: of positions, in place of the configuration's.

        Raises:
          ValueError: the cache has more slots than the table of learned positions has rows.
        """
        slots = cache.keys.shape[1]
        slots_S, here = jnp.arange(slots), position[None]
        everywhere = self._view(here, slots_S, masks.cached(position, slots), rules=rules)
        local = None
        if any(self.config.local_layers):
            window = masks.cached(position, slots, self.config.window)
            local = self._view(here, slots_S, window, local=True)
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
        local, positions_P, slots_S = None, jnp.arange(P), jnp.arange(slots)
        if any(self.config.local_layers):
            require(not full, "full", full, "False where layers see only a window")
            window_PS = masks.prefix(P, slots, False, self.config.window)
            local = self._view(positions_P, slots_S, window_PS, local=True)
        everywhere = self._view(positions_P, slots_S, masks.prefix(P, slots, full))
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

    def _context(
        self, positions_T: jax.Array, valid_T: jax.Array, rules: Rules | None = None
    ) -> Context:
        everywhere = self._view(positions_T, positions_T, masks.causal(valid_T), rules=rules)
        if not any(self.config.local_layers):
            return Context(everywhere, None)
        window_TT = masks.causal(valid_T, self.config.window)
        return Context(everywhere, self._view(positions_T, positions_T, window_TT, local=True))

    def _view(
        self,
        positions_T: jax.Array,
        keys_S: jax.Array,
        mask_TS: jax.Array,
        local: bool = False,
        rules: Rules | None = None,
    ) -> View:
        c = self.config
        if rules is not None:
            require(not any(c.local_layers), "rules", "given", "None where layers differ")
            phases = rope.phases(positions_T, rules.frequencies_P)
            bias_HTS = alibi.bias(positions_T, keys_S, rules.slopes_H, rules.windows_H)
            return View(*phases, mask_TS, bias_HTS)
        phases = rope.phases(positions_T, frequencies(c, local))
        if not (c.alibi or c.masked_heads):
            return View(*phases, mask_TS)
        slopes_H = alibi.slopes(c.heads) if c.alibi else np.zeros(c.heads, np.float32)
        windows_H = alibi.windows(c.heads, c.masked_heads)
        by_head = (jnp.asarray(slopes_H), jnp.asarray(windows_H))
        return View(*phases, mask_TS, alibi.bias(positions_T, keys_S, *by_head))

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
