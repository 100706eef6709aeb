"""What one crammed prompt is worth: accessibility as arXiv 2605.22223 defines it, and its price.

A success of the search is a point X that emits its text. The paper asks for more: the whole ball
B(X, eps/2) must emit it. For one prompt this says by how much the closest token won, whether the
text survives the prompt's rounding to coarser floats, up to which eps no tried point of the ball
failed, how far out the prompt lies among real embeddings, and how many bits a coordinate carries.

Ties: the decode emits the lowest id among exactly tied logits. `tied` says whether a success hangs
on that rule (least margin 0): such a prompt lies on its cell's border, and no eps > 0 is its own.

Not a proof of any eps: see `neighbourhood.py` for what is fact, evidence and estimate.
"""

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from reach_jax.cramming import neighbourhood, verify
from reach_jax.models import kinds
from reach_jax.models.config import Params
from sweep_jax.checks import require

ROUNDED = ("float16", "bfloat16")
NORMS = ("cube", "ball")
_ROWS = 8192  # of the token table at once


@dataclasses.dataclass(frozen=True)
class CertificateConfig:
    """How a prompt's neighbourhood is tried. eps runs over 2^low .. 2^high embedding deviations."""

    samples: int  # random points of each norm
    directed: int  # tokens of least margin that are attacked along their gradient
    decodes: int  # random points of each norm decoded for real, at most `samples`
    low: int  # exponent of the least eps
    high: int  # exponent of the largest
    per_octave: int  # eps of the grid between two powers of two
    batch: int  # points judged at once; changes no result but by rounding

    def __post_init__(self) -> None:
        for name in ("samples", "directed", "per_octave", "batch"):
            require(getattr(self, name) >= 1, name, getattr(self, name), "an integer >= 1")
        expected = f"an integer in [0, samples = {self.samples}]"
        require(0 <= self.decodes <= self.samples, "decodes", self.decodes, expected)
        require(-60 <= self.low < self.high <= 60, "low", self.low, "-60 <= low < high <= 60")

    @property
    def grid_E(self) -> np.ndarray:
        """Every eps that is tried, in standard deviations of the embeddings, ascending."""
        return 2.0 ** np.linspace(
            self.low, self.high, (self.high - self.low) * self.per_octave + 1, dtype=np.float64
        )


@dataclasses.dataclass(frozen=True)
class Inputs:
    """The support of a model's real input vectors."""

    norms_2V: np.ndarray  # ascending, l_2
    norms_inf_V: np.ndarray  # ascending, l_inf
    lo_D: np.ndarray
    hi_D: np.ndarray
    scale: float  # standard deviation of all entries: the unit of relative eps


def measure_inputs(model: kinds.Config, params: Params, tokens: int) -> Inputs:
    """Measures the embedded tokens 0 .. tokens-1, as the model itself is given them.

    Raises:
      ValueError: `tokens` is not in [1, V].
    """
    require(1 <= tokens <= model.vocab_size, "tokens", tokens, f"1 .. {model.vocab_size}")
    variables, module = {"params": params}, kinds.module(model)
    norm_2, norm_inf = [], []
    lo_D, hi_D = np.full(model.width, np.inf), np.full(model.width, -np.inf)
    total = squares = 0.0
    for first in range(0, tokens, _ROWS):
        ids = jnp.arange(first, min(first + _ROWS, tokens))
        rows = module.apply(variables, ids, method="embed")
        x_ND = np.asarray(rows.astype(jnp.float32), np.float64)
        norm_2.append(np.linalg.norm(x_ND, axis=1))
        norm_inf.append(np.abs(x_ND).max(axis=1))
        lo_D, hi_D = np.minimum(lo_D, x_ND.min(axis=0)), np.maximum(hi_D, x_ND.max(axis=0))
        total, squares = total + x_ND.sum(), squares + np.square(x_ND).sum()
    entries = tokens * model.width
    scale = math.sqrt(max(squares / entries - (total / entries) ** 2, 0.0))
    norms_2V, norms_inf_V = np.sort(np.concatenate(norm_2)), np.sort(np.concatenate(norm_inf))
    return Inputs(norms_2V, norms_inf_V, lo_D, hi_D, scale)


