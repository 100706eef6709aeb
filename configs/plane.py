"""The cells of the tokens on the plane through the last states of three prompts.

Paper:    How Many Different Outputs Can a Transformer Generate? (arXiv 2605.22223), its picture of
          argmax cells on a PCA plane, 200 x 200 pixels.
Command:  python launch.py --config=configs/plane.py
          python launch.py --config=configs/plane.py --config.source.path=models/smollm2-135m
          python launch.py --config=configs/plane.py:smoke   # seconds
Expected: a figure in seconds, training apart; docs/results/cells.md.
"""

from collections.abc import Callable

from ml_collections import ConfigDict

from configs import _base


def get_config(arg: str = "") -> ConfigDict:
    """`arg` is "" for the full picture or "smoke" for a small one of a hardly trained model."""
    _base.check_arg(arg, ("", "smoke"))
    config = _base.new_config("plane")
    _base.add_model(config, "quick", smoke=arg == "smoke")

    config.plane = ConfigDict()
    config.plane.prompts = (
        "The name of the function is",
        "A list is an object that",
        "This raises an error if the",
    )
    config.plane.pixels = 200  # along each side
    config.plane.margin = 0.5  # around the three states, in widths of their extent
    config.plane.named = 9  # the largest cells, with a colour of their own
    if arg == "smoke":
        config.plane.pixels = 40
    return config.lock()


def sweep(add: Callable[..., None], config: ConfigDict) -> None:
    """One cell: the plane."""
    add({})
