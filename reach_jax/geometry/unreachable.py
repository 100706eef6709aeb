"""Tokens that no state, hence no prompt, can ever make the argmax; every other with its witness.

A token is *reachable* here if some vector of the allowed set prefers it by a positive margin, and
*unreachable* if none does: its row is then a mixture of other rows, up to a stated tolerance, and
it can win exact ties at most (Demeter et al. 2020, Grivas et al. 2022). Of equal rows the lowest
token id wins every tie, so the others are unreachable. A witness is a vector: that a prompt leads
there is another question, which only tokens seen at sampled states answer with yes.
"""

import dataclasses
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from reach_jax.geometry.separation import (
    Problem,
    Verdict,
    proved_bound,
    proved_margins,
    solve,
)
from reach_jax.geometry.witnesses import Search
from sweep_jax.checks import require

_BATCH = 1024


@dataclasses.dataclass(frozen=True)
class UnreachableConfig:
    """How long each stage may try."""

    relaxation: int  # steps for the tokens that the directions leave open
    rivals: int  # nearest rows that a linear program starts with
    rounds: int  # linear programs a token
    seconds: float  # a linear program
    tolerance: float  # of the greatest logit that the box allows: a smaller margin is none

    def __post_init__(self) -> None:
        require(self.relaxation >= 0, "relaxation", self.relaxation, "an integer >= 0")
        require(self.rivals >= 1, "rivals", self.rivals, "an integer >= 1")
        require(self.rounds >= 1, "rounds", self.rounds, "an integer >= 1")
        require(self.seconds > 0, "seconds", self.seconds, "a number > 0")
        require(0 < self.tolerance < 1e-3, "tolerance", self.tolerance, "in (0, 1e-3)")


def classes(head_VD: np.ndarray, bias_V: np.ndarray | None = None) -> np.ndarray:
    """For each token the lowest token with the same row (and bias): itself, where none is lower."""
    rows = np.asarray(head_VD) + 0.0  # -0 and 0 are one number and two byte strings
    if bias_V is not None:
        rows = np.column_stack([rows, bias_V])
    _, first_U, inverse_V = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    return first_U[inverse_V.reshape(-1)]


def decide(
    p: Problem,
    tokens_N: np.ndarray,
    settings: UnreachableConfig,
    states: Iterable[np.ndarray] = (),
    tell: Callable[[int], None] = lambda decided: None,
    stop: Callable[[], bool] = lambda: False,
) -> list[Verdict] | None:
    """Decides each of `tokens_N`, rows of the problem: cheap tries first, linear programs last.

    Args:
      p: the problem; its rows all differ.
      tokens_N: which rows.
      settings: see there.
      states: vectors of the allowed set that were met in practice, batches (B, D) as the problem
        has them (lifted, scaled).
      tell: called with the number of tokens decided since it was last called.
      stop: looked at between two batches; when it says so, None is returned.

    Returns:
      One verdict a token, in the order of `tokens_N`.
    """
    made = _Decisions(p, np.asarray(tokens_N), tell)
    for batch_BD in states:
        made.meet(batch_BD)
    for stage in (made.direct, made.relax, made.program):
        for places_N in made.open(1 if stage == made.program else _BATCH):
            if stop():
                return None
            stage(places_N, settings)
    return [verdict for verdict in made.verdicts if verdict is not None]


