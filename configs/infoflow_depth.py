"""One layer against two at about equal parameters, on the minimum of pairwise inner products.

Paper:    InfoFlow (arXiv 2605.17930), Theorem 1: one layer wants eps^-k parameters, k linear in T;
          two layers of one head 1/eps.
Command:  python launch.py --config=configs/infoflow_depth.py:quick   # minutes
          python launch.py --config=configs/infoflow_depth.py         # the width sweep, for a GPU
          python launch.py --config=configs/infoflow_depth.py:smoke   # seconds
Expected: two layers far below one from T = 8 on (docs/results/infoflow_depth.md).
"""

from collections.abc import Callable

from ml_collections import ConfigDict

from configs import _base, _trained

LEAD = """One head a layer, GELU networks as encoder and FFNs, tokens from N(0, I_2), each T trained
for itself. The one-layer network gets a wider FFN, so that both have about as many parameters.
The planner calls one layer infeasible. In the quick form (3000 steps) no network has converged:
the gap is what training found within its steps, not a bound. With a linear encoder and bilinear
FFNs the gap is far wider (1.2e-5 to 2.6e-5 against .78), but says less: the theorem gives one
layer an encoder as wide as it likes."""


def get_config(arg: str = "") -> ConfigDict:
    """`arg` is "" for the sweep of widths, "quick", or "smoke"."""
    _base.check_arg(arg, ("", "quick", "smoke"))
    config = _trained.new_config("infoflow_depth", "Depth against width", LEAD, arg)
    config.page.curves = "trained"
    config.task.target = "pairmin"
    config.task.D = 1
    config.network.beta = 1.0
    config.network.kind = "gelu"
    config.network.residual = "both"
    config.network.encoder = "mlp"
    config.network.encoder_widths = (64,)
    config.network.encoder_kind = "gelu"
    config.training.gain = 0.6
    config.training.steps = (3000,)
    config.training.batch = 64
    config.axes.tokens = (4, 8, 16)
    config.axes.hidden = (64,)  # of a layer's FFN in the network of two layers
    config.axes.runs = 2
    config.axes.rates = (6e-3,)
    if arg == "":
        config.training.steps = (100_000,)
        config.training.batch = 256
        config.training.warmup = 1000
        config.training.chunk = 1000
        config.axes.tokens = (4, 8, 16, 32, 64)
        config.axes.hidden = (8, 16, 32, 64, 128, 256)
        config.axes.runs = 4
        config.execution.batching = "vmap"
    if arg == "smoke":
        _trained.shrink(config)
        config.axes.tokens = (4,)
    return config.lock()


def sweep(add: Callable[..., None], config: ConfigDict) -> None:
    """One cell a depth, FFN width, T, rate and run."""
    _base.check_axes(config.axes)
    axes, width, n = config.axes, config.network.width, config.network.head_width
    for tokens in axes.tokens:
        for hidden in axes.hidden:
            unit = 2 * width + 1  # parameters of a hidden unit: in, out, bias
            wider = 2 * hidden + round((4 * width * n + width) / unit)  # what a layer has besides
            for ffn in (((wider,),), ((hidden,), (hidden,))):
                for rate in axes.rates:
                    for run in range(axes.runs):
                        heads = (1,) * len(ffn)
                        values = {
                            "network.ffn": ffn,
                            "cell.heads": heads,
                            "cell.slots": heads,
                            "training.tokens": (tokens,),
                            "evaluation.tokens": (tokens,),
                            "cell.rate": rate,
                            "cell.run": run,
                        }
                        add(values)
