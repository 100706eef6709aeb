"""Run-steps a second: the whole (h1, h2) grid of D = 3 in one program, and plain PyTorch.

Command:  make .venv/parity.done && .venv/bin/python benchmarks/ensemble_vs_torch.py
          --tokens=8 --batch=32 --steps=2000 --peer_steps=200 --rounds=2

Both train 2 layers of (h1, h2) heads, h1, h2 = 1..4, on sums of pairwise maxima: 16 runs. Ours is
one jitted program with masked heads, compilation included in its time. The peer trains one run
after another and only as many heads as the run has; its optimiser is torch's fused Adam with the
gradient clipped, its attention one fused call, its inputs drawn a step as ours are. It runs
`peer_steps` of every run, and its time for `steps` is extrapolated, which is fair for equal steps.
Same weights give the same outputs (checked first). In turns, each on one thread, which is torch's
fastest at these sizes. Wall and process time are both printed: other work on the machine slows the
one more than the other. Not a test. Results: docs/results/ensemble_vs_torch.md.
"""

import argparse
import gc
import os
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false"  # one thread, as torch

import jax
import jax.numpy as jnp
import numpy as np
import torch
from torch.nn import functional as F

from infoflow_jax.networks import transformer
from infoflow_jax.networks.config import NetworkConfig
from infoflow_jax.tasks.task import TaskConfig, scale
from infoflow_jax.training import ensemble
from infoflow_jax.training.settings import TrainingConfig
from sweep_jax import backend, mesh

D, WIDTH, HEAD, HIDDEN = 3, 32, 8, 64
GRID = [(one, two) for one in range(1, D + 2) for two in range(1, D + 2)]
TASK = TaskConfig("pairmax_planar", D, 2, 0)


def network(heads: tuple[int, int]) -> NetworkConfig:
    """The shape of both sides."""
    ffn = ((HIDDEN,), (HIDDEN,))
    return NetworkConfig(2, WIDTH, heads, HEAD, ffn, kind="bilinear", beta=HEAD**-0.5)


class Peer(torch.nn.Module):
    """The same network in torch."""

    def __init__(self, params: Any) -> None:
        super().__init__()

        def weight(array: Any) -> torch.nn.Parameter:
            return torch.nn.Parameter(torch.tensor(np.array(array)))

        self.c0 = weight(params["c0"])
        self.encoder = self._affine(weight, params["encoder"], "0")
        self.read = self._affine(weight, params["readout"], "0")
        self.layers = torch.nn.ModuleList()
        for place in range(2):
            p, layer = params[f"layer_{place}"], torch.nn.Module()
            layer.heads = p["query"].shape[1]
            for name in ("query", "key", "value"):
                setattr(layer, name, weight(p[name].reshape(WIDTH, -1)))
            layer.output = weight(p["output"].reshape(-1, WIDTH))
            layer.ffn = [self._affine(weight, p["ffn"], n) for n in ("0", "gate_0", "1")]
            for at, (kernel, bias) in enumerate(layer.ffn):
                layer.register_parameter(f"kernel{at}", kernel)
                layer.register_parameter(f"bias{at}", bias)
            self.layers.append(layer)
        for name, (kernel, bias) in (("encoder", self.encoder), ("read", self.read)):
            self.register_parameter(f"{name}_kernel", kernel)
            self.register_parameter(f"{name}_bias", bias)

    @staticmethod
    def _affine(weight: Any, params: Any, name: str) -> tuple[Any, Any]:
        return weight(params[f"kernel_{name}"]), weight(params[f"bias_{name}"])

    def forward(self, x_BTD: torch.Tensor) -> torch.Tensor:
        """(B, T, d) to (B, 1)."""
        kernel, bias = self.encoder
        c0_B1E = self.c0.expand(x_BTD.shape[0], 1, -1)
        x = torch.cat([torch.matmul(x_BTD, kernel) + bias, c0_B1E], 1)
        for place, layer in enumerate(self.layers):
            keys, tail = (x[:, :-1], x) if place == 0 else (x, x[:, -1:])
            split = [
                torch.matmul(s, w).unflatten(2, (layer.heads, HEAD)).transpose(1, 2)
                for s, w in ((tail, layer.query), (keys, layer.key), (keys, layer.value))
            ]
            mixed = F.scaled_dot_product_attention(*split).transpose(1, 2).flatten(2)
            y = tail + torch.matmul(mixed, layer.output)
            up, gate, down = layer.ffn
            x = (y @ up[0] + up[1]) * (y @ gate[0] + gate[1]) @ down[0] + down[1]
        return x[:, -1] @ self.read[0] + self.read[1]


