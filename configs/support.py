"""What the embeddings of a model look like: radius, box, spread and angles by sequence length.

Paper:    How Many Different Outputs Can a Transformer Generate? (arXiv 2605.22223), section 5: the
          support radius r, and the constant C against the greatest length sampled.
Command:  python launch.py --config=configs/support.py
          python launch.py --config=configs/support.py --config.source.path=models/smollm2-135m
          python launch.py --config=configs/support.py:smoke   # seconds
          --config.prompts.workdir=runs/reach_quick            # the prompts that a run crammed, too
Expected: the quick model in 4 minutes on 2 CPU cores; docs/results/support.md.
"""

from collections.abc import Callable

from ml_collections import ConfigDict

from configs import _base


def get_config(arg: str = "") -> ConfigDict:
    """`arg` is "" for the full experiment or "smoke" for a run of seconds."""
    _base.check_arg(arg, ("", "smoke"))
    config = _base.new_config("support")
    _base.add_model(config, "quick", smoke=arg == "smoke")

    config.cell = ConfigDict()  # what one cell measures; the sweep sets both
    config.cell.kind = "random"  # random ids, text, inputs (embeddings) or prompts (crammed)
    config.cell.length = 4  # tokens; 0 for inputs and prompts, which have none

    config.sampling = ConfigDict()
    config.sampling.samples = 512  # sequences a length; the paper takes 10,000

    config.text = ConfigDict()
    config.text.path = ""  # a text file in UTF-8; "" is the text held out from the quick model

    config.prompts = ConfigDict()
    config.prompts.workdir = ""  # of a finished reachability run on this model; "" for none

    config.axes = ConfigDict()
    config.axes.kinds = ("random", "text")
    config.axes.lengths = (4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096)
    if arg == "smoke":
        config.sampling.samples = 32
        config.axes.lengths = (4, 16, 64)
    return config.lock()


def sweep(add: Callable[..., None], config: ConfigDict) -> None:
    """One cell a kind and length, one for the input embeddings, one for crammed prompts."""
    _base.check_axes(config.axes)
    for kind in config.axes.kinds:
        for length in config.axes.lengths:
            add({"cell.kind": kind, "cell.length": length})
    add({"cell.kind": "inputs", "cell.length": 0})
    if config.prompts.workdir:
        add({"cell.kind": "prompts", "cell.length": 0})
