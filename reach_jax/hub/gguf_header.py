"""The header of a GGUF file: metadata, and each tensor's name, shape, type and place.

Not a decoder, and it knows no model. The `gguf` package's own reader takes seconds on a large
vocabulary, names no tensor in its errors and takes a truncated file; this one reads the same bytes.
"""

import struct
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType

from sweep_jax.checks import BadInput, require

# The metadata's scalar types by number, as struct formats. 8 is a string, 9 an array.
_SCALARS = {
    0: "B",
    1: "b",
    2: "H",
    3: "h",
    4: "I",
    5: "i",
    6: "f",
    7: "?",
    10: "Q",
    11: "q",
    12: "d",
}
_STRING, _ARRAY = 8, 9


class Tensor(NamedTuple):
    """One tensor: `shape` in numpy's order, (out, in) for a matrix; the file lists (in, out)."""

    shape: tuple[int, ...]
    kind: GGMLQuantizationType
    offset: int  # bytes from the beginning of the file
    size: int  # bytes


class Header(NamedTuple):
    """What a GGUF file says about itself."""

    metadata: dict[str, Any]
    tensors: dict[str, Tensor]


def read(path: Path) -> Header:
    """Reads a little-endian GGUF file's header, and checks that the file holds every tensor.

    Raises:
      ValueError: no GGUF, an unknown version, a truncated file, a repeated name, an unknown tensor
        type or a row that is not a whole number of its type's blocks; the error names the tensor.
    """
    require(path.is_file(), str(path), "missing", "a GGUF file")
    size = path.stat().st_size
    require(size >= 24, f"{path}: size", size, "a GGUF file of at least 24 bytes")
    cursor = _Cursor(np.memmap(path, dtype=np.uint8, mode="r"), path)
    magic = cursor.take(4)
    require(magic == b"GGUF", f"{path}: first bytes", magic, "b'GGUF'")
    version = cursor.scalar("I")
    require(version in (2, 3), f"{path}: GGUF version", version, "2 or 3, little-endian")
    tensor_count, field_count = cursor.scalar("Q"), cursor.scalar("Q")
    metadata: dict[str, Any] = {}
    for _ in range(field_count):
        key = cursor.text()
        require(key not in metadata, f"{path}: key", key, "each key once")
        metadata[key] = cursor.value(cursor.scalar("I"))
    places = {}
    for _ in range(tensor_count):
        name = cursor.text()
        require(name not in places, f"{path}: tensor", name, "each name once")
        dims = [cursor.scalar("Q") for _ in range(cursor.scalar("I"))]
        places[name] = (tuple(reversed(dims)), cursor.scalar("I"), cursor.scalar("Q"))
    alignment = metadata.get("general.alignment", 32)
    expected = "a positive power of two"
    ok = isinstance(alignment, int) and alignment > 0 and alignment & (alignment - 1) == 0
    require(ok, f"{path}: general.alignment", alignment, expected)
    start = -(-cursor.at // alignment) * alignment
    tensors = {
        name: _tensor(f"{path.name}: tensor {name}", shape, kind, start + offset)
        for name, (shape, kind, offset) in places.items()
    }
    for name, tensor in tensors.items():
        end = tensor.offset + tensor.size
        expected = f"at least {end} bytes, the end of {name} (the file is truncated)"
        require(size >= end, f"{path}: size", size, expected)
    return Header(metadata, tensors)


def _tensor(label: str, shape: tuple[int, ...], number: int, offset: int) -> Tensor:
    known = number in set(GGMLQuantizationType)
    require(known, f"{label}: type", number, "a type number of GGML that `gguf` knows")
    kind = GGMLQuantizationType(number)
    block, bytes_per_block = GGML_QUANT_SIZES[kind]
    expected = f"a multiple of {block}, the block of {kind.name}"
    require(len(shape) > 0 and shape[-1] % block == 0, f"{label}: row length", shape, expected)
    count = 1
    for dim in shape:
        count *= dim
    return Tensor(shape, kind, offset, count // block * bytes_per_block)


class _Cursor:
    """Reads values one after the other, and never past the end of the file."""

    def __init__(self, data: np.memmap, path: Path) -> None:
        self.data, self.path, self.at = data, path, 0

    def take(self, count: int) -> bytes:
        expected = f"more than {self.at + count} bytes (the header is truncated)"
        require(self.at + count <= self.data.size, f"{self.path}: size", self.data.size, expected)
        self.at += count
        return self.data[self.at - count : self.at].tobytes()

    def scalar(self, code: str) -> Any:
        return struct.unpack("<" + code, self.take(struct.calcsize("<" + code)))[0]

    def text(self) -> str:
        raw = self.take(self.scalar("Q"))
        try:
            return raw.decode()
        except UnicodeDecodeError:
            raise BadInput(f"{self.path}: text {raw[:80]!r}: expected UTF-8") from None

    def value(self, kind: int) -> Any:
        if kind == _STRING:
            return self.text()
        if kind == _ARRAY:
            inner, count = self.scalar("I"), self.scalar("Q")
            if inner in _SCALARS:
                code = _SCALARS[inner]
                raw = self.take(count * struct.calcsize("<" + code))
                return list(struct.unpack(f"<{count}{code}", raw))
            return [self.value(inner) for _ in range(count)]
        expected = f"a GGUF value type, one of {sorted([*_SCALARS, _STRING, _ARRAY])}"
        require(kind in _SCALARS, f"{self.path}: value type", kind, expected)
        value = self.scalar(_SCALARS[kind])
        # The shortest decimal of the float32: 1e-06, not 9.999999974752427e-07.
        return float(str(np.float32(value))) if _SCALARS[kind] == "f" else value
