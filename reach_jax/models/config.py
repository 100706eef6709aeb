"""Frozen descriptions of models: everything their parameters' shapes and their equations need."""

import dataclasses
import math
from typing import Any

from sweep_jax.checks import require

Params = dict[str, Any]  # of any model: a tree of arrays

DTYPES = ("float32", "bfloat16", "float16")
NORMS = ("rms", "rms_offset", "layer")  # rms_offset multiplies by 1 + weight; layer has a bias
ACTIVATIONS = ("silu", "gelu", "gelu_tanh")  # gelu is the exact one


@dataclasses.dataclass(frozen=True)
class RopeScaling:
    """How the rotary frequencies are slowed down for long contexts."""

    kind: str  # linear or llama3
    factor: float  # slowest frequencies are divided by it
    low: float  # llama3: turns in `original` positions below which a frequency is divided
    high: float  # llama3: turns above which it is left as it is; between the two, a mixture
    original: int  # llama3: positions, the context before the scaling

    def __post_init__(self) -> None:
        require(self.kind in ("linear", "llama3"), "kind", self.kind, "linear or llama3")
        require(self.factor > 0, "factor", self.factor, "a number > 0")
        if self.kind == "llama3":
            require(0 < self.low < self.high, "low", self.low, f"in (0, high = {self.high})")
            require(self.original >= 1, "original", self.original, "an integer >= 1")


@dataclasses.dataclass(frozen=True)
class DecoderConfig:
    """A decoder-only transformer; the fields with a default describe Llama where left alone."""

    vocab_size: int  # V, rows of the token table, padding of the vocabulary included
    layers: int  # L
    width: int  # D
    heads: int  # H
    kv_heads: int  # K
    head_width: int  # N
    mlp_width: int  # F
    rope_base: float
    norm_eps: float
    tied: bool  # the output head is the input embedding
    dtype: str  # of parameters and activations
    norm: str = "rms"
    activation: str = "silu"
    gated: bool = True  # act(x gate) * (x up), else act(x up)
    qkv_bias: bool = False
    o_bias: bool = False
    mlp_bias: bool = False
    parallel: bool = False  # attention and feed-forward both read the layer's input
    sandwich: bool = False  # a norm behind each block too, before the residual
    qk_norm: bool = False  # a norm of every query and key head, before the rotation
    rotary_width: int | None = None  # channels of a head that turn; None is all of them
    rope_scaling: RopeScaling | None = None
    learned_positions: bool = False  # a table of `context` rows is added to the inputs
    context: int | None = None  # positions the model was made for
    local_layers: tuple[bool, ...] = ()  # which layers see only a window; empty is none
    window: int | None = None  # keys that a local layer's query sees, itself included
    local_rope_base: float | None = None  # of local layers, unscaled; None: as everywhere
    score_scale: float | None = None  # of q.k; None is N^-1/2
    embedding_scale: float | None = None  # of embedded tokens, rounded to `dtype` first
    alibi: bool = False  # scores fall with the distance, head i by 2^(-8 i / H) a position
    masked_heads: int = 0  # hard-ALiBi: of these, head i sees the last i + 1 keys (i from 0)

    def __post_init__(self) -> None:
        for name in ("vocab_size", "layers", "width", "heads", "kv_heads", "mlp_width"):
            require(getattr(self, name) >= 1, name, getattr(self, name), "an integer >= 1")
        expected = "an even integer >= 2 (rotary channels come in pairs)"
        even = self.head_width >= 2 and (self.head_width % 2 == 0 or self.turning == 0)
        require(even, "head_width", self.head_width, expected)
        require(
            0 <= self.turning <= self.head_width and self.turning % 2 == 0,
            "rotary_width",
            self.rotary_width,
            f"an even integer, at most head_width = {self.head_width}",
        )
        require(
            self.heads % self.kv_heads == 0,
            "kv_heads",
            self.kv_heads,
            f"a divisor of heads = {self.heads}",
        )
        require(self.rope_base > 0, "rope_base", self.rope_base, "a number > 0")
        require(self.norm_eps > 0, "norm_eps", self.norm_eps, "a number > 0")
        require(self.dtype in DTYPES, "dtype", self.dtype, f"one of {DTYPES}")
        require(self.norm in NORMS, "norm", self.norm, f"one of {NORMS}")
        require(
            self.activation in ACTIVATIONS, "activation", self.activation, f"one of {ACTIVATIONS}"
        )
        require(
            not (self.parallel and self.sandwich), "sandwich", True, "False in a parallel layer"
        )
        self._check_positions()

    def _check_positions(self) -> None:
        for name in ("context", "window", "local_rope_base", "score_scale", "embedding_scale"):
            value = getattr(self, name)
            require(value is None or 0 < value < math.inf, name, value, "a number > 0 or None")
        require(
            not self.learned_positions or self.context is not None,
            "context",
            None,
            "the rows of the table of learned positions",
        )
        require(
            len(self.local_layers) in (0, self.layers),
            "local_layers",
            self.local_layers,
            f"one flag for each of {self.layers} layers, or none",
        )
        masked = self.masked_heads
        expected = f"an integer in [0, heads = {self.heads}]"
        require(0 <= masked <= self.heads, "masked_heads", masked, expected)
        if any(self.local_layers):
            require(self.window is not None, "window", None, "the width of the local layers")

    @property
    def turning(self) -> int:
        """Channels of a head that rotary positions turn; the first ones."""
        return self.head_width if self.rotary_width is None else self.rotary_width

    @property
    def flops_per_token(self) -> int:
        """Multiply-adds x 2 of the layers' matrices for one token, attention scores left out."""
        attention = self.width * self.head_width * (2 * self.heads + 2 * self.kv_heads)
        matrices = 3 if self.gated else 2
        return 2 * self.layers * (attention + matrices * self.width * self.mlp_width)

    def mixing_flops(self, length: int) -> int:
        """FLOPs for one token of what has no weights: scores and sums over `length` positions."""
        return 4 * length * self.heads * self.head_width * self.layers


