"""Frozen description of a decoder: everything its parameters' shapes and its equations need."""

import dataclasses

from sweep_jax.checks import require

DTYPES = ("float32", "bfloat16")


@dataclasses.dataclass(frozen=True)
class DecoderConfig:
    """A Llama-style decoder: pre-norm RMSNorm, rotary positions, SwiGLU, grouped heads."""

    vocab_size: int  # V
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

    def __post_init__(self) -> None:
        for name in ("vocab_size", "layers", "width", "heads", "kv_heads", "mlp_width"):
            require(getattr(self, name) >= 1, name, getattr(self, name), "an integer >= 1")
        require(
            self.head_width >= 2 and self.head_width % 2 == 0,
            "head_width",
            self.head_width,
            "an even integer >= 2 (rotary channels come in pairs)",
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

    @property
    def flops_per_token(self) -> int:
        """Multiply-adds x 2 of the layers' matrices for one token, attention scores left out."""
        attention = self.width * self.head_width * (2 * self.heads + 2 * self.kv_heads)
        return 2 * self.layers * (attention + 3 * self.width * self.mlp_width)
