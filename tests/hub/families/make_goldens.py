"""Writes the committed goldens from `transformers`: python -m tests.hub.families.make_goldens.

A golden is config.json, model.safetensors (bfloat16 numbers) and expected.npz (computed in float32
from the same numbers).
"""

from pathlib import Path

import numpy as np
import torch

from tests.hub.families import cases

GOLDENS = Path(__file__).parent / "goldens"


def main() -> None:
    torch.set_num_threads(1)
    for seed, (name, case) in enumerate(cases.GOLDENS.items()):
        directory = GOLDENS / name
        model = cases.build(case, seed)
        arrays = cases.expected(model, seed)
        if name == "llama":
            arrays |= cases.far(model, seed, 3000)
        # Last, as it also rounds what is no parameter: the scale of Gemma's embeddings.
        cases.save(model, directory, torch.bfloat16)
        np.savez_compressed(directory / "expected.npz", **arrays)
        size = sum(p.stat().st_size for p in directory.iterdir())
        print(f"{name}: {size / 1e3:.0f} kB, logits up to {np.abs(arrays['logits']).max():.1f}")


if __name__ == "__main__":
    main()
