"""Training six small decoders to copy: one vmapped program beside plain PyTorch, run after run.

Command:  make .venv/parity.done && .venv/bin/python benchmarks/copy_train.py
The decoder of configs/copy.py with rotary positions, its batch and optimiser, float32. Ours: six
seeds in one program, rows made on the device in the step. Theirs: the same network in PyTorch, with
its own attention kernel, one seed after another, rows made beforehand. Before anything is timed the
losses of both are compared on the same parameters and rows. Both take turns; printed are medians of
tokens a second and their ratio, and the same by CPU time, which other work on the machine disturbs
less. Not a test: beside other work torch's threads wait for each other, and its seconds grow most.
"""

import argparse
import dataclasses
import json
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import jax
import jax.numpy as jnp
import numpy as np
import torch
from torch.nn import functional

from configs import copy
from reach_jax.copying import evaluate, program, task, train
from reach_jax.experiments import copy as experiment
from reach_jax.experiments.copy_settings import settings
from reach_jax.models import decoder, kinds
from sweep_jax import cells

BASE = 10_000.0


def turned(x: torch.Tensor) -> torch.Tensor:
    """Rotary positions 0.. of (B, H, T, N), half-split."""
    T, N = x.shape[-2:]
    rate = BASE ** (-torch.arange(0, N, 2, dtype=torch.float32) / N)
    angle = torch.arange(T, dtype=torch.float32)[:, None] * rate
    cos, sin = angle.cos(), angle.sin()
    first, second = x[..., : N // 2], x[..., N // 2 :]
    return torch.cat([first * cos - second * sin, second * cos + first * sin], dim=-1)


class Block(torch.nn.Module):
    """Attention and a gated feed-forward, each behind a norm."""

    def __init__(self, c: Any) -> None:
        super().__init__()
        inner, self.heads = c.heads * c.head_width, c.heads
        self.norms = torch.nn.ModuleList(torch.nn.RMSNorm(c.width, c.norm_eps) for _ in range(2))
        self.q, self.k, self.v = (torch.nn.Linear(c.width, inner, bias=False) for _ in range(3))
        self.o = torch.nn.Linear(inner, c.width, bias=False)
        self.gate, self.up = (torch.nn.Linear(c.width, c.mlp_width, bias=False) for _ in range(2))
        self.down = torch.nn.Linear(c.mlp_width, c.width, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(B, T, D) to the same."""
        B, T, _ = x.shape
        normed = self.norms[0](x)
        q, k, v = (
            f(normed).view(B, T, self.heads, -1).transpose(1, 2) for f in (self.q, self.k, self.v)
        )
        out = functional.scaled_dot_product_attention(turned(q), turned(k), v, is_causal=True)
        x = x + self.o(out.transpose(1, 2).reshape(B, T, -1))
        normed = self.norms[1](x)
        return x + self.down(functional.silu(self.gate(normed)) * self.up(normed))


class Peer(torch.nn.Module):
    """The decoder in PyTorch, with the parameters of ours."""

    def __init__(self, c: Any, params: dict[str, Any]) -> None:
        super().__init__()
        self.embedding = torch.nn.Embedding(c.vocab_size, c.width)
        self.blocks = torch.nn.ModuleList(Block(c) for _ in range(c.layers))
        self.norm = torch.nn.RMSNorm(c.width, c.norm_eps)
        self.head = torch.nn.Linear(c.width, c.vocab_size, bias=False)
        host = jax.tree.map(np.array, params)
        self._set(self.embedding.weight, host["embedding"])
        self._set(self.head.weight, host["head"])
        self._set(self.norm.weight, host["final_norm"]["weight"])
        layers = host["layers"]
        for i, block in enumerate(self.blocks):
            for name, norm in zip(("attention_norm", "mlp_norm"), block.norms, strict=True):
                self._set(norm.weight, layers[name]["weight"][i])
            for name in "qkv":
                kernel = layers["attention"][name][i]
                self._set(getattr(block, name).weight, kernel.reshape(c.width, -1).T)
            self._set(block.o.weight, layers["attention"]["o"][i].reshape(-1, c.width).T)
            for name in ("gate", "up", "down"):
                self._set(getattr(block, name).weight, layers[name][i].T)

    @staticmethod
    def _set(weight: torch.nn.Parameter, value: np.ndarray) -> None:
        weight.data = torch.tensor(np.ascontiguousarray(value))

    def loss(self, token: torch.Tensor, counts: torch.Tensor) -> torch.Tensor:
        """Mean cross entropy of the symbols that count."""
        x = self.embedding(token[:, :-1])
        for block in self.blocks:
            x = block(x)
        logits = self.head(self.norm(x))
        nll = functional.cross_entropy(
            logits.flatten(0, 1), token[:, 1:].flatten(), reduction="none"
        )
        wanted = counts[:, 1:].flatten()
        return (nll * wanted).sum() / wanted.sum()


def ours(shape: program.Shape, runs: int) -> Callable[[], None]:
    """A call that takes a chunk of steps of every run; the check at its end is of one string."""
    rules = decoder.rules(shape.model)
    asked = evaluate.questions(task.strings(np.random.default_rng(0), 1, 1))
    batch = evaluate.Batch(*(jnp.asarray(x) for x in asked))
    lessons, learners = [], []
    for run in range(runs):
        key = jax.random.key(run)
        data = jax.random.key_data(jax.random.fold_in(key, 1))
        lessons.append(train.Lesson(data, jnp.int32(1), jnp.int32(12), batch, rules))
        fresh = kinds.init(shape.model, jax.random.fold_in(key, 0))
        learners.append(train.start(shape.training, fresh))
    stack = [jax.tree.map(lambda *x: jnp.stack(x), *trees) for trees in (learners, lessons)]
    state = [stack[0]]

    def call() -> None:
        state[0] = jax.block_until_ready(program.advance(state[0], stack[1], shape=shape))

    return call


def theirs(shape: program.Shape, runs: int, rows: Any) -> Callable[[], None]:
    """The same steps in PyTorch, one run after the other; `rows` are (steps, B, T) twice."""
    t = shape.training
    peers = [Peer(shape.model, kinds.init(shape.model, jax.random.key(run))) for run in range(runs)]
    optimizers = [
        torch.optim.AdamW(
            peer.parameters(), t.rate, betas=(0.9, t.beta2), weight_decay=t.weight_decay
        )
        for peer in peers
    ]
    tokens, counts = (torch.tensor(np.asarray(part)) for part in rows)

    def call() -> None:
        for peer, optimizer in zip(peers, optimizers, strict=True):
            for step in range(t.chunk):
                optimizer.zero_grad(set_to_none=True)
                peer.loss(tokens[step].long(), counts[step].float()).backward()
                torch.nn.utils.clip_grad_norm_(peer.parameters(), t.clip)
                optimizer.step()

    return call


def main() -> None:
    """Prints one line a round and the medians as JSON, by either clock."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=6)
    parser.add_argument("--steps", type=int, default=25, help="of each run in a round")
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    cell = cells.expand(copy.get_config(), copy.sweep, experiment.EXCLUDED)[0]
    s = settings(cell)
    whole = s.shape(s.model)
    steps = given.steps * 1000  # never at its end while it is timed
    timed = dataclasses.replace(whole.training, steps=steps, chunk=given.steps, perfect=steps)
    shape = whole._replace(training=timed)
    make = jax.jit(lambda key: task.rows(key, timed.batch, 1, 12, shape.context))
    made = [make(jax.random.fold_in(jax.random.key(9), i)) for i in range(given.steps)]
    rows = [np.stack([np.asarray(step[i]) for step in made]) for i in range(2)]
    params = kinds.init(shape.model, jax.random.key(0))
    mine = float(train.loss(shape.model, params, *made[0], decoder.rules(shape.model)))
    with torch.no_grad():
        first = (torch.tensor(rows[0][0]).long(), torch.tensor(rows[1][0]).float())
        peer = float(Peer(shape.model, params).loss(*first))
    if not abs(mine - peer) < 1e-4 * peer:
        raise SystemExit(f"losses {mine} and {peer} differ: not the same computation")
    calls = [ours(shape, given.runs), theirs(shape, given.runs, rows)]
    tokens = given.runs * given.steps * timed.batch * shape.context
    for name, clock in (("wall", time.perf_counter), ("cpu", time.process_time)):
        rates: list[list[float]] = [[], []]
        for number in range(given.rounds + 1):
            for call, found in zip(calls, rates, strict=True):
                began = clock()
                call()
                if number:  # the first round compiles
                    found.append(tokens / (clock() - began))
            if number:
                both = f"{rates[0][-1]:.0f} and {rates[1][-1]:.0f}"
                print(f"{name}, round {number}: {both} tokens/s", flush=True)
        ours_, theirs_ = (statistics.median(found) for found in rates)
        words = {"clock": name, "tokens_per_s": ours_, "peer": theirs_, "ratio": ours_ / theirs_}
        print(json.dumps(words), flush=True)


if __name__ == "__main__":
    main()