@dataclasses.dataclass(frozen=True)
class Subject:
    """What the prompts of one run share."""

    model: kinds.Config
    params: Params
    prefix_D: np.ndarray | None  # embedding of what stands before a prompt
    inputs: Inputs
    slots: int  # padded prompt length; one compilation each with
    bucket: int  # padded target length


def certify(
    subject: Subject,
    config: CertificateConfig,
    prompt_MD: np.ndarray,
    target_N: np.ndarray,
    claimed: int,
    key: jax.Array,
) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Certifies one prompt at the length that its own decode confirms, at highest precision.

    Args:
      subject: the model and the padded sizes; m <= slots, `claimed` <= bucket.
      config: how the neighbourhood is tried.
      prompt_MD: the prompt, all rows in use.
      target_N: its text, at least `claimed` tokens.
      claimed: n, the length that the search reports.
      key: of the random points.

    Returns:
      Plain metrics (docs/theory_reach.md, "Certificate"), and arrays: `margins` of the n tokens,
      `witness_cube` and `witness_ball`, the nearest points found that do not emit the text. An eps
      without suffix is in the prompt's own units, one with `_rel` in embedding deviations. With
      n = 0 there is nothing to try, and only the first three metrics are there.

    Raises:
      ValueError: the shapes do not fit.
    """
    model, (m, D), slots = subject.model, prompt_MD.shape, subject.slots
    require(1 <= m <= slots, "prompt_MD", prompt_MD.shape, f"1 to {slots} rows")
    require(model.width == D, "prompt_MD", prompt_MD.shape, f"rows of {model.width}")
    longest = min(len(target_N), subject.bucket)
    require(0 <= claimed <= longest, "claimed", claimed, f"0 to {longest} tokens")
    before = [] if subject.prefix_D is None else [np.asarray(subject.prefix_D, np.float32)[None]]
    size = slots + subject.bucket

    def decode(x_MD: np.ndarray, count: int) -> tuple[int, np.ndarray]:
        """Length of the correct prefix that a prompt emits, and the margins of what it emits."""
        if not np.isfinite(x_MD).all():  # beyond the range of float16
            return 0, np.zeros(0, np.float32)
        given_PD = np.concatenate([*before, x_MD.astype(np.float32)])
        emitted, margins = verify.greedy_decode(model, subject.params, given_PD, count, size)
        return int(np.cumprod(emitted == target_N[:count]).sum()), margins

    with jax.default_matmul_precision("highest"):
        n, margins_N = decode(prompt_MD, claimed)
        margins_N = margins_N[:n]
        metrics: dict[str, Any] = {"claimed": claimed, "n": n, "confirmed": n == claimed}
        if n == 0:
            return metrics, {}
        metrics["least_margin"] = float(margins_N.min())
        metrics["median_margin"] = float(np.median(margins_N))
        metrics["tied"] = bool(margins_N.min() == 0)
        for name in ROUNDED:
            with np.errstate(over="ignore"):  # past float16's range: infinite, and refused above
                rounded_MD = prompt_MD.astype(jnp.dtype(name))
            metrics[f"kept_{name}"] = decode(rounded_MD.astype(np.float32), n)[0]
        found = _explore(subject, config, prompt_MD, target_N[:n], key)
        inside = [decode(x_MD[-m:], n)[0] == n for x_MD in found.inside_QMD]
        failed = np.isfinite(found.refuted_2)
        outside = [decode(x_MD[-m:], n)[0] < n for x_MD in found.witness_2MD[failed]]
    metrics |= _eps(found, subject.inputs.scale)
    metrics["decoded"] = len(inside) + len(outside)
    metrics["decodes_agree"] = sum(inside) + sum(outside)
    metrics |= _place(prompt_MD, subject.inputs)
    metrics |= _bits(prompt_MD, n, model.vocab_size, metrics["eps_cube"])
    witnesses = {f"witness_{k}": x[-m:] for k, x in zip(NORMS, found.witness_2MD, strict=True)}
    return metrics, {"margins": margins_N, **witnesses}


def bits_per_coordinate(n: int, vocabulary: int, m: int, width: int) -> float:
    """n ln V / (m D ln 2): bits of text that each coordinate of the prompt carries."""
    return n * math.log2(vocabulary) / (m * width)


def _explore(
    subject: Subject,
    config: CertificateConfig,
    prompt_MD: np.ndarray,
    target_N: np.ndarray,
    key: jax.Array,
) -> neighbourhood.Explored:
    """`neighbourhood.explore` of the padded prompt at the whole of `target_N`, as NumPy arrays."""
    (m, D), n, slots = prompt_MD.shape, len(target_N), subject.slots
    prefix_D, bucket = subject.prefix_D, subject.bucket
    padded_MD, padded_N = np.zeros((slots, D), np.float32), np.zeros(bucket, np.int32)
    padded_MD[slots - m :], padded_N[:n] = prompt_MD, target_N
    case = neighbourhood.Case(
        subject.params,
        None if prefix_D is None else jnp.asarray(prefix_D),
        jnp.asarray(padded_MD),
        jnp.int32(m),
        jnp.asarray(padded_N),
        jnp.int32(n),
    )
    grid_E = jnp.asarray(subject.inputs.scale * config.grid_E, jnp.float32)
    counts = (config.samples, config.directed, config.decodes, config.batch)
    found = neighbourhood.explore(subject.model, case, key, grid_E, *counts)
    return jax.tree.map(np.asarray, found)


def _eps(found: neighbourhood.Explored, scale: float) -> dict[str, Any]:
    values = dict(zip(neighbourhood.GROUPS, found.held_G, strict=True))
    for norm, refuted, estimate in zip(NORMS, found.refuted_2, found.first_order_2, strict=True):
        values |= {f"{norm}_refuted": refuted, f"{norm}_first_order": estimate}
        values[norm] = min(values[f"{norm}_random"], values[f"{norm}_directed"])
    eps: dict[str, Any] = {f"eps_{name}": float(value) for name, value in values.items()}
    eps |= {f"{name}_rel": value / scale for name, value in eps.items()}
    return eps | {"eps_at_end": bool(found.at_end_G.any())}


def _place(prompt_MD: np.ndarray, inputs: Inputs) -> dict[str, Any]:
    """Where the prompt lies among the real input vectors."""
    x_MD = prompt_MD.astype(np.float64)
    r_2, r_inf = float(np.linalg.norm(x_MD, axis=1).max()), float(np.abs(x_MD).max())
    inside = (x_MD >= inputs.lo_D[None]) & (x_MD <= inputs.hi_D[None])
    return {
        "r_2": r_2,
        "r_2_over_inputs": r_2 / float(inputs.norms_2V[-1]),
        "r_2_quantile": _share_below(inputs.norms_2V, r_2),
        "r_inf": r_inf,
        "r_inf_over_inputs": r_inf / float(inputs.norms_inf_V[-1]),
        "r_inf_quantile": _share_below(inputs.norms_inf_V, r_inf),
        "inside_box": float(inside.mean()),
    }


def _share_below(ascending_V: Sequence[float] | np.ndarray, value: float) -> float:
    return float(np.searchsorted(ascending_V, value, side="right") / len(ascending_V))


def _bits(prompt_MD: np.ndarray, n: int, vocabulary: int, eps: float) -> dict[str, float]:
    """Bits used, stored, and at eps: log2(1 + 2 r/eps), a coordinate's share of the ball bound."""
    r_inf = float(np.abs(prompt_MD).max())
    at_eps = math.log2(1 + 2 * r_inf / eps) if eps > 0 else math.inf
    return {
        "bits_used": bits_per_coordinate(n, vocabulary, *prompt_MD.shape),
        "bits_stored": 8.0 * prompt_MD.dtype.itemsize,
        "bits_at_eps": at_eps,
    }
