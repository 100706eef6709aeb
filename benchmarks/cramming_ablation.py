"""What each ingredient of the search is worth: thresholds on the quick model, one change a row.

Command:  python launch.py                                  # trains the quick model, if need be
          python benchmarks/cramming_ablation.py --seed=1   # the search: on texts not reported
          python benchmarks/cramming_ablation.py --seed=0 --only=default,best,published
          --targets=16, --record=runs/cramming_ablation.jsonl (rows there are not run again)

Every row crams the same texts at m = 1..4 and counts only what the greedy decode confirmed. What
the published protocol reaches on the texts of seed 0 is `cramming_vs_torch.py`'s to say. Process
time, not wall time: other work on the machine hardly changes it. Not a test.
"""

import argparse
import dataclasses
import json
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import jax
import numpy as np

from configs import reach_quick
from reach_jax.cramming import targets
from reach_jax.cramming.freeze import freeze
from reach_jax.cramming.program import CrammingProgram
from reach_jax.cramming.settings import Assignment
from reach_jax.experiments.settings import Settings, settings
from reach_jax.pretrain.corpus import BEGIN_ID
from reach_jax.pretrain.quick import QuickModel, load_or_train
from sweep_jax.lanes import schedule
from sweep_jax.stop import Stop

ROOT = Path(__file__).resolve().parents[1]
LENGTHS = (1, 2, 3, 4)  # m
PUBLISHED = {  # the published optimiser, inside the progressive protocol
    "optimizer": "adamw",
    "rate": 1e-2,
    "rate_unit": "absolute",
    "b2": 0.9,
    "weight_decay": 0.01,
    "temperature": 1.0,
    "prefix": "none",
    "patience": 500,
    "steps": 3000,
}
BEST = {"prefix": "none", "temperature": 0.1, "restarts": 3, "steps": 8000}
VARIANTS: dict[str, dict[str, Any]] = {
    "default": {},
    "no prefix": {"prefix": "none"},
    **{f"look-ahead {n}": {"lookahead": n} for n in (1, 4, 8, 32)},
    **{f"temperature {t:g}": {"temperature": t} for t in (0.1, 0.5, 1.0)},
    **{f"rate {r:g}": {"rate": r} for r in (0.1, 0.25, 1.0)},
    "b2 .9": {"b2": 0.9},
    "nadam": {"optimizer": "nadam"},
    "lion": {"optimizer": "lion", "rate": 0.1},
    "margin": {"objective": "margin"},
    "focus 4": {"focus": 4.0},
    **{f"{n} coefficients": {"coefficients": n} for n in (16, 32, 48)},
    "begin at tokens": {"init": "tokens"},
    "begin at the target": {"init": "target"},
    "begin at a tenth": {"init_scale": 0.1},
    **{f"{n} times as large": {"init_scale": float(n), "rate": 0.5 * n} for n in (3, 10, 30, 100)},
    "10 times and no prefix": {"init_scale": 10.0, "rate": 5.0, "prefix": "none"},
    "30 times and no prefix": {"init_scale": 30.0, "rate": 15.0, "prefix": "none"},
    "patience 1000": {"patience": 1000, "steps": 6000},
    "1 restart": {"restarts": 1, "steps": 4000},
    "3 restarts": {"restarts": 3, "steps": 8000},
    "7 restarts": {"restarts": 7, "steps": 16000},
    "best": BEST,
    "published": PUBLISHED,
}


