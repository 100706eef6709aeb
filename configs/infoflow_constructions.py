r"""Explicit weights of the theorems: measured sup error against the proven bound.

Paper:    InfoFlow (arXiv 2605.17930), Theorems 1 to 3, and arXiv 2510.06662; the networks and the
          proofs of their bounds are in infoflow_jax/networks. The planner's schedules, compiled,
          are this project's own.
Command:  python launch.py --config=configs/infoflow_constructions.py
          python launch.py --config=configs/infoflow_constructions.py:smoke  # seconds
          python launch.py --config=configs/infoflow_constructions.py \
              --config.axes.compiled="('retrieval 4 in 2 1 1',)"
Expected: three minutes of CPU time. No error above its bound; for the pairwise minimum error K^2
          is the same for T = 8, 32 and 128 (docs/results/infoflow_constructions.md).
"""

from collections.abc import Callable

from ml_collections import ConfigDict

from configs import _base


def get_config(arg: str = "") -> ConfigDict:
    """`arg` is "" for the full experiment or "smoke" for a run of seconds."""
    _base.check_arg(arg, ("", "smoke"))
    config = _base.new_config("constructions")

    config.cell = ConfigDict()  # the sweep sets all of it
    config.cell.construction = "pairmin"  # a key of networks.constructions.BUILDERS, or compiled
    config.cell.tokens = 8  # T
    config.cell.resolution = 8  # K of an interpolant, n of the maximum, b of the digits
    config.cell.beta = 1e7  # of the scores
    config.cell.plan = ""  # of a compiled network: target, D and heads
    config.cell.eps = 0.01  # that it is compiled for; it sets K and beta

    config.sampling = ConfigDict()
    config.sampling.inputs = 256  # every second one with near ties
    config.sampling.compiled = 16  # the same for a compiled network: its target is a slow loop

    config.axes = ConfigDict()
    config.axes.interpolated = ("pairmin", "pairmax", "retrieval_smooth")
    config.axes.resolutions = (4, 8, 16, 32, 64, 128)  # at beta = cell.beta
    config.axes.soft = (
        "pairmin_bilinear",
        "retrieval",
        "retrieval_positions",
        "second_largest",
        "positions",
    )
    config.axes.betas = (16.0, 64.0, 256.0, 1024.0)
    config.axes.tokens = (8, 32, 128)
    config.axes.coded = ("maximum", "packed_2", "packed_3")
    config.axes.coded_tokens = (6,)
    config.axes.bases = (2, 4, 8)
    config.axes.compiled = (
        "single 1 in 1",
        "retrieval 3 in 3",
        "retrieval 3 in 1 2",
        "pairmin 1 in 1 1",
        "pairmax 2 in 2 2",
        "pairmax 3 in 2 2 1",
        "pairmax 3 in 1 2 2",
        "pairmax 3 in 1 1 1 1",
    )
    config.axes.eps = (0.1, 0.01, 0.001)

    if arg == "smoke":
        config.sampling.inputs = 32
        config.axes.interpolated = ("pairmin",)
        config.axes.resolutions = (4, 8)
        config.axes.soft = ("second_largest",)
        config.axes.betas = (64.0,)
        config.axes.tokens = (8,)
        config.axes.coded = ("packed_2",)
        config.axes.bases = (4,)
        config.axes.compiled = ("pairmax 3 in 2 2 1",)
        config.axes.eps = (0.1,)
    return config.lock()


def sweep(add: Callable[..., None], config: ConfigDict) -> None:
    """One cell a construction, T and resolution, beta or eps."""
    _base.check_axes(config.axes)
    axes = config.axes
    for tokens in axes.tokens:
        for name in axes.interpolated:
            for K in axes.resolutions:
                add({"cell.construction": name, "cell.tokens": tokens, "cell.resolution": K})
        for name in axes.soft:
            for beta in axes.betas:
                add({"cell.construction": name, "cell.tokens": tokens, "cell.beta": beta})
        for plan in axes.compiled:
            for eps in axes.eps:
                cell = {"cell.construction": "compiled", "cell.tokens": tokens}
                add(cell | {"cell.plan": plan, "cell.eps": eps})
    for tokens in axes.coded_tokens:
        for name in axes.coded:
            for b in axes.bases:
                add({"cell.construction": name, "cell.tokens": tokens, "cell.resolution": b})
