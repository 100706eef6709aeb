"""Intrinsic dimension: sum_i max_{s,t} x_s^T A_i x_t wants D heads in each of two layers.

Paper:    InfoFlow (arXiv 2605.17930): experiment on the intrinsic dimension; predictions by
          infoflow_jax/calculus.
Command:  python launch.py --config=configs/infoflow_pairmax.py:quick   # minutes, planar, D = 2, 3
          python launch.py --config=configs/infoflow_pairmax.py         # the paper's, for a GPU
          python launch.py --config=configs/infoflow_pairmax.py:smoke   # seconds
          XLA_FLAGS=--xla_force_host_platform_device_count=2 before it uses two CPU cores.
Expected: least NMSE of (D,D) far below that of (D-1,D) and (D,D-1)
          (docs/results/infoflow_pairmax.md).
"""

from collections.abc import Callable

from ml_collections import ConfigDict

from configs import _base, _trained

LEAD = """Two layers, no positional encoding. Every run of a D is one lane of one program: head
masks make all head counts one shape. NMSE on 2000 fixed sequences; least over runs is the papers'
statistic. The quick form takes planar matrices and T = 16, where the paper has random ones,
tokens of four numbers, and T = 64. At D = 3 success is a matter of the seed: [what was
tried](infoflow_pairmax_search.md). D = 4 to 6 are left to the paper's form, whose cost
--mode=plan prints."""


def get_config(arg: str = "") -> ConfigDict:
    """`arg` is "" for the paper's sweep, "quick", or "smoke"."""
    _base.check_arg(arg, ("", "quick", "smoke"))
    title = "Intrinsic dimension of pairwise maxima"
    config = _trained.new_config("infoflow_pairmax", title, LEAD, arg)
    config.page.published = "pairmax"
    config.page.curves = "corner"
    config.axes.dims = (2, 3)
    config.axes.heads = "corner"  # (D,D) and its two neighbours; grid: 1..D+1 in both layers
    config.axes.rates = (6e-3,)
    config.network.beta = 1.0
    config.training.steps = (500, 3000, 2500)
    config.axes.runs = 4
    if arg == "":
        config.task.target = "pairmax_random"
        config.task.d = 4
        config.network.width = 96
        config.network.head_width = 16
        config.network.ffn = ((256,), (256,))
        config.network.kind = "gelu"
        config.network.residual = "both"
        config.network.beta = 0.0
        config.training.tokens = (4, 8, 16, 32, 64)
        config.training.steps = (20_000, 20_000, 20_000, 20_000, 40_000)
        config.training.batch = 256
        config.training.optimizer = "adamw"
        config.training.options = "weight_decay=0.01"
        config.training.warmup = 1000
        config.training.chunk = 1000
        config.evaluation.tokens = (4, 8, 16, 32, 64, 128)
        config.axes.dims = (2, 3, 4, 5, 6)
        config.axes.heads = "grid"
        config.axes.rates = (1e-3,)
        config.axes.runs = 4
        config.execution.batching = "vmap"
    if arg == "smoke":
        _trained.shrink(config)
        config.axes.dims = (2,)
    return config.lock()


def sweep(add: Callable[..., None], config: ConfigDict) -> None:
    """One cell a D, pair of head counts, rate and run."""
    _base.check_axes(config.axes)
    _base.check_arg(config.axes.heads, ("corner", "grid"))
    for D in config.axes.dims:
        grid = [(one, two) for one in range(1, D + 2) for two in range(1, D + 2)]
        corner = [(D, D), *([(D - 1, D), (D, D - 1)] if D > 1 else [])]
        chosen = grid if config.axes.heads == "grid" else corner
        most = max(max(heads) for heads in chosen)
        for heads in chosen:
            for rate in config.axes.rates:
                for run in range(config.axes.runs):
                    values = {
                        "task.D": D,
                        "cell.heads": heads,
                        "cell.slots": (most, most),
                        "cell.rate": rate,
                        "cell.run": run,
                    }
                    add(values)
