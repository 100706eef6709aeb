"""SmolLM2-135M, m = 1: time to the published protocol's own n50, by it and by lanes.

Command:  make models .venv/parity.done
          python benchmarks/cramming_vs_torch_smollm2.py --text=FILE_OR_DIRECTORY
          --targets=8 --peer=1 (texts that the peer really runs) --peer_seed=0

The peer is the published program's shape (arXiv 2605.22223): transformers' own module in float32,
batch 1, AdamW (1e-2, betas .9 and .9, decay .01), at most 3000 steps, patience 500, prompt from
N(0, std^2), t_1 given, a teacher-forced accuracy of 1 a success, lengths 10, 20, ... until none of
its texts succeeds. Kinder than the original: the model is loaded once. It runs on `--peer` of the
texts and its time for all is **extrapolated** in proportion to their number.

Ours is the progressive protocol with the search's products in bfloat16, all texts at once. It runs
until half of the texts are confirmed, by a greedy decode in float32, one token beyond the peer's
median; t_1 is not given. Both in one process one after the other; process time, with and without
compilation. The weights that `make models` fetches were quantised by their publisher.
"""

import argparse
import dataclasses
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import jax
import numpy as np
import torch
import transformers
from cramming_vs_torch import cram

from configs import cram as cram_config
from reach_jax.cramming import outcome
from reach_jax.cramming.freeze import freeze
from reach_jax.cramming.program import CrammingProgram
from reach_jax.cramming.settings import Assignment
from reach_jax.cramming.state import AT_END
from reach_jax.experiments import texts, zoo
from reach_jax.experiments.settings import settings
from sweep_jax.lanes import schedule
from sweep_jax.stop import Stop

ROOT = Path(__file__).resolve().parents[1]
STRIDE = 10  # tokens
CHUNK = 20


class Peer:
    """transformers' module as `cramming_vs_torch.cram` takes a model: no cache, float32, frozen."""

    def __init__(self, directory: Path) -> None:
        """Loads it once."""
        loaded = transformers.AutoModelForCausalLM.from_pretrained(directory, dtype=torch.float32)
        self.model = loaded.requires_grad_(False)
        self.c = SimpleNamespace(width=loaded.config.hidden_size)
        self.embedding = loaded.get_input_embeddings().weight

    def __call__(self, x: torch.Tensor, keep: int) -> torch.Tensor:
        """Logits (keep, V) of the last `keep` of the input vectors (T, D)."""
        return self.model(inputs_embeds=x[None], use_cache=False, logits_to_keep=keep).logits[0]


def peer(directory: Path, rows: np.ndarray, scale: float, seed: int) -> tuple[list[int], float]:
    """The longest length of each text, 0 for none, and the process seconds of all."""
    model = Peer(directory)
    reached, begun, cpu = [0] * len(rows), time.perf_counter(), time.process_time()
    length, alive = STRIDE, True
    while alive:
        alive = False
        for i, row in enumerate(rows):
            start = time.process_time()
            ok, steps = cram(model, torch.tensor(row[:length]).long(), 1, scale, seed + i)
            took = time.process_time() - start
            alive, reached[i] = alive or ok, length if ok else reached[i]
            print(
                f"peer: text {i}, {length} tokens: {'reached' if ok else 'not reached'} in"
                f" {steps} steps, {1e3 * took / steps:.0f} ms of process time each",
                flush=True,
            )
        length += STRIDE
    wall, cpu = time.perf_counter() - begun, time.process_time() - cpu
    print(f"peer on {len(rows)} texts: longest {reached}; {wall:.0f} s wall, {cpu:.0f} s process")
    return reached, cpu


def ours(s, model, frozen, rows: np.ndarray) -> tuple[int, float, float]:
    """Texts confirmed when half of them were, and process seconds with and without compiling."""
    items = [Assignment(1, "text", i) for i in range(len(rows))]
    keys = [jax.random.fold_in(jax.random.key(s.seed), i) for i in range(len(rows))]
    length = rows.shape[1]
    buckets = (*(b for b in s.execution.buckets if b < length), length)
    program = CrammingProgram(model.config, s.cramming, frozen, items, rows, keys, 1, CHUNK)
    state = program.start()
    first: set[int] = set()
    total, compiling = 0.0, 0.0
    while True:
        finished_C, need_C = program.look(state)
        done = np.flatnonzero(np.asarray(state.lanes_C.phase) == AT_END)
        if 2 * len(done) >= len(rows) or finished_C.all():
            break
        bucket, rows_L = schedule(finished_C, need_C, buckets, len(rows))
        begun = time.process_time()
        state = jax.block_until_ready(program.advance(state, rows_L, bucket))
        took = time.process_time() - begun
        total += took
        if bucket not in first:  # the second call of a size shows what its first spent on running
            first.add(bucket)
            compiling += took
    prompts = np.asarray(state.lanes_C.best_MD)
    begun = time.process_time()
    sure = 0
    for c in done:
        task = outcome.Finished(model.config, s.cramming, frozen, 1, length, rows[c], 1)
        emitted, _ = outcome.decode(task, prompts[c], length)
        sure += bool((emitted == rows[c]).all())
    total += time.process_time() - begun
    steps = int(np.asarray(state.lanes_C.step).max())
    print(f"ours: {length} tokens confirmed of {sure} of {len(rows)} texts after {steps} steps")
    return sure, total, total - compiling


def main() -> None:
    """Prints both sides and the ratio of process times."""
    flags = argparse.ArgumentParser()
    flags.add_argument("--text", required=True, help="a text file, or a directory of .txt files")
    flags.add_argument("--targets", type=int, default=8)
    flags.add_argument("--peer", type=int, default=1, help="texts that the peer runs on")
    flags.add_argument("--peer_seed", type=int, default=0)
    flags.add_argument("--model", type=Path, default=ROOT / "models" / "smollm2-135m")
    given = flags.parse_args()
    config = cram_config.cram_config(str(given.model), "random:llama", "")
    config.texts.text = given.text
    s = settings(config)
    changes = {"products": "bfloat16", "lead": 0.2, "patience": 1500}
    jax.config.update("jax_default_matmul_precision", "highest")
    with tempfile.TemporaryDirectory() as scratch:
        model = zoo.load(s.choice, Path(scratch), Stop())
    items = [Assignment(1, "text", i) for i in range(given.targets)]
    rows = texts.make(s.texts, s.choice, model, items, 256, s.seed)
    frozen = freeze(model.config, model.params, s.cramming, model.prefix_id, model.tokens)
    print(f"load {os.getloadavg()[0]:.1f}; torch on {torch.get_num_threads()} threads", flush=True)
    part = rows[: given.peer]
    reached, seconds = peer(given.model, part, float(frozen.scale), given.peer_seed)
    length = int(statistics.median(reached)) + 1
    cramming = dataclasses.replace(s.cramming, max_target=length, **changes)
    s = dataclasses.replace(s, cramming=cramming)
    frozen = freeze(model.config, model.params, cramming, model.prefix_id, model.tokens)
    sure, cold, warm = ours(s, model, frozen, rows[:, :length])
    factor = len(rows) / len(part)
    print(
        f"process time for {len(rows)} texts: peer {factor * seconds:.0f} s (extrapolated by"
        f" {factor:g}); ours {warm:.0f} s, {cold:.0f} s with compilation: ratio"
        f" {factor * seconds / warm:.0f}, {factor * seconds / cold:.0f} with compilation"
    )
    if 2 * sure < len(rows):
        raise SystemExit("ours did not confirm half of the texts: the ratio means nothing")


if __name__ == "__main__":
    main()