def values(x_BTD: torch.Tensor, A_IDD: torch.Tensor) -> torch.Tensor:
    """The target."""
    images = torch.einsum("ide,bte->bitd", A_IDD, x_BTD)
    return torch.einsum("bsd,bitd->bist", x_BTD, images).amax((2, 3)).sum(1, keepdim=True)


def peer(params: Any, steps: int, tokens: int, batch: int, standard: Any) -> None:
    """Trains one run."""
    net = Peer(params)
    A_IDD = torch.tensor(TASK.weights(), dtype=torch.float32)
    adam = torch.optim.Adam(net.parameters(), lr=1e-3, betas=(0.9, 0.99), fused=True)
    for _ in range(steps):
        x_BTD = torch.randn(batch, tokens, 2)
        y = (values(x_BTD, A_IDD) - standard.mean) / standard.deviation
        loss = torch.mean((net(x_BTD) - y) ** 2)
        adam.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        adam.step()


def ours(steps: int, tokens: int, batch: int, standard: Any, batching: str) -> None:
    """Trains all runs, compiling anew."""
    jax.clear_caches()
    training = TrainingConfig(
        (tokens,), (steps,), batch, "adam", "b2=0.99", 10, 0.0, 1.0, 1.0, steps
    )
    devices = mesh.row() if jax.device_count() > 1 else None
    shared = ensemble.Ensemble(network((D + 1, D + 1)), TASK, standard, training, batching, devices)
    keys = [jax.random.key_data(jax.random.key(place)) for place in range(len(GRID))]
    mask_RLH = np.array([[np.arange(D + 1) < h for h in heads] for heads in GRID])
    rates = jnp.full(len(GRID), 1e-3, jnp.float32)
    runs_R = ensemble.Run(jnp.stack(keys), jnp.asarray(mask_RLH), rates)
    runs_R = jax.device_put(runs_R, None if devices is None else mesh.split(devices))
    states_R = ensemble.start(shared, runs_R)
    jax.block_until_ready(ensemble.advance(shared, states_R, runs_R, tokens, steps))


def timed(work: Any) -> tuple[float, float]:
    """Wall and process seconds."""
    wall, process = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - wall, time.process_time() - process


def main() -> None:
    """Checks that both are one network, then times them in turns."""
    parser = argparse.ArgumentParser()
    for name, value in (("tokens", 8), ("batch", 32), ("steps", 2000), ("peer_steps", 200)):
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--batching", default="map", help="vmap or map")
    parser.add_argument("--devices", type=int, default=1, help="CPU devices of ours, one a core")
    given = parser.parse_args()
    backend.prepare("run", None, "highest", given.devices)  # before JAX looks for its devices
    torch.set_num_threads(1)
    standard = scale(TASK, given.tokens)
    params = transformer.init(network((2, 3)), jax.random.key(1))
    x_BTD = np.random.default_rng(0).standard_normal((16, given.tokens, 2)).astype(np.float32)
    one = np.asarray(transformer.apply_batch(network((2, 3)), params, jnp.asarray(x_BTD)))
    two = Peer(params)(torch.tensor(x_BTD)).detach().numpy()
    print(f"same weights, outputs differ by {np.abs(one - two).max() / np.abs(one).max():.1e}")
    print(f"T {given.tokens}, batch {given.batch}, {len(GRID)} runs of {given.steps} steps")
    key = jax.random.key(0)
    drawn = [jax.device_get(transformer.init(network(heads), key)) for heads in GRID]
    peer(drawn[0], 20, given.tokens, given.batch, standard)  # what torch loads at its first step
    best: dict[str, list[float]] = {}
    for turn in range(given.rounds):
        mine = timed(lambda: ours(given.steps, given.tokens, given.batch, standard, given.batching))
        gc.collect()
        gc.freeze()  # else Python goes through what JAX keeps while the peer runs

        def others() -> None:
            for params in drawn:
                peer(params, given.peer_steps, given.tokens, given.batch, standard)

        theirs = [s * given.steps / given.peer_steps for s in timed(others)]
        total = len(GRID) * given.steps
        for place, clock in enumerate(("wall", "process")):
            ratio = theirs[place] / mine[place]
            best.setdefault(clock, []).append(ratio)
            print(f"round {turn + 1}, {clock} s: ours {mine[place]:.1f} ({total / mine[place]:.0f}"
                  f" run-steps/s), torch {theirs[place]:.1f}"
                  f" ({total / theirs[place]:.0f}), ratio {ratio:.2f}", flush=True)  # fmt: skip
    print(*(f"{clock} ratio, median {np.median(r):.2f}" for clock, r in best.items()))
    print(f"load {os.getloadavg()[0]:.1f}, torch {torch.__version__}, jax {jax.__version__}")


if __name__ == "__main__":
    main()
