"""A directory in the Hugging Face layout to a configuration and parameters, strictly.

Every tensor of the file is used exactly once or is on its family's list of ignorable ones; every
parameter is set exactly once. Layers stream into the stacked arrays one tensor at a time, so that
the peak is the parameters and one leaf more, the greatest leaf first.

The output head (`tie_word_embeddings` of config.json against the file):

    tied,   file without head   the embedding serves as head
    tied,   file with head      the embedding serves; a warning if the two differ
    tied,   head only           the head's tensor is the embedding
    untied, file with head      the head is read
    untied, file without head   an error
"""

import dataclasses
import json
import re
import warnings
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType
from typing import Any

import jax
import numpy as np

from reach_jax.hub import families
from reach_jax.hub.rules import Rule, rule
from reach_jax.hub.tensors import Tensors
from sweep_jax.checks import BadInput, require


@dataclasses.dataclass(frozen=True)
class Report:
    """What a load did."""

    family: str
    model_type: str
    parameters: int  # numbers, not bytes
    bytes: int  # of the parameters, as loaded
    file_dtypes: tuple[str, ...]
    ignored: tuple[str, ...]  # tensors of the file that hold no parameter
    notes: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class Loaded:
    """A model from its own files."""

    config: Any  # a family's frozen configuration: DecoderConfig, ...
    params: dict[str, Any]
    report: Report


def read_config(directory: Path, dtype: str | None = None) -> tuple[ModuleType, Any]:
    """The family and the frozen configuration of a directory; reads no weights.

    Args:
      directory: holds config.json.
      dtype: of parameters and activations; None for what the file says.

    Raises:
      ValueError: no family reads the model, an attribute is not handled, or the family is not safe
        in this dtype.
    """
    path = directory / "config.json"
    hf = json.loads(path.read_text())
    require(isinstance(hf, dict), str(path), type(hf).__name__, "a JSON object")
    family = families.find(hf.get("model_type"))
    try:
        config = family.config(hf)
    except ValueError as error:
        raise BadInput(f"{path}: {error}") from None
    dtype = dtype or config.dtype
    name = _name(family)
    require(dtype in family.DTYPES, "dtype", dtype, f"one of {family.DTYPES}, safe for {name}")
    return family, dataclasses.replace(config, dtype=dtype)


def load(directory: Path, dtype: str | None = None) -> Loaded:
    """Reads a model.

    Args:
      directory: config.json and safetensors files.
      dtype: of parameters and activations; None for what the file says.

    Raises:
      ValueError: whatever `read_config` refuses; a tensor is missing, unknown, of the wrong shape,
        or too great for the dtype. The message names the tensor or the parameter.
    """
    family, config = read_config(directory, dtype)
    tensors = Tensors(directory)
    notes: list[str] = []
    rules = _present(family, config, tensors, notes)
    ignored = _check_tensors(family, rules, tensors, config.layers)
    shapes = _flat(jax.eval_shape(lambda: family.init(config, jax.random.key(0))))
    _check_parameters(rules, shapes)
    flat: dict[str, jax.Array] = {}
    filling = [item for item in rules if item.into]
    largest_first = sorted(filling, key=lambda r: -max(shapes[p].size for p in r.into))
    for item in largest_first:  # mapped anew each time: pages once read would stay in memory
        flat |= _fill(item, shapes, Tensors(directory), config.layers)
    report = Report(
        family=_name(family),
        model_type=json.loads((directory / "config.json").read_text())["model_type"],
        parameters=sum(x.size for x in flat.values()),
        bytes=sum(x.nbytes for x in flat.values()),
        file_dtypes=tuple(sorted({str(tensors.dtype(n)) for n in tensors.names()})),
        ignored=tuple(ignored),
        notes=tuple(notes),
    )
    return Loaded(config, _nested(flat), report)


def _name(family: ModuleType) -> str:
    return family.__name__.rsplit(".", 1)[-1]


def _present(family: ModuleType, config: Any, tensors: Tensors, notes: list[str]) -> list[Rule]:
    """The family's rules by the names that this file has, with the head that it is to have."""
    names = set(tensors.names())
    rules, embedding, head = family.rules(config), family.EMBEDDING, family.HEAD
    if family.PREFIX and not any(name.startswith(family.PREFIX) for name in names):
        rules = [Rule(r.tensor.removeprefix(family.PREFIX), r.into) for r in rules]
        embedding = embedding.removeprefix(family.PREFIX)
        notes.append(f"tensor names without {family.PREFIX!r}")
    if not config.tied:
        return [*rules, rule(head, "head")]
    if head in names and embedding not in names:
        notes.append(f"{head} serves as the embedding, which config.json ties to it")
        return [Rule(head, r.into) if r.tensor == embedding else r for r in rules]
    if head in names:
        notes.append(f"{head} left out: config.json ties it to {embedding}")
        if not _equal(tensors, head, embedding):
            message = f"{head} differs from {embedding}, to which config.json ties it; the latter"
            warnings.warn(f"{message} is the output head", stacklevel=3)
        rules = [*rules, Rule(head, {})]
    return rules


