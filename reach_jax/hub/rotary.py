"""Rotary settings of a config.json, in the old and the new spelling.

Old: `rope_theta` beside an optional `rope_scaling`; new: one dict `rope_parameters`. The kind of
scaling stands under `rope_type`, in the oldest files under `type`; it is never guessed.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from reach_jax.hub.reader import Attributes
from reach_jax.models.config import RopeScaling
from sweep_jax.checks import require

_KEYS = {
    "default": set(),
    "linear": {"factor"},
    "llama3": {"factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings"},
}


class Rope(NamedTuple):
    """Base, scaling, and the share of a head's channels that turns."""

    base: float
    scaling: RopeScaling | None
    partial: float


def read_rope(
    attributes: Attributes,
    base: float,
    context: int,
    base_name: str = "rope_theta",
    partial_name: str = "partial_rotary_factor",
    partial: float = 1.0,
) -> Rope:
    """Takes the rotary attributes; `base`, `context` and `partial` stand for what is not said."""
    base = attributes.take(base_name, base)
    partial = attributes.take(partial_name, partial)
    new = attributes.take("rope_parameters", None)
    old = attributes.take("rope_scaling", None)
    require(not (new and old), "config.rope_scaling", old, "none beside rope_parameters")
    field = "config.rope_parameters" if new else "config.rope_scaling"
    return parse(new or old or {}, field, base, partial, context)


def parse(values: Mapping[str, Any], field: str, base: float, partial: float, context: int) -> Rope:
    """One dict of rotary settings.

    Raises:
      ValueError: an unknown kind of scaling, or a key missing or unknown for its kind.
    """
    require(isinstance(values, Mapping), field, values, "a mapping")
    kind = values.get("rope_type", values.get("type", "default"))
    require(kind in _KEYS, f"{field}.rope_type", kind, f"one of {sorted(_KEYS)}")
    if "type" in values:
        require(values["type"] == kind, f"{field}.type", values["type"], f"rope_type = {kind!r}")
    if not values.keys() & {"rope_type", "type"}:
        require("factor" not in values, f"{field}.rope_type", None, "the kind of scaling")
    numbers = {k: v for k, v in values.items() if k not in ("rope_type", "type")}
    base, partial = numbers.pop("rope_theta", base), numbers.pop("partial_rotary_factor", partial)
    if kind == "llama3":
        numbers.setdefault("original_max_position_embeddings", context)
    for name in sorted(numbers.keys() ^ _KEYS[kind]):
        require(name in numbers, f"{field}.{name}", None, f"a value, as {kind} scaling needs it")
        require(False, f"{field}.{name}", numbers[name], f"no such key in {kind} scaling")
    for name, value in {"rope_theta": base, **numbers}.items():
        ok = isinstance(value, int | float) and not isinstance(value, bool) and value > 0
        require(ok, f"{field}.{name}", value, "a number > 0")
    if kind == "default":
        return Rope(float(base), None, partial)
    scaling = RopeScaling(
        kind=kind,
        factor=float(numbers["factor"]),
        low=float(numbers.get("low_freq_factor", 0)),
        high=float(numbers.get("high_freq_factor", 0)),
        original=int(numbers.get("original_max_position_embeddings", 0)),
    )
    return Rope(float(base), scaling, partial)