def run(s: Settings, model: QuickModel, texts: np.ndarray) -> dict[str, Any]:
    """Thresholds (m, text), lane-steps and process seconds of one variant."""
    c = s.choice.quick.model
    frozen = freeze(c, model.params, s.cramming, BEGIN_ID, c.vocab_size)
    items = [Assignment(m, "text", i) for m in LENGTHS for i in range(len(texts))]
    keys = [jax.random.fold_in(jax.random.key(s.seed), i) for i in range(len(items))]
    rows = np.concatenate([texts] * len(LENGTHS))
    how = (items, rows, keys, max(LENGTHS), s.execution.chunk)
    program = CrammingProgram(c, s.cramming, frozen, *how)
    begun = time.process_time()
    state = program.start()
    while True:
        finished_C, need_C = program.look(state)
        if finished_C.all():
            break
        bucket, rows_L = schedule(finished_C, need_C, s.execution.buckets, s.execution.lanes)
        state = program.advance(state, rows_L, bucket)
    metrics = [program.finish(state, row)[0].metrics for row in range(len(finished_C))]
    found = np.array([metric["threshold"] for metric in metrics]).reshape(len(LENGTHS), -1)
    return {
        "thresholds": found.tolist(),
        "steps": sum(metric["steps"] for metric in metrics),
        "seconds": round(time.process_time() - begun, 1),
    }


def table(rows: dict[str, dict[str, Any]], base: str = "default") -> str:
    """Means over texts at each m, and the ratio to the default with its standard error."""
    lines = [
        "| change | " + " | ".join(f"m = {m}" for m in LENGTHS) + " | all, of default | steps, k |",
        "|-" * (len(LENGTHS) + 3) + "|",
    ]
    base_MC = np.array(rows[base]["thresholds"], float) if base in rows else None
    for name, row in rows.items():
        found_MC = np.array(row["thresholds"], float)
        means = " | ".join(f"{x:.1f}" for x in found_MC.mean(axis=1))
        ratio = "-"
        if base_MC is not None and base_MC.shape == found_MC.shape:
            # A text's threshold summed over m, both ways: texts are what is drawn at random.
            ours_C, base_C = found_MC.sum(axis=0), base_MC.sum(axis=0)
            value = ours_C.sum() / base_C.sum()
            error = np.std(ours_C - value * base_C, ddof=1) / np.sqrt(len(base_C)) / base_C.mean()
            ratio = f"{value:.2f} +- {error:.2f}"
        lines.append(f"| {name} | {means} | {ratio} | {row['steps'] / 1e3:.0f} |")
    return "\n".join(lines)


def main() -> None:
    """Runs what the record does not hold yet, then prints the table."""
    flags = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    flags.add_argument("--seed", type=int, default=1)
    flags.add_argument("--targets", type=int, default=16)
    flags.add_argument("--only", default=",".join(VARIANTS), help="names of rows, commas between")
    flags.add_argument("--record", type=Path, default=ROOT / "runs" / "cramming_ablation.jsonl")
    flags.add_argument("--workdir", type=Path, default=ROOT / "runs" / "reach_quick")
    given = flags.parse_args()
    names = given.only.split(",")
    if unknown := [name for name in names if name not in VARIANTS]:
        flags.error(f"--only: no such rows: {unknown}; expected some of {list(VARIANTS)}")
    jax.config.update("jax_default_matmul_precision", "highest")
    s = settings(reach_quick.get_config())
    execution = dataclasses.replace(s.execution, lanes=16)
    model = load_or_train(s.choice.quick, given.workdir / "models", Stop())
    numbers = list(range(given.targets))
    length = s.cramming.max_target
    texts = targets.text_targets(model.corpus.heldout_S, BEGIN_ID, numbers, length, given.seed)
    rows: dict[str, dict[str, Any]] = {}
    given.record.parent.mkdir(parents=True, exist_ok=True)
    given.record.touch()
    known = [json.loads(line) for line in given.record.read_text().splitlines()]
    for name in names:
        key = {"name": name, "change": VARIANTS[name], "seed": given.seed, "targets": len(texts)}
        row = next((old for old in known if key.items() <= old.items()), None)
        if row is None:
            cramming = dataclasses.replace(s.cramming, **VARIANTS[name])
            one = dataclasses.replace(s, cramming=cramming, execution=execution, seed=given.seed)
            row = key | run(one, model, texts)
            with given.record.open("a") as file:
                file.write(json.dumps(row) + "\n")
            print(f"{name}: {np.mean(row['thresholds'], axis=1)}, {row['seconds']} s", flush=True)
        rows[name] = row
    print(table(rows))


if __name__ == "__main__":
    main()
