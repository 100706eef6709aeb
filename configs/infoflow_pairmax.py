"""Intrinsic dimension: sum_i max_{s,t} x_s^T A_i x_t wants D heads in each of two layers.

Paper:    InfoFlow (arXiv 2605.17930): experiment on the intrinsic dimension; predictions by
          infoflow_jax/calculus.
Command:  python launch.py --config=configs/infoflow_pairmax.py:quick   # minutes, planar, D = 2, 3
          python launch.py --config=configs/infoflow_pairmax.py:layers  # minutes, three layers
          python launch.py --config=configs/infoflow_pairmax.py         # the paper's, for a GPU
          python launch.py --config=configs/infoflow_pairmax.py:smoke   # seconds
          --cpu_devices=2 uses two CPU cores: another program, so other rounding.
Expected: least NMSE of (D,D) far below that of (D-1,D) and (D,D-1)
          (docs/results/infoflow_pairmax.md).
"""

from collections.abc import Callable
from typing import Any

from ml_collections import ConfigDict

from configs import _base, _trained

LEAD = """Two layers, no positional encoding. Every run of a D is one lane of one program: head
masks make all head counts one shape. NMSE on 2000 fixed sequences; least over runs is the papers'
statistic. The quick form takes planar matrices and T = 16, where the paper has random ones,
tokens of four numbers, and T = 64. At D = 3 success is a matter of the seed, and all head counts
get the same number of runs and steps: [what was tried](infoflow_pairmax_search.md). Another run,
on two CPU devices, whose rounding is another, gave at D = 3 (3,3) 3.45e-06 and factors 2.08e+03
and 269. D = 4 to 6 are left to the paper's form, whose cost --mode=plan prints."""

LAYERED = """As docs/results/infoflow_pairmax.md, but D = 3 with two layers and with three, whose
FFNs are narrower so that all have about as many parameters. By the planner (2,2,1) suffices, as a
head of layer 2 serves c0 and the tokens at once, and (2,1,1), (1,2,1) and (2,2) do not. Explicit
weights confirm that (2,2,1) suffices (infoflow_constructions.md). Training by this recipe does
not: no run of (2,2,1) gets near (3,3), which says that it was not found, not that it cannot be."""
TWO, THREE = ((64,), (64,)), ((46,), (46,), (46,))  # FFN widths
LAYERS = (  # heads, slots, FFN widths
    *((heads, (3, 3), TWO) for heads in ((3, 3), (2, 2))),
    *((heads, (2, 2, 1), THREE) for heads in ((2, 2, 1), (2, 1, 1), (1, 2, 1))),
)


def get_config(arg: str = "") -> ConfigDict:
    """`arg` is "" for the paper's sweep, "quick", "layers", or "smoke"."""
    _base.check_arg(arg, ("", "quick", "layers", "smoke"))
    title = "Intrinsic dimension of pairwise maxima"
    config = _trained.new_config("infoflow_pairmax", title, LEAD, arg)
    config.page.published = "pairmax"
    config.page.curves = "corner"
    config.axes.dims = (2, 3)
    config.axes.heads = "corner"  # or grid: 1..D+1 in both layers; or layers: LAYERS
    config.axes.rates = (5e-3,)
    config.network.beta = 1.0
    config.training.steps = (12_000, 2500, 2000)  # long at T = 4, where heads part
    config.training.batch = 64
    config.axes.runs = 12
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
    if arg == "layers":
        config.page.name += "_layers"
        config.page.title = "Three layers for three pairwise maxima"
        config.page.lead = " ".join(LAYERED.split())
        config.page.published = ""
        config.axes.dims = (3,)
        config.axes.heads = "layers"
        config.axes.runs = 8
    if arg == "smoke":
        _trained.shrink(config)
        config.axes.dims = (2,)
    return config.lock()


def sweep(add: Callable[..., None], config: ConfigDict) -> None:
    """One cell a D, architecture, rate and run."""
    _base.check_axes(config.axes)
    _base.check_arg(config.axes.heads, ("corner", "grid", "layers"))
    for D in config.axes.dims:
        for shape in _shapes(config.axes.heads, D):
            _trained.each_run(add, config.axes, {"task.D": D, **shape})


def _shapes(how: str, D: int) -> list[dict[str, Any]]:
    """The fields of every architecture."""
    if how == "layers":
        return [
            {"network.ffn": ffn, "cell.heads": heads, "cell.slots": slots}
            for heads, slots, ffn in LAYERS
        ]
    grid = [(one, two) for one in range(1, D + 2) for two in range(1, D + 2)]
    corner = [(D, D), *([(D - 1, D), (D, D - 1)] if D > 1 else [])]
    chosen = grid if how == "grid" else corner
    most = max(max(heads) for heads in chosen)
    return [{"cell.heads": heads, "cell.slots": (most, most)} for heads in chosen]
