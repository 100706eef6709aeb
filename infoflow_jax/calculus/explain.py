"""Why a node has no host, what bounds a single layer below, and what an answer rests on."""

from dataclasses import dataclass

from infoflow_jax.calculus import costs
from infoflow_jax.calculus.alpha import canonical
from infoflow_jax.calculus.architecture import Architecture
from infoflow_jax.calculus.measures import Measures, Node, score_rank
from infoflow_jax.calculus.schedule import Schedule
from infoflow_jax.calculus.setting import Setting, group, hosts, last_layer
from infoflow_jax.calculus.tree import Reduce
from infoflow_jax.calculus.validation import Reason


@dataclass(frozen=True)
class Law:
    """A cost law, its exponent here, and whether it bounds from below."""

    name: str
    exponent: float
    lower: bool


def why(setting: Setting, plan: Schedule) -> tuple[Reason, ...]:
    """A reason for every node without a host."""
    missing = set(plan.unplaced)
    nodes = [node for node in setting.measures.nodes if node.name in missing]
    return tuple(Reason(node.name, _why(setting, plan, node)) for node in nodes)


def _why(setting: Setting, plan: Schedule, node: Node) -> str:
    layers, most = len(plan.heads), max(plan.heads)
    if node.kind == "read" and not setting.positions:
        return "reads a position, which needs a positional encoding"
    if not hosts(node, setting):
        return "sums over pairs: no one head makes it out of what each key knows of itself"
    needed = group(node, setting.tokens)
    if node.f >= 2 and needed > most:
        power = "T" if node.f == 2 else f"T^{node.f - 1}"
        return (
            f"needs {power} = {needed} heads in one layer, as its score ties {node.f + 1} indices"
        )
    first = setting.measures.level(node)
    last = max(last_layer(host, layers, setting) for host in hosts(node, setting))
    if first > last:
        end = (
            f"there are {layers}" if last == layers else f"tokens are of use in {last} of {layers}"
        )
        before = "a layer before" if first == 1 else f"{first} layers, one after the other"
        return f"needs {before}, and {end}"
    waits = [name for name in node.deps if name in plan.unplaced]
    if waits:
        return f"needs {', '.join(waits)} first"
    by = "tokens" if node.f else "c0"
    return f"the heads of {by} that could find it, in layers {first} to {last}, are all taken"


def lower_law(architecture: Architecture, measures: Measures) -> list[Law]:
    """What is known to be needed by one layer, if a published law speaks of such a target."""
    a = architecture
    h, n = a.heads[0], a.head_widths[0]
    if measures.each is not None:
        return []  # of Match3 there is one, m p H >= c T / log log T, with a constant not known
    if measures.order >= 2:
        exponent = float(costs.pair_lower_exponent(a.tokens, h, n))
        return [Law("Theorem 1 (stated for the least inner product)", exponent, True)]
    if h == 1 and (k := _peeled(measures)) >= 2:
        exponent = float(costs.kth_lower_exponent(a.tokens, k, n))
        return [Law("Theorem 2, by counting", exponent, True)]
    if measures.comparison_depth == 1 and measures.dimension > h:
        exponent = float(costs.head_shortage_exponent(a.tokens, h, measures.dimension, n))
        return [Law("head shortage", exponent, True)]
    return []


def _peeled(measures: Measures) -> int:
    """The k of a k-th largest: one score, each maximum without those before it; else 0."""
    found = [e for e in (n.expression for n in measures.comparisons) if isinstance(e, Reduce)]
    found.sort(key=lambda e: len(e.exclude))
    scores = {canonical(Reduce("min", e.over, e.score), ()) for e in found}
    same = len(scores) == len({e.op.removeprefix("arg") for e in found}) == 1
    chain = [len(e.exclude) for e in found] == list(range(len(found)))
    return len(found) if same and chain else 0


def notes(architecture: Architecture, setting: Setting, plan: Schedule) -> tuple[str, ...]:
    """What an answer rests on that no published law says."""
    found, nodes = [], {node.name: node for node in setting.measures.nodes}
    for placement in plan.placements:
        node = nodes.get(placement.node)
        if node is None:
            continue
        n = architecture.head_widths[placement.layer - 1]
        rank = score_rank(node, setting.d)
        if rank is None:
            found.append(f"{node.name}: no finite rank of its score is known (extension)")
        elif float(costs.rank_shortage(rank, n)) > 0:
            found.append(
                f"{node.name}: its score has rank {rank}, heads of layer {placement.layer} have "
                f"{n} coordinates (extension: not in the papers' laws)"
            )
        if node.f >= 2:
            found.append(
                f"{node.name}: each of its {placement.heads} heads stands for one token, which its "
                "hosts must know: positions, and a layer before, are not counted"
            )
        if node.kind == "total":
            found.append(f"{node.name}: a sum by equal weights, a sufficient statistic (extension)")
    left_out = [len(e.exclude) for e in (n.expression for n in nodes.values())
                if isinstance(e, Reduce)]  # fmt: skip
    if not plan.unplaced and max(left_out, default=0) >= 2:
        found.append("peeling off two or more maxima holds in mean square, not in sup norm")
    if not plan.unplaced and architecture.width * (1 + architecture.baseline) < plan.load:
        found.append(f"the fullest state holds {plan.load} coordinates, E = {architecture.width}")
    return tuple(dict.fromkeys(found))
