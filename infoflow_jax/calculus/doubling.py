"""A chain of equal hops by pointer doubling: tokens learn where many hops lead, c0 uses it.

Before layer l every token knows where 0..2^(l-1) - 1 hops from it lead; one head looks one hop
beyond the farthest, and that key brings as many more: 2^l - 1. c0 reads its start in layer 1, then
in layer l goes 1 + j hops, j <= 2^(l-1) - 1: with L layers of one head up to 2^L - 2 hops. So D
hops take ceil(log2(D + 2)) layers, where chaining takes D + 1 (a derivation of this project, after
Sanford et al., arXiv 2402.09268). Only a chain that is the whole target is seen.
"""

from infoflow_jax.calculus.alpha import canonical
from infoflow_jax.calculus.measures import Measures, Node
from infoflow_jax.calculus.schedule import Placement, Schedule
from infoflow_jax.calculus.setting import Setting
from infoflow_jax.calculus.tree import Reduce, Token


def hops(measures: Measures) -> int | None:
    """D of a target that reads one token and hops D times by one score; None of any other."""
    nodes = measures.nodes
    if len(nodes) < 2 or nodes[0].kind != "read" or measures.each is not None:
        return None
    start = nodes[0].expression
    if nodes[0].f > 0 or measures.outputs != (nodes[-1].name,) or not isinstance(start, Token):
        return None
    scores = {_score(node, last) for node, last in zip(nodes[1:], nodes, strict=False)}
    return len(nodes) - 1 if len(scores) == 1 and None not in scores else None


def _score(node: Node, last: Node) -> str | None:
    """The score of a hop with the token that it starts from left open."""
    e = node.expression
    if node.f > 0 or not isinstance(e, Reduce) or e.op not in Reduce.finds or e.exclude:
        return None
    here = str(last.expression) if last.kind == "read" else f"x({last.name})"
    score = str(canonical(e, ())).replace(here, "x(here)")
    return score if node.deps == (last.name,) else None


def reach(layers: int) -> int:
    """The hops that L layers of one head can make: 2^L - 2."""
    return 2**layers - 2


def fewest_layers(hops: int) -> int:
    """ceil(log2(D + 2)), the least L with D <= 2^L - 2."""
    return (hops + 1).bit_length()


def jumps(hops: int, layers: int) -> list[int]:
    """Hops of c0 in each of layers 1..L; the last ones may be 0, and the first, a read, is."""
    taken = [0]
    for layer in range(2, layers + 1):
        taken.append(min(hops - sum(taken), 2 ** (layer - 1)))
    return taken


def schedule(setting: Setting, heads: tuple[int, ...]) -> Schedule | None:
    """The schedule of a chain, or None: no chain, no positional encoding or too few layers.

    Its placements at tokens are named after no node of the target but "hop^m", m hops from each.
    """
    length = hops(setting.measures)
    if length is None or not setting.positions or length > reach(len(heads)):
        return None
    names = [node.name for node in setting.measures.nodes]
    made = jumps(length, len(heads))
    used = max(layer for layer, step in enumerate(made, 1) if step)
    placements, done = [Placement(names[0], 1, "c0")], 0
    for layer in range(1, used + 1):
        for name in names[1 + done : 1 + done + made[layer - 1]]:
            placements.append(Placement(name, layer, "c0"))
        done += made[layer - 1]
        if layer < used:
            placements.append(Placement(f"hop^{2**layer - 1}", layer, "tokens"))
    # A token keeps itself, the end of its pointer, and where c0 must go from it last.
    load = 3 * setting.d
    return Schedule(heads, tuple(placements), (), (1,), load, ())
