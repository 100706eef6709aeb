"""The transformer that explicit constructions and training share, and its parts at c0.

Tokens x(1..T) are encoded; a trainable c0 stands behind them and is where the output is read. In
layer 1 c0 is no key, as it knows nothing yet; in the last layer only c0 is computed. No LayerNorm,
no causal mask. Unbatched: one sequence (T, d); batching is the caller's `vmap`, also over
parameters and head masks. Parameters fit any T, save that a circle of positions has an end.
"""

import dataclasses
import functools
import math

import jax
import jax.numpy as jnp
from flax import linen as nn

from infoflow_jax.networks.config import NetworkConfig, Params
from reach_jax.ops import attention, mlp
from sweep_jax.checks import require


def position_features(config: NetworkConfig, tokens: int) -> jax.Array:
    """What the encoder is told of positions 1..T, (T, features - d).

    Raises:
      ValueError: T is beyond the circle, where two positions would be one.
    """
    dtype = jnp.dtype(config.dtype)
    if config.positions == "none":
        return jnp.zeros((tokens, 0), dtype)
    if config.positions == "first":
        return jnp.eye(tokens, config.period, dtype=dtype)
    require(tokens <= config.period, "T", tokens, f"at most the period {config.period}")
    angle_T = 2 * math.pi * jnp.arange(1, tokens + 1, dtype=dtype) / config.period
    return jnp.stack([jnp.cos(angle_T), jnp.sin(angle_T)], axis=1)


class Mlp(nn.Module):
    """Affine maps with activations between them; `widths` ends with the output's."""

    widths: tuple[int, ...]
    kind: str
    dtype: str

    @nn.compact
    def __call__(self, x_TD: jax.Array) -> jax.Array:
        """(T, D) to (T, widths[-1])."""
        dtype = jnp.dtype(self.dtype)

        def affine(name: str, x_TD: jax.Array, width: int) -> jax.Array:
            init = nn.initializers.lecun_normal()
            kernel_DF = self.param(f"kernel_{name}", init, (x_TD.shape[1], width), dtype)
            bias_F = self.param(f"bias_{name}", nn.initializers.zeros, (width,), dtype)
            return mlp.affine(x_TD, kernel_DF, bias_F)

        for place, width in enumerate(self.widths[:-1]):
            up_TF = affine(str(place), x_TD, width)
            if self.kind == "bilinear":
                gate_TF = affine(f"gate_{place}", x_TD, width)
                x_TD = mlp.feed_forward(up_TF, gate_TF, "identity")
            else:
                x_TD = mlp.feed_forward(up_TF, None, self.kind)
        return affine(str(len(self.widths) - 1), x_TD, self.widths[-1])


class Layer(nn.Module):
    """Attention and FFN of one layer."""

    config: NetworkConfig
    place: int

    def setup(self) -> None:
        """Declares the four projections, none with a bias, and the FFN."""
        c, dtype = self.config, jnp.dtype(self.config.dtype)
        H = c.heads[self.place]
        split = nn.initializers.lecun_normal(in_axis=0, out_axis=(1, 2))
        join = nn.initializers.lecun_normal(in_axis=(0, 1), out_axis=2)
        self.query_EHN = self.param("query", split, (c.width, H, c.head_width), dtype)
        self.key_EHN = self.param("key", split, (c.width, H, c.head_width), dtype)
        self.value_EHN = self.param("value", split, (c.width, H, c.head_width), dtype)
        self.output_HNE = self.param("output", join, (H, c.head_width, c.width), dtype)
        if c.ffn[self.place]:
            self.ffn = Mlp((*c.ffn[self.place], c.width), c.kind, c.dtype)

    def mixed(self, x_PE: jax.Array, queries: int, keep_H: jax.Array | None) -> jax.Array:
        """What the FFN gets at the last `queries` positions: attention, and the state as told."""
        P, tail_QE = x_PE.shape[0], x_PE[-queries:]
        keys_P = jnp.ones(P, bool) if self.place > 0 else jnp.arange(P) < P - 1
        heads_QHN = attention.attend(
            jnp.einsum("qe,ehn->qhn", tail_QE, self.query_EHN),
            jnp.einsum("pe,ehn->phn", x_PE, self.key_EHN),
            jnp.einsum("pe,ehn->phn", x_PE, self.value_EHN),
            jnp.broadcast_to(keys_P[None], (queries, P)),
            self.config.beta,
        )
        if keep_H is not None:
            kept_H = keep_H[: heads_QHN.shape[1]].astype(heads_QHN.dtype)
            heads_QHN = heads_QHN * kept_H[None, :, None]
        joined_QE = jnp.einsum("qhn,hne->qe", heads_QHN, self.output_HNE)
        return joined_QE if self.config.residual == "none" else tail_QE + joined_QE

    def __call__(self, x_PE: jax.Array, queries: int, keep_H: jax.Array | None) -> jax.Array:
        """The states after the layer at the last `queries` positions, (Q, E)."""
        y_QE = self.mixed(x_PE, queries, keep_H)
        if not self.config.ffn[self.place]:
            return y_QE
        out_QE = self.ffn(y_QE)
        return y_QE + out_QE if self.config.residual == "both" else out_QE


