"""One step to a soft prompt of SmolLM2-135M, beside `transformers` on the same machine.

Command:  make models && make .venv/parity.done && .venv/bin/python benchmarks/step_speed.py
Forward, mean cross entropy of T tokens after m = 1 prompt vector, and the gradient to the prompt,
no weight's; float32 on both sides. Both run in turns in one process, ten times each: printed are
medians, tokens a second, the ratio, and the share of what a large float32 matmul of each library
reaches in the same minutes. Not a test: a machine with other work to do shows other numbers.
"""

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import jax
import jax.numpy as jnp
import numpy as np
import torch
import transformers

from reach_jax.cramming import cost
from reach_jax.hub import loader
from reach_jax.models import kinds
from reach_jax.ops import readout

ROOT = Path(__file__).resolve().parents[1]
LENGTH, VECTORS = 64, 1
MATMUL = 2048  # side of the square matrices that set the machine's rate


def alternating(runs: Sequence[Callable[[], None]], repeats: int) -> list[float]:
    """Median seconds of each, taken in turns after one call to warm up."""
    times: list[list[float]] = [[] for _ in runs]
    for repeat in range(repeats + 1):
        for run, taken in zip(runs, times, strict=True):
            began = time.perf_counter()
            run()
            if repeat:
                taken.append(time.perf_counter() - began)
    return [statistics.median(taken) for taken in times]


def ours(directory: Path, tokens_BT: np.ndarray, soft_BMD: np.ndarray) -> Callable[[], tuple]:
    """A call that gives the loss of each lane and its gradient (B, M, D)."""
    loaded = loader.load(directory, "float32")
    apply = kinds.module(loaded.config).apply

    def nll(soft_MD: jax.Array, tokens_T: jax.Array, params: dict) -> jax.Array:
        variables = {"params": params}
        embedded_TD = apply(variables, tokens_T, method="embed")
        inputs_TD = jnp.concatenate([soft_MD, embedded_TD[:-1]])
        T, M = inputs_TD.shape[0], soft_MD.shape[0]
        hidden_TD = apply(variables, inputs_TD, jnp.arange(T), jnp.ones(T, bool), method="hidden")
        head_VD = apply(variables, method="head")
        return jnp.mean(readout.score(hidden_TD[M - 1 :], head_VD, tokens_T).nll)

    step = jax.jit(jax.vmap(jax.value_and_grad(nll), in_axes=(0, 0, None)))
    arguments = (jnp.asarray(soft_BMD), jnp.asarray(tokens_BT), loaded.params)
    return lambda: jax.block_until_ready(step(*arguments))


def theirs(directory: Path, tokens_BT: np.ndarray, soft_BMD: np.ndarray) -> Callable[[], tuple]:
    """The same with `transformers`, its default attention, no weight asking for a gradient."""
    model = transformers.AutoModelForCausalLM.from_pretrained(directory, dtype=torch.float32)
    model.requires_grad_(False)
    tokens = torch.tensor(tokens_BT, dtype=torch.long)
    with torch.no_grad():
        embedded = model.get_input_embeddings()(tokens)[:, :-1]

    def step() -> tuple:
        soft = torch.tensor(soft_BMD, requires_grad=True)
        logits = model(inputs_embeds=torch.cat([soft, embedded], dim=1), use_cache=False).logits
        logits = logits[:, VECTORS - 1 :]
        flat, labels = logits.flatten(0, 1), tokens.flatten()
        losses = torch.nn.functional.cross_entropy(flat, labels, reduction="none")
        losses = losses.reshape(tokens.shape).mean(dim=1)
        (grad,) = torch.autograd.grad(losses.sum(), soft)
        return losses.detach().numpy(), grad.numpy()

    return step


def matmuls() -> tuple[Callable[[], object], Callable[[], object]]:
    """A large square product in each library."""
    a = jnp.ones((MATMUL, MATMUL), jnp.float32)
    b = torch.ones(MATMUL, MATMUL)
    product = jax.jit(jnp.matmul)
    return (lambda: jax.block_until_ready(product(a, a))), (lambda: b @ b)


def main() -> None:
    """Prints one line a number of lanes, then all of it as JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", type=Path, default=ROOT / "models" / "smollm2-135m")
    parser.add_argument("--lanes", type=int, nargs="+", default=[1, 8])
    parser.add_argument("--repeats", type=int, default=10)
    given = parser.parse_args()
    if not given.model.is_dir():
        parser.error(
            f"--model {given.model}: expected a directory; `make models` makes the default"
        )
    config = loader.read_config(given.model, "float32")[1]
    rng = np.random.default_rng(0)
    results = []
    for lanes in given.lanes:
        tokens_BT = rng.integers(0, config.vocab_size, (lanes, LENGTH)).astype(np.int32)
        soft_BMD = 0.1 * rng.standard_normal((lanes, VECTORS, config.width)).astype(np.float32)
        mine, peer = (
            ours(given.model, tokens_BT, soft_BMD),
            theirs(given.model, tokens_BT, soft_BMD),
        )
        (loss_B, grad), (peer_loss_B, peer_grad) = mine(), peer()
        np.testing.assert_allclose(loss_B, peer_loss_B, rtol=1e-4)
        difference = np.linalg.norm(grad - peer_grad) / np.linalg.norm(peer_grad)
        if not difference < 1e-3:
            raise SystemExit(f"gradients differ by {difference:.1e}: not the same computation")
        took, peer_took, product, peer_product = alternating(
            [mine, peer, *matmuls()], given.repeats
        )
        work = lanes * cost.step_flops(config, VECTORS - 1, LENGTH)
        rate, peer_rate = (2 * MATMUL**3 / t for t in (product, peer_product))
        row = {
            "lanes": lanes,
            "ms": 1e3 * took,
            "peer_ms": 1e3 * peer_took,
            "tokens_per_s": lanes * LENGTH / took,
            "ratio": peer_took / took,
            "matmul_GFLOPs": rate / 1e9,
            "peer_matmul_GFLOPs": peer_rate / 1e9,
            "GFLOP": work / 1e9,
            "share": work / took / rate,
            "peer_share": work / peer_took / peer_rate,
        }
        results.append(row)
        print(
            f"{lanes} lanes: {row['ms']:.0f} ms ({row['tokens_per_s']:.0f} tokens/s), transformers"
            f" {row['peer_ms']:.0f} ms: {row['ratio']:.2f} x; {row['share']:.0%} of jax's matmul"
            f" rate ({rate / 1e9:.0f} GFLOP/s), theirs {row['peer_share']:.0%} of torch's"
            f" ({peer_rate / 1e9:.0f})",
            flush=True,
        )
    print(json.dumps(results))


if __name__ == "__main__":
    main()
