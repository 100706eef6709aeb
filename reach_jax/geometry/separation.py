"""One token against all others: the greatest margin by which any allowed state can prefer it.

Tokens are rows g_j of a matrix, states are vectors x of a box. The margin of token i at x is
`min_j (g_i - g_j).x`, and its greatest value over the box is, by duality of linear programs,

    max_x min_j (g_i - g_j).x  =  min_w h(g_i - sum_j w_j g_j), h(r) = sum_d max(lo_d r_d, hi_d r_d)

over weights w >= 0 with sum 1. So an x with a margin > 0 proves the token reachable, and weights
with h <= 0 prove that no state of the box prefers it. Either is checked here in float64 from the
rows alone, whoever found it. The linear program is solved with rows added as they are violated, so
that it stays small for a vocabulary of any size. Not here: the cheap tries (`witnesses`).
"""

import dataclasses
from typing import Literal

import numpy as np
from scipy.optimize import linprog

from sweep_jax.checks import require

_UNIT = 2.0**-53


@dataclasses.dataclass(frozen=True)
class Problem:
    """Which vectors can be states, and the rows that they meet.

    Attributes:
      rows_VD: float64, all different.
      lo_D, hi_D: ends of the box of x.
      cone: x may be any positive multiple of a vector of the box, so that the box only fixes a
        scale: its coordinates are [-1, 1], or [0, 1] for one that must not be negative.
    """

    rows_VD: np.ndarray
    lo_D: np.ndarray
    hi_D: np.ndarray
    cone: bool

    @property
    def scale(self) -> float:
        """The greatest |g_j.x| that the box allows, over all tokens j."""
        reach_D = np.maximum(np.abs(self.lo_D), np.abs(self.hi_D))
        return float((np.abs(self.rows_VD) @ reach_D).max())

    def project(self, x_ND: np.ndarray) -> np.ndarray:
        """Into the box: cut off, or scaled where scale is free."""
        if not self.cone:
            return np.clip(x_ND, self.lo_D.astype(x_ND.dtype), self.hi_D.astype(x_ND.dtype))
        x_ND = np.where(self.lo_D >= 0, np.maximum(x_ND, 0), x_ND)
        size_N1 = np.abs(x_ND).max(axis=-1, keepdims=True)
        return x_ND / np.where(size_N1 > 0, size_N1, 1)


@dataclasses.dataclass(frozen=True)
class Verdict:
    """What was found of one token, and its proof."""

    status: Literal["reachable", "unreachable", "undecided"]
    by: str  # the stage that decided, or why none did
    margin: float  # reachable: proved, > 0; unreachable: at most this; else the last bound
    witness_D: np.ndarray | None = None
    others_J: np.ndarray | None = None  # tokens of the certificate
    weights_J: np.ndarray | None = None  # their weights, >= 0, sum 1


