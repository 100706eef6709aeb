"""Counting token cells: the share of this machine's float32 matmul rate that the loop reaches.

Command:  .venv/bin/python benchmarks/cells_rate.py
          .venv/bin/python benchmarks/cells_rate.py --turns=9 --heads=512x64,49152x576
Prints, for random heads of V rows and width D, the counting loop's GFLOP/s (multiply-adds of the
logits only), those of a 2048 x 2048 product and of a bare product of the loop's tile sizes, timed
in turn in one process, and the shares: of medians, and of the best turns, which other work on the
machine disturbs least. Random heads: speed does not depend on them.
"""

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np

from reach_jax.geometry import cells, cells_speed

GOAL = 0.6
HEADS = "512x64,49152x576,262144x640"  # quick model, SmolLM2-135M, Gemma-3-270M


def main() -> None:
    """Prints one line a head."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--turns", type=int, default=7, help="how often each part is timed")
    parser.add_argument("--heads", default=HEADS, help="VxD, separated by commas")
    given = parser.parse_args()
    for text in given.heads.split(","):
        V, D = (int(part) for part in text.split("x"))
        rows_VD = np.random.default_rng(0).standard_normal((V, D), np.float32)
        speed = cells_speed.measure(cells.chunked(rows_VD), given.turns)
        loop, square, tiles = (np.median(rates_R) for rates_R in speed)
        reached = "reached" if speed.share >= GOAL else "missed"
        print(
            f"V={V} D={D}: loop {loop:.0f}, square {square:.0f}, tiles {tiles:.0f} GFLOP/s; loop is"
            f" {speed.share:.0%} of square (best turns {speed.best_share:.0%}; goal {GOAL:.0%}"
            f" {reached}), {speed.tiles_share:.0%} of tiles",
            flush=True,
        )


if __name__ == "__main__":
    main()
