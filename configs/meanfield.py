"""Attention as a map between measures: how far apart it carries two prompts, beside an estimate.

Paper:    How Many Different Outputs Can a Transformer Generate? (arXiv 2605.22223), the mean-field
          picture of Theorem 4.9; the estimate is in reach_jax/bounds/lipschitz.py.
Command:  python launch.py --config=configs/meanfield.py
          python launch.py --config=configs/meanfield.py:smoke  # seconds
Expected: 31 s on 2 CPU cores. No pair above the estimate; W_2 ratios 2 to 6 where the estimate goes
          from 4 to 5e14 (docs/results/meanfield.md).
"""

from collections.abc import Callable

from ml_collections import ConfigDict

from configs import _base


def get_config(arg: str = "") -> ConfigDict:
    """`arg` is "" for the full experiment or "smoke" for a run of seconds."""
    _base.check_arg(arg, ("", "smoke"))
    config = _base.new_config("meanfield")

    config.cell = ConfigDict()  # one layer and one prompt; the sweep sets all of it
    config.cell.gain = 1.0  # of the query and key kernels, each over 1/sqrt(fan in)
    config.cell.points = 16  # S, prompt vectors
    config.cell.draw = 0  # which kernels and which prompt

    config.layer = ConfigDict()
    config.layer.width = 8  # D
    config.layer.heads = 2  # H
    config.layer.kv_heads = 1  # K
    config.layer.head_width = 4  # N

    config.measures = ConfigDict()
    config.measures.radius = 1.0  # R: every prompt lies in this ball
    config.measures.sizes = (1e-3, 1e-2, 1e-1, 1.0)  # how far a perturbation moves a point, over R
    config.measures.repeats = 8  # random perturbations of a kind and size

    config.axes = ConfigDict()
    config.axes.gains = (0.25, 0.5, 1.0, 2.0, 4.0)
    config.axes.points = (4, 16, 64)
    config.axes.draws = 3

    if arg == "smoke":
        config.measures.sizes = (1e-3, 1.0)
        config.measures.repeats = 2
        config.axes.gains = (0.5, 2.0)
        config.axes.points = (4,)
        config.axes.draws = 1
    return config.lock()


def sweep(add: Callable[..., None], config: ConfigDict) -> None:
    """One cell a gain, prompt length and draw."""
    _base.check_axes(config.axes)
    for gain in config.axes.gains:
        for points in config.axes.points:
            for draw in range(config.axes.draws):
                add({"cell.gain": gain, "cell.points": points, "cell.draw": draw})