def problem(
    head_VD: np.ndarray,
    bias_V: np.ndarray | None = None,
    box: tuple[np.ndarray, np.ndarray] | None = None,
) -> Problem:
    """The problem of a head, lifted by one coordinate where there is a bias.

    With a bias the logits are `f_j.x + b_j = (f_j, b_j).(x, s)` at s = 1: s is fixed there inside a
    box, and else free in [0, 1], as (x, s) and (x/s, 1) have the same argmax. A margin at s = 0
    survives a small s > 0, so nothing is lost. Rows must differ: see `unreachable.classes`.

    Args:
      head_VD: unembedding rows, finite.
      bias_V: output bias, or None.
      box: (lo_D, hi_D) that states are confined to, or None for every vector.

    Raises:
      ValueError: an empty or non-finite head, or a bias or box that does not fit it.
    """
    rows_VD = np.asarray(head_VD, np.float64)
    require(rows_VD.ndim == 2 and rows_VD.size > 0, "head", rows_VD.shape, "(V, D), both >= 1")
    require(bool(np.isfinite(rows_VD).all()), "head", "not finite", "finite numbers")
    V, D = rows_VD.shape
    if box is None:
        lo_D, hi_D = -np.ones(D), np.ones(D)
    else:
        lo_D, hi_D = (np.asarray(end, np.float64) for end in box)
        shaped = lo_D.shape == hi_D.shape == (D,)
        require(shaped, "box", (lo_D.shape, hi_D.shape), f"both ({D},)")
        ordered = bool(np.isfinite(hi_D - lo_D).all() and (lo_D <= hi_D).all())
        require(ordered, "box", "not in order", "finite ends, lo <= hi")
    if bias_V is not None:
        bias_V = np.asarray(bias_V, np.float64)
        require(bias_V.shape == (V,), "bias", bias_V.shape, f"({V},)")
        require(bool(np.isfinite(bias_V).all()), "bias", "not finite", "finite numbers")
        rows_VD = np.column_stack([rows_VD, bias_V])
        lo_D, hi_D = np.append(lo_D, 0.0 if box is None else 1.0), np.append(hi_D, 1.0)
    return Problem(rows_VD, lo_D, hi_D, box is None)


def proved_margin(p: Problem, token: int, x_D: np.ndarray) -> float:
    """The margin of `token` at x less float64's rounding: > 0 is a proof; -inf outside the box."""
    x = np.asarray(x_D, np.float64)
    if not (np.isfinite(x).all() and (x >= p.lo_D).all() and (x <= p.hi_D).all()):
        return -np.inf
    return float(proved_margins(p, np.array([token]), x[None])[0])


def proved_margins(p: Problem, tokens_N: np.ndarray, x_ND: np.ndarray) -> np.ndarray:
    """`proved_margin` of many, for x that are known to lie in the box; (N,)."""
    logits_NV = x_ND @ p.rows_VD.T
    place_N = np.arange(len(tokens_N))
    own_N = logits_NV[place_N, tokens_N]
    logits_NV[place_N, tokens_N] = -np.inf
    # |fl(g.x) - g.x| <= D u |g| |x| (Higham 2002, 3.5), for both products and their difference.
    length_N = np.linalg.norm(x_ND, axis=1) * np.linalg.norm(p.rows_VD, axis=1).max()
    return own_N - logits_NV.max(axis=1) - 2 * (len(p.lo_D) + 2) * _UNIT * length_N


def proved_bound(p: Problem, token: int, others_J: np.ndarray, weights_J: np.ndarray) -> float:
    """No x of the box prefers `token` by more than this; inf where the weights are no certificate.

    It is `h(g_i - sum w_j g_j)` plus float64's rounding and the weights' distance from sum 1.
    """
    others, weights = np.asarray(others_J), np.asarray(weights_J, np.float64)
    if len(others) == 0 or (others == token).any() or not (weights >= 0).all():
        return np.inf
    total = float(weights.sum())
    if not abs(total - 1) < 1e-6:
        return np.inf
    weights = weights / total
    r_D = p.rows_VD[token] - weights @ p.rows_VD[others]
    bound = float(np.maximum(p.lo_D * r_D, p.hi_D * r_D).sum())
    return bound + 2 * (len(others) + len(r_D) + 2) * _UNIT * p.scale


