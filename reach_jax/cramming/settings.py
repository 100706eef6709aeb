"""Every setting of one cramming run, checked before any device work."""

import dataclasses

from sweep_jax.checks import require

SOURCES = ("text", "random")
PREFIXES = ("begin", "none")


@dataclasses.dataclass(frozen=True)
class Assignment:
    """What one cell crams: the only settings in which the lanes of a pool differ."""

    prompt_length: int  # m, vectors
    source: str  # held-out text or uniform random tokens
    target: int  # which target of the source

    def __post_init__(self) -> None:
        require(self.prompt_length >= 1, "prompt_length", self.prompt_length, "an integer >= 1")
        require(self.source in SOURCES, "source", self.source, f"one of {SOURCES}")
        require(self.target >= 0, "target", self.target, "an integer >= 0")


@dataclasses.dataclass(frozen=True)
class CrammingConfig:
    """The progressive protocol (docs/theory_reach.md, "Cramming"); the same for every lane."""

    prefix: str  # what stands before the prompt
    max_target: int  # tokens of the target; a threshold that reaches it is censored
    lookahead: int  # tokens past the correct prefix that the loss looks at
    temperature: float  # divides the logits in the loss
    rate: float  # Adam's learning rate, in standard deviations of the input embeddings
    b1: float
    b2: float
    steps: int  # at most
    patience: int  # steps without growth before the lane gives up

    def __post_init__(self) -> None:
        for name in ("max_target", "lookahead", "steps", "patience"):
            require(getattr(self, name) >= 1, name, getattr(self, name), "an integer >= 1")
        require(self.prefix in PREFIXES, "prefix", self.prefix, f"one of {PREFIXES}")
        for name in ("temperature", "rate"):
            require(getattr(self, name) > 0, name, getattr(self, name), "a number > 0")
        for name in ("b1", "b2"):
            require(0 <= getattr(self, name) < 1, name, getattr(self, name), "a number in [0, 1)")
