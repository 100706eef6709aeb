"""What a model is, what cramming it would take, and how it goes on from a text.

Command:  python launch.py --config=configs/inspect.py --config.source.path=models/smollm2-135m
          python launch.py --config=configs/inspect.py:smoke   # the quick model, hardly trained
          source.path: quick, a directory, a .gguf file, or a hub id as org/name
Expected: a page with the model's card, the memory of cramming by prompt length, target length and
          lanes (from the compiled program), and greedy continuations. SmolLM2-135M: a minute.
"""

from collections.abc import Callable

from ml_collections import ConfigDict

from configs import _base


def get_config(arg: str = "") -> ConfigDict:
    """`arg` is "" for the trained quick model or "smoke" for one that is hardly trained."""
    _base.check_arg(arg, ("", "smoke"))
    config = _base.new_config("inspect")
    _base.add_model(config, "quick", smoke=arg == "smoke")

    config.continuation = ConfigDict()
    config.continuation.text = "The capital of France is"  # greedily continued
    config.continuation.tokens = 24

    config.memory = ConfigDict()  # of one step of cramming; compiled, never run
    config.memory.prompt_lengths = (1, 4)  # m, vectors
    config.memory.targets = (32, 128)  # n, tokens
    config.memory.lanes = (1, 8)
    if arg == "smoke":
        config.memory.targets = (32,)
    return config.lock()


def sweep(add: Callable[..., None], config: ConfigDict) -> None:
    """One cell: the model."""
    add({})
