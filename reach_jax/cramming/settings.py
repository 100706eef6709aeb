"""Every setting of one cramming run, checked before any device work."""

import dataclasses

from sweep_jax.checks import require

SOURCES = ("text", "random", "words")
CHOICES = {
    "protocol": ("progressive", "paper", "kuratov"),
    "prefix": ("begin", "none"),
    "first_token": ("predicted", "given"),
    "objective": ("cross_entropy", "margin"),
    "optimizer": ("adam", "adamw", "nadam", "lion", "sgd"),
    "schedule": ("constant", "cosine"),
    "rate_unit": ("embeddings", "absolute"),
    "init": ("noise", "tokens", "target", "states"),
    "support": ("free", "ball", "box"),
    "products": ("stored", "bfloat16"),
}


@dataclasses.dataclass(frozen=True)
class Assignment:
    """What one cell crams: the only settings in which the lanes of a pool differ."""

    prompt_length: int  # m, vectors
    source: str  # text, uniform random tokens, or random words
    target: int  # which target of the source
    length: int = 0  # tokens; 0 where the protocol finds the length

    def __post_init__(self) -> None:
        require(self.prompt_length >= 1, "prompt_length", self.prompt_length, "an integer >= 1")
        require(self.source in SOURCES, "source", self.source, f"one of {SOURCES}")
        require(self.target >= 0, "target", self.target, "an integer >= 0")
        require(self.length >= 0, "length", self.length, "an integer >= 0")


@dataclasses.dataclass(frozen=True)
class CrammingConfig:
    """A protocol (docs/cramming.md); the same for every lane. Defaults: the quick experiment's."""

    prefix: str  # what stands before the prompt
    max_target: int  # tokens of the target; a threshold that reaches it is censored
    lookahead: int  # tokens past the correct prefix that the loss looks at
    temperature: float  # divides the logits in the loss
    rate: float  # learning rate, in units of `rate_unit`
    b1: float  # sgd: the momentum
    b2: float
    steps: int  # at most
    patience: int  # steps without growth before the lane gives up
    protocol: str = "progressive"
    first_token: str = "predicted"  # by the last prompt vector, or given after it as an input
    objective: str = "cross_entropy"
    margin: float = 1.0  # logits by which objective=margin wants the target to lead
    focus: float = 0.0  # extra weight of the first wrong token
    optimizer: str = "adam"
    schedule: str = "constant"  # of the rate; cosine falls to 0 at `steps`
    weight_decay: float = 0.0  # adamw and lion
    rate_unit: str = "embeddings"  # standard deviation of input vectors, or absolute
    init: str = "noise"  # of the prompt
    init_scale: float = 1.0  # times what `init` says
    restarts: int = 0  # new attempts after a stall, within `steps`
    coefficients: int = 0  # numbers a prompt vector is made of, in a random subspace; 0: all D
    support: str = "free"  # prompts stay in the ball or box of the model's own input vectors
    products: str = "stored"  # what the search multiplies weights in; the proof takes the stored
    lead: float = 0.0  # logits by which a token must lead to count as right in the search

    def __post_init__(self) -> None:
        for name in ("max_target", "lookahead", "steps", "patience"):
            require(getattr(self, name) >= 1, name, getattr(self, name), "an integer >= 1")
        for name, allowed in CHOICES.items():
            require(getattr(self, name) in allowed, name, getattr(self, name), f"one of {allowed}")
        for name in ("temperature", "rate", "init_scale"):
            require(getattr(self, name) > 0, name, getattr(self, name), "a number > 0")
        for name in ("b1", "b2"):
            require(0 <= getattr(self, name) < 1, name, getattr(self, name), "a number in [0, 1)")
        for name in ("focus", "weight_decay", "lead"):
            require(getattr(self, name) >= 0, name, getattr(self, name), "a number >= 0")
        for name in ("restarts", "coefficients"):
            require(getattr(self, name) >= 0, name, getattr(self, name), "an integer >= 0")
        self._check_pairs()

    def _check_pairs(self) -> None:
        decays = self.weight_decay == 0 or (
            self.optimizer in ("adamw", "lion") and self.coefficients == 0
        )
        expected = "0 but for adamw and lion on whole prompts"
        require(decays, "weight_decay", self.weight_decay, expected)
        expected = "free with coefficients: projection would leave their subspace"
        require(self.support == "free" or not self.coefficients, "support", self.support, expected)
        expected = f"0 with init = {self.init}: every attempt would be the same"
        fresh = self.init in ("noise", "tokens")
        require(not self.restarts or fresh, "restarts", self.restarts, expected)
        shortest = 2 if self.first_token == "given" else 1
        require(self.max_target >= shortest, "max_target", self.max_target, f"at least {shortest}")

    @property
    def is_fixed(self) -> bool:
        """Whether a target's length is given, and not found by its lane."""
        return self.protocol != "progressive"
