"""Each printed ratio beside the same ratio recomputed and put right, and why they differ.

A printed number is explained when what its constants give, within their printed rounding, rounds to
it; failing that, when one of the faults below does. A number that nothing explains is called so.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import gammaln

from reach_jax.bounds.floats import float_bits
from reach_jax.experiments.published_constants import (
    MODELS,
    NOTEBOOK_VOCABULARY,
    Model,
    NotebookModel,
)

ROWS = {
    "ball": "ball",
    "cone": "cone",
    "box": "box",
    "nonuniform": "box + non-uniform",
    "variable": "box + variable eps",
}
CUT = "the printed digits are cut, not rounded"
CAPLESS = "the cone is counted without its cap and four times over"
VOCABULARY = "counts {0} tokens where the output matrix has {1} rows"
OTHER_S = "computed with the s of {0}: two columns are swapped"
UNEXPLAINED = "no reading of the constants gives the printed number"
NO_WIDTHS = "no width of the box was published: its slope is what ratio and slope imply"
NO_FORMULA = "its formula was not published: nothing to recompute"
ABOVE_BITS = "counts more prompts than {0} bits a number can tell apart"
TO_GRID = "cut to the float grid, which no {0} prompt exceeds"
GRID = "the exact float grid instead of a uniform one"
OTHER_SLOPE = "the points of its figure give a slope of {0:.1f}, not {1}"
_SLOPE_TOLERANCE = 0.005  # decoded n50 are good to .1 token, slopes to a thousandth

Metrics = Mapping[str, Any]


def compare(found: Sequence[tuple[Model | NotebookModel, Metrics]], dtype: str) -> pd.DataFrame:
    """One row a printed ratio.

    Args:
      found: models, each with what its cell stored.
      dtype: of the prompts that its float grid counts.

    Returns:
      table, row, model, published (text), recomputed, corrected, label of the corrected bound, and
      reason: parts separated by "; ", empty where all three agree.
    """
    rows = []
    for model, metrics in found:
        for row, title in ROWS.items():
            if hasattr(model, row):
                place = {"table": _table(model), "row": title, "model": model.name}
                rows.append(place | _ratio(row, model, metrics, dtype))
    return pd.DataFrame(rows)


def _table(model: Model | NotebookModel) -> str:
    return "Table 1" if isinstance(model, Model) else "notebook"


def _ratio(row: str, model: Model | NotebookModel, metrics: Metrics, dtype: str) -> dict[str, Any]:
    printed, slope = getattr(model, row), float(model.slope)
    above = float(printed) * slope > metrics["trivial bits"]
    above_bits = [ABOVE_BITS.format(float_bits(dtype))] if above else []
    readings = list(_readings(row, model, metrics))
    if not readings:
        return {
            "published": printed,
            "recomputed": float("nan"),
            "corrected": float("nan"),
            "label": "–",
            "reason": "; ".join([NO_FORMULA, *above_bits]),
        }
    own, grid = readings[0][1], metrics["float grid"]
    figure = metrics.get("slope of the figure", slope)
    reasons = _explained(printed, model, row, readings) + above_bits
    if row == "box":
        reasons.append(NO_WIDTHS)
    if row == "ball":
        reasons.append(GRID)
    elif own > grid:
        reasons.append(TO_GRID.format(dtype))
    if abs(figure / slope - 1) > _SLOPE_TOLERANCE:
        reasons.append(OTHER_SLOPE.format(figure, model.slope))
    return {
        "published": printed,
        "recomputed": float("nan") if row == "box" else own / slope,
        "corrected": (grid if row == "ball" else min(own, grid)) / figure,
        "label": "rigorous inside the ball" if row == "ball" else "heuristic",
        "reason": "; ".join(reasons),
    }


def _readings(
    row: str, model: Model | NotebookModel, metrics: Metrics
) -> Iterator[tuple[list[str], float]]:
    """What the printed slope C may have been: the faults that it takes, and C; the true one first.

    The notebook has eps = r/2^11, Table 1 eps = 2^-10.
    """
    eps = "2^-10" if isinstance(model, Model) else "r/2^11"
    if row == "box":
        slopes: list[tuple[list[str], float]] = [([], metrics["box"])]
    elif row == "nonuniform" and isinstance(model, Model):
        own = metrics["box, non-uniform cells"]
        slopes = [([], own)]
        for other in MODELS:
            if other is not model:
                slopes.append(([OTHER_S.format(other.name)], own * float(model.s) / float(other.s)))
    elif row in ("ball", "cone"):
        slopes = [([], metrics[f"{row}, eps = {eps}"])]
        if row == "cone":
            whole = metrics[f"ball, eps = {eps}"]
            slopes.append(([CAPLESS], whole + _ln_capless(model) / np.log(model.vocabulary)))
    else:
        return
    yield from slopes
    if isinstance(model, NotebookModel) and model.vocabulary != NOTEBOOK_VOCABULARY:
        fault = VOCABULARY.format(NOTEBOOK_VOCABULARY, model.vocabulary)
        for faults, value in slopes:
            larger = np.log(model.vocabulary) / np.log(NOTEBOOK_VOCABULARY)
            yield [*faults, fault], value * larger


def _ln_capless(model: Model | NotebookModel) -> float:
    """ln of 4 times the cone that ends in a flat disc, as a share of the ball."""
    d, half = model.d, float(model.theta) / 2
    ln_disc = gammaln(d / 2 + 1) - gammaln((d + 1) / 2) - np.log(np.pi) / 2
    return float(np.log(4 * np.cos(half) / d) + (d - 1) * np.log(np.sin(half)) + ln_disc)


def _explained(
    printed: str,
    model: Model | NotebookModel,
    row: str,
    readings: Sequence[tuple[list[str], float]],
) -> list[str]:
    """The faults of the first reading that gives the printed number: rounded, or else cut."""
    value, unit = float(printed), _unit(printed)
    # The notebook's slopes are constants of its code; those of the table were rounded for print.
    spread = _rounding(model.slope) if isinstance(model, Model) else 0.0
    if row == "nonuniform" and isinstance(model, Model):
        spread += _rounding(model.s) + _rounding(model.box)
    for faults, slope in readings:
        low, high = (slope / float(model.slope) * (1 + sign * spread) for sign in (-1, 1))
        tiny = 1e-9 * value
        if low <= value + unit / 2 + tiny and high >= value - unit / 2 - tiny:
            return faults
        if low < value + unit and high >= value and not faults:
            return [CUT]
    return [UNEXPLAINED]


def _unit(text: str) -> float:
    """The weight of the last printed digit."""
    return 10.0 ** -len(text.partition(".")[2])


def _rounding(text: str) -> float:
    """How far, relatively, a number may be from its printed digits."""
    return _unit(text) / 2 / float(text)