@dataclasses.dataclass(frozen=True)
class LSTMConfig:
    """A stack of LSTM layers (Hochreiter and Schmidhuber 1997), every one `width` wide."""

    vocab_size: int  # V
    layers: int  # L
    width: int  # D, of embeddings, hidden vectors and cells
    tied: bool  # the output head is the input embedding
    dtype: str = "float32"  # of parameters, activations and states

    def __post_init__(self) -> None:
        for name in ("vocab_size", "layers", "width"):
            require(getattr(self, name) >= 1, name, getattr(self, name), "an integer >= 1")
        require(self.dtype in DTYPES, "dtype", self.dtype, f"one of {DTYPES}")

    @property
    def flops_per_token(self) -> int:
        """Multiply-adds x 2 of the layers' weights for one token: four gates of two products."""
        return 2 * self.layers * 8 * self.width**2

    def mixing_flops(self, length: int) -> int:
        """FLOPs for one token of what has no weights; nothing here mixes positions so."""
        return 0


@dataclasses.dataclass(frozen=True)
class MambaConfig:
    """A Mamba language model, version 1."""

    vocab_size: int  # V, rows of the token table, padding of the vocabulary included
    layers: int  # L
    width: int  # D
    inner: int  # I, channels of the convolution and of the state space
    state_size: int  # N, numbers that each channel remembers
    conv_width: int  # W, positions that the convolution sees, the present included
    step_rank: int  # R, numbers that the channels' time steps are made from
    norm_eps: float
    tied: bool  # the output head is the input embedding
    dtype: str  # of parameters and activations; states are float32
    conv_bias: bool = True
    projection_bias: bool = False  # of the matrices into and out of the channels
    float32_residual: bool = True  # the sum of the layers is kept in float32, whatever the dtype

    def __post_init__(self) -> None:
        for name in ("vocab_size", "layers", "width", "inner", "state_size", "conv_width"):
            require(getattr(self, name) >= 1, name, getattr(self, name), "an integer >= 1")
        require(self.step_rank >= 1, "step_rank", self.step_rank, "an integer >= 1")
        require(self.norm_eps > 0, "norm_eps", self.norm_eps, "a number > 0")
        require(self.dtype in DTYPES, "dtype", self.dtype, f"one of {DTYPES}")

    @property
    def flops_per_token(self) -> int:
        """Multiply-adds x 2 of the layers' weights for one token, the recurrence left out."""
        selection = 2 * self.step_rank + 2 * self.state_size
        per_channel = 3 * self.width + self.conv_width + selection
        return 2 * self.layers * self.inner * per_channel

    def mixing_flops(self, length: int) -> int:
        """FLOPs for one token of what has no weights: the recurrence, whatever the length."""
        return 6 * self.inner * self.state_size * self.layers
