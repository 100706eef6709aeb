"""One layer against two at about equal parameters, on the minimum of pairwise inner products.

Paper:    InfoFlow (arXiv 2605.17930), Theorem 1: one layer wants eps^-k parameters, k linear in T;
          two layers of one head 1/eps.
Command:  python launch.py --config=configs/infoflow_depth.py:quick   # minutes
          python launch.py --config=configs/infoflow_depth.py:widths  # minutes, the width sweep
          python launch.py --config=configs/infoflow_depth.py         # both, for a GPU
          python launch.py --config=configs/infoflow_depth.py:smoke   # seconds
Expected: two layers far below one from T = 8 on, and falling with the width where one layer stands
          still (docs/results/infoflow_depth.md, docs/results/infoflow_depth_widths.md).
"""

from collections.abc import Callable

from ml_collections import ConfigDict

from configs import _base, _trained

LEAD = """One head a layer, GELU networks as encoder and FFNs, tokens from N(0, I_2), each T trained
for itself. The one-layer network gets a wider FFN, so that both have about as many parameters.
The planner calls one layer infeasible. In the quick form (3000 steps) no network has converged:
the gap is what training found within its steps, not a bound. With a linear encoder and bilinear
FFNs the gap is far wider (1.2e-5 to 2.6e-5 against .78), but says less: the theorem gives one
layer an encoder as wide as it likes. How errors fall with the width: infoflow_depth_widths.md."""
WIDTHS = """As docs/results/infoflow_depth.md, at one T and with FFNs of several widths. What is
fitted is eps = floor + A N^-a, N the parameters of the FFNs, which the theorem counts, and eps the
root mean square error of the best run, where the theorem has the supremum. Parameters then grow as
eps^(-1/a): the theorem allows 1 for two layers, or 1/2 on smooth pieces, and wants at least k(T)
for one. An undertrained network has a floor that is no floor of its architecture."""


def get_config(arg: str = "") -> ConfigDict:
    """`arg` is "" for all widths and T, "quick", "widths" or "smoke"."""
    _base.check_arg(arg, ("", "quick", "widths", "smoke"))
    config = _trained.new_config("infoflow_depth", "Depth against width", LEAD, arg)
    config.page.curves = "trained"
    config.page.law = arg in ("", "widths")
    config.task.target = "pairmin"
    config.task.D = 1
    _trained.smooth(config)
    config.training.steps = (3000,)
    config.axes.hidden = (64,)  # of a layer's FFN in the network of two layers
    if arg == "":
        _trained.lengthen(config)
        config.axes.tokens = (4, 8, 16, 32, 64)
        config.axes.hidden = (8, 16, 32, 64, 128, 256)
    if arg == "widths":
        config.page.name += "_widths"
        config.page.title = "Depth against width: exponents"
        config.page.lead = " ".join(WIDTHS.split())
        config.training.steps = (4000,)
        config.training.chunk = 1000
        config.axes.tokens = (8,)
        config.axes.hidden = (2, 4, 8, 16, 32, 64)
    if arg == "smoke":
        _trained.shrink(config)
        config.axes.tokens = (4,)
    return config.lock()


def sweep(add: Callable[..., None], config: ConfigDict) -> None:
    """One cell a depth, FFN width, T, rate and run."""
    _base.check_axes(config.axes)
    axes = config.axes
    for tokens in axes.tokens:
        for hidden in axes.hidden:
            wider = _trained.as_wide(config.network, hidden, 2)
            for ffn in (((wider,),), ((hidden,), (hidden,))):
                heads = (1,) * len(ffn)
                values = {
                    "network.ffn": ffn,
                    "cell.heads": heads,
                    "cell.slots": heads,
                    "training.tokens": (tokens,),
                    "evaluation.tokens": (tokens,),
                }
                _trained.each_run(add, axes, values)
