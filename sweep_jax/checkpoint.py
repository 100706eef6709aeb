"""Checkpoints of a pytree by step: the newest whole one is restored, damaged ones are put aside.

Not a training loop, and not asynchronous: a save has reached the disk when it returns. Arrays come
back as the abstract tree says, sharding included, so the device count may change in between.
"""

import shutil
from pathlib import Path
from typing import Any

import jax
import numpy as np
from absl import logging

from sweep_jax import arrays
from sweep_jax.checks import BadInput, require

_ASIDE = ".damaged"


class Checkpoints:
    """The checkpoints in one directory, which no other process writes to."""

    def __init__(self, directory: Path, keep: int = 2) -> None:
        """Keeps the newest `keep` steps in `directory`, made at the first save."""
        require(keep >= 1, "keep", keep, "at least 1")
        self._directory = Path(directory).resolve()
        self._keep = keep

    def save(self, step: int, tree: Any) -> None:
        """Writes `tree`; then removes the steps before the newest `keep`.

        Leaves: arrays of any dtype, typed PRNG keys, NumPy and Python numbers.

        Raises:
          ValueError: a negative step, or a leaf that is no number.
        """
        require(step >= 0, "step", step, "at least 0")
        leaves = {_describe(path, leaf)[0]: leaf for path, leaf in _leaves(tree)}
        host = jax.device_get([_raw(leaf) for leaf in leaves.values()])
        named = dict(zip(leaves, map(np.asarray, host), strict=True))
        arrays.save(self._directory / str(step), named)
        others = [other for other in self._steps() if other != step]
        for old in others[: max(len(others) - self._keep + 1, 0)]:
            shutil.rmtree(self._directory / str(old))

    def restore(self, abstract_tree: Any) -> tuple[int, Any] | None:
        """The newest step that is whole, and its tree; None if there is none.

        Args:
          abstract_tree: structure, shapes and dtypes expected, from `jax.eval_shape` or a tree of
            values. A leaf with a sharding comes back with it, one without on the default device;
            NumPy and Python leaves come back as what they are.

        Raises:
          ValueError: the checkpoint is of another tree; the differing leaves are listed.
        """
        for leftover in [*self._directory.glob("*-tmp*"), *self._directory.glob("*.partial")]:
            logging.warning("Removed the unfinished save %s", leftover.name)
            shutil.rmtree(leftover)
        for step in reversed(self._steps()):
            directory = self._directory / str(step)
            try:
                stored = arrays.read_manifest(directory)
            except arrays.Damaged as error:
                logging.warning("Checkpoint of step %d is skipped: %s", step, error)
                aside = directory.with_name(directory.name + _ASIDE)
                shutil.rmtree(aside, ignore_errors=True)
                directory.rename(aside)
                continue
            wanted = [_describe(path, leaf) for path, leaf in _leaves(abstract_tree)]
            _compare(stored, dict(wanted), f"checkpoint of step {step}")
            host = arrays.restore(directory)
            leaves, structure = jax.tree.flatten(abstract_tree)
            pairs = zip(leaves, wanted, strict=True)
            restored = [_like(leaf, host[name]) for leaf, (name, _) in pairs]
            return step, jax.tree.unflatten(structure, restored)
        return None

    def clear(self) -> None:
        """Removes all of it."""
        shutil.rmtree(self._directory, ignore_errors=True)

    def _steps(self) -> list[int]:
        if not self._directory.exists():
            return []
        return sorted(int(path.name) for path in self._directory.iterdir() if path.name.isdigit())


def _leaves(tree: Any) -> list[tuple[Any, Any]]:
    return jax.tree_util.tree_flatten_with_path(tree)[0]


def _is_key(leaf: Any) -> bool:
    return hasattr(leaf, "dtype") and jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def _describe(path: Any, leaf: Any) -> tuple[str, tuple[tuple[int, ...], str]]:
    """The name a leaf is stored under, and its (shape, dtype) there."""
    name = jax.tree_util.keystr(path)
    if _is_key(leaf):  # stored as its data
        data = jax.eval_shape(jax.random.key_data, leaf)
        return f"{name} {leaf.dtype}", (data.shape, data.dtype.name)
    if hasattr(leaf, "dtype"):
        return name, (tuple(leaf.shape), np.dtype(leaf.dtype).name)
    known = isinstance(leaf, bool | int | float)
    require(known, f"checkpoint leaf {name}", leaf, "an array or number")
    return f"{name} {type(leaf).__name__}", ((), np.asarray(leaf).dtype.name)


def _raw(leaf: Any) -> Any:
    return jax.random.key_data(leaf) if _is_key(leaf) else leaf


def _like(leaf: Any, value: np.ndarray) -> Any:
    """`value` as the kind of array or number that `leaf` is, placed where it is."""
    if isinstance(leaf, np.ndarray):
        return value
    if isinstance(leaf, np.generic):
        return value[()]
    if not hasattr(leaf, "dtype"):
        return value.item()
    # An uncommitted array must stay so, or it could not meet arrays on other devices.
    placed = not isinstance(leaf, jax.Array) or leaf.committed
    sharding = leaf.sharding if placed else None
    array = jax.device_put(value, sharding)
    if not _is_key(leaf):
        return array
    impl: list[Any] = []  # traced, because `key_impl` refuses a ShapeDtypeStruct
    jax.eval_shape(lambda key: impl.append(jax.random.key_impl(key)), leaf)
    return jax.random.wrap_key_data(array, impl=impl[0])


def _compare(stored: dict[str, Any], wanted: dict[str, Any], what: str) -> None:
    differing = [
        f"{name}: stored {stored.get(name, 'nothing')}, expected {wanted.get(name, 'nothing')}"
        for name in dict.fromkeys([*wanted, *stored])
        if stored.get(name) != wanted.get(name)
    ]
    if differing:
        raise BadInput(f"{what}: expected the tree of this config; " + "; ".join(differing))
