"""Information sets of c0: architectures x inputs a second, against making every set.

Command:  .venv/bin/python benchmarks/calculus_sets.py
Prints, for 10^4 random architectures on 10^3 random inputs of T = 64 tokens, the seconds that
`sets.covered` takes (compilation apart) to say on which inputs c0 ends up with the positions it
needs, and beside it, measured in the same run, the seconds that `sets.propagate`, which makes every
set of every position, would take at its rate on a few of them.
"""

import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import jax
import jax.numpy as jnp
import numpy as np

from infoflow_jax.calculus import sets

TOKENS, INPUTS, ARCHITECTURES, TABLES = 64, 1000, 10_000, 8
GOAL = 10.0  # seconds on 2 cores
FEW = 32  # architectures, for the rate of the plain way


def seen_tables(rng: np.random.Generator) -> jax.Array:
    """Tables [Q, P, W, I]: one key a query and input, from random scores; table 0 is empty."""
    positions = TOKENS + 1
    shape = (TABLES, positions, INPUTS)
    key = jnp.asarray(rng.integers(0, TOKENS, shape), jnp.int32)
    one_QPIP = key[..., None] == jnp.arange(positions, dtype=jnp.int32)[None, None, None]
    return jnp.moveaxis(sets.pack(one_QPIP), -1, 2).at[0].set(0)


@jax.jit
def plain(tables_QPWI: jax.Array, tokens_ALH: jax.Array, c0_ALH: jax.Array) -> jax.Array:
    """I(c0, L) through every set of every position: [A, I, W]."""

    def one(choice: tuple[jax.Array, jax.Array]) -> jax.Array:
        tables_LHPWI = tables_QPWI[choice[0]].at[:, :, -1].set(tables_QPWI[choice[1], -1])
        seen_LPWI = jax.lax.reduce(tables_LHPWI, jnp.uint32(0), jax.lax.bitwise_or, (1,))
        known = jax.vmap(sets.propagate)(jnp.moveaxis(seen_LPWI, -1, 0))
        return known[:, -1, -1]

    return jax.lax.map(one, (tokens_ALH, c0_ALH))


def timed(run, *args) -> float:  # type: ignore[no-untyped-def]
    """Seconds of a second call."""
    jax.block_until_ready(run(*args))
    began = time.perf_counter()
    jax.block_until_ready(run(*args))
    return time.perf_counter() - began


def main() -> None:
    """Prints one line a shape of network."""
    rng = np.random.default_rng(0)
    tables = seen_tables(rng)
    needed_WI = jnp.moveaxis(sets.pack(jnp.asarray(rng.random((INPUTS, TOKENS + 1)) < 0.05)), -1, 0)
    print(f"{ARCHITECTURES} architectures x {INPUTS} inputs, T = {TOKENS}; goal {GOAL:g} s")
    for layers, heads in ((1, 4), (2, 1), (2, 2), (3, 2), (4, 2)):
        shape = (2, ARCHITECTURES, layers, heads)
        tokens_ALH, c0_ALH = jnp.asarray(rng.integers(0, TABLES, shape), jnp.int32)
        took = timed(sets.covered, tables, tokens_ALH, c0_ALH, needed_WI)
        slow = timed(plain, tables, tokens_ALH[:FEW], c0_ALH[:FEW]) * ARCHITECTURES / FEW
        print(
            f"{layers} layers of {heads}: {took:6.2f} s ({took / GOAL:.2f} of the goal),"
            f" {ARCHITECTURES * INPUTS / took / 1e6:6.1f} M pairs a second;"
            f" every set of every position: {slow:6.1f} s ({slow / took:.0f} x)",
            flush=True,
        )


if __name__ == "__main__":
    main()
