"""The configuration of copying, resolved cell by cell to frozen values and checked."""

import dataclasses
import functools
import itertools
from typing import Any

from ml_collections import ConfigDict

from reach_jax.copying import evaluate, task
from reach_jax.copying.program import Shape
from reach_jax.copying.train import TrainingConfig
from reach_jax.experiments import zoo
from reach_jax.models import decoder, kinds
from reach_jax.models.config import DecoderConfig, LSTMConfig, MambaConfig
from sweep_jax.cells import Cell
from sweep_jax.checks import require, resolve

DECODERS = ("rope", "nope", "alibi", "hard_alibi")
TUNED = "tuned"
VARIANTS = (*DECODERS, "lstm", "mamba", TUNED)


@dataclasses.dataclass(frozen=True)
class Point:
    """What one cell trains."""

    variant: str  # one of VARIANTS; "tuned" is the model of config.source, trained further
    longest: int  # training length, letters
    draw: int  # which initial weights and which data

    def __post_init__(self) -> None:
        require(self.variant in VARIANTS, "variant", self.variant, f"one of {VARIANTS}")
        require(0 <= self.draw < 2**31, "draw", self.draw, "an integer in [0, 2^31)")


@dataclasses.dataclass(frozen=True)
class DecoderSizes:
    """The four decoders, which differ in their positions only."""

    layers: int
    width: int
    heads: int
    head_width: int
    mlp_width: int
    rope_base: float  # of rope
    masked_heads: int  # of hard_alibi


@dataclasses.dataclass(frozen=True)
class EvaluationConfig:
    """What a trained model is asked."""

    lengths: tuple[int, ...]  # letters
    before: tuple[int, ...]  # whole examples of the training length in front of the question
    strings: int  # of each length
    learnt: float  # share copied over all tested lengths <= training length; less is undertrained

    def __post_init__(self) -> None:
        n = self.lengths
        ascending = len(n) > 0 and n[0] >= 1 and all(a < b for a, b in itertools.pairwise(n))
        require(ascending, "lengths", n, "ascending integers >= 1")
        first = len(self.before) > 0 and self.before[0] == 0
        ok = first and len(set(self.before)) == len(self.before) and min(self.before) >= 0
        require(ok, "before", self.before, "0 and then other integers >= 0")
        require(self.strings >= 1, "strings", self.strings, "an integer >= 1")
        require(0 < self.learnt <= 1, "learnt", self.learnt, "a share in (0, 1]")


@dataclasses.dataclass(frozen=True)
class Execution:
    """How the cells run; no field changes a result but by rounding."""

    lanes: int  # that learn at once, of one shape
    rows: int  # strings that are decoded at once

    def __post_init__(self) -> None:
        for name in ("lanes", "rows"):
            require(getattr(self, name) >= 1, name, getattr(self, name), "an integer >= 1")


@dataclasses.dataclass(frozen=True)
class Settings:
    """Everything that one cell reads."""

    seed: int
    point: Point
    task: task.TaskConfig
    training: TrainingConfig
    evaluation: EvaluationConfig
    model: kinds.Config | None  # of a source that only its download tells: None
    choice: zoo.Choice | None  # of "tuned"

    @property
    def rules(self) -> decoder.Rules | None:
        """A decoder's positions, where lanes of one program differ in them."""
        if self.choice is None and isinstance(self.model, DecoderConfig):
            return decoder.rules(self.model)
        return None

    def shape(self, model: kinds.Config) -> Shape:
        """What cells must share to run as lanes of one program; `model` as it is once loaded."""
        if isinstance(model, DecoderConfig) and self.choice is None:
            model = dataclasses.replace(model, rotary_width=None, alibi=False, masked_heads=0)
        return Shape(model, self.training, self.task.context)

    @property
    def most_symbols(self) -> int:
        """Symbols of the longest question with its answer."""
        front = max(self.evaluation.before) * task.size(self.task.longest)
        return front + task.size(self.evaluation.lengths[-1])