def _equal(tensors: Tensors, one: str, other: str) -> bool:
    if tuple(tensors.shape(one)) != tuple(tensors.shape(other)):
        return False
    return bool(np.array_equal(tensors.read(one), tensors.read(other)))


def _expanded(item: Rule, layers: int) -> list[str]:
    if "{layer}" not in item.tensor:
        return [item.tensor]
    return [item.tensor.format(layer=layer) for layer in range(layers)]


def _check_tensors(
    family: ModuleType, rules: Iterable[Rule], tensors: Tensors, layers: int
) -> list[str]:
    """The ignorable tensors of the file; any other that no rule reads is an error."""
    names = set(tensors.names())
    wanted = Counter(name for item in rules for name in _expanded(item, layers))
    for name, count in wanted.items():
        require(count == 1, name, f"used {count} times", "a tensor used once")
        require(name in names, name, "absent", "a tensor of the file, as config.json says")
    ignored = []
    for name in sorted(names - set(wanted)):
        known = any(
            re.fullmatch(p, name) or re.fullmatch(p.removeprefix(re.escape(family.PREFIX)), name)
            for p in family.IGNORED
        )
        require(known, name, "in the file", "only tensors that this model has a place for")
        ignored.append(name)
    return ignored


def _check_parameters(rules: Iterable[Rule], shapes: dict[str, jax.ShapeDtypeStruct]) -> None:
    filled = Counter(parameter for item in rules for parameter in item.into)
    for parameter in sorted(set(filled) | set(shapes)):
        require(parameter in shapes, parameter, "in the key table", "a parameter of the model")
        count = filled[parameter]
        require(count == 1, parameter, f"set {count} times", "a parameter set once")


def _fill(
    item: Rule, shapes: dict[str, jax.ShapeDtypeStruct], tensors: Tensors, layers: int
) -> dict[str, jax.Array]:
    """The parameters of one rule, layer by layer into arrays allocated once."""
    stacked = "{layer}" in item.tensor
    out = {p: _empty(shapes[p].shape, shapes[p].dtype) for p in item.into}
    for layer, name in enumerate(_expanded(item, layers)):
        tensor = tensors.read(name)
        for parameter, transform in item.into.items():
            slot = out[parameter][layer] if stacked else out[parameter]
            try:
                piece = transform(tensor)
            except (ValueError, IndexError, TypeError):
                piece = None
            got = tensor.shape if piece is None else piece.shape
            require(
                piece is not None and got == slot.shape,
                f"shape of {name}",
                tuple(tensor.shape),
                f"what gives {parameter} the shape {slot.shape}",
            )
            _cast(piece, slot, name)
        del tensor
    return {parameter: jax.device_put(out.pop(parameter)) for parameter in list(out)}


def _cast(piece: Any, slot: np.ndarray, name: str) -> None:
    kind = slot.dtype.name
    if kind == "float16" and piece.dtype != slot.dtype:
        greatest = float(np.max(np.abs(piece), initial=0))
        require(greatest <= 65504, f"largest |number| of {name}", greatest, "a float16 (65504)")
    np.copyto(slot, piece, casting="unsafe")


def _empty(shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """An array at a 64-byte boundary, where JAX on a CPU takes it over without a copy."""
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    buffer = np.empty(size + 64, np.uint8)
    start = -buffer.ctypes.data % 64
    return buffer[start : start + size].view(dtype).reshape(shape)


def _flat(tree: Any, path: str = "") -> dict[str, Any]:
    if not isinstance(tree, dict):
        return {path[:-1]: tree}
    parts = [_flat(tree[name], f"{path}{name}/") for name in tree]
    return {name: leaf for part in parts for name, leaf in part.items()}


def _nested(flat: dict[str, Any]) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    for path, leaf in flat.items():
        *rooms, name = path.split("/")
        place = tree
        for room in rooms:
            place = place.setdefault(room, {})
        place[name] = leaf
    return tree
