"""The enumeration's configuration, resolved cell by cell to frozen values and checked."""

import dataclasses
import math
from typing import Any, Literal, cast, get_args

from ml_collections import ConfigDict

from reach_jax.bounds.packing import ball_slope, ln_packing_ball, threshold
from reach_jax.enumeration.blocks import Enumeration
from reach_jax.enumeration.decode import Attention, End, Layout
from reach_jax.enumeration.grid import Grid
from reach_jax.enumeration.weights import RandomWeights
from reach_jax.models.config import DecoderConfig
from reach_jax.pretrain.markov import MarkovConfig
from reach_jax.pretrain.train import TrainingConfig
from sweep_jax.cells import Cell
from sweep_jax.checks import BadInput, require, resolve

WEIGHTS = ("random", "trained")
POSITIONS = ("rotary", "none")


@dataclasses.dataclass(frozen=True)
class Point:
    """What one cell enumerates."""

    weights: str  # random or trained
    draw: int  # which weights, or which language
    positions: str  # rotary or none
    attention: str  # causal or full, of the prompt
    end: str  # vector or token: what predicts the first token
    vocab_size: int  # V
    width: int  # d
    prompt_length: int  # m, vectors
    bits: int  # k, a coordinate

    def __post_init__(self) -> None:
        require(self.weights in WEIGHTS, "weights", self.weights, f"one of {WEIGHTS}")
        require(self.positions in POSITIONS, "positions", self.positions, f"one of {POSITIONS}")
        require(0 <= self.draw < 2**31, "draw", self.draw, "an integer in [0, 2^31)")


@dataclasses.dataclass(frozen=True)
class Method:
    """How all cells are enumerated."""

    length: int  # tokens decoded after each prompt
    radius: float  # r, the largest coordinate of a prompt
    near_tie: float  # a least margin below it is counted as a near tie, in logits

    def __post_init__(self) -> None:
        ok = math.isfinite(self.near_tie) and self.near_tie >= 0
        require(ok, "near_tie", self.near_tie, "a finite number >= 0")


@dataclasses.dataclass(frozen=True)
class Execution:
    """How the cells run; no field changes a result but by rounding."""

    block: int  # prompts that run at once, and that a kill costs at most

    def __post_init__(self) -> None:
        require(self.block >= 1, "block", self.block, "an integer >= 1")


@dataclasses.dataclass(frozen=True)
class Settings:
    """Everything that one cell reads."""

    seed: int
    point: Point
    spec: Enumeration
    near_tie: float
    random: RandomWeights
    language: MarkovConfig
    training: TrainingConfig

    @property
    def ln_bound(self) -> float:
        """ln of Theorem 4.5's bound on the outputs of this grid; also ln of its prompts."""
        g = self.spec.grid
        return float(ln_packing_ball(g.width, g.vectors, g.radius, g.eps))

    @property
    def threshold(self) -> float:
        """n* = C m of Corollary 4.6, tokens."""
        g = self.spec.grid
        slope = ball_slope(g.width, self.point.vocab_size, g.radius, g.eps)
        return float(threshold(slope, g.vectors))


def settings(cell: Cell) -> Settings:
    """Resolves one cell.

    Raises:
      ValueError: a field is missing, unknown, of the wrong type, or does not fit the others.
    """
    values: dict[str, Any] = cell.config
    seed = values["seed"]
    require(0 <= seed < 2**31, "config.seed", seed, "an integer in [0, 2^31)")
    point = resolve(Point, values["cell"], "config.cell")
    method = resolve(Method, values["enumeration"], "config.enumeration")
    for field, kinds in (("attention", get_args(Attention)), ("end", get_args(End))):
        value = getattr(point, field)
        require(value in kinds, f"config.cell.{field}", value, f"one of {kinds}")
    sizes = {
        "vocab_size": point.vocab_size,
        "width": point.width,
        "rotary_width": None if point.positions == "rotary" else 0,
        **values["model"],
    }
    model = resolve(DecoderConfig, sizes, "config.model")
    layout = Layout(cast(Literal["causal"], point.attention), cast(Literal["token"], point.end))
    try:
        grid = Grid(point.width, point.prompt_length, point.bits, method.radius)
        spec = Enumeration(model, layout, grid, method.length)
    except ValueError as error:
        raise BadInput(f"cell {cell.axes}: {error}") from None
    random = resolve(RandomWeights, values["random"], "config.random")
    require(
        not (random.unit_head and model.tied),
        "config.random.unit_head",
        True,
        "False where config.model.tied",
    )
    return Settings(
        seed,
        point,
        spec,
        method.near_tie,
        random,
        resolve(MarkovConfig, values["language"], "config.language"),
        resolve(TrainingConfig, values["training"], "config.training"),
    )


def execution(config: ConfigDict) -> Execution:
    """The section that changes no result.

    Raises:
      ValueError: a field is missing, unknown or of the wrong type.
    """
    return resolve(Execution, config.to_dict()["execution"], "config.execution")
