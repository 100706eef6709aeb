"""Second largest: one layer cannot, two layers of one head can, as the planner predicts.

Paper:    InfoFlow (arXiv 2605.17930), Theorem 2: one layer wants eps^-k(T) parameters for the k-th
          largest. That two layers of one head suffice for the second is this project's prediction;
          explicit weights are in docs/results/infoflow_constructions.md.
Command:  python launch.py --config=configs/infoflow_kth.py:quick   # minutes
          python launch.py --config=configs/infoflow_kth.py         # for a GPU
          python launch.py --config=configs/infoflow_kth.py:smoke   # seconds
Expected: two layers far below one of as many parameters, whatever its heads
          (docs/results/infoflow_kth.md).
"""

from collections.abc import Callable

from ml_collections import ConfigDict

from configs import _base, _trained

LEAD = """y = the second largest a^T x(t), tokens from N(0, I_2), no positional encoding. GELU
networks as encoder and FFNs, both residuals. One layer has 1, 2 or 4 heads and a wider FFN, so
that it has at least as many parameters as two layers of one head. Confirmed by training: two
layers are 25, 67 and 36 times below the best of one layer at T = 4, 8, 16, whatever its heads."""


def get_config(arg: str = "") -> ConfigDict:
    """`arg` is "" for more lengths and the third largest, "quick", or "smoke"."""
    _base.check_arg(arg, ("", "quick", "smoke"))
    config = _trained.new_config("infoflow_kth", "Second largest", LEAD, arg)
    config.page.curves = "trained"
    config.task.target = "kth"
    config.task.D = 2
    _trained.smooth(config)
    config.training.steps = (8000,)
    config.axes.which = (2,)  # D: which largest
    config.axes.heads = (1, 2, 4)  # of one layer
    config.axes.hidden = 64  # of a layer's FFN in the network of two layers
    if arg == "":
        _trained.lengthen(config)
        config.axes.which = (2, 3)
        config.axes.tokens = (4, 8, 16, 32, 64)
    if arg == "smoke":
        _trained.shrink(config)
        config.axes.tokens = (4,)
        config.axes.heads = (1,)
    return config.lock()


def sweep(add: Callable[..., None], config: ConfigDict) -> None:
    """One cell a D, T, architecture, rate and run: D layers of one head, or one layer."""
    _base.check_axes(config.axes)
    axes = config.axes
    for D in axes.which:
        one = ((_trained.as_wide(config.network, axes.hidden, D),),)
        chosen = [((h,), (max(axes.heads),), one) for h in axes.heads]
        chosen.append(((1,) * D, (1,) * D, ((axes.hidden,),) * D))
        for tokens in axes.tokens:
            for heads, slots, ffn in chosen:
                values = {
                    "task.D": D,
                    "network.ffn": ffn,
                    "cell.heads": heads,
                    "cell.slots": slots,
                    "training.tokens": (tokens,),
                    "evaluation.tokens": (tokens,),
                }
                _trained.each_run(add, axes, values)
