"""How wide must the FFN of a one-layer network be? Certificates for given heads.

Paper:    InfoFlow (arXiv 2605.17930), lower bounds of Theorems 1 and 2, the packing of Theorem 3;
          arXiv 2510.06662, Lemma 4. The search is infoflow_jax/networks/witnesses.py.
Command:  python launch.py --config=configs/infoflow_witnesses.py
          python launch.py --config=configs/infoflow_witnesses.py:smoke  # seconds
Expected: 4 to 8 minutes on 2 CPU cores. Widths grow exponentially with the number of free
          tokens, the slower the more numbers c0 is given (docs/results/infoflow_witnesses.md).
"""

from collections.abc import Callable

from ml_collections import ConfigDict

from configs import _base


def get_config(arg: str = "") -> ConfigDict:
    """`arg` is "" for the full experiment or "smoke" for a run of seconds."""
    _base.check_arg(arg, ("", "smoke"))
    config = _base.new_config("witnesses")

    config.cell = ConfigDict()  # the sweep sets all of it
    config.cell.theorem = "pairs"  # pairs, kth, packing
    config.cell.heads = 1  # H; of packing E, the coordinates
    config.cell.head_width = 1  # N; without meaning for packing
    config.cell.free = 4  # free tokens; of packing all
    config.cell.choices = 3  # values of each; of packing the base b of the digits
    config.cell.draw = 0  # which random weights

    config.layer = ConfigDict()
    config.layer.k = 3  # of the k-th largest
    config.layer.encoder_width = 16
    config.layer.gain = 0.5  # standard deviation of every weight

    config.axes = ConfigDict()
    config.axes.theorems = ("pairs", "kth")
    config.axes.heads = (1, 2)
    config.axes.head_widths = (1, 2)
    config.axes.free = (3, 5, 7, 9, 11)
    config.axes.choices = 3
    config.axes.draws = 5
    config.axes.packed_tokens = (6,)
    config.axes.coordinates = (2, 3)
    config.axes.bases = (2, 4, 6, 8)

    if arg == "smoke":
        config.axes.heads = (1,)
        config.axes.head_widths = (1,)
        config.axes.free = (3, 5)
        config.axes.draws = 1
        config.axes.coordinates = (3,)
        config.axes.bases = (4,)
    return config.lock()


def sweep(add: Callable[..., None], config: ConfigDict) -> None:
    """One cell a theorem, layer, number of free tokens and draw."""
    _base.check_axes(config.axes)
    axes = config.axes
    for theorem in axes.theorems:
        for heads in axes.heads:
            for width in axes.head_widths:
                for free in axes.free:
                    for draw in range(axes.draws):
                        values = {
                            "cell.theorem": theorem,
                            "cell.heads": heads,
                            "cell.head_width": width,
                            "cell.free": free,
                            "cell.choices": axes.choices,
                            "cell.draw": draw,
                        }
                        add(values)
    for tokens in axes.packed_tokens:
        for coordinates in axes.coordinates:
            for base in axes.bases:
                values = {
                    "cell.theorem": "packing",
                    "cell.heads": coordinates,
                    "cell.head_width": 1,
                    "cell.free": tokens,
                    "cell.choices": base,
                    "cell.draw": 0,
                }
                add(values)
