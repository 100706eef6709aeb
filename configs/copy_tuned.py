"""Copying by a pretrained model: its vocabulary cut to 30 rows, tuned, asked for longer strings.

Paper:    How Many Different Outputs Can a Transformer Generate? (arXiv 2605.22223)
Command:  python launch.py --config=configs/copy_tuned.py          # SmolLM2-135M, reduced
          python launch.py --config=configs/copy_tuned.py:paper    # length 50, Pythia-160M; a GPU
          python launch.py --config=configs/copy_tuned.py:smoke    # random weights, no network
          --config.source.path=: quick, a directory, a .gguf file, a hub id, random:FAMILY
Needs:    `make models` for the default.
Expected: docs/results/copying.md
"""

from ml_collections import ConfigDict

from configs import _base
from configs.copy import copy_config, sweep

__all__ = ["get_config", "sweep"]


def get_config(arg: str = "") -> ConfigDict:
    """`arg` is "" for SmolLM2 at a reduced size, "smoke" for seconds, "paper" for length 50."""
    _base.check_arg(arg, ("", "smoke", "paper"))
    config = copy_config()
    paths = {"": "models/smollm2-135m", "smoke": "random:llama", "paper": "EleutherAI/pythia-160m"}
    _base.add_model(config, paths[arg], arg == "smoke")
    config.source.dtype = "float32"
    del config.networks, config.rates
    config.rates = ConfigDict()
    config.rates.tuned = 1e-5
    config.cell.variant = "tuned"
    config.axes.variants = ("tuned",)
    config.learning.batch = 2
    config.learning.beta2 = 0.999
    config.learning.warmup = 100
    config.learning.steps = 10_000
    config.learning.perfect = 1
    config.execution.lanes = 1
    config.axes.draws = 1
    if arg == "paper":
        config.task.shortest = 5
        config.task.context = 220
        config.axes.longest = (50,)
        config.evaluation.lengths = tuple(range(10, 1001, 5))
        config.evaluation.before = (0,)
        return config.lock()
    config.task.context = 32
    config.axes.longest = (6,)
    config.rates.tuned = 1e-4
    config.learning.warmup = 10
    config.learning.steps = 120
    config.learning.chunk = 20
    config.learning.check = 16
    config.evaluation.lengths = (2, 4, 6, 8, 10, 12, 16, 24, 32)
    config.evaluation.before = (0,)
    config.evaluation.strings = 16
    config.execution.rows = 16
    if arg == "smoke":
        config.learning.steps = 20
        config.learning.chunk = 10
        config.evaluation.lengths = (2, 6, 8)
    return config.lock()
