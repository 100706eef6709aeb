"""What one transformer of the theorems is: sizes, feed-forward kinds, residuals, positions.

Everything that its parameters' shapes and its equations need, and nothing of how it is trained.
"""

import dataclasses
import itertools
import math
from typing import Any

from sweep_jax.checks import require

Params = dict[str, Any]

ENCODERS = ("none", "linear", "mlp")
KINDS = ("relu", "gelu", "bilinear")
POSITIONS = ("none", "first", "circle")
RESIDUALS = ("none", "attention", "both")
DTYPES = ("float32", "float64")


@dataclasses.dataclass(frozen=True)
class NetworkConfig:
    """A transformer whose output is read at c0, the token at position T + 1.

    A layer is `Y = X + attention(X)`, `X <- FFN(Y)` with `residual="attention"` (arXiv 2605.17930);
    "none" drops the X of Y (the one-layer model of arXiv 2510.06662), "both" adds Y to FFN(Y).
    """

    d: int  # coordinates of a token
    width: int  # E, coordinates of a state
    heads: tuple[int, ...]  # H of each layer
    head_width: int  # N, of queries, keys and values
    ffn: tuple[tuple[int, ...], ...]  # hidden widths of each layer's FFN; () is the identity
    readout: tuple[int, ...] = ()  # hidden widths between c0's state and the output; () is linear
    outputs: int = 1  # O
    kind: str = "relu"  # of the FFNs and the readout; bilinear is (U x + b) * (V x + c)
    residual: str = "attention"
    encoder: str = "linear"  # none: the input itself, then zeros
    encoder_widths: tuple[int, ...] = ()  # hidden widths of an mlp
    encoder_kind: str = "relu"
    positions: str = (
        "none"  # first: one-hot of the first `period`; circle: cos, sin of 2 pi s/period
    )
    period: int = 0
    beta: float = 1.0  # of every score; no parameter
    dtype: str = "float32"

    def __post_init__(self) -> None:
        for name in ("d", "width", "head_width", "outputs"):
            require(getattr(self, name) >= 1, name, getattr(self, name), "an integer >= 1")
        for name, choices in (
            ("kind", KINDS),
            ("encoder_kind", KINDS),
            ("residual", RESIDUALS),
            ("encoder", ENCODERS),
            ("positions", POSITIONS),
            ("dtype", DTYPES),
        ):
            require(getattr(self, name) in choices, name, getattr(self, name), f"one of {choices}")
        some = len(self.heads) >= 1 and min(self.heads, default=0) >= 1
        require(some, "heads", self.heads, "at least one layer, at least one head in each")
        each = f"one tuple for each of {self.layers} layers"
        require(len(self.ffn) == self.layers, "ffn", self.ffn, each)
        hidden = [*self.readout, *self.encoder_widths, *(w for widths in self.ffn for w in widths)]
        require(min(hidden, default=1) >= 1, "ffn", hidden, "hidden widths >= 1")
        require(0 < self.beta < math.inf, "beta", self.beta, "a number > 0")
        deep = (self.encoder == "mlp") == (len(self.encoder_widths) > 0)
        require(deep, "encoder_widths", self.encoder_widths, "hidden widths, of an mlp only")
        placed = (self.positions != "none") == (self.period >= 1)
        require(placed, "period", self.period, "an integer >= 1 with positions, 0 without")
        fits = self.encoder != "none" or self.features <= self.width
        require(fits, "width", self.width, f"at least the {self.features} inputs, not encoded")

    @property
    def layers(self) -> int:
        """L."""
        return len(self.heads)

    @property
    def features(self) -> int:
        """Numbers that the encoder gets: a token's coordinates and its position's."""
        return self.d + {"none": 0, "first": self.period, "circle": 2}[self.positions]

    def products(self, tokens: int) -> int:
        """Multiplications in the products of matrices of one output, for T = `tokens`."""

        def mlp(sizes: tuple[int, ...], kind: str) -> int:
            each = [one * two for one, two in itertools.pairwise(sizes)]
            return sum(each) + (sum(each[:-1]) if kind == "bilinear" else 0)

        total = mlp((self.width, *self.readout, self.outputs), self.kind)
        if self.encoder != "none":
            sizes = (self.features, *self.encoder_widths, self.width)
            total += tokens * mlp(sizes, self.encoder_kind)
        for place, (heads, hidden) in enumerate(zip(self.heads, self.ffn, strict=True)):
            queries = 1 if place == self.layers - 1 else tokens + 1
            inner, keys = heads * self.head_width, tokens + 1
            total += 2 * self.width * inner * (queries + keys) + 2 * inner * queries * keys
            if hidden:
                total += queries * mlp((self.width, *hidden, self.width), self.kind)
        return total
