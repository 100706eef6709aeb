"""A schedule on a real input: what every head shows, and the information sets that follow.

The planner's claim made checkable: nothing of its rules is used here but which head a node was
given. A head of a group of T^(f - 1) stands for one value of each index but the last that a node's
host does not serve. Keys come from `meaning`, by brute force: for small T.
"""

import itertools
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from infoflow_jax.calculus import modes, sets
from infoflow_jax.calculus.meaning import Evaluator
from infoflow_jax.calculus.modes import Mode
from infoflow_jax.calculus.schedule import Placement, Schedule


@dataclass(frozen=True)
class Flow:
    """What a network of a schedule does on one input. P = T + 1 positions, the last c0.

    Attributes:
      mode_LHP: a `Mode` for each head and query; heads that are off, in spare layers too, are OFF.
      key_LHP: in mode MAX the key, -1 for none.
      fixed_LHPP: in mode POSITIONS the keys.
      shown_LPP: keys that some head shows to a query.
      known_LPP: I(., l) for l = 0..L, so L + 1 of them.
      moves: (layer, head, query, key, node) of every key that a head shows.
    """

    mode_LHP: np.ndarray
    key_LHP: np.ndarray
    fixed_LHPP: np.ndarray
    shown_LPP: np.ndarray
    known_LPP: np.ndarray
    moves: tuple[tuple[int, int, int, int, str], ...]


_shown = jax.jit(jax.vmap(modes.shown))


def realize(schedule: Schedule, run: Evaluator) -> Flow:
    """The flow of a schedule of `run`'s target on `run`'s input."""
    T, L, H = run.tokens, len(schedule.heads), max(schedule.heads)
    builder = _Builder(run, (L, H, T + 1))
    at_place: dict[str, int] = {}
    for layer in range(1, L + 1):
        builder.layer(schedule, layer, at_place)
    allowed_LPP = np.stack(
        [np.asarray(modes.allowed(T, causal=False, c0_as_key=layer > 0)) for layer in range(L)]
    )
    seen_LPW = _shown(
        jnp.asarray(builder.mode_LHP, jnp.int32),
        jnp.asarray(builder.key_LHP, jnp.int32),
        jnp.asarray(builder.fixed_LHPP),
        jnp.asarray(allowed_LPP),
    )
    known_LPW = sets.propagate(seen_LPW)
    return Flow(
        builder.mode_LHP,
        builder.key_LHP,
        builder.fixed_LHPP,
        np.asarray(sets.unpack(seen_LPW, T + 1)),
        np.asarray(sets.unpack(known_LPW, T + 1)),
        tuple(builder.moves),
    )


class _Builder:
    """Gives the nodes of a layer their heads, those of c0 and of the tokens apart."""

    def __init__(self, run: Evaluator, shape: tuple[int, int, int]) -> None:
        self.run = run
        self.mode_LHP = np.zeros(shape, np.int32)
        self.key_LHP = np.full(shape, -1, np.int32)
        self.fixed_LHPP = np.zeros((*shape, shape[-1]), bool)
        self.moves: list[tuple[int, int, int, int, str]] = []

    def layer(self, schedule: Schedule, layer: int, at_place: dict[str, int]) -> None:
        free = self._tokens(schedule, layer)
        self._places(schedule, layer, free, at_place)
        self._c0(schedule, layer, at_place)

    def _tokens(self, schedule: Schedule, layer: int) -> int:
        """Returns the first head that the tokens leave free."""
        head, reads = 0, []
        for p in schedule.on("tokens", layer):
            node = self.run.measures.node(p.node)
            if node.kind == "read":
                reads.append(p)
                continue
            others = itertools.product(range(self.run.tokens), repeat=max(0, node.f - 1))
            for values in others:
                for t in range(self.run.tokens):
                    context = dict(zip(node.free, (*values, t), strict=False))
                    self._show(layer, head, t, p.node, context)
                head += 1
        for p in reads:
            node = self.run.measures.node(p.node)
            for t in range(self.run.tokens):
                self._show(layer, head, t, p.node, dict.fromkeys(node.free, t))
        return head + bool(reads)

    def _places(self, schedule: Schedule, layer: int, first: int, at_place: dict[str, int]) -> None:
        for number, p in enumerate(schedule.on("places", layer)):
            group, at_place[p.node] = divmod(number, self.run.tokens)
            self._show(layer, first + group, at_place[p.node], p.node, {})

    def _c0(self, schedule: Schedule, layer: int, at_place: dict[str, int]) -> None:
        c0, head = self.run.tokens, 0
        readers: list[Placement] = []
        for p in schedule.on("c0", layer):
            if self.run.measures.node(p.node).kind == "read":
                readers.append(p)
            else:
                self._show(layer, head, c0, p.node, {})
                head += 1
        if layer not in schedule.fetch_heads:
            return
        for p in readers:
            self._show(layer, head, c0, p.node, {})
        for name, when in schedule.fetched:
            if when == layer:  # what all tokens hold is taken from the first
                self._fix(layer, head, c0, at_place.get(name, 0), name)

    def _show(self, layer: int, head: int, query: int, name: str, context: dict[str, int]) -> None:
        node = self.run.measures.node(name)
        where = (layer - 1, head, query)
        if node.kind == "total":
            self.mode_LHP[where] = Mode.GLOBAL
            self.moves += [(layer, head, query, key, name) for key in range(self.run.tokens)]
            return
        key = self.run.choice(node, context)
        if node.kind == "read":
            if key is not None:
                self._fix(layer, head, query, key, name)
            return
        assert key is not None
        self.mode_LHP[where], self.key_LHP[where] = Mode.MAX, key
        self.moves.append((layer, head, query, key, name))

    def _fix(self, layer: int, head: int, query: int, key: int, name: str) -> None:
        self.mode_LHP[layer - 1, head, query] = Mode.POSITIONS
        self.fixed_LHPP[layer - 1, head, query, key] = True
        self.moves.append((layer, head, query, key, name))
