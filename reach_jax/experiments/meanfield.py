"""How stable is attention between measures? W_q out over W_q in, for prompts that were perturbed.

One random attention layer with residual and without positions acts on a prompt of S points in a
ball, and on neighbours of that prompt; exact Wasserstein distances before and after give ratios,
which stand beside the derivative's norm and the Lipschitz estimate of `bounds.lipschitz`. In
float64. Not a statement about trained layers.
"""

import dataclasses
import functools
import math
from collections.abc import Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
from ml_collections import ConfigDict

from reach_jax.analysis.wasserstein import wasserstein
from reach_jax.bounds.lipschitz import ln_attention_lipschitz
from reach_jax.experiments import meanfield_report
from reach_jax.ops import measure
from sweep_jax import serial
from sweep_jax.cells import Cell
from sweep_jax.checks import require, resolve
from sweep_jax.experiment import Context

EXCLUDED = ("axes",)
ORDERS = (1, 2)  # q
_KEY = 0x3F


@dataclasses.dataclass(frozen=True)
class Point:
    """What one cell measures."""

    gain: float  # of the query and key kernels
    points: int  # S
    draw: int

    def __post_init__(self) -> None:
        require(math.isfinite(self.gain) and self.gain > 0, "gain", self.gain, "a number > 0")
        require(1 <= self.points <= 4096, "points", self.points, "an integer in [1, 4096]")
        require(0 <= self.draw < 2**31, "draw", self.draw, "an integer in [0, 2^31)")


@dataclasses.dataclass(frozen=True)
class Sizes:
    """The layer's sizes."""

    width: int  # D
    heads: int  # H
    kv_heads: int  # K
    head_width: int  # N

    def __post_init__(self) -> None:
        for name in ("width", "heads", "kv_heads", "head_width"):
            require(getattr(self, name) >= 1, name, getattr(self, name), "an integer >= 1")
        divides = self.heads % self.kv_heads == 0
        require(divides, "kv_heads", self.kv_heads, f"a divisor of heads = {self.heads}")


@dataclasses.dataclass(frozen=True)
class Measures:
    """The prompts and their neighbours."""

    radius: float  # R
    sizes: tuple[float, ...]  # of perturbations, over R
    repeats: int  # of each random kind and size

    def __post_init__(self) -> None:
        ok = math.isfinite(self.radius) and self.radius > 0
        require(ok, "radius", self.radius, "a finite number > 0")
        ok = len(self.sizes) > 0 and all(0 < size <= 1 for size in self.sizes)
        require(ok, "sizes", self.sizes, "numbers in (0, 1]")
        require(self.repeats >= 1, "repeats", self.repeats, "an integer >= 1")


@dataclasses.dataclass(frozen=True)
class Settings:
    """Everything that one cell reads."""

    seed: int
    point: Point
    layer: Sizes
    measures: Measures


def settings(cell: Cell) -> Settings:
    """Resolves one cell.

    Raises:
      ValueError: a field is missing, unknown, of the wrong type or out of its range.
    """
    values = cell.config
    require(0 <= values["seed"] < 2**31, "config.seed", values["seed"], "in [0, 2^31)")
    return Settings(
        values["seed"],
        resolve(Point, values["cell"], "config.cell"),
        resolve(Sizes, values["layer"], "config.layer"),
        resolve(Measures, values["measures"], "config.measures"),
    )


def validate(config: ConfigDict, cells: Sequence[Cell]) -> None:
    """Refuses what cannot run, with ValueError, before any device work."""
    for cell in cells:
        settings(cell)


def plan(config: ConfigDict, cells: Sequence[Cell]) -> pd.DataFrame:
    """One row a cell: how many pairs of prompts it compares, and the size of its derivative."""
    rows = []
    for cell in cells:
        s = settings(cell)
        pairs = len(s.measures.sizes) * (2 * s.measures.repeats + 1)
        side = s.point.points * s.layer.width
        row = {"name": cell.name, **dataclasses.asdict(s.point)}
        rows.append(row | {"pairs": pairs, "derivative_MB": round(8 * side**2 / 1e6, 3)})
    return pd.DataFrame(rows)


def run(config: ConfigDict, cells: Sequence[Cell], context: Context) -> None:
    """Measures whatever is not in the workdir yet.

    Raises:
      Stopped: on request, between two cells.
    """
    with jax.enable_x64(True):
        serial.run(cells, context, "measuring", lambda cell: _measure(settings(cell)))


def report(config: ConfigDict, cells: Sequence[Cell], context: Context) -> str:
    """Writes table, figure and page from what is stored; returns the text to print."""
    return meanfield_report.write(cells, context)


@jax.jit
def _push(points_SD: jax.Array, kernels: measure.Kernels) -> jax.Array:
    return measure.push(measure.empirical(points_SD), kernels).points_SD


