"""Cramming any model by any protocol: how many tokens can m prompt vectors make it say?

Papers:   progressive (default): docs/cramming.md; paper: arXiv 2605.22223; kuratov: 2502.13063.
Command:  python launch.py --config=configs/cram.py --config.source.path=models/smollm2-135m
          python launch.py --config=configs/cram.py:paper     # fixed lengths, adaptive sweep
          python launch.py --config=configs/cram.py:kuratov   # capacity, token and bit gains
          python launch.py --config=configs/cram.py:smoke     # also :paper_smoke, :kuratov_smoke
          source.path: quick, a directory, a .gguf file, a hub id org/name, random:FAMILY
Expected: the quick model by default; smoke a minute on 2 CPU cores, of which most is compilation.
"""

from collections.abc import Callable

from ml_collections import ConfigDict

from configs import _base

PROTOCOLS = ("progressive", "paper", "kuratov")


def get_config(arg: str = "") -> ConfigDict:
    """`arg` is a protocol, "smoke", or PROTOCOL_smoke; "" is the progressive protocol."""
    return cram_config("quick", "random:llama", arg).lock()


def cram_config(path: str, smoke_path: str, arg: str) -> ConfigDict:
    """The configuration of one model, unlocked; `smoke_path` is the model of the smoke runs."""
    names = ("", "smoke", *PROTOCOLS, *(f"{name}_smoke" for name in PROTOCOLS))
    _base.check_arg(arg, names)
    smoke, protocol = arg.endswith("smoke"), arg.removesuffix("smoke").strip("_") or PROTOCOLS[0]
    config = _base.new_config("reachability")
    _base.add_model(config, smoke_path if smoke else path, smoke)

    config.texts = ConfigDict()
    config.texts.text = "quick"  # its held-out part, a text file, or a directory of .txt files
    config.texts.words = "wordfreq"  # its 100,000 most frequent English words, or a text file

    config.support = ConfigDict()  # of last-layer states, for the bounds
    config.support.lengths = (4, 16) if smoke else (4, 8, 16, 32, 64, 128)
    config.support.samples = 32 if smoke else 512

    config.cell = ConfigDict()  # what one cell crams; the sweep sets all
    config.cell.prompt_length = 1  # m, vectors
    config.cell.source = "text"  # text, random (uniform tokens) or words
    config.cell.target = 0
    config.cell.length = 0  # tokens; 0 where the protocol finds the length

    config.cramming = ConfigDict()
    config.cramming.protocol = protocol
    config.cramming.prefix = "begin"  # before the prompt: begin (else end of text) or none
    config.cramming.first_token = "predicted"  # from the last prompt vector, or given
    config.cramming.max_target = 512  # tokens
    config.cramming.objective = "cross_entropy"  # or margin
    config.cramming.temperature = 1.0  # divides the logits in the loss
    config.cramming.margin = 1.0  # logits
    config.cramming.focus = 0.0  # extra weight of the first wrong token
    config.cramming.lookahead = 8  # progressive: tokens past the prefix that the loss looks at
    config.cramming.optimizer = "adam"  # adamw, nadam, lion, sgd
    config.cramming.schedule = "constant"  # or cosine
    config.cramming.rate = 40.0  # of rate_unit; a fifth of init_scale
    config.cramming.rate_unit = "embeddings"  # standard deviation of inputs, or absolute
    config.cramming.b1 = 0.9
    config.cramming.b2 = 0.99
    config.cramming.weight_decay = 0.0
    config.cramming.init = "noise"  # tokens, target, states
    config.cramming.init_scale = 200.0  # large is far better: docs/cramming.md
    config.cramming.restarts = 0
    config.cramming.coefficients = 0  # numbers a vector is made of; 0: all
    config.cramming.support = "free"  # ball or box of the model's inputs
    config.cramming.products = "stored"  # or bfloat16: faster, for the search only
    config.cramming.lead = 0.0  # logits that count as right; more than bfloat16 rounds: 0.2
    config.cramming.steps = 5000
    config.cramming.patience = 500

    config.axes = ConfigDict()
    config.axes.prompt_lengths = (1, 2, 3, 4, 5)
    config.axes.sources = ("text", "random")
    config.axes.targets = 50
    config.axes.lengths = ()  # kuratov only

    config.execution = ConfigDict()
    config.execution.lanes = 0  # as many as memory takes
    config.execution.chunk = 50
    config.execution.pool = 500
    config.execution.buckets = (16, 32, 64, 128, 256, 512, 1024, 2048)
    config.execution.path = 0  # snapshots of each prompt's way; 128 for the path figure
    if protocol != "progressive":
        _published(config, protocol)
    if smoke:
        _smoke(config, protocol)
    return config


def _published(config: ConfigDict, protocol: str) -> None:
    """AdamW at 1e-2 in absolute units, plain cross entropy, nothing before the prompt."""
    config.cramming.prefix = "none"
    config.cramming.init_scale = 1.0
    config.cramming.optimizer = "adamw"
    config.cramming.rate = 1e-2
    config.cramming.rate_unit = "absolute"
    config.cramming.b2 = 0.9
    config.cramming.weight_decay = 0.01
    if protocol == "paper":
        config.cramming.first_token = "given"
        config.cramming.max_target = 1000
        config.cramming.steps = 3000
        config.cramming.patience = 500
        config.axes.sources = ("text", "words")
        return
    config.cramming.steps = 5000
    config.cramming.patience = 2000
    config.cramming.max_target = 1568
    config.axes.prompt_lengths = (1,)
    config.axes.lengths = (8, 16, 32, 48, 64, 80, 96, 128, 192, 256, 384, 512, 1024, 1568)


def _smoke(config: ConfigDict, protocol: str) -> None:
    config.cramming.max_target = 24
    config.cramming.lookahead = 4
    config.cramming.steps = 40
    config.cramming.patience = 20
    config.axes.prompt_lengths = (1, 2)
    config.axes.sources = ("text", "random")  # words need a package
    config.axes.targets = 3
    config.axes.lengths = (2, 4) if protocol == "kuratov" else ()
    config.execution.lanes = 8
    config.execution.chunk = 10
    config.execution.buckets = (24,)


def sweep(add: Callable[..., None], config: ConfigDict) -> None:
    """One cell a prompt length, source, target, and with kuratov a length."""
    axes = {name: value for name, value in config.axes.items() if name != "lengths"}
    _base.check_axes(ConfigDict(axes))
    lengths = tuple(config.axes.lengths) or (0,)
    for prompt_length in config.axes.prompt_lengths:
        for source in config.axes.sources:
            for length in lengths:
                for target in range(config.axes.targets):
                    cell = {
                        "cell.prompt_length": prompt_length,
                        "cell.source": source,
                        "cell.target": target,
                    }
                    add(cell | ({"cell.length": length} if length else {}))
