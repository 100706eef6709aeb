"""Bytes of a GGUF tensor to numbers, exactly. Not a reader of headers, and it knows no names."""

from pathlib import Path

import ml_dtypes
import numpy as np
from gguf import GGMLQuantizationType, quants

from reach_jax.hub.gguf_header import Tensor
from sweep_jax.checks import require

FLOATS = {
    "F32": np.dtype(np.float32),
    "F16": np.dtype(np.float16),
    "BF16": np.dtype(ml_dtypes.bfloat16),
}
BLOCKS = ("Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q4_K", "Q5_K", "Q6_K")
_ROWS = 4096  # decoded at a time


def read(path: Path, name: str, tensor: Tensor) -> np.ndarray:
    """The numbers of one tensor of a file; ValueError names a tensor of another type."""
    check(name, tensor)
    raw = np.fromfile(path, np.uint8, count=tensor.size, offset=tensor.offset)
    return decode(raw, tensor.kind, tensor.shape)


def check(name: str, tensor: Tensor) -> None:
    """Raises ValueError for a tensor of a type that is not decoded here."""
    kind = tensor.kind.name
    known = kind in FLOATS or kind in BLOCKS
    require(known, f"GGUF tensor {name}: type", kind, f"one of {[*FLOATS, *BLOCKS]}")


def decode(raw: np.ndarray, kind: GGMLQuantizationType, shape: tuple[int, ...]) -> np.ndarray:
    """The numbers of a tensor: in their own dtype if they are floats, else as float32.

    Args:
      raw: the tensor's bytes, uint8.
      kind: F32, F16, BF16 or one of BLOCKS.
      shape: of the result, (out, in) for a matrix; a row is whole blocks.
    """
    if kind.name in FLOATS:
        return raw.view(FLOATS[kind.name]).reshape(shape)
    out = np.empty(shape, np.float32)
    rows = out.reshape(-1, shape[-1])
    blocks = raw.reshape(len(rows), -1)
    for start in range(0, len(rows), _ROWS):
        rows[start : start + _ROWS] = quants.dequantize(blocks[start : start + _ROWS], kind)
    return out


def unpermuted(rows: np.ndarray, heads: int) -> np.ndarray:
    """Undoes llama.cpp's order of a head's rows, pairs side by side: back to half and half.

    Args:
      rows: of q or k, shape (heads x head_dim, ...).
      heads: of this matrix, so the key/value heads for k.
    """
    require(rows.shape[0] % (2 * heads) == 0, "rows", rows.shape, f"a multiple of {2 * heads}")
    half = rows.shape[0] // heads // 2
    return rows.reshape(heads, half, 2, *rows.shape[1:]).swapaxes(1, 2).reshape(rows.shape)
