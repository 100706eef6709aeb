"""A golden with another config.json or other tensors, to see what the loader says of it."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save_file

from reach_jax.hub.tensors import Tensors

GOLDENS = Path(__file__).parent / "goldens"
Arrays = dict[str, np.ndarray]


def hf_config(name: str, **changes: Any) -> dict[str, Any]:
    """config.json of a golden; a change to None stands there as null."""
    return {**json.loads((GOLDENS / name / "config.json").read_text()), **changes}


def rewritten(
    name: str,
    directory: Path,
    change: Callable[[Arrays], Mapping[str, np.ndarray]] = lambda arrays: arrays,
    **changes: Any,
) -> Path:
    """The directory, holding the golden's float32 tensors after `change` and its new config."""
    directory.mkdir(exist_ok=True)
    tensors = Tensors(GOLDENS / name)
    arrays = {n: np.array(tensors.read(n), np.float32) for n in tensors.names()}
    arrays = {n: np.ascontiguousarray(a) for n, a in change(arrays).items()}
    save_file(arrays, directory / "model.safetensors")
    (directory / "config.json").write_text(json.dumps(hf_config(name, **changes)))
    return directory
