"""GGML's block formats decoded one number at a time, from their definitions, in float32.

Each function takes the bytes of one block and returns its numbers. The order of the float32
operations is the format's too: scale times sub-scale, times the integer, less the minimum.
"""

import struct

import numpy as np

f32 = np.float32


def half(data, at):
    return f32(np.frombuffer(data[at : at + 2], np.float16)[0])


def q8_0(b):
    d = half(b, 0)
    return [d * f32(q) for q in struct.unpack("32b", b[2:34])]


def q4_0(b):
    d, qs = half(b, 0), b[2:18]
    return [d * f32((q & 15) - 8) for q in qs] + [d * f32((q >> 4) - 8) for q in qs]


def q4_1(b):
    d, m, qs = half(b, 0), half(b, 2), b[4:20]
    return [d * f32(q & 15) + m for q in qs] + [d * f32(q >> 4) + m for q in qs]


def fifth_bits(b, at):
    word = int.from_bytes(b[at : at + 4], "little")
    return [word >> j & 1 for j in range(32)]


def q5_0(b):
    d, high, qs = half(b, 0), fifth_bits(b, 2), b[6:22]
    low = [q & 15 for q in qs] + [q >> 4 for q in qs]
    return [d * f32(q + 16 * h - 16) for q, h in zip(low, high, strict=True)]


def q5_1(b):
    d, m, high, qs = half(b, 0), half(b, 2), fifth_bits(b, 4), b[8:24]
    low = [q & 15 for q in qs] + [q >> 4 for q in qs]
    return [d * f32(q + 16 * h) + m for q, h in zip(low, high, strict=True)]


def six_bit(s):
    """Eight 6-bit scales and eight 6-bit minima out of 12 bytes."""
    scales = [s[j] & 63 for j in range(4)]
    minima = [s[j + 4] & 63 for j in range(4)]
    for j in range(4, 8):
        scales.append((s[j + 4] & 15) + 16 * (s[j - 4] >> 6))
        minima.append((s[j + 4] >> 4) + 16 * (s[j] >> 6))
    return scales, minima


def q4_k(b):
    d, dmin, (scales, minima), qs = half(b, 0), half(b, 2), six_bit(b[4:16]), b[16:144]
    out = []
    for j in range(8):  # sub-blocks of 32: low nibbles of 32 bytes, then their high nibbles
        for q in qs[32 * (j // 2) : 32 * (j // 2) + 32]:
            nibble = q >> 4 if j % 2 else q & 15
            out.append(d * f32(scales[j]) * f32(nibble) - dmin * f32(minima[j]))
    return out


def q5_k(b):
    d, dmin, (scales, minima) = half(b, 0), half(b, 2), six_bit(b[4:16])
    high, qs = b[16:48], b[48:176]
    out = []
    for j in range(8):
        for i, q in enumerate(qs[32 * (j // 2) : 32 * (j // 2) + 32]):
            value = (q >> 4 if j % 2 else q & 15) + 16 * (high[i] >> j & 1)
            out.append(d * f32(scales[j]) * f32(value) - dmin * f32(minima[j]))
    return out


def q6_k(b):
    low, high, d = b[:128], b[128:192], half(b, 208)
    scales = struct.unpack("16b", b[192:208])
    out = []
    for i in range(256):
        part, j = divmod(i, 128)
        quarter, at = divmod(j, 32)
        byte = low[64 * part + 32 * (quarter % 2) + at]
        nibble = byte >> 4 if quarter >= 2 else byte & 15
        value = nibble + 16 * (high[32 * part + at] >> 2 * quarter & 3) - 32
        out.append(d * f32(scales[i // 16]) * f32(value))
    return out


# Type -> decoder, numbers a block, bytes a block, where the float16 fields are.
FORMATS = {
    "Q8_0": (q8_0, 32, 34, (0,)),
    "Q4_0": (q4_0, 32, 18, (0,)),
    "Q4_1": (q4_1, 32, 20, (0, 2)),
    "Q5_0": (q5_0, 32, 22, (0,)),
    "Q5_1": (q5_1, 32, 24, (0, 2)),
    "Q4_K": (q4_k, 256, 144, (0, 2)),
    "Q5_K": (q5_k, 256, 176, (0, 2)),
    "Q6_K": (q6_k, 256, 210, (208,)),
}

# Usual, negative, largest, smallest normal and subnormal float16 values of both signs.
HALVES = np.float16([0.013, -0.027, 1.5, -65504.0, 6.1e-5, 5.96e-8, -3.1e-6, 0.0, -0.75])


def random_rows(kind, seed, rows=2, numbers=512):
    """Random bytes of `rows` rows of `numbers` numbers, with finite float16 fields."""
    _, count, size, halves = FORMATS[kind]
    rng = np.random.default_rng(seed)
    blocks = rng.integers(0, 256, (rows * numbers // count, size), np.uint8)
    for at in halves:
        chosen = rng.permutation(np.resize(HALVES, len(blocks)))
        blocks[:, at : at + 2] = chosen.view(np.uint8).reshape(-1, 2)
    return blocks.reshape(rows, -1)


def decoded(kind, rows):
    """float32 numbers of uint8 rows, shape (rows, numbers)."""
    decode, _, size, _ = FORMATS[kind]
    with np.errstate(over="ignore"):
        return np.array(
            [
                [
                    x
                    for at in range(0, len(row), size)
                    for x in decode(row[at : at + size].tobytes())
                ]
                for row in rows
            ],
            np.float32,
        )
