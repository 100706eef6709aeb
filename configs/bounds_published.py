"""The published bounds again, from the published constants: what is printed, and what follows.

Paper:    How Many Different Outputs Can a Transformer Generate? (arXiv 2605.22223), Tables 1 and 2,
          and the ratios of the notebook that goes with it.
Command:  python launch.py --config=configs/bounds_published.py
Expected: 7 s on 2 CPU cores. 7 models of the tables and 3 of the notebook; a copy of the page that
          it writes (runs/bounds_published/docs) is docs/results/bounds_published.md.
"""

from collections.abc import Callable

from ml_collections import ConfigDict

from configs import _base


def get_config(arg: str = "") -> ConfigDict:
    """It takes seconds, so there is no smoke version and no argument."""
    _base.check_arg(arg, ("",))
    config = _base.new_config("bounds_published")
    del config.seed  # nothing is drawn

    config.cell = ConfigDict()
    config.cell.model = ""  # the sweep sets it

    config.bounds = ConfigDict()
    config.bounds.dtype = "float16"  # of the prompts that the float grid counts
    config.bounds.order = 1.0  # q of the Wasserstein distance in the mean-field bound

    config.axes = ConfigDict()
    config.axes.models = (
        "Pythia-160M",
        "Pythia-410M",
        "Pythia-1B",
        "Qwen2.5-0.5B",
        "Qwen2.5-1.5B",
        "Llama-3.2-1B",
        "Gemma-3-270M",
        "Pythia-1.4B",  # of the notebook, like the next two
        "Pythia-2.8B",
        "Pythia-6.9B",
    )
    return config.lock()


def sweep(add: Callable[..., None], config: ConfigDict) -> None:
    """One cell a model."""
    _base.check_axes(config.axes)
    for model in config.axes.models:
        add({"cell.model": model})
