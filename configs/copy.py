"""Copying: train six architectures to copy short strings, and see where longer ones break.

Papers:   How Many Different Outputs Can a Transformer Generate? (arXiv 2605.22223), the copying
          experiment; Repeat After Me (arXiv 2402.01032) for training from scratch.
Command:  python launch.py --config=configs/copy.py --cpu_devices=2   # 12 minutes on two cores
          python launch.py --config=configs/copy.py:smoke  # half a minute
          python launch.py --config=configs/copy.py:paper  # length 50, a GPU; --mode=plan first
          configs/copy_tuned.py tunes a pretrained model instead
Expected: docs/results/copying.md
"""

from collections.abc import Callable

from ml_collections import ConfigDict

from configs import _base

VARIANTS = ("rope", "nope", "alibi", "hard_alibi", "lstm", "mamba")


def get_config(arg: str = "") -> ConfigDict:
    """`arg` is "" for the quick experiment, "smoke" for seconds, "paper" for length 50."""
    _base.check_arg(arg, ("", "smoke", "paper"))
    config = copy_config()
    if arg == "smoke":
        config.task.context = 24
        config.learning.steps = 20
        config.learning.warmup = 2
        config.learning.chunk = 10
        config.learning.batch = 4
        config.learning.check = 8
        config.networks.decoder.layers = 1
        config.networks.lstm.width = 16
        config.networks.mamba.layers = 1
        config.networks.mamba.width = 16
        config.networks.mamba.inner = 32
        config.evaluation.lengths = (2, 4, 6, 12)
        config.evaluation.before = (0,)
        config.evaluation.strings = 16
        config.execution.rows = 64
        config.axes.longest = (4,)
        config.axes.draws = 1
    if arg == "paper":
        config.task.shortest = 5
        config.task.context = 220
        config.learning.steps = 20_000
        config.learning.warmup = 300
        config.learning.chunk = 250
        config.learning.batch = 64
        config.learning.check = 128
        config.networks.decoder.layers = 6
        config.networks.decoder.width = 512
        config.networks.decoder.heads = 12
        config.networks.decoder.head_width = 64
        config.networks.decoder.mlp_width = 1408
        config.networks.decoder.rope_base = 10_000.0
        config.networks.decoder.masked_heads = 8
        config.networks.lstm.layers = 4
        config.networks.lstm.width = 1024
        config.networks.mamba.layers = 12
        config.networks.mamba.width = 512
        config.networks.mamba.inner = 1024
        config.networks.mamba.state_size = 16
        config.networks.mamba.step_rank = 32
        config.rates.decoder = 1e-3
        config.rates.lstm = 1e-3
        config.rates.mamba = 1e-3
        config.evaluation.lengths = tuple(range(10, 1001, 5))
        config.evaluation.strings = 128
        config.axes.longest = (50,)
        config.axes.draws = 3
        config.execution.lanes = 4
        config.execution.rows = 128  # caches of 14.5 GB for a decoder, see --mode=plan
    return config.lock()


def copy_config() -> ConfigDict:
    """The quick experiment, unlocked."""
    config = _base.new_config("copy")

    config.cell = ConfigDict()  # what one cell trains; the sweep sets all of it
    config.cell.variant = "rope"
    config.cell.longest = 12  # training length, letters
    config.cell.draw = 0  # which initial weights and which data

    config.task = ConfigDict()
    config.task.shortest = 1  # letters
    config.task.context = 54  # symbols of a training row: two of the longest examples

    config.learning = ConfigDict()
    config.learning.steps = 4000  # at most
    config.learning.batch = 16  # rows a step
    config.learning.warmup = 50  # steps; then a straight line to 0 at the last one
    config.learning.weight_decay = 0.1  # AdamW
    config.learning.beta2 = 0.98
    config.learning.clip = 1.0  # gradients' norm
    config.learning.chunk = 250  # steps between two checks, and two checkpoints
    config.learning.check = 64  # strings of the training length that are decoded then
    config.learning.perfect = 2  # checks in a row without a fault that end the training

    config.rates = ConfigDict()  # peak learning rates
    config.rates.decoder = 3e-3
    config.rates.lstm = 5e-3
    config.rates.mamba = 1e-2

    config.networks = ConfigDict()
    config.networks.decoder = ConfigDict()
    config.networks.decoder.layers = 3
    config.networks.decoder.width = 64
    config.networks.decoder.heads = 4
    config.networks.decoder.head_width = 16
    config.networks.decoder.mlp_width = 64
    config.networks.decoder.rope_base = 10_000.0  # of rope
    config.networks.decoder.masked_heads = 3  # of hard_alibi: head i sees the last i + 1 keys
    config.networks.lstm = ConfigDict()
    config.networks.lstm.layers = 1
    config.networks.lstm.width = 192
    config.networks.mamba = ConfigDict()
    config.networks.mamba.layers = 2
    config.networks.mamba.width = 48
    config.networks.mamba.inner = 96
    config.networks.mamba.state_size = 8
    config.networks.mamba.conv_width = 4
    config.networks.mamba.step_rank = 3

    config.evaluation = ConfigDict()
    config.evaluation.lengths = (4, 8, 12, 13, 14, 16, 18, 20, 24, 30, 40, 60)
    config.evaluation.before = (0, 1)  # whole examples in front of the question
    config.evaluation.strings = 64  # of each length
    config.evaluation.learnt = 0.99  # share copied up to the training length; less: undertrained

    config.axes = ConfigDict()
    config.axes.variants = VARIANTS
    config.axes.longest = (12,)
    config.axes.draws = 2

    config.execution = ConfigDict()  # how, not what: changes no result but by rounding
    config.execution.lanes = 2  # that learn at once, of one shape; one for each CPU device
    config.execution.rows = 32  # strings decoded at once; a small cache is a fast one
    return config


def sweep(add: Callable[..., None], config: ConfigDict) -> None:
    """One cell a draw, training length and variant: a sweep cut short has some of each."""
    _base.check_axes(config.axes)
    for draw in range(config.axes.draws):
        for longest in config.axes.longest:
            for variant in config.axes.variants:
                add({"cell.variant": variant, "cell.longest": longest, "cell.draw": draw})