def solve(
    p: Problem,
    token: int,
    start_J: np.ndarray,
    tolerance: float,
    rounds: int,
    seconds: float,
) -> Verdict:
    """Decides one token by linear programs (HiGHS), each checked against all rows.

    Args:
      p: the problem.
      token: a row of it.
      start_J: tokens likely to be its rivals; more are added where they are violated.
      tolerance: a proved bound on the margin up to this share of `p.scale` counts as none.
      rounds: linear programs at most.
      seconds: for one linear program.

    Returns:
      reachable with a witness, unreachable with weights, or undecided and why; `margin` is in the
      unit of the logits.
    """
    V, D = p.rows_VD.shape
    if V == 1:
        return Verdict("reachable", "only token", np.inf, 0.5 * (p.lo_D + p.hi_D))
    scale = p.scale or 1.0
    active_J = np.setdiff1d(start_J, [token])
    grow = max(32, D // 2)
    bound = np.inf
    if len(active_J) == 0:
        active_J = np.setdiff1d(np.arange(min(V, grow)), [token])
    for _ in range(rounds):
        x_D, weights_J, why = _program(p, token, active_J, scale, seconds)
        if x_D is None or weights_J is None:
            return Verdict("undecided", f"HiGHS: {why}", bound)
        single_D = p.project(x_D).astype(np.float32).astype(np.float64)
        if proved_margin(p, token, single_D) > 0:  # fewer bytes to keep
            x_D = single_D
        margin = proved_margin(p, token, x_D)
        if margin > 0:
            return Verdict("reachable", "linear program", margin, x_D)
        used = weights_J > 0
        others_J, weights_J = _polished(p, token, active_J[used], weights_J[used])
        bound = min(bound, proved_bound(p, token, others_J, weights_J))
        if bound <= tolerance * scale:
            return Verdict("unreachable", "linear program", bound, None, others_J, weights_J)
        logits_V = p.rows_VD @ x_D
        logits_V[token] = -np.inf
        logits_V[active_J] = -np.inf
        new_J = np.argsort(-logits_V)[:grow]
        new_J = new_J[logits_V[new_J] > -np.inf]
        if len(new_J) == 0:
            return Verdict("undecided", f"margin at most {bound:.1e}, none proved", bound)
        active_J = np.append(active_J, new_J)
    return Verdict("undecided", f"{rounds} linear programs", bound)


def _program(
    p: Problem, token: int, active_J: np.ndarray, scale: float, seconds: float
) -> tuple[np.ndarray | None, np.ndarray | None, str]:
    """x and weights that are optimal against the active rows, or why there are none."""
    difference_JD = (p.rows_VD[token] - p.rows_VD[active_J]) / scale
    J, D = difference_JD.shape
    size_J = np.linalg.norm(difference_JD, axis=1)
    # Maximise t with (g_i - g_j).x >= t |g_i - g_j|: the same sign as without the norms, and near
    # rows, whose cells are thin, count like all others, so that few rows have to be added.
    found = linprog(
        np.append(np.zeros(D), -1.0),
        A_ub=np.column_stack([-difference_JD / size_J[:, None], np.ones(J)]),
        b_ub=np.zeros(J),
        bounds=[*zip(p.lo_D, p.hi_D, strict=True), (None, None)],
        method="highs-ds",
        options={
            "primal_feasibility_tolerance": 1e-10,
            "dual_feasibility_tolerance": 1e-10,
            "time_limit": seconds,
        },
    )
    if found.status != 0 or found.x is None:
        return None, None, str(found.message).split("\n")[0]
    weights_J = np.maximum(-found.ineqlin.marginals / size_J, 0)
    total = weights_J.sum()
    if not total > 0:
        return None, None, "no multipliers"
    x_D = p.project(found.x[:-1])
    return x_D, weights_J / total, ""


def _polished(
    p: Problem, token: int, others_J: np.ndarray, weights_J: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The same certificate to float64's last digits, where a least-squares step gives that."""
    system = np.vstack([p.rows_VD[others_J].T, np.full(len(others_J), p.scale)])
    wanted = np.append(p.rows_VD[token], p.scale)
    step_J = np.linalg.lstsq(system, wanted - system @ weights_J, rcond=None)[0]
    better_J = np.maximum(weights_J + step_J, 0)
    better_J = better_J / better_J.sum() if better_J.sum() > 0 else weights_J
    bounds = [proved_bound(p, token, others_J, w_J) for w_J in (weights_J, better_J)]
    return others_J, (better_J if bounds[1] < bounds[0] else weights_J)
