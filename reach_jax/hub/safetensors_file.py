"""One safetensors file: its header checked against its bytes, and a writer that streams.

Not a directory of shards (tensors.py), and it knows no model. It exists beside the `safetensors`
package because that one reads tensors as copies and writes only what is all in memory.
"""

import json
import math
import os
import struct
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

import ml_dtypes
import numpy as np
from safetensors import SafetensorError, safe_open

from sweep_jax.checks import BadInput, require

DTYPES: dict[str, np.dtype] = {
    "F64": np.dtype(np.float64),
    "F32": np.dtype(np.float32),
    "F16": np.dtype(np.float16),
    "BF16": np.dtype(ml_dtypes.bfloat16),
    "I64": np.dtype(np.int64),
    "I32": np.dtype(np.int32),
    "I16": np.dtype(np.int16),
    "I8": np.dtype(np.int8),
    "U8": np.dtype(np.uint8),
    "BOOL": np.dtype(np.bool_),
}
_NAMES = {dtype: name for name, dtype in DTYPES.items()}


class Entry(NamedTuple):
    """One tensor of a file: what it is and where its bytes begin."""

    dtype: str  # a safetensors name, as "BF16"
    shape: tuple[int, ...]
    offset: int  # bytes from the beginning of the file


def entries(path: Path) -> dict[str, Entry]:
    """The tensors of a file by name, once the file is known to be whole.

    Raises:
      ValueError: the file is missing, truncated, longer than its header says, or no safetensors.
    """
    require(path.is_file(), str(path), "missing", "a safetensors file")
    size = path.stat().st_size
    require(size >= 8, f"{path}: size", size, "a safetensors file (this one is truncated)")
    with open(path, "rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        expected = (
            f"a header of {length} bytes inside the file (it is truncated, or no safetensors)"
        )
        require(8 + length <= size, f"{path}: size", size, expected)
        try:
            header = json.loads(file.read(length))
            header.pop("__metadata__", None)
            ends = [8 + length + entry["data_offsets"][1] for entry in header.values()]
        except (ValueError, TypeError, KeyError, AttributeError):
            raise BadInput(f"{path}: expected a safetensors file, its header is none") from None
    end = max(ends, default=8 + length)
    problem = "the file is truncated" if size < end else "the file has bytes of no tensor"
    require(size == end, f"{path}: size", size, f"{end} bytes by its own header ({problem})")
    try:
        with safe_open(path, framework="numpy"):  # holes, overlaps, bytes against shape and dtype
            pass
    except SafetensorError as error:
        raise BadInput(f"{path}: expected a valid safetensors file: {error}") from None
    return {
        name: Entry(e["dtype"], tuple(e["shape"]), 8 + length + e["data_offsets"][0])
        for name, e in header.items()
    }


def view(data: np.memmap, name: str, entry: Entry) -> np.ndarray:
    """The tensor as a read-only view of the mapped file, in the file's own dtype.

    Raises:
      ValueError: a dtype that numpy does not have, as an 8-bit float.
    """
    expected = f"one of {sorted(DTYPES)}"
    require(entry.dtype in DTYPES, f"dtype of tensor {name!r}", entry.dtype, expected)
    dtype = DTYPES[entry.dtype]
    count = math.prod(entry.shape) * dtype.itemsize
    raw = data[entry.offset : entry.offset + count].view(np.ndarray)
    return raw.view(dtype).reshape(entry.shape)


def write(
    path: Path,
    plan: Mapping[str, tuple[tuple[int, ...], np.dtype]],
    arrays: Iterable[np.ndarray],
    metadata: Mapping[str, str],
) -> None:
    """Writes a file one tensor at a time, durably when it returns.

    Args:
      path: the file, replaced.
      plan: shape and dtype of every tensor by name, in the order of `arrays`.
      arrays: as many tensors, each asked for only once the one before is written.
      metadata: text that the file carries about itself.

    Raises:
      ValueError: an array that is not what the plan says.
    """
    header: dict[str, object] = {"__metadata__": dict(metadata)}
    offset = 0
    for name, (shape, dtype) in plan.items():
        end = offset + math.prod(shape) * dtype.itemsize
        header[name] = {"dtype": _NAMES[dtype], "shape": shape, "data_offsets": [offset, end]}
        offset = end
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 64)  # the bytes of the first tensor begin at 8 mod 64
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for (name, planned), array in zip(plan.items(), arrays, strict=True):
            require((array.shape, array.dtype) == planned, name, array.shape, str(planned))
            file.write(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
        file.flush()
        os.fsync(file.fileno())