def settings(cell: Cell) -> Settings:
    """Resolves one cell.

    Raises:
      ValueError: a field is missing, unknown, of the wrong type, or does not fit the others.
    """
    values: dict[str, Any] = cell.config
    seed = values["seed"]
    require(0 <= seed < 2**31, "config.seed", seed, "an integer in [0, 2^31)")
    point = resolve(Point, values["cell"], "config.cell")
    ends = {"longest": point.longest, **values["task"]}
    learnt = resolve(task.TaskConfig, ends, "config.task")
    rates = values["rates"]
    kind = "decoder" if point.variant in DECODERS else point.variant
    require(kind in rates, "config.rates", sorted(rates), f"a rate for {kind}")
    training = resolve(
        TrainingConfig, {"rate": rates[kind], **values["learning"]}, "config.learning"
    )
    evaluation = resolve(EvaluationConfig, values["evaluation"], "config.evaluation")
    expected = f"one of at most the training length {point.longest} among them"
    inside = evaluation.lengths[0] <= point.longest
    require(inside, "config.evaluation.lengths", evaluation.lengths, expected)
    choice, model = None, None
    if point.variant == TUNED:
        require("source" in values, "config.cell.variant", TUNED, "a config with a source")
        choice = zoo.choice(values)
        model = zoo.describe(choice)
    else:
        model = _network(point.variant, values["networks"])
    found = Settings(seed, point, learnt, training, evaluation, model, choice)
    if model is not None:
        check_model(found, model)
    return found


def check_model(s: Settings, model: kinds.Config) -> None:
    """Refuses a model that the task does not fit into.

    Raises:
      ValueError: fewer rows than symbols, or questions beyond a table of positions, where a
        look-up would be clamped to its last row.
    """
    rows, expected = model.vocab_size, f"at least {task.VOCABULARY}, one a symbol"
    require(rows >= task.VOCABULARY, "rows of the vocabulary", rows, expected)
    if not (isinstance(model, DecoderConfig) and model.learned_positions):
        return
    table, context = model.context or 0, s.task.context
    require(context <= table, "config.task.context", context, f"at most {table} learned positions")
    need = evaluate.bucket(s.most_symbols)
    expected = f"questions of at most {table} symbols, the learned positions; these take {need}"
    require(need <= table, "config.evaluation.lengths", s.evaluation.lengths[-1], expected)


def execution(config: ConfigDict) -> Execution:
    """The section that changes no result.

    Raises:
      ValueError: a field is missing, unknown or of the wrong type.
    """
    return resolve(Execution, config.to_dict()["execution"], "config.execution")


def _network(variant: str, sizes: dict[str, Any]) -> kinds.Config:
    common: dict[str, Any] = {"vocab_size": task.VOCABULARY, "tied": False, "dtype": "float32"}
    if variant == "lstm":
        return resolve(LSTMConfig, {**common, **sizes["lstm"]}, "config.networks.lstm")
    if variant == "mamba":
        given = {**common, "norm_eps": 1e-5, **sizes["mamba"]}
        return resolve(MambaConfig, given, "config.networks.mamba")
    d = resolve(DecoderSizes, sizes["decoder"], "config.networks.decoder")
    make = functools.partial(
        DecoderConfig,
        **common,
        layers=d.layers,
        width=d.width,
        heads=d.heads,
        kv_heads=d.heads,
        head_width=d.head_width,
        mlp_width=d.mlp_width,
        rope_base=d.rope_base,
        norm_eps=1e-5,
    )
    if variant == "rope":
        return make()
    masked = d.masked_heads if variant == "hard_alibi" else 0
    if variant == "hard_alibi":
        require(masked >= 1, "config.networks.decoder.masked_heads", masked, "an integer >= 1")
    return make(rotary_width=0, alibi=variant == "alibi", masked_heads=masked)
