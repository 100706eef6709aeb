r"""Tokens that no prompt can ever make the argmax, each decided with a proof.

Papers:   Grivas et al., Low-Rank Softmax Can Have Unargmaxable Classes in Theory but Rarely in
          Practice (ACL 2022); Demeter et al., Stolen Probability (ACL 2020).
Command:  python launch.py --config=configs/unreachable.py
          python launch.py --config=configs/unreachable.py --config.axes.blocks=12 \
            --config.source.path=models/smollm2-135m
          python launch.py --config=configs/unreachable.py:smoke   # seconds
Expected: the quick model's 512 tokens in under a minute on 2 CPU cores, training apart;
          docs/results/unreachable.md.
"""

from collections.abc import Callable

from ml_collections import ConfigDict

from configs import _base


def get_config(arg: str = "") -> ConfigDict:
    """`arg` is "" for the full experiment or "smoke" for a run of seconds."""
    _base.check_arg(arg, ("", "smoke"))
    config = _base.new_config("unreachable")
    _base.add_model(config, "quick", smoke=arg == "smoke")

    config.cell = ConfigDict()  # what one cell decides; the sweep sets all four
    config.cell.bias = "none"  # output bias: none, unigram (log frequency in text) or a .npy file
    config.cell.states = "any"  # any vector, or those of the measured box
    config.cell.blocks = 1  # the vocabulary in that many parts
    config.cell.block = 0  # which of them

    config.support = ConfigDict()  # random states: their box, and the first witnesses
    config.support.lengths = (4, 16, 64)  # tokens
    config.support.samples = 1024  # sequences a length

    config.text = ConfigDict()
    config.text.path = ""  # of the unigram bias; "" is the text held out from the quick model

    config.decide = ConfigDict()
    config.decide.relaxation = 60  # steps, for tokens that no direction witnesses
    config.decide.rivals = 256  # nearest rows that a linear program starts with
    config.decide.rounds = 60  # linear programs a token, each with more rows
    config.decide.seconds = 120.0  # a linear program
    config.decide.tolerance = 1e-9  # of the greatest logit allowed: a smaller margin is none

    config.axes = ConfigDict()
    config.axes.biases = ("none", "unigram")
    config.axes.states = ("any", "box")
    config.axes.blocks = 1  # parts of the vocabulary, each a cell: what a kill can cost
    if arg == "smoke":
        config.support.lengths = (4, 16)
        config.support.samples = 64
        config.axes.biases = ("none",)
        config.axes.blocks = 2
    return config.lock()


def sweep(add: Callable[..., None], config: ConfigDict) -> None:
    """One cell a bias, set of states and part of the vocabulary."""
    _base.check_axes(config.axes)
    for bias in config.axes.biases:
        for states in config.axes.states:
            for block in range(config.axes.blocks):
                add(
                    {
                        "cell.bias": bias,
                        "cell.states": states,
                        "cell.blocks": config.axes.blocks,
                        "cell.block": block,
                    }
                )
