"""The families of models: one module each, found by the `model_type` of a config.json.

A family module defines (docs/adding_a_model.md):

    MODEL_TYPES   the `model_type`s that it reads
    DTYPES        the dtypes that it is safe in
    PREFIX        what a causal model's tensor names start with and a bare model's do not
    EMBEDDING     name of the token table's tensor
    HEAD          name of the output head's tensor
    IGNORED       regular expressions of tensors that hold no parameter
    config(hf)    the frozen model configuration; refuses every attribute it does not handle
    rules(config) the key table: a list of `reach_jax.hub.rules.Rule`, the head left out
    init(config, key)  fresh parameters; called for their shapes only
"""

import functools
import importlib
import pkgutil
from types import ModuleType

from sweep_jax.checks import require


@functools.cache
def _by_model_type() -> dict[str, ModuleType]:
    found: dict[str, ModuleType] = {}
    for item in pkgutil.iter_modules(__path__):
        module = importlib.import_module(f"{__name__}.{item.name}")
        for model_type in module.MODEL_TYPES:
            require(model_type not in found, "model_type", model_type, "one family to claim it")
            found[model_type] = module
    return found


def find(model_type: object) -> ModuleType:
    """The family of a `model_type`.

    Raises:
      ValueError: no family reads it.
    """
    known = _by_model_type()
    require(model_type in known, "config.model_type", model_type, f"one of {sorted(known)}")
    return known[str(model_type)]
