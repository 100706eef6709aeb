"""How a network is trained: stages of growing T, optimiser, schedule. Numbers only."""

import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import optax

from sweep_jax.checks import require

BATCHINGS = ("vmap", "map")
_ELEMENTWISE = ("adam", "adamw", "nadam", "rmsprop", "sgd", "lion")


@dataclass(frozen=True)
class TrainingConfig:
    """One run; the learning rate and the seed are the run's own.

    The rate rises linearly for `warmup` steps and falls to `final` of its peak by a cosine over
    all stages together.
    """

    tokens: tuple[int, ...]  # T of each stage; the last is the one that is learned for
    steps: tuple[int, ...]  # of each stage
    batch: int  # sequences a step, drawn afresh
    optimizer: str  # a function of optax or optax.contrib that takes learning_rate
    options: str  # its other arguments, as "b2=0.99,weight_decay=0.01"; "" for none
    warmup: int
    final: float
    clip: float  # of the gradient's norm; 0 for none
    gain: float  # initial weights are multiplied by it
    chunk: int  # steps between two looks of the host

    def __post_init__(self) -> None:
        stages = len(self.tokens)
        require(stages >= 1, "tokens", self.tokens, "at least one stage")
        each = f"one number for each of {stages} stages, a multiple of chunk = {self.chunk}"
        ok = len(self.steps) == stages and self.chunk >= 1
        ok = ok and all(n >= 1 and n % self.chunk == 0 for n in self.steps)
        require(ok, "steps", self.steps, each)
        require(min(self.tokens) >= 1, "tokens", self.tokens, "integers >= 1")
        require(self.batch >= 1, "batch", self.batch, "an integer >= 1")
        least = f"an integer in 0..{self.total - 1}"
        require(0 <= self.warmup < self.total, "warmup", self.warmup, least)
        require(0 <= self.final <= 1, "final", self.final, "a share in [0, 1]")
        require(0 <= self.clip < math.inf, "clip", self.clip, "a number >= 0")
        require(0 < self.gain <= 10, "gain", self.gain, "a number in (0, 10]")
        require(self.maker is not None, "optimizer", self.optimizer, "an optimiser of optax")
        for name in self.arguments:
            known = list(inspect.signature(self.maker).parameters)[1:]
            require(name in known, "options", self.options, f"arguments of {self.optimizer}")

    @property
    def total(self) -> int:
        """Steps of all stages."""
        return sum(self.steps)

    @property
    def stages(self) -> list[tuple[int, int]]:
        """(T, steps) of each."""
        return list(zip(self.tokens, self.steps, strict=True))

    @property
    def arguments(self) -> dict[str, float]:
        """The optimiser's arguments."""
        found = {}
        for item in filter(None, self.options.split(",")):
            name, _, value = item.partition("=")
            try:
                found[name.strip()] = float(value)
            except ValueError:
                require(False, "options", self.options, "name=number, separated by commas")
        return found

    @property
    def elementwise(self) -> bool:
        """Whether the optimiser moves each number for itself, whatever array it stands in."""
        return self.optimizer in _ELEMENTWISE

    @property
    def maker(self) -> Callable[..., Any]:
        """The optimiser's function, None if optax has none of that name."""
        for module in (optax, optax.contrib):
            made = getattr(module, self.optimizer, None)
            if callable(made) and "learning_rate" in inspect.signature(made).parameters:
                return made
        return None  # type: ignore[return-value]

    def optimiser(self) -> optax.GradientTransformation:
        """At rate 1: its updates are to be multiplied by `rate_share` and the run's rate."""
        made = self.maker(learning_rate=1.0, **self.arguments)
        return optax.chain(optax.clip_by_global_norm(self.clip), made) if self.clip else made

    def rate_share(self) -> optax.Schedule:
        """Step to the share of the run's rate."""
        return optax.warmup_cosine_decay_schedule(
            0.0 if self.warmup else 1.0, 1.0, self.warmup, self.total, self.final
        )
