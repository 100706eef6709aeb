"""Positions: x(1) + x(2) + x(3) by one layer and one head that attends by place alone.

Paper:    InfoFlow (arXiv 2605.17930): c0's weights are 1/3 on
          positions 1 to 3 whatever the content.
Command:  python launch.py --config=configs/infoflow_positions.py:quick   # a minute
          python launch.py --config=configs/infoflow_positions.py         # longer, more runs
          python launch.py --config=configs/infoflow_positions.py:smoke   # seconds
Expected: NMSE near 0 with one head, its attention 1/3 each (docs/results/infoflow_positions.md).
"""

from collections.abc import Callable

from ml_collections import ConfigDict

from configs import _base, _trained

LEAD = """y = x(1) + x(2) + x(3), T = 10, tokens from N(0, I_2), one layer of one head; the
positional encoding is a one-hot of the first ten places. The planner predicts that one layer of one
head suffices with an encoding (feasible in the table): confirmed, as all runs are below 1e-6. As
published, c0 gives a third of its attention to each of the first three positions, whatever the
tokens are."""


def get_config(arg: str = "") -> ConfigDict:
    """`arg` is "" for the full experiment, "quick", or "smoke"."""
    _base.check_arg(arg, ("", "quick", "smoke"))
    config = _trained.new_config("infoflow_positions", "Reading positions", LEAD, arg)
    config.task.target = "positions"
    config.task.D = 3
    config.network.ffn = ((),)
    config.network.positions = "first"
    config.network.period = 10
    config.network.beta = 1.0
    config.training.tokens = (10,)
    config.training.steps = (2000,)
    config.training.batch = 64
    config.evaluation.tokens = (10,)
    config.axes.runs = 2
    config.axes.rates = (6e-3,)
    if arg == "":
        config.training.steps = (20_000,)
        config.axes.runs = 8
    if arg == "smoke":
        _trained.shrink(config)
    return config.lock()


def sweep(add: Callable[..., None], config: ConfigDict) -> None:
    """One cell a rate and run."""
    _base.check_axes(config.axes)
    _trained.each_run(add, config.axes, {"cell.heads": (1,), "cell.slots": (1,)})
