"""First light: the reachable length of a small model, as a line in the number of prompt vectors.

Paper:    How Many Different Outputs Can a Transformer Generate? (arXiv 2605.22223), Corollary 4.6,
          tested by cramming with the progressive protocol (docs/theory_reach.md).
Command:  python launch.py                                        # this file is the default
          python launch.py --config=configs/reach_quick.py:smoke  # seconds, for a first look
Expected: 2 min 15 s on 2 CPU cores (training 50 s, cramming 77 s), 6 s when cached, smoke 15 s.
          n50 of text 7, 11.5, 17, 22.5 tokens for m = 1..4, of random tokens 3, 6, 9, 12: slopes of
          5.2 and 3.0 tokens a vector, R^2 .998 and 1.000 (docs/results/reach_quick.md).
"""

from collections.abc import Callable

from ml_collections import ConfigDict

from configs import _base


def get_config(arg: str = "") -> ConfigDict:
    """`arg` is "" for the full experiment or "smoke" for a run of seconds."""
    _base.check_arg(arg, ("", "smoke"))
    config = _base.new_config("reachability")

    _base.add_quick_model(config, smoke=arg == "smoke")

    config.support = ConfigDict()
    config.support.lengths = (4, 8, 16, 32, 64, 128)  # random token ids, last position
    config.support.samples = 512  # a length

    config.cell = ConfigDict()  # what one cell crams; the sweep sets all three
    config.cell.prompt_length = 1  # m, vectors
    config.cell.source = "text"  # held-out text or uniform random tokens
    config.cell.target = 0  # which target of the source

    config.cramming = ConfigDict()
    config.cramming.prefix = "begin"  # before the prompt: begin (of text) or none
    config.cramming.max_target = 128  # tokens; a threshold that reaches it is censored
    config.cramming.lookahead = 2  # tokens past the correct prefix that the loss looks at
    config.cramming.temperature = 0.3  # logits are divided by it in the loss
    config.cramming.rate = 0.5  # Adam, in standard deviations of the input embeddings
    config.cramming.b1 = 0.9
    config.cramming.b2 = 0.99
    config.cramming.steps = 2000  # at most
    config.cramming.patience = 300  # steps without growth

    config.axes = ConfigDict()
    config.axes.prompt_lengths = (1, 2, 3, 4)
    config.axes.sources = ("text", "random")
    config.axes.targets = 16  # a source and prompt length

    config.execution = ConfigDict()  # how, not what: changes no result
    config.execution.lanes = 32
    config.execution.chunk = 50  # steps between two looks of the host
    config.execution.pool = 256  # cells that share a checkpoint
    config.execution.buckets = (8, 16, 32, 64, 128)  # padded target lengths
    config.execution.path = 0  # snapshots of each prompt's way; 128 for the path figure

    if arg == "smoke":
        config.support.lengths = (4, 16)
        config.support.samples = 32
        config.cramming.steps = 100
        config.cramming.patience = 40
        config.cramming.max_target = 32
        config.axes.prompt_lengths = (1, 2)
        config.axes.targets = 3
        config.execution.lanes = 8
        config.execution.chunk = 20
        config.execution.buckets = (16, 32)
    return config.lock()


def sweep(add: Callable[..., None], config: ConfigDict) -> None:
    """One cell a prompt length, source and target."""
    _base.check_axes(config.axes)
    for prompt_length in config.axes.prompt_lengths:
        for source in config.axes.sources:
            for target in range(config.axes.targets):
                add(
                    {
                        "cell.prompt_length": prompt_length,
                        "cell.source": source,
                        "cell.target": target,
                    }
                )
