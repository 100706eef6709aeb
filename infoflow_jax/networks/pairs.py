"""Theorem 1: sums of extremes over pairs, by two layers of D heads (arXiv 2605.17930).

    sum_i max_{s,t} x_s^T A_i x_t,    and min_{s,t} <x_s, x_t> = - max_{s,t} x_s^T (-1) x_t

Slots of a state: x (d), a_1..a_D (d each), q_1..q_D, flag (1 at c0). Layer 1, head i: score
<A_i x_t, x_s>, value x_s into a_i. FFN: q_i = <A_i x_t, a_i>. Layer 2 at c0, head i: score and
value q_i - B flag, so that c0 is one more item that never wins.

Error: a soft maximum of T items is at most ln T / beta below the maximum, twice, the second time
with c0 as an item too; q through r y a = r ((y + a)^2 - (y - a)^2) / 4 with y = (A_i x)_j / r,
r = |row j of A_i|_1, both squares interpolated on [-2R, 2R], misses r h^2 / 16 = r R^2 / (4 K^2).
"""

import numpy as np

from infoflow_jax.calculus import targets
from infoflow_jax.networks.config import NetworkConfig
from infoflow_jax.networks.construction import Construction, gibbs, square_knots, zeros
from sweep_jax.checks import require


def pairmin(d: int, K: int, beta: float, radius: float = 1.0, kind: str = "relu") -> Construction:
    """min_{s,t} <x_s, x_t> of tokens in [-R, R]^d, by two layers of one head."""
    return _pairs(-np.eye(d)[None], K, beta, radius, kind, True)


def pairmax(
    A_IDD: np.ndarray, K: int, beta: float, radius: float = 1.0, kind: str = "relu"
) -> Construction:
    """sum_i max_{s,t} x_s^T A_i x_t of tokens in [-R, R]^d, by two layers of D heads.

    Args:
      A_IDD: D matrices, (D, d, d).
      K: intervals of the interpolant of u^2 on each side of 0; of no effect if bilinear.
      beta: of the scores.
      radius: R.
      kind: relu, or bilinear, which multiplies exactly.

    Raises:
      ValueError: K < 1, or a kind that has no construction.
    """
    return _pairs(np.asarray(A_IDD, np.float64), K, beta, radius, kind, False)


def _pairs(
    A_IDD: np.ndarray, K: int, beta: float, radius: float, kind: str, minimal: bool
) -> Construction:
    require(K >= 1, "K", K, "an integer >= 1")
    require(kind in ("relu", "bilinear"), "kind", kind, "relu or bilinear")
    D, d, _ = A_IDD.shape
    rows_ID = np.abs(A_IDD).sum(2)
    relu = kind == "relu"
    hidden = (4 * d * D * K if relu else d * D) + 1
    config = NetworkConfig(
        d=d,
        width=d + D * d + D + 1,
        heads=(D, D),
        head_width=d,
        ffn=((hidden,), ()),
        kind=kind,
        encoder="none",
        beta=beta,
        dtype="float64",
    )
    p = zeros(config)
    flag, first_q = config.width - 1, d + D * d
    p["c0"][flag] = 1.0
    one, two = p["layer_0"], p["layer_1"]
    ffn = one["ffn"]
    miss_I = radius**2 / (4 * K**2) * rows_ID.sum(1) if relu else np.zeros(D)
    for i in range(D):
        a = d + i * d
        one["query"][:d, i, :] = A_IDD[i].T  # row vector x A^T is A x
        one["key"][:d, i, :] = np.eye(d)
        one["value"][:d, i, :] = np.eye(d)
        one["output"][i, :, a : a + d] = np.eye(d)
        # No q is above `top`, so c0 at -top - 1 never wins.
        top = radius**2 * rows_ID[i].sum() + miss_I[i] + 1.0
        two["query"][flag, i, 0] = 1.0
        for name in ("key", "value"):
            two[name][first_q + i, i, 0] = 1.0
            two[name][flag, i, 0] = -top
        two["output"][i, 0, first_q + i] = 1.0
    if relu:
        _products_by_squares(ffn, A_IDD, rows_ID, K, radius)
    else:
        for i, j in np.ndindex(D, d):
            unit = i * d + j
            ffn["kernel_0"][:d, unit] = A_IDD[i, j]
            ffn["kernel_gate_0"][d + i * d + j, unit] = 1.0
            ffn["kernel_1"][unit, first_q + i] = 1.0
        ffn["bias_gate_0"][-1] = 1.0
    ffn["kernel_0"][flag, -1] = 1.0
    ffn["kernel_1"][-1, flag] = 1.0
    p["readout"]["kernel_0"][first_q : first_q + D] = -1.0 if minimal else 1.0

    def exact(x_BTD: np.ndarray) -> np.ndarray:
        scores_IBST = np.einsum("bsd,ide,bte->ibst", x_BTD, A_IDD, x_BTD, optimize=True)
        value_B = scores_IBST.max((2, 3)).sum(0)
        return (-value_B if minimal else value_B)[:, None]

    names = {f"A{i + 1}": A_IDD[i] for i in range(D)}
    return Construction(
        config=config,
        params=p,
        target=targets.pairmin() if minimal else targets.pairmax(D),
        weights={} if minimal else names,
        exact=exact,
        low=-radius,
        high=radius,
        bound=lambda T: float(miss_I.sum()) + D * (gibbs(T, beta) + gibbs(T + 1, beta)),
        law=float(hidden),
    )


def _products_by_squares(
    ffn: dict[str, np.ndarray], A_IDD: np.ndarray, rows_ID: np.ndarray, K: int, radius: float
) -> None:
    """Fills in q_i = sum_j r (interpolant((y + a)^2) - interpolant((y - a)^2)) / 4."""
    D, d, _ = A_IDD.shape
    knot_K, slope_K = square_knots(2 * radius, K)
    unit = 0
    for i, j in np.ndindex(D, d):
        r = rows_ID[i, j]
        if r == 0:  # the row gives nothing, so its units stay off
            unit += 4 * K
            continue
        for sign in (1.0, -1.0):
            for side in (1.0, -1.0):
                units = slice(unit, unit + K)
                ffn["kernel_0"][:d, units] += side * A_IDD[i, j][:, None] / r
                ffn["kernel_0"][d + i * d + j, units] = side * sign
                ffn["bias_0"][units] = -knot_K
                ffn["kernel_1"][units, d + D * d + i] = sign * r * slope_K / 4
                unit += K
