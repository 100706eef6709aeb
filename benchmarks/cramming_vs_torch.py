"""Time to the same n50 for m = 1..4: lanes of the progressive protocol, and the published one.

Command:  make .venv/parity.done && .venv/bin/python benchmarks/cramming_vs_torch.py
          --targets=3 (of 16; the peer's subset), --minutes=30 (of the peer, at most), --lanes=8

The peer is a plain PyTorch program in the shape of the published one (arXiv 2605.22223): batch 1,
AdamW (rate 1e-2, betas .9 and .9, decay .01), at most 3000 steps, patience 500, prompts from
N(0, std^2), t_1 given, teacher-forced accuracy of 1 a success, length after length. Where it
differs it is kinder: the model is loaded once, is a lean float32 module, its causal attention one
fused call; the last length far beyond n50 is left out. The published lengths go up by 100 from
max(10, m + 1) while more than 9 in 10 succeed, then by 10 from the last such until fewer than 1 in
10 do. The quick model reaches a tenth of these lengths, so here the steps are 10 and 1, from
max(2, m + 1): with t_1 given a text of one token has nothing to learn.

Same weights, same texts, same machine, in turns. Ours crams all 16 texts and proves each by its
decode. The peer runs on a subset of the texts; its time for 16 is extrapolated in proportion. That
is again kind: among 16 some text goes on succeeding at lengths where all of the subset fail. n50
and its interval are the same order statistics of thresholds on both sides. Wall time and process
time are both printed: other work on the machine slows the one and hardly the other. Not a test.
"""

import argparse
import dataclasses
import os
import statistics
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import jax
import jax.numpy as jnp
import numpy as np
import torch
import transformers
from torch.nn import functional as F

from configs import reach_quick
from reach_jax.analysis import thresholds
from reach_jax.cramming import targets
from reach_jax.cramming.program import CrammingProgram
from reach_jax.cramming.progressive import Frozen
from reach_jax.cramming.settings import Assignment
from reach_jax.experiments.settings import Settings, settings
from reach_jax.models import decoder
from reach_jax.models.config import DecoderConfig
from reach_jax.pretrain.corpus import BEGIN_ID
from reach_jax.pretrain.quick import QuickModel, load_or_train
from sweep_jax.lanes import schedule
from sweep_jax.stop import Stop

ROOT = Path(__file__).resolve().parents[1]
LENGTHS = (1, 2, 3, 4)  # m
COARSE, FINE, SHORTEST = 10, 1, 2  # tokens: the published 100, 10 and 10
STEPS, PATIENCE, RATE = 3000, 500, 1e-2


