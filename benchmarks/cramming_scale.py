"""How large a prompt should be: how far the search gets in a few hundred steps, from small to huge.

Command:  make models
          python benchmarks/cramming_scale.py --text=FILE_OR_DIRECTORY
          --model=models/smollm2-135m --targets=8 --seed=1 --steps=200 --scales=10,30,100,300

One row a scale: prompts begin as noise of `scale` standard deviations of an input vector, and
Adam's rate is a tenth of it (`--share`). m = 1, text, products in bfloat16. What is printed is the
search's own count, `lead` .2, without the proof that a run of `configs/cram.py` adds. The texts
are of seed 1: what the project reports is of seed 0. Not a test.
"""

import argparse
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import jax
import numpy as np

from configs import cram
from reach_jax.cramming.freeze import freeze
from reach_jax.cramming.program import CrammingProgram
from reach_jax.cramming.settings import Assignment, CrammingConfig
from reach_jax.experiments import texts, zoo
from reach_jax.experiments.settings import settings
from sweep_jax.lanes import schedule
from sweep_jax.stop import Stop

ROOT = Path(__file__).resolve().parents[1]
LONGEST = 192  # tokens
BUCKETS = (24, 48, 96, LONGEST)
CHUNK = 20


def main() -> None:
    """Prints a table as it grows."""
    flags = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    flags.add_argument("--text", required=True, help="a text file, or a directory of .txt files")
    flags.add_argument("--model", type=Path, default=ROOT / "models" / "smollm2-135m")
    flags.add_argument("--targets", type=int, default=8)
    flags.add_argument("--seed", type=int, default=1)
    flags.add_argument("--steps", type=int, default=200)
    flags.add_argument("--scales", default="10,30,100,300")
    flags.add_argument("--share", type=float, default=0.1, help="the rate, of the scale")
    given = flags.parse_args()
    jax.config.update("jax_default_matmul_precision", "highest")
    config = cram.cram_config(str(given.model), "random:llama", "")
    config.texts.text = given.text
    s = settings(config)
    with tempfile.TemporaryDirectory() as scratch:
        model = zoo.load(s.choice, Path(scratch), Stop())
    items = [Assignment(1, "text", i) for i in range(given.targets)]
    rows = texts.make(s.texts, s.choice, model, items, LONGEST, given.seed)
    keys = [jax.random.fold_in(jax.random.key(given.seed), i) for i in range(len(rows))]
    print("| scale | rate | mean tokens | each | rms at the end | s |\n|-|-|-|-|-|-|")
    for scale in map(float, given.scales.split(",")):
        cramming = CrammingConfig(
            prefix="begin",
            max_target=LONGEST,
            lookahead=8,
            temperature=1.0,
            rate=given.share * scale,
            init_scale=scale,
            b1=0.9,
            b2=0.99,
            steps=given.steps,
            patience=given.steps,
            products="bfloat16",
            lead=0.2,
        )
        frozen = freeze(model.config, model.params, cramming, model.prefix_id, model.tokens)
        program = CrammingProgram(model.config, cramming, frozen, items, rows, keys, 1, CHUNK)
        begun, state = time.perf_counter(), program.start()
        while True:
            finished_C, need_C = program.look(state)
            if finished_C.all():
                break
            bucket, rows_L = schedule(finished_C, need_C, BUCKETS, len(rows))
            state = program.advance(state, rows_L, bucket)
        best_C = np.asarray(state.lanes_C.best)
        rms = np.sqrt(np.mean(np.square(state.lanes_C.prompt_MD))) / float(frozen.scale)
        print(
            f"| {scale:g} | {cramming.rate:g} | {best_C.mean():.1f} |"
            f" {' '.join(map(str, best_C))} | {rms:.0f} | {time.perf_counter() - begun:.0f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
