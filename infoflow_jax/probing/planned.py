"""The planner's answer on real inputs, in the shapes of `dependence`: two sets, and nodes' keys.

`known` is I(t, l): all that a state could give, what a key knows for other nodes included. `used`
is what the values are made of that the schedule keeps there: its compiled network depends on that
and on nothing else. By brute force over an input's indices (`calculus.meaning`), so for small T.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from infoflow_jax.calculus.meaning import Evaluator
from infoflow_jax.calculus.measures import Node
from infoflow_jax.calculus.realize import realize
from infoflow_jax.calculus.schedule import Schedule
from infoflow_jax.calculus.tree import Reduce, Target
from sweep_jax.checks import require


class Planned(NamedTuple):
    """On N inputs; L from layer 1 on, P = T + 1 positions, the last c0, S = T tokens.

    Attributes:
      known_NLPS: whether the state could give the token.
      used_NLPS: whether what it holds by the schedule is made of the token.
      keys: (layer from 0, node) -> the key that it shows to each query, (N, P); -1 for none.
    """

    known_NLPS: np.ndarray
    used_NLPS: np.ndarray
    keys: Mapping[tuple[int, str], np.ndarray]


def plan_inputs(
    schedule: Schedule, target: Target, weights: Mapping[str, ArrayLike], x_NTD: np.ndarray
) -> Planned:
    """Sets and keys of a schedule on every input.

    Raises:
      ValueError: nodes at places, or of two indices; what `calculus.meaning.Evaluator` refuses.
    """
    N, T, _ = x_NTD.shape
    known, used, keys = [], [], dict[tuple[int, str], np.ndarray]()
    for row, x_TD in enumerate(x_NTD):
        run = Evaluator(target, x_TD, weights)
        flow = realize(schedule, run)
        known.append(flow.known_LPP[1:, :, :T])
        used.append(_held(schedule, run))
        for layer, _, query, key, node in flow.moves:
            at = keys.setdefault((layer - 1, node), np.full((N, T + 1), -1))
            at[row, query] = key
    return Planned(np.stack(known), np.stack(used), keys)


def _held(schedule: Schedule, run: Evaluator) -> np.ndarray:
    """`used` of one input, (L, P, S)."""
    T, held = run.tokens, []
    used_PS = np.eye(T + 1, T, dtype=bool)
    for layer in range(1, len(schedule.heads) + 1):
        for p in (p for p in schedule.placements if p.layer == layer):
            node = run.measures.node(p.node)
            simple = p.host != "places" and node.f <= 1
            require(simple, "schedule", f"{p.node} at {p.host}", "nodes of c0 or of one token")
            for query in range(T) if p.host == "tokens" else (T,):
                used_PS[query, list(_made_of(run, node, dict.fromkeys(node.free, query)))] = True
        held.append(used_PS.copy())
    return np.stack(held)


def _made_of(run: Evaluator, node: Node, context: Mapping[str, int]) -> set[int]:
    """The tokens that a node's value is made of: its indices', its key's, those of its scores."""
    found, key = {context[name] for name in node.free}, run.choice(node, context)
    if key is None:  # a read outside the sequence
        return found
    e = node.expression
    inside = {**context, e.over: key} if isinstance(e, Reduce) else context
    for name in node.deps:
        found |= _made_of(run, run.measures.node(name), inside)
    return found | {key}
