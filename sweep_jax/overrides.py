"""What a field of a config may be set to, from the command line or from a sweep: one rule for both.

The type of a field is the type of its default: an int is taken for a float, never a float for an
int; a tuple holds what the default's first item is; a field that is a reference
(`config_dict.placeholder(int)`) also takes None. Not a schema: ranges are the experiment's matter.
"""

import ast
import math
from typing import Any

from absl import flags
from ml_collections import ConfigDict, FieldReference, config_flags

from sweep_jax.checks import BadInput, require

_SCALARS = (bool, int, float, str)
_BOOLS = {"true": True, "1": True, "false": False, "0": False}


class Parser(flags.ArgumentParser):
    """Text of the command line -> a value of `kind`, or None; of type(None): any literal."""

    def __init__(self, kind: type) -> None:
        self.kind = kind

    def parse(self, argument: Any) -> Any:
        """Raises ValueError `expected KIND` for other text."""
        if not isinstance(argument, str):  # the field's default
            return argument
        if argument == "None":
            return None
        try:
            if self.kind is bool:
                return _BOOLS[argument.lower()]
            if self.kind in (int, float):
                return self.kind(argument)
            value = _literal(argument)
        except (ValueError, KeyError):
            raise BadInput(f"expected {self.kind.__name__}") from None
        return (value,) if self.kind is tuple and not isinstance(value, tuple) else value

    def flag_type(self) -> str:
        """Named by absl in its own help."""
        return self.kind.__name__


def _literal(text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        if any(character in text for character in "()[]{}'\""):
            raise BadInput(text) from None
        if "," in text:  # a,b without quotes
            return tuple(_literal(part) for part in text.split(",") if part)
        return text


def register_parsers() -> None:
    """Makes `config_flags` parse overrides by this module's rule instead of its laxer one."""
    for kind in (bool, int, float, tuple, type(None)):
        config_flags.register_flag_parser_for_type(kind, Parser(kind))


def locate(config: ConfigDict, field: str, value: Any, shown: str) -> Any:
    """The default of the dotted path `field`: a plain value or a `FieldReference`.

    Args:
      value, shown: what the field is to be set to and how it is named, for an error.

    Raises:
      ValueError: no such field, or a whole section.
    """
    found: Any = config
    for part in field.split("."):
        known = list(found) if isinstance(found, ConfigDict) else []
        require(part in known, shown, value, f"an existing field; {part!r} is none of {known}")
        found = dict(found.items(preserve_field_references=True))[part]
    require(not isinstance(found, ConfigDict), shown, value, "a field, not a section")
    return found


def convert(config: ConfigDict, field: str, value: Any, shown: str) -> Any:
    """`value` as the type of the default at the dotted path `field`; see `locate`.

    Raises:
      ValueError: no such field, or a value of another type.
    """
    default = locate(config, field, value, shown)
    if not isinstance(default, FieldReference):
        return _as_kind(type(default), default, value, shown)
    if value is None:
        return None
    return _as_kind(default.get_type(), default.get(), value, shown)


def _as_kind(kind: type, default: Any, value: Any, shown: str) -> Any:
    if kind is type(None):  # nothing known of it
        if value is None:
            return None
        kind, default = type(value), value
    if kind is tuple:
        require(isinstance(value, tuple | list), shown, value, "tuple")
        first = default[0] if default else None
        return tuple(
            _as_kind(type(first), first, item, f"{shown}[{index}]")
            for index, item in enumerate(value)
        )
    require(kind in _SCALARS and _fits(kind, value), shown, value, kind.__name__)
    if kind is float:
        require(math.isfinite(value), shown, value, "a finite number")
        return float(value)
    return value


def _fits(kind: type, value: Any) -> bool:
    if isinstance(value, bool):
        return kind is bool
    return isinstance(value, kind) or (kind is float and isinstance(value, int))
