"""One way to refuse bad input: the field, the value that came, and what was expected.

Not for internal invariants, and never a place to repair a value silently.
"""

import dataclasses
import types
import typing
from collections.abc import Mapping
from typing import Any, TypeVar

T = TypeVar("T")


class BadInput(ValueError):
    """What a user gave cannot be: the launcher prints it as one line, without a traceback."""


def require(ok: bool, field: str, value: object, expected: str) -> None:
    """Raises BadInput, a ValueError, `field = value: expected ...` unless `ok`."""
    if not ok:
        raise BadInput(f"{field} = {value!r}: expected {expected}")


def resolve(cls: type[T], values: Mapping[str, Any], path: str) -> T:
    """Builds the frozen dataclass `cls` from a mapping.

    Every field is given exactly once; one that has a default in `cls` may be left out.

    Args:
      cls: a frozen dataclass whose fields are plain types, tuples or dataclasses.
      values: the fields' values; lists become tuples, an int is taken for a float.
      path: what stands before a field's name in an error, as "config.cramming".

    Raises:
      ValueError: an unknown or missing field, or a value of the wrong type.
    """
    hints = typing.get_type_hints(cls)
    found = [f for f in dataclasses.fields(typing.cast(Any, cls)) if f.init]
    fields = [f.name for f in found]
    needed = [f.name for f in found if f.default is f.default_factory is dataclasses.MISSING]
    for name in values:
        require(name in fields, f"{path}.{name}", values[name], f"one of the fields {fields}")
    for name in needed:
        require(name in values, f"{path}.{name}", None, f"a value of type {hints[name]}")
    converted = {name: _convert(hints[name], values[name], f"{path}.{name}") for name in values}
    try:
        return cls(**converted)
    except ValueError as error:
        raise BadInput(f"{path}.{error}") from None


def _convert(hint: Any, value: Any, path: str) -> Any:
    if dataclasses.is_dataclass(hint):
        require(isinstance(value, Mapping), path, value, "a mapping of fields")
        return resolve(typing.cast(type, hint), value, path)
    if isinstance(hint, types.UnionType):
        if value is None and type(None) in hint.__args__:
            return None
        return _convert(next(h for h in hint.__args__ if h is not type(None)), value, path)
    if typing.get_origin(hint) is tuple:
        require(isinstance(value, list | tuple), path, value, f"a sequence, as {hint}")
        inner = typing.get_args(hint)[0]
        return tuple(_convert(inner, item, f"{path}[{i}]") for i, item in enumerate(value))
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    ok = isinstance(value, hint) and not (hint is int and isinstance(value, bool))
    require(ok, path, value, f"a value of type {hint.__name__}")
    return value
