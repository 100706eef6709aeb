r"""The share of the support that each token's argmax cell takes, by Monte Carlo.

Paper:    How Many Different Outputs Can a Transformer Generate? (arXiv 2605.22223): cell volumes in
          ball, box and samples, there by nearest neighbours (50M points).
Command:  python launch.py --config=configs/cells.py
          python launch.py --config=configs/cells.py --config.source.path=models/smollm2-135m \
            --config.points=65536 --config.support.samples=128
          python launch.py --config=configs/cells.py:smoke   # seconds
Expected: the quick model in 72 s on 2 CPU cores, of which 12 count; SmolLM2 as above in 3.5
          minutes; docs/results/cells.md.
"""

from collections.abc import Callable

from ml_collections import ConfigDict

from configs import _base


def get_config(arg: str = "") -> ConfigDict:
    """`arg` is "" for the full experiment or "smoke" for a run of seconds."""
    _base.check_arg(arg, ("", "smoke"))
    config = _base.new_config("cells")
    _base.add_model(config, "quick", smoke=arg == "smoke")

    config.cell = ConfigDict()  # what one cell counts; the sweep sets all three
    config.cell.region = "ball"  # ball, box, ellipsoid (of inertia) or states
    config.cell.rule = "argmax"  # argmax, or nearest: the neighbour in Euclidean distance
    config.cell.block = 0  # which part of the points; states have one part

    config.points = 1_000_000  # a part of a ball, box or ellipsoid
    config.confidence = 0.95  # of each token's own interval

    config.support = ConfigDict()  # random states: they give radius, box and covariance, and count
    config.support.lengths = (4, 16, 64)  # tokens
    config.support.samples = 2048  # sequences a length

    config.axes = ConfigDict()
    config.axes.regions = ("ball", "box", "ellipsoid", "states")
    config.axes.rules = ("argmax", "nearest")
    config.axes.blocks = 1  # parts, each a cell: what a kill can cost
    if arg == "smoke":
        config.points = 20_000
        config.support.lengths = (4, 16)
        config.support.samples = 64
    return config.lock()


def sweep(add: Callable[..., None], config: ConfigDict) -> None:
    """One cell a region, rule and part of the points."""
    _base.check_axes(config.axes)
    for region in config.axes.regions:
        for rule in config.axes.rules:
            for block in range(1 if region == "states" else config.axes.blocks):
                add({"cell.region": region, "cell.rule": rule, "cell.block": block})
