"""The tensors of a checkpoint directory in the Hugging Face layout, by name, memory mapped.

Everything is checked before the first tensor is read. Not a loader: which tensor is which parameter
is the families' business, and nothing is cast or transposed here. No pickle is ever opened.
"""

import json
from pathlib import Path

import numpy as np

from reach_jax.hub import safetensors_file
from sweep_jax.checks import BadInput, require

SINGLE = "model.safetensors"
INDEX = "model.safetensors.index.json"


class Tensors:
    """Reads `model.safetensors`, or the shards that `model.safetensors.index.json` names."""

    def __init__(self, directory: Path) -> None:
        """Finds and checks every file of the checkpoint.

        Raises:
          ValueError: no safetensors; a shard missing, truncated or not in the index; a tensor
            that is missing from its shard, in two shards, or in a shard but not in the index.
        """
        self.directory = directory
        require(directory.is_dir(), "checkpoint", str(directory), "a directory")
        index = _index(directory)
        if index is None:
            contents = {SINGLE: safetensors_file.entries(directory / SINGLE)}
        else:
            contents = {
                shard: safetensors_file.entries(directory / shard)
                for shard in sorted(set(index.values()))
            }
        _no_other_shards(directory, set(contents))
        self._where: dict[str, tuple[str, safetensors_file.Entry]] = {}
        for shard, found in contents.items():
            for name, entry in found.items():
                if name in self._where:
                    both = f"{self._where[name][0]} and {shard}"
                    raise BadInput(f"{directory}: tensor {name!r} is in both {both}")
                self._where[name] = (shard, entry)
        if index is not None:
            _agree(directory, index, {name: shard for name, (shard, _) in self._where.items()})
        self._maps = {shard: _mapped(directory / shard) for shard in contents}

    def names(self) -> list[str]:
        """The tensors' names, sorted."""
        return sorted(self._where)

    def shape(self, name: str) -> tuple[int, ...]:
        """The shape of a tensor. Raises ValueError for a name that is not in the checkpoint."""
        return self._entry(name)[1].shape

    def dtype(self, name: str) -> np.dtype:
        """The numpy (ml_dtypes for bfloat16) dtype of a tensor; ValueError as `read`."""
        return self.read(name).dtype

    def read(self, name: str) -> np.ndarray:
        """The tensor as a read-only view of the mapped file: nothing is copied or cast.

        Raises:
          ValueError: a name that is not in the checkpoint, or a dtype that numpy does not have.
        """
        shard, entry = self._entry(name)
        return safetensors_file.view(self._maps[shard], name, entry)

    def _entry(self, name: str) -> tuple[str, safetensors_file.Entry]:
        require(name in self._where, "tensor", name, f"a tensor of {self.directory}")
        return self._where[name]


def _index(directory: Path) -> dict[str, str] | None:
    """Tensor -> shard from the index file, or None for a checkpoint in one file."""
    path, single = directory / INDEX, directory / SINGLE
    if not path.is_file():
        pickles = sorted(p.name for p in directory.glob("*.bin"))
        note = f" (pickles are never opened: {pickles})" if pickles else ""
        require(single.is_file(), str(directory), "no safetensors", f"{SINGLE} or {INDEX}{note}")
        return None
    try:
        index = json.loads(path.read_text())["weight_map"]
        shards = set(index.values())
    except (ValueError, TypeError, KeyError, AttributeError):
        raise BadInput(f"{path}: expected JSON with a weight_map of tensor -> file") from None
    for shard in shards:
        ok = isinstance(shard, str) and Path(shard).name == shard
        require(ok, f"{path}: weight_map", shard, "the name of a file beside the index")
    missing = sorted(shard for shard in shards if not (directory / shard).is_file())
    require(not missing, f"{directory}: shards missing", missing, f"every file that {INDEX} names")
    return index


def _no_other_shards(directory: Path, known: set[str]) -> None:
    others = sorted(p.name for p in directory.glob("*.safetensors") if p.name not in known)
    expected = f"no safetensors file but {sorted(known)}: which of them are the model?"
    require(not others, f"{directory}: extra files", others, expected)


def _agree(directory: Path, index: dict[str, str], found: dict[str, str]) -> None:
    for name, shard in index.items():
        expected = f"the shard {shard}, as {INDEX} says"
        require(found.get(name) == shard, f"{directory}: {name} in", found.get(name), expected)
    unlisted = sorted(set(found) - set(index))
    where = sorted({found[name] for name in unlisted})
    expected = f"every tensor of {where} listed in {INDEX}"
    require(not unlisted, f"{directory}: unlisted tensors", unlisted, expected)


def _mapped(path: Path) -> np.memmap:
    return np.memmap(path, dtype=np.uint8, mode="r")
