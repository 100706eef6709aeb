"""Exact enumeration: every prompt of a small transformer at k bits a coordinate, decoded.

Paper:    How Many Different Outputs Can a Transformer Generate? (arXiv 2605.22223), Theorem 4.5 and
          Corollary 4.6, tested without any search (docs/theory_reach.md, "Exact enumeration").
Command:  python launch.py --config=configs/enumeration.py
          python launch.py --config=configs/enumeration.py:smoke  # seconds
          python launch.py --config=configs/enumeration.py:large  # 2^24 prompts a cell
Expected: 3 min 16 s of CPU time, 8 min on 2 cores that others used too; smoke 20 s. 2400 counts,
          none above the bound; tails fall by -0.60 to -0.68 nats a token at V = 2, where -ln V is
          -0.693, and -1.30 to -1.36 at V = 4 (-1.386): docs/results/enumeration.md.
"""

from collections.abc import Callable

from ml_collections import ConfigDict

from configs import _base


def get_config(arg: str = "") -> ConfigDict:
    """`arg` is "" for the full experiment, "smoke" for seconds, "large" for 2^24 prompts a cell."""
    _base.check_arg(arg, ("", "smoke", "large"))
    config = _base.new_config("enumeration")

    config.cell = ConfigDict()  # what one cell enumerates; the sweep sets all of it
    config.cell.weights = "random"  # or trained
    config.cell.draw = 0  # which weights, or which language
    config.cell.positions = "rotary"  # or none
    config.cell.attention = "causal"  # or full: prompt vectors see each other whatever their order
    config.cell.end = "vector"  # or token: what stands last and predicts the first token
    config.cell.vocab_size = 4  # V
    config.cell.width = 2  # d
    config.cell.prompt_length = 1  # m, vectors
    config.cell.bits = 3  # k, a coordinate

    config.model = ConfigDict()
    config.model.layers = 2
    config.model.heads = 1
    config.model.kv_heads = 1
    config.model.head_width = 2
    config.model.mlp_width = 8  # F
    config.model.rope_base = 100.0
    config.model.norm_eps = 1e-5
    config.model.tied = False  # the head is not the embedding
    config.model.dtype = "float32"

    config.enumeration = ConfigDict()
    config.enumeration.length = 20  # tokens decoded after each prompt
    config.enumeration.radius = 1.0  # r, the largest coordinate of a prompt
    config.enumeration.near_tie = 1e-5  # logits; a least margin below it is counted

    config.random = ConfigDict()
    config.random.gain = 2.0  # of the layers' kernels, over 1/sqrt(fan in)
    config.random.unit_head = True  # else some tokens are the argmax nowhere

    config.language = ConfigDict()  # a Markov chain over the V tokens
    config.language.concentration = 0.5
    config.language.tokens = 20_000
    config.language.heldout = 4_000

    config.training = ConfigDict()
    config.training.steps = 400
    config.training.batch = 16
    config.training.length = 32  # tokens a row
    config.training.rate = 2e-2  # AdamW, peak
    config.training.warmup = 20
    config.training.weight_decay = 0.0
    config.training.chunk = 200  # steps between two checkpoints
    config.training.max_loss = 1.5  # nats a token on held-out tokens; worse is an error

    config.axes = ConfigDict()
    config.axes.weights = ("random", "trained")
    config.axes.draws = 2
    config.axes.layouts = (  # positions, attention, end
        ("rotary", "causal", "vector"),
        ("none", "causal", "vector"),
        ("none", "full", "token"),
    )
    config.axes.vocabularies = (2, 4)  # V
    config.axes.shapes = (  # d, m, k
        (2, 1, 2),
        (2, 2, 2),
        (2, 3, 2),
        (2, 4, 2),
        (4, 2, 2),
    )

    config.execution = ConfigDict()  # how, not what: changes no result but by rounding
    config.execution.block = 65_536  # prompts that run at once, and that a kill costs at most

    if arg == "smoke":
        config.enumeration.length = 12
        config.training.steps = 100
        config.axes.draws = 1
        config.axes.layouts = (("rotary", "causal", "vector"), ("none", "full", "token"))
        config.axes.vocabularies = (4,)
        config.axes.shapes = ((2, 1, 3), (2, 2, 2))
    if arg == "large":
        config.axes.weights = ("random",)
        config.axes.draws = 1
        config.axes.vocabularies = (4,)
        config.axes.shapes = ((2, 4, 3), (4, 2, 3), (3, 4, 2))
    return config.lock()


def sweep(add: Callable[..., None], config: ConfigDict) -> None:
    """One cell a set of weights, layout, vocabulary and grid."""
    axes = config.axes
    _base.check_axes(axes)
    for name, size in (("layouts", 3), ("shapes", 3)):
        for item in axes[name]:
            if not isinstance(item, tuple) or len(item) != size:
                raise ValueError(f"config.axes.{name} = {item!r}: expected tuples of {size}")
    for weights in axes.weights:
        for draw in range(axes.draws):
            for vocab_size in axes.vocabularies:
                for positions, attention, end in axes.layouts:
                    for width, prompt_length, bits in axes.shapes:
                        add(
                            {
                                "cell.weights": weights,
                                "cell.draw": draw,
                                "cell.positions": positions,
                                "cell.attention": attention,
                                "cell.end": end,
                                "cell.vocab_size": vocab_size,
                                "cell.width": width,
                                "cell.prompt_length": prompt_length,
                                "cell.bits": bits,
                            }
                        )