class Network(nn.Module):
    """The whole transformer. `mask_LH` keeps heads: (L, max H); entries beyond H are not read."""

    config: NetworkConfig

    def setup(self) -> None:
        """Declares encoder, c0, layers and readout."""
        c, dtype = self.config, jnp.dtype(self.config.dtype)
        if c.encoder != "none":
            self.encoder = Mlp((*c.encoder_widths, c.width), c.encoder_kind, c.dtype)
        self.c0_E = self.param("c0", nn.initializers.normal(1.0), (c.width,), dtype)
        self.layer = [Layer(c, place) for place in range(c.layers)]
        self.readout = Mlp((*c.readout, c.outputs), c.kind, c.dtype)

    def encode(self, x_TD: jax.Array) -> jax.Array:
        """The first states: T encoded tokens and c0, (T + 1, E)."""
        c = self.config
        require(x_TD.shape[1] == c.d, "x_TD", x_TD.shape, f"[T, {c.d}]")
        placed_TP = position_features(c, x_TD.shape[0])
        given_TP = jnp.concatenate([x_TD.astype(placed_TP.dtype), placed_TP], axis=1)
        if c.encoder == "none":
            x_TE = jnp.pad(given_TP, [(0, 0), (0, c.width - given_TP.shape[1])])
        else:
            x_TE = self.encoder(given_TP)
        return jnp.concatenate([x_TE, self.c0_E[None]])

    def states(self, x_TD: jax.Array, mask_LH: jax.Array | None = None) -> tuple[jax.Array, ...]:
        """States before layer 1 and after each layer: (T + 1, E), of the last layer (1, E)."""
        found = [self.encode(x_TD)]
        for place, layer in enumerate(self.layer):
            queries = 1 if place == self.config.layers - 1 else found[-1].shape[0]
            keep_H = None if mask_LH is None else mask_LH[place]
            found.append(layer(found[-1], queries, keep_H))
        return tuple(found)

    def first_mixed(self, x_TD: jax.Array) -> jax.Array:
        """What the FFN of layer 1 gets at c0, (E,): all that a one-layer network knows."""
        return self.layer[0].mixed(self.encode(x_TD), 1, None)[0]

    def first_terms(self, x_TD: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Each token's score (T, H) and value (T, H, N) at c0 in layer 1: its part of the sums."""
        x_PE, layer = self.encode(x_TD), self.layer[0]
        query_HN = jnp.einsum("e,ehn->hn", x_PE[-1], layer.query_EHN)
        key_THN = jnp.einsum("te,ehn->thn", x_PE[:-1], layer.key_EHN)
        score_TH = self.config.beta * jnp.einsum("hn,thn->th", query_HN, key_THN)
        return score_TH, jnp.einsum("te,ehn->thn", x_PE[:-1], layer.value_EHN)

    def __call__(self, x_TD: jax.Array, mask_LH: jax.Array | None = None) -> jax.Array:
        """The output (O,) of one sequence (T, d)."""
        return self.readout(self.states(x_TD, mask_LH)[-1])[0]


@functools.partial(jax.jit, static_argnames="config")
def init(config: NetworkConfig, key: jax.Array) -> Params:
    """Fresh parameters: normal with standard deviation fan_in^-1/2, biases 0, c0 normal."""
    return Network(config).init(key, jnp.zeros((2, config.d), config.dtype))["params"]


@functools.partial(jax.jit, static_argnames="config")
def apply(
    config: NetworkConfig, params: Params, x_TD: jax.Array, mask_LH: jax.Array | None = None
) -> jax.Array:
    """The output (O,) of one sequence (T, d)."""
    return Network(config).apply({"params": params}, x_TD, mask_LH)


@functools.partial(jax.jit, static_argnames="config")
def apply_batch(config: NetworkConfig, params: Params, x_BTD: jax.Array) -> jax.Array:
    """Outputs (B, O) of sequences (B, T, d), in groups of 32 so that memory stays low."""
    return jax.lax.map(lambda x_TD: apply(config, params, x_TD), x_BTD, batch_size=32)


def shapes(config: NetworkConfig) -> Params:
    """The tree of parameters as `jax.ShapeDtypeStruct`, of float32 so that x64 need not be on."""
    plain = dataclasses.replace(config, dtype="float32")
    return jax.eval_shape(lambda: init(plain, jax.random.key(0)))


def parameters(config: NetworkConfig) -> dict[str, int]:
    """Numbers in encoder, attention (c0 included), ffn and readout; the theorems count the ffn."""
    counts = dict.fromkeys(("encoder", "attention", "ffn", "readout"), 0)
    for path, leaf in jax.tree_util.tree_leaves_with_path(shapes(config)):
        names = [entry.key for entry in path]
        first = names[0] if names[0] in counts else "attention"
        counts["ffn" if "ffn" in names else first] += math.prod(leaf.shape)
    return counts
