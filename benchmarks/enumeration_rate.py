"""Exact enumeration: prompts decoded a minute, and the share of this machine's matmul rate.

Command:  .venv/bin/python benchmarks/enumeration_rate.py
Prints, for small decoders, prompts x tokens a minute (compilation apart), FLOP/s of the matrices
counted from the shapes, and those over what a large float32 matmul reaches in the same run. At
d = 2 that share must be small: a 2 x 2 matrix does 8 operations for the 2 numbers of a prompt that
it reads and the 2 that it writes, where the large matmul does 1365 for each number it touches; and
what is not counted (softmax, norms, argmax, moving caches) is as much work as what is. Random
weights: speed does not depend on them.
"""

import functools
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import jax
import jax.numpy as jnp

from reach_jax.enumeration import decode
from reach_jax.enumeration.blocks import Enumeration
from reach_jax.enumeration.decode import Layout
from reach_jax.enumeration.grid import Grid
from reach_jax.models import decoder
from reach_jax.models.config import DecoderConfig

BLOCK, LENGTH = 65_536, 12
GOAL = 1e6  # prompts of 12 tokens a minute: 2 cores, 2 layers, d = 2


def seconds(run: Callable[[], jax.Array], repeats: int = 5) -> float:
    """Median wall time of a call that has run before."""
    jax.block_until_ready(run())
    times = []
    for _ in range(repeats):
        began = time.perf_counter()
        jax.block_until_ready(run())
        times.append(time.perf_counter() - began)
    return statistics.median(times)


def matmul_rate(size: int = 2048) -> float:
    """FLOP/s of a square float32 matmul."""
    a = jnp.ones((size, size), jnp.float32)
    return 2 * size**3 / seconds(functools.partial(jax.jit(jnp.matmul), a, a))


def main() -> None:
    """Prints one line a decoder."""
    rate = matmul_rate()
    print(f"float32 matmul 2048: {rate / 1e9:.0f} GFLOP/s; blocks of {BLOCK} prompts")
    for width, layers, bits in ((2, 1, 4), (2, 2, 4), (2, 4, 4), (4, 2, 2)):
        config = DecoderConfig(4, layers, width, 1, 1, 2, 8, 100.0, 1e-5, False, "float32")
        grid = Grid(width, 2, bits, 1.0)
        spec = Enumeration(config, Layout("causal", "vector"), grid, LENGTH)
        assert grid.count == BLOCK
        params = decoder.init(config, jax.random.key(0))
        numbers_B = jnp.arange(BLOCK, dtype=jnp.uint32)
        run = functools.partial(
            decode.decode_block, config, spec.layout, grid, params, numbers_B, LENGTH
        )
        took = seconds(run)
        a_minute = 60 * BLOCK / took
        print(
            f"d={width} layers={layers}: {a_minute / 1e6:6.2f} M prompts x {LENGTH} tokens a minute"
            f" ({a_minute / GOAL:.1f} x the goal), {spec.flops / took / 1e9:.2f} GFLOP/s,"
            f" {spec.flops / took / rate:.2%} of the matmul rate"
        )


if __name__ == "__main__":
    main()