@jax.jit
def _derivative(points_SD: jax.Array, kernels: measure.Kernels) -> jax.Array:
    size = points_SD.size
    return jax.jacfwd(functools.partial(_push, kernels=kernels))(points_SD).reshape(size, size)


def _measure(s: Settings) -> dict[str, Any]:
    rng = np.random.default_rng([s.seed, _KEY, s.point.draw, s.point.points])
    kernels, points_SD = _kernels(s, rng), _ball(s, rng, s.point.points)
    _, values_U, right_UU = np.linalg.svd(np.asarray(_derivative(points_SD, kernels)))
    out_SD = np.asarray(_push(points_SD, kernels))
    a_HDD, v_HDD = measure.forms(kernels)
    norm_a_H, norm_v_H = (np.linalg.norm(np.asarray(x), 2, axis=(1, 2)) for x in (a_HDD, v_HDD))
    ln_estimate = float(ln_attention_lipschitz(norm_a_H, norm_v_H, s.measures.radius))
    rows: dict[str, list[Any]] = {"kind": [], "size": []}
    for kind, size, near_SD in _neighbours(s, rng, points_SD, right_UU[0]):
        moved_SD = np.asarray(_push(near_SD, kernels))
        rows["kind"].append(kind)
        rows["size"].append(size)
        for q in ORDERS:
            rows.setdefault(f"in_{q}", []).append(wasserstein(points_SD, near_SD, q))
            rows.setdefault(f"out_{q}", []).append(wasserstein(out_SD, moved_SD, q))
    ratio = {q: np.array(rows[f"out_{q}"]) / np.array(rows[f"in_{q}"]) for q in ORDERS}
    worst = max(float(ratio[q].max()) for q in ORDERS)
    twice_SD = np.asarray(_push(np.concatenate([points_SD, points_SD]), kernels))
    back_SD = np.asarray(_push(points_SD[::-1], kernels))[::-1]
    return {
        "a": float(norm_a_H.max() * s.measures.radius**2),
        "worst_1": float(ratio[1].max()),
        "worst_2": float(ratio[2].max()),
        "derivative": float(values_U[0]),
        "ln_estimate": ln_estimate,
        "violations": int(math.log(worst) > ln_estimate),
        "permutation_error": float(np.abs(back_SD - out_SD).max()),
        "duplication_error": float(np.abs(twice_SD - np.tile(out_SD, (2, 1))).max()),
        **rows,
    }


def _kernels(s: Settings, rng: np.random.Generator) -> measure.Kernels:
    c, gain = s.layer, s.point.gain

    def normal(shape: tuple[int, ...], fan_in: int, factor: float) -> jax.Array:
        return jnp.asarray(factor * fan_in**-0.5 * rng.standard_normal(shape))

    return measure.Kernels(
        normal((c.width, c.heads, c.head_width), c.width, gain),
        normal((c.width, c.kv_heads, c.head_width), c.width, gain),
        normal((c.width, c.kv_heads, c.head_width), c.width, 1.0),
        normal((c.heads, c.head_width, c.width), c.heads * c.head_width, 1.0),
    )


def _ball(s: Settings, rng: np.random.Generator, count: int) -> np.ndarray:
    """Uniform points of the ball, (count, D)."""
    direction_SD = rng.standard_normal((count, s.layer.width))
    direction_SD /= np.linalg.norm(direction_SD, axis=1, keepdims=True)
    return s.measures.radius * rng.random((count, 1)) ** (1 / s.layer.width) * direction_SD


def _neighbours(
    s: Settings, rng: np.random.Generator, points_SD: np.ndarray, steepest_U: np.ndarray
) -> Iterator[tuple[str, float, np.ndarray]]:
    """Kind, size and prompt: all points moved at random, one replaced, all along the steepest way.

    What would leave the ball is put back on its surface, so the estimate's R holds for all.
    """
    R, S = s.measures.radius, len(points_SD)

    def inside(near_SD: np.ndarray) -> np.ndarray:
        norm_S1 = np.linalg.norm(near_SD, axis=1, keepdims=True)
        return near_SD * np.minimum(1.0, R / np.maximum(norm_S1, R))

    for size in s.measures.sizes:
        for _ in range(s.measures.repeats):
            step_SD = rng.standard_normal(points_SD.shape)
            step_SD *= size * R / np.linalg.norm(step_SD, axis=1, keepdims=True)
            yield "all", size, inside(points_SD + step_SD)
            one_SD = points_SD.copy()
            place = rng.integers(S)
            one_SD[place] += size * R * (_ball(s, rng, 1)[0] / R - points_SD[place] / R)
            yield "one", size, inside(one_SD)
        along_SD = steepest_U.reshape(points_SD.shape) * math.sqrt(S)  # root mean square step 1
        yield "steepest", size, inside(points_SD + size * R * along_SD)
