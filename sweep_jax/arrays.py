"""Named arrays in a directory, through orbax, and a manifest that tells whether they are whole.

Orbax alone restores a checkpoint whose commit marker is gone or whose bytes have changed, so the
manifest keeps size and CRC-32 of every file. It is written last; a directory without it was never
finished. One process writes a directory; not for arrays that span processes.
"""

import functools
import json
import os
import shutil
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from sweep_jax import atomic

MANIFEST = "manifest.json"


class Damaged(Exception):
    """A directory that was not finished, or changed since; the text says what is wrong."""


def save(directory: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Writes `arrays` to `directory`, replacing it; durable when it returns.

    What a killed save leaves is no `directory`, and does not disturb the next save.
    """
    partial = directory.with_name(directory.name + ".partial")
    partial.parent.mkdir(parents=True, exist_ok=True)
    for leftover in partial.parent.glob(partial.name + "*"):  # orbax's own as well
        shutil.rmtree(leftover)
    # Numbers name the files: any text can name an array. Orbax refuses arrays without elements.
    numbered = {f"{i:05d}": array for i, array in enumerate(arrays.values()) if array.size}
    if numbered:
        import orbax.checkpoint as ocp

        _checkpointer().save(partial, args=ocp.args.PyTreeSave(numbered))
    else:
        partial.mkdir()
    manifest = {
        "arrays": [[key, list(a.shape), a.dtype.name] for key, a in arrays.items()],
        "files": _checksums(partial),
    }
    for path in partial.rglob("*"):
        atomic.sync(path)
    atomic.write_text(partial / MANIFEST, json.dumps(manifest))
    if directory.exists():
        shutil.rmtree(directory)
    os.replace(partial, directory)
    atomic.sync(directory.parent)


def read_manifest(directory: Path) -> dict[str, tuple[tuple[int, ...], str]]:
    """Name -> (shape, dtype) of the arrays in `directory`, every file of which was checked.

    Raises:
      Damaged: a file is missing, or not what was written.
    """
    try:
        manifest = json.loads((directory / MANIFEST).read_bytes())
        files, arrays = manifest["files"], manifest["arrays"]
    except FileNotFoundError:
        raise Damaged(f"no {MANIFEST}: the save was not finished") from None
    except (ValueError, TypeError, KeyError) as error:
        raise Damaged(f"{MANIFEST} is unreadable: {error}") from None
    found = _checksums(directory)
    changed = [name for name in files if found.get(name) != files[name]]
    if changed:
        raise Damaged(f"missing or changed files: {', '.join(changed)}")
    return {name: (tuple(shape), dtype) for name, shape, dtype in arrays}


def restore(directory: Path) -> dict[str, np.ndarray]:
    """The arrays of `directory`, in the order in which they were saved.

    Raises:
      Damaged: see `read_manifest`.
    """
    described = read_manifest(directory)
    loaded: Mapping[str, Any] = {}
    if any(0 not in shape for shape, _ in described.values()):
        loaded = _checkpointer().restore(directory)
    return {
        name: np.asarray(loaded[f"{i:05d}"]) if 0 not in shape else np.zeros(shape, dtype)
        for i, (name, (shape, dtype)) in enumerate(described.items())
    }


@functools.cache
def _checkpointer() -> Any:
    """One for all saves, which are small: without compression they take less time."""
    import orbax.checkpoint as ocp

    return ocp.Checkpointer(ocp.PyTreeCheckpointHandler(use_compression=False))


def _checksums(directory: Path) -> dict[str, list[int]]:
    """Relative path -> [bytes, CRC-32] of every file but the manifest."""
    sums = {}
    for path in sorted(directory.rglob("*")):
        if path.is_file() and path.name != MANIFEST:
            data = path.read_bytes()
            sums[path.relative_to(directory).as_posix()] = [len(data), zlib.crc32(data)]
    return sums