class Llama:
    """The quick model in torch: no module, no cache, float32, frozen."""

    def __init__(self, config: DecoderConfig, params: dict) -> None:
        """Copies the parameters."""
        self.c = config
        plain = jax.tree.map(lambda x: torch.tensor(np.asarray(x)), params)
        self.embedding, self.norm = plain["embedding"], plain["final_norm"]["weight"]
        layers, D = plain["layers"], config.width
        self.layers = [
            {
                "before": layers["attention_norm"]["weight"][i],
                "between": layers["mlp_norm"]["weight"][i],
                **{k: layers["attention"][k][i].reshape(D, -1) for k in "qkv"},
                "o": layers["attention"]["o"][i].reshape(-1, D),
                **{k: layers[k][i] for k in ("gate", "up", "down")},
            }
            for i in range(config.layers)
        ]
        half = np.arange(config.head_width // 2)
        self.turn = torch.tensor(config.rope_base ** (-2 * half / config.head_width)).float()

    def __call__(self, x: torch.Tensor, keep: int) -> torch.Tensor:
        """Logits (keep, V) of the last `keep` of the input vectors (T, D)."""
        T, c = len(x), self.c
        angle = torch.arange(T)[:, None] * self.turn
        cos, sin = (torch.cat([f(angle)] * 2, -1) for f in (torch.cos, torch.sin))
        for p in self.layers:
            y = F.rms_norm(x, (c.width,), p["before"], c.norm_eps)
            q, k, v = ((y @ p[n]).view(T, c.heads, c.head_width).transpose(0, 1) for n in "qkv")
            q, k = (z * cos + torch.cat(z.chunk(2, -1)[::-1], -1) * self.sign(sin) for z in (q, k))
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + y.transpose(0, 1).reshape(T, -1) @ p["o"]
            y = F.rms_norm(x, (c.width,), p["between"], c.norm_eps)
            x = x + (F.silu(y @ p["gate"]) * (y @ p["up"])) @ p["down"]
        return F.rms_norm(x[-keep:], (c.width,), self.norm, c.norm_eps) @ self.embedding.T

    @staticmethod
    def sign(sin: torch.Tensor) -> torch.Tensor:
        """-sin on the first half of the channels, sin on the second."""
        first, second = sin.chunk(2, -1)
        return torch.cat([-first, second], -1)


def cram(
    model: Llama, tokens: torch.Tensor, m: int, scale: float, seed: int, limit: int = STEPS
) -> tuple[bool, int]:
    """The published protocol on one text of one length: success, and the steps it took."""
    generator = torch.Generator().manual_seed(seed)
    prompt = torch.randn(m, model.c.width, generator=generator) * scale
    prompt.requires_grad_(True)
    optimizer = torch.optim.AdamW([prompt], lr=RATE, betas=(0.9, 0.9), weight_decay=0.01)
    given, wanted = model.embedding[tokens[:-1]], tokens[1:]
    best, best_at = -1, 0
    for step in range(limit):
        logits = model(torch.cat([prompt, given]), len(wanted))
        right = int((logits.argmax(-1) == wanted).sum())
        if right == len(wanted):
            return True, step + 1
        if right > best:
            best, best_at = right, step
        elif step - best_at >= PATIENCE:
            return False, step + 1
        optimizer.zero_grad()
        F.cross_entropy(logits, wanted).backward()
        optimizer.step()
    return False, limit


@dataclasses.dataclass
class Sweep:
    """What the peer did for one m."""

    reached: list[int]  # the longest length of each text
    steps: int
    runs: int
    wall: float
    cpu: float
    lengths: list[int]
    cut: bool  # the time was up before the sweep was over


def peer(model: Llama, texts: np.ndarray, m: int, scale: float, deadline: float) -> Sweep:
    """Length after length over the texts, as long as the published rules say."""
    begun, begun_cpu = time.perf_counter(), time.process_time()
    found = Sweep([0] * len(texts), 0, 0, 0.0, 0.0, [], False)

    def share(n: int) -> float:
        wins = 0
        for i, text in enumerate(texts):
            if time.perf_counter() > deadline:
                found.cut = True
                return 0.0
            ok, steps = cram(model, torch.tensor(text[:n]).long(), m, scale, 1000 * i + n)
            wins, found.steps, found.runs = wins + ok, found.steps + steps, found.runs + 1
            found.reached[i] = max(found.reached[i], n * ok)
        found.lengths.append(n)
        return wins / len(texts)

    n = start = max(SHORTEST, m + 1)
    while share(n) > 0.9:
        n += COARSE
    n = max(start, n - COARSE) + FINE
    while n not in found.lengths and share(n) >= 0.1:
        n += FINE
    found.wall, found.cpu = time.perf_counter() - begun, time.process_time() - begun_cpu
    return found


def make_program(s: Settings, model: QuickModel, texts: np.ndarray) -> CrammingProgram:
    """Every text at every m, as the quick experiment would cram them."""
    embedding_VD = model.params["embedding"]
    frozen = Frozen(model.params, embedding_VD[BEGIN_ID], jnp.std(embedding_VD))
    items = [Assignment(m, "text", i) for m in LENGTHS for i in range(len(texts))]
    keys = [jax.random.fold_in(jax.random.key(s.seed), i) for i in range(len(items))]
    rows = np.concatenate([texts] * len(LENGTHS))
    return CrammingProgram(
        s.model, s.cramming, frozen, items, rows, keys, max(LENGTHS), s.execution.chunk
    )


def ours(s: Settings, program: CrammingProgram) -> tuple[np.ndarray, float, float]:
    """Thresholds (m, text), wall and process seconds; each success is decoded, as always."""
    begun, begun_cpu = time.perf_counter(), time.process_time()
    state = program.start()
    while True:
        finished_C, need_C = program.look(state)
        if finished_C.all():
            break
        bucket, rows_L = schedule(finished_C, need_C, s.execution.buckets, s.execution.lanes)
        state = program.advance(state, rows_L, bucket)
    metrics = [program.finish(state, row)[0].metrics for row in range(len(finished_C))]
    wall, cpu = time.perf_counter() - begun, time.process_time() - begun_cpu
    found = np.array([metric["threshold"] for metric in metrics])
    return found.reshape(len(LENGTHS), -1), wall, cpu


def check_mirror(mirror: Llama, s: Settings, model: QuickModel) -> float:
    """The greatest difference of the two programs' logits on a text."""
    tokens = model.corpus.heldout_S[:40]
    want = decoder.Decoder(s.model).apply({"params": model.params}, jnp.asarray(tokens))
    got = mirror(mirror.embedding[torch.tensor(tokens).long()], len(tokens))
    return float(np.abs(np.asarray(want) - got.numpy()).max())


def choose_threads(mirror: Llama, text: np.ndarray, scale: float) -> int:
    """The number of torch threads with the shortest step."""
    times: dict[int, float] = {}
    for threads in (1, os.cpu_count() or 1) * 3:  # in turns; the best of three
        torch.set_num_threads(threads)
        begun = time.perf_counter()
        _, steps = cram(mirror, torch.tensor(text[:24]).long(), 1, scale, 0, limit=50)
        took = (time.perf_counter() - begun) / steps
        times[threads] = min(took, times.get(threads, took))
    best = min(times, key=lambda threads: times[threads])
    torch.set_num_threads(best)
    shown = ", ".join(f"{k} threads {1e3 * v:.2f} ms" for k, v in times.items())
    print(f"peer's step at 24 tokens: {shown}; it gets {best}")
    return best


def usual_step(model: Llama, text: np.ndarray, scale: float, repeats: int = 60) -> list[float]:
    """Process seconds of a step at 12 tokens: the peer's lean model, then transformers' own."""
    c = model.c
    usual = transformers.LlamaForCausalLM(
        transformers.LlamaConfig(
            vocab_size=c.vocab_size,
            hidden_size=c.width,
            intermediate_size=c.mlp_width,
            num_hidden_layers=c.layers,
            num_attention_heads=c.heads,
            num_key_value_heads=c.kv_heads,
            tie_word_embeddings=True,
        )
    ).requires_grad_(False)  # random weights: speed does not depend on what was learned
    given, wanted = model.embedding[torch.tensor(text[:11]).long()], torch.tensor(text[1:12]).long()
    prompt = (torch.randn(1, c.width) * scale).requires_grad_(True)
    optimizer = torch.optim.AdamW([prompt], lr=RATE, betas=(0.9, 0.9), weight_decay=0.01)
    calls = (
        lambda x: model(x, len(wanted)),
        lambda x: usual(inputs_embeds=x[None], use_cache=False).logits[0, 1:],
    )
    times: list[list[float]] = [[], []]
    for repeat in range(repeats):
        for call, taken in zip(calls, times, strict=True):
            begun = time.process_time()
            logits = call(torch.cat([prompt, given]))
            int((logits.argmax(-1) == wanted).sum())
            optimizer.zero_grad()
            F.cross_entropy(logits, wanted).backward()
            optimizer.step()
            if repeat >= 10:
                taken.append(time.process_time() - begun)
    return [statistics.median(taken) for taken in times]


def describe(values: list[int] | np.ndarray) -> str:
    """n50 with its exact interval."""
    found = thresholds.n50(values, np.zeros(len(values), bool))
    return f"n50 {found.value:g} [{found.low:g}, {found.high:g}]"


def main() -> None:
    """Prints one block a prompt length, then the ratios."""
    flags = argparse.ArgumentParser()
    flags.add_argument("--targets", type=int, default=3)
    flags.add_argument("--minutes", type=float, default=30.0)
    flags.add_argument("--lanes", type=int, default=8)
    flags.add_argument("--workdir", type=Path, default=ROOT / "runs" / "reach_quick")
    given = flags.parse_args()
    s = settings(reach_quick.get_config())
    # Two cores gain nothing from the 32 lanes of the quick experiment; the last cells idle them.
    s = dataclasses.replace(s, execution=dataclasses.replace(s.execution, lanes=given.lanes))
    jax.config.update("jax_default_matmul_precision", "highest")
    model = load_or_train(s.quick, given.workdir / "models", Stop())
    count = reach_quick.get_config().axes.targets
    texts = targets.text_targets(
        model.corpus.heldout_S, BEGIN_ID, list(range(count)), s.cramming.max_target, s.seed
    )
    mirror = Llama(s.model, model.params)
    scale = float(jnp.std(model.params["embedding"]))
    print(
        f"largest difference of logits, ours and the peer's: {check_mirror(mirror, s, model):.1e}"
    )
    choose_threads(mirror, texts[0], scale)
    lean, usual = usual_step(mirror, texts[0], scale)
    print(
        f"a step at 12 tokens: the peer's lean model {1e3 * lean:.2f} ms cpu, transformers' own"
        f" {1e3 * usual:.2f} ms: {usual / lean:.1f} times (not the peer below; for scale)"
    )
    program = make_program(s, model, texts)
    first, cold_wall, cold_cpu = ours(s, program)
    print(f"ours with compilation: {cold_wall:.1f} s wall, {cold_cpu:.1f} s cpu")
    part = texts[: given.targets]
    factor = count / len(part)
    walls, cpus, sweeps = [], [], []
    for place, m in enumerate(LENGTHS):
        budget = 60 * given.minutes / len(LENGTHS)
        load = os.getloadavg()[0]
        sweeps.append(peer(mirror, part, m, scale, time.perf_counter() + budget))
        found, wall, cpu = ours(s, program)
        if (found != first).any():
            raise AssertionError("the same program gave other thresholds")
        walls.append(wall)
        cpus.append(cpu)
        p = sweeps[-1]
        cut = ", CUT by the time limit: at least" if p.cut else ""
        print(
            f"m = {m}, load {load:.1f}\n"
            f"  peer on {len(part)} texts: {p.wall:.1f} s wall, {p.cpu:.1f} s cpu, {p.runs} runs,"
            f" {p.steps} steps, {1e3 * p.wall / p.steps:.2f} ms a step, lengths {p.lengths}{cut}\n"
            f"  peer's longest {p.reached}; ours on the same {found[place, : len(part)].tolist()}\n"
            f"  peer {describe(p.reached)}; ours on all {count} {describe(found[place])}\n"
            f"  ours, m = 1..4 on all {count}: {wall:.2f} s wall, {cpu:.2f} s cpu",
            flush=True,
        )
    print(f"peer for {count} texts, extrapolated by {factor:g} from {len(part)}:")
    for name, total, warm, cold in (
        ("wall", sum(p.wall for p in sweeps), statistics.median(walls), cold_wall),
        ("cpu", sum(p.cpu for p in sweeps), statistics.median(cpus), cold_cpu),
    ):
        print(
            f"  {name}: peer {factor * total:.0f} s; ours {warm:.2f} s, {cold:.1f} s with"
            f" compilation; ratio {factor * total / warm:.0f}, {factor * total / cold:.0f} with"
            " compilation"
        )


if __name__ == "__main__":
    main()