class _Decisions:
    """The verdicts so far, and the stages that add to them; a place is an index into `tokens`."""

    def __init__(self, p: Problem, tokens_N: np.ndarray, tell: Callable[[int], None]) -> None:
        self._p, self._tokens_N, self._tell = p, tokens_N, tell
        self._search = Search(p)
        self._rivals: dict[int, set[int]] = {}
        self.verdicts: list[Verdict | None] = [None] * len(tokens_N)

    def open(self, batch: int) -> list[np.ndarray]:
        """Places without a verdict, in batches."""
        places = np.array([n for n, verdict in enumerate(self.verdicts) if verdict is None], int)
        return [places[start : start + batch] for start in range(0, len(places), batch)]

    def meet(self, batch_BD: np.ndarray) -> None:
        """Tokens that win at a state that was met."""
        won_B = np.argmax(batch_BD @ self._p.rows_VD.T.astype(batch_BD.dtype), axis=1)
        tokens_W, first_W = np.unique(won_B, return_index=True)
        _, places, rows = np.intersect1d(self._tokens_N, tokens_W, return_indices=True)
        fresh = np.array([self.verdicts[n] is None for n in places], bool)
        self._accept(places[fresh], batch_BD[first_W[rows[fresh]]], "state")

    def direct(self, places_N: np.ndarray, settings: UnreachableConfig) -> None:
        """The directions that rows and box give."""
        for by, x_ND in self._search.directions(self._tokens_N[places_N]):
            left = np.array([n for n, q in enumerate(places_N) if self.verdicts[q] is None], int)
            if len(left) == 0:
                return
            margin_N, _ = self._search.margins(self._tokens_N[places_N[left]], x_ND[left])
            won = left[margin_N > 0]
            self._accept(places_N[won], x_ND[won], by)

    def relax(self, places_N: np.ndarray, settings: UnreachableConfig) -> None:
        """Relaxation; the rivals that it meets are where a linear program starts."""
        steps = settings.relaxation
        for here_N, x_ND, rival_N in self._search.relax(self._tokens_N[places_N], steps):
            won_N = rival_N < 0
            self._accept(places_N[here_N[won_N]], x_ND[won_N], "relaxation")
            for place, rival in zip(places_N[here_N].tolist(), rival_N.tolist(), strict=True):
                if rival >= 0:
                    self._rivals.setdefault(place, set()).add(rival)

    def program(self, places_N: np.ndarray, settings: UnreachableConfig) -> None:
        """Linear programs."""
        for place in places_N.tolist():
            token = int(self._tokens_N[place])
            met_J = np.array(sorted(self._rivals.get(place, ())), int)
            start_J = np.union1d(met_J, _nearest(self._p, token, settings.rivals))
            self.verdicts[place] = solve(
                self._p, token, start_J, settings.tolerance, settings.rounds, settings.seconds
            )
            self._tell(1)

    def _accept(self, places_N: np.ndarray, x_ND: np.ndarray, by: str) -> None:
        """Keeps what float64 proves."""
        if len(places_N) == 0:
            return
        p = self._p
        x_ND = np.clip(x_ND.astype(np.float64), p.lo_D, p.hi_D)
        margin_N = proved_margins(p, self._tokens_N[places_N], x_ND)
        for n in np.flatnonzero(margin_N > 0):
            self.verdicts[places_N[n]] = Verdict("reachable", by, float(margin_N[n]), x_ND[n])
        self._tell(int((margin_N > 0).sum()))


def check(p: Problem, token: int, verdict: Verdict, tolerance: float) -> bool:
    """Whether the proof of a verdict holds, from the rows alone; undecided needs none."""
    if verdict.status == "reachable":
        x_D = verdict.witness_D
        if x_D is None or not ((x_D >= p.lo_D).all() and (x_D <= p.hi_D).all()):
            return False
        return bool(proved_margins(p, np.array([token]), x_D[None])[0] > 0)
    if verdict.status == "unreachable":
        if verdict.others_J is None or verdict.weights_J is None:
            return False
        bound = proved_bound(p, token, verdict.others_J, verdict.weights_J)
        return bound <= tolerance * p.scale
    return True


def recheck(
    p: Problem, tokens_N: np.ndarray, verdicts: Sequence[Verdict], tolerance: float
) -> np.ndarray:
    """`check` of many, the witnesses by matrix products; bool of shape (N,)."""
    held_N = np.ones(len(verdicts), bool)
    places = [n for n, v in enumerate(verdicts) if v.witness_D is not None]
    for start in range(0, len(places), _BATCH):
        part = places[start : start + _BATCH]
        x_ND = np.stack([np.asarray(verdicts[n].witness_D) for n in part])
        inside_N = ((x_ND >= p.lo_D) & (x_ND <= p.hi_D)).all(axis=1)
        held_N[part] = inside_N & (proved_margins(p, tokens_N[part], x_ND) > 0)
    for n, verdict in enumerate(verdicts):
        if verdict.witness_D is None:
            held_N[n] = check(p, int(tokens_N[n]), verdict, tolerance)
    return held_N


def _nearest(p: Problem, token: int, count: int) -> np.ndarray:
    distance_V = np.square(p.rows_VD - p.rows_VD[token]).sum(axis=1)
    distance_V[token] = np.inf
    return np.argsort(distance_V)[: min(count, len(distance_V) - 1)]
