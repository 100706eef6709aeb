"""The hot loop of the quick experiment: time, FLOPs and share of this machine's matmul rate.

Command:  .venv/bin/python benchmarks/cramming_step.py
Prints, for each bucket of target lengths, the time of one step of all lanes, its FLOPs, the tokens
per second, and the rate as a share of what a large float32 matmul reaches in the same run. FLOPs
are counted from the shapes, as XLA counts the body of the scan over layers only once. Random
weights: speed does not depend on what was learned.
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

from configs import reach_quick
from reach_jax.cramming import cost, lane
from reach_jax.cramming.state import Frozen, Task
from reach_jax.experiments.settings import settings
from reach_jax.models import decoder

SLOTS = 4


def seconds(run: Callable[[], jax.Array], repeats: int = 20) -> float:
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
    return 2 * size**3 / seconds(functools.partial(jax.jit(jnp.matmul), a, a), repeats=5)


def main() -> None:
    """Prints one line a bucket."""
    s = settings(reach_quick.get_config())
    params = decoder.init(s.choice.quick.model, jax.random.key(0))
    frozen = Frozen(params, params["embedding"][0], jnp.std(params["embedding"]))
    lanes = s.execution.lanes
    rate = matmul_rate()
    print(f"float32 matmul 2048: {rate / 1e9:.0f} GFLOP/s; {lanes} lanes, {SLOTS} prompt slots")
    one = functools.partial(lane.step, s.choice.quick.model, s.cramming)
    many = jax.jit(jax.vmap(one, in_axes=(None, 0, 0)))
    for bucket in s.execution.buckets:
        tasks = Task(
            jnp.ones((lanes, bucket), jnp.int32),
            jnp.full(lanes, bucket, jnp.int32),
            jnp.full(lanes, SLOTS, jnp.int32),
        )
        start = functools.partial(lane.start, s.choice.quick.model, s.cramming, frozen, slots=SLOTS)
        keys = jax.random.split(jax.random.key(1), lanes)
        states = jax.vmap(lambda key, task, at=start: at(key=key, task=task))(keys, tasks)
        compiled = many.lower(frozen, states, tasks).compile()
        flops = lanes * cost.step_flops(s.choice.quick.model, SLOTS, bucket)
        took = seconds(functools.partial(compiled, frozen, states, tasks))
        print(
            f"bucket {bucket:4d}: {1e3 * took:7.2f} ms a step, {flops / 1e9:5.2f} GFLOP,"
            f" {lanes * (SLOTS + bucket) / took:7.0f} tokens/s,"
            f" {flops / took / rate:4.0%} of the matmul rate"
        )


if __name__ == "__main__":
    main()
