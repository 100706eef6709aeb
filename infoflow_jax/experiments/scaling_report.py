"""How parameters grow with 1/eps, from trained networks of several FFN widths. Trains nothing.

eps is the root mean square error of the best run of a width, in the target's units; parameters are
those of the FFNs, which the theorems count. `training.laws` fits eps = floor + A N^-a, so that
parameters grow as eps^(-1/a) as far as the floor does not bind.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from infoflow_jax.training import laws
from sweep_jax.cells import Cell

_DRAWS = 200
_LEAST = 4  # widths, one more than the law's unknowns
_ORDER = ("heads", "T", "widths", "eps", "a", "parameters ~ eps^-", "floor", "residual", "problems")
Points = dict[tuple[str, int], tuple[np.ndarray, np.ndarray]]


def points(records: Sequence[tuple[Cell, Mapping[str, Any]]]) -> Points:
    """(heads, T) -> parameters of the FFNs of each width, ascending, and eps of its best run."""
    best: dict[tuple[str, int], dict[int, float]] = {}
    for cell, record in records:
        config, metrics = cell.config, record["metrics"]
        heads = "-".join(map(str, config["cell"]["heads"]))
        sizes = best.setdefault((heads, config["training"]["tokens"][-1]), {})
        eps = float(np.sqrt(metrics["nmse"])) * metrics["deviation"]
        size = metrics["ffn_parameters"]
        sizes[size] = min(eps, sizes.get(size, np.inf))
    return {
        key: (np.array(sorted(sizes)), np.array([sizes[size] for size in sorted(sizes)]))
        for key, sizes in best.items()
    }


def slopes(found: Points, seed: int) -> pd.DataFrame:
    """A row an architecture and T: the law's exponent, and its inverse, with 95 % intervals."""
    rows = []
    for (heads, T), (size_N, eps_N) in found.items():
        row = {"heads": heads, "T": T, "widths": len(size_N), "eps": _ends(eps_N)}
        usable = len(size_N) >= _LEAST and bool(np.isfinite(eps_N).all())
        said = "fewer than 4 widths, or one without a finite run"
        if usable:
            law = laws.fit(size_N[:, None], eps_N, draws=_DRAWS, seed=seed)
            (a,), ((low, high),) = law.exponents, law.intervals
            row |= {"floor": f"{law.floor:.2g}", "residual": f"{law.residual:.2f}"}
            if not law.problems:
                slope = f"{1 / a:.2f} [{1 / high:.2f}, {1 / low:.2f}]"
                row |= {"a": f"{a:.2f} [{low:.2f}, {high:.2f}]", "parameters ~ eps^-": slope}
            said = "; ".join(law.problems) or "–"
        rows.append(row | {"problems": said})
    frame = pd.DataFrame(rows).fillna("–")
    return frame[[name for name in _ORDER if name in frame]]


def _ends(eps_N: np.ndarray) -> str:
    return f"{eps_N[0]:.2g} to {eps_N[-1]:.2g}"
