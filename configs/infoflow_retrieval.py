"""D-retrieval: sum_i max_t a_i^T x_t wants L h = D heads in all.

Paper:    arXiv 2510.06662 (the companion of arXiv 2605.17930): tables of NMSE by heads, D = 4.
Command:  python launch.py --config=configs/infoflow_retrieval.py:quick   # minutes
          python launch.py --config=configs/infoflow_retrieval.py         # for a GPU
          python launch.py --config=configs/infoflow_retrieval.py:smoke   # seconds
Expected: one layer, NMSE falls to its floor at h = 4; two layers of two heads reach it too
          (docs/results/infoflow_retrieval.md).
"""

from collections.abc import Callable

from ml_collections import ConfigDict

from configs import _base, _trained

LEAD = """y = sum of four max_t a_i^T x(t), tokens from N(0, I_4). The network of one layer is the
companion's: ReLU encoder, no residual, a GELU network behind the attention. The one of two layers
keeps its residuals. Fresh data, where the paper trains on 8000 examples. The quick
form trains at T = 8 only; longer T are beyond what was trained."""


def get_config(arg: str = "") -> ConfigDict:
    """`arg` is "" for the papers' sweep, "quick", or "smoke"."""
    _base.check_arg(arg, ("", "quick", "smoke"))
    config = _trained.new_config("infoflow_retrieval", "Retrieval of four", LEAD, arg)
    config.page.published = "retrieval"
    config.task.target = "retrieval"
    config.task.D = 4
    config.task.d = 4
    config.network.width = 40
    config.network.kind = "gelu"
    config.network.encoder = "mlp"
    config.network.encoder_widths = (32,)
    config.network.readout = (32,)
    config.training.tokens = (8,)
    config.training.steps = (6000,)
    config.evaluation.tokens = (8, 16, 32, 64, 128)
    config.axes.heads = (1, 2, 3, 4, 5)  # of one layer
    config.axes.deep = (1, 2)  # of each of two layers
    config.axes.runs = 3
    config.axes.rates = (4e-3,)
    if arg == "":
        config.training.tokens = (8, 32, 128)
        config.training.steps = (50_000, 50_000, 50_000)
        config.training.warmup = 1000
        config.training.chunk = 1000
        config.axes.heads = (1, 2, 3, 4, 5)
        config.axes.deep = (1, 2, 3)
        config.axes.runs = 4
        config.execution.batching = "vmap"
    if arg == "smoke":
        _trained.shrink(config)
        config.axes.heads = (1, 4)
        config.axes.deep = (1,)
    return config.lock()


def sweep(add: Callable[..., None], config: ConfigDict) -> None:
    """One cell a number of layers, of heads, rate and run; one program a number of layers."""
    _base.check_axes(config.axes)
    axes = config.axes
    for layers, choices in ((1, axes.heads), (2, axes.deep)):
        for h in choices:
            values = {
                "cell.heads": (h,) * layers,
                "cell.slots": (max(choices),) * layers,
                "network.ffn": ((),) if layers == 1 else ((32,), ()),
                "network.residual": "none" if layers == 1 else "both",
            }
            _trained.each_run(add, axes, values)
