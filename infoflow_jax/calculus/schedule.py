"""Which head of which layer does each node of a target: an exact integer program.

A head serves c0 in one way and all tokens in another at the same time. Says what fits and what does
not; the rules are those of `constraints`, and reasons and costs are `planner`'s.
"""

from dataclasses import dataclass

from infoflow_jax.calculus.constraints import build, tidiness
from infoflow_jax.calculus.program import Name, Terms
from infoflow_jax.calculus.setting import Host, Setting, group


@dataclass(frozen=True)
class Placement:
    """A node's host: `heads` heads of a layer, the first layer being 1."""

    node: str
    layer: int
    host: Host
    heads: int = 1


@dataclass(frozen=True)
class Schedule:
    """A plan, complete or as much of it as fits.

    Attributes:
      heads: h_l of every layer.
      placements: by layer; a node may have two hosts.
      fetched: (node, layer): what tokens found and c0 takes over in that layer.
      fetch_heads: layers in which c0 spends a head on reading or taking over.
      load: coordinates that the fullest state must hold, all that it ever finds being kept.
      unplaced: nodes without a place.
    """

    heads: tuple[int, ...]
    placements: tuple[Placement, ...]
    fetched: tuple[tuple[str, int], ...]
    fetch_heads: tuple[int, ...]
    load: int
    unplaced: tuple[str, ...]

    def on(self, host: Host, layer: int) -> tuple[Placement, ...]:
        """What a host does in a layer."""
        return tuple(p for p in self.placements if p.host == host and p.layer == layer)


def best(setting: Setting, heads: tuple[int, ...]) -> Schedule:
    """As many nodes as fit into given heads, then the least load, the fewest and earliest."""
    program = build(setting, heads, max(heads))
    nodes = setting.measures.nodes
    placed: Terms = {("placed", node.name): -1 for node in nodes}
    found = program.solve([placed, {("load",): 1}, tidiness(program, setting)])
    assert found is not None  # nothing placed is always allowed
    return _read(setting, found, len(heads))


def smallest(
    setting: Setting, layers: int, most_heads: int, most_load: int | None = None
) -> Schedule | None:
    """Every node in the fewest heads of `layers` layers; None if that cannot be.

    Args:
      setting: what is planned for.
      layers: L.
      most_heads: of one layer.
      most_load: of one state; None for any.
    """
    program = build(setting, None, most_heads, layers)
    for node in setting.measures.nodes:
        program.row({("placed", node.name): 1}, low=1)
    if most_load is not None:
        program.row({("load",): 1}, high=most_load)
    total: Terms = {("h", layer): 1 for layer in range(1, layers + 1)}
    found = program.solve([total, {("load",): 1}, tidiness(program, setting)])
    return None if found is None else _read(setting, found, layers)


def _read(setting: Setting, found: dict[Name, int], layers: int) -> Schedule:
    placements, fetched, unplaced, fetch = [], [], [], []
    heads = [0] * layers
    for name, value in found.items():
        match name:
            case ("y", node, layer, host) if value:
                taken = group(setting.measures.node(node), setting.tokens)
                heads_of = taken if host == "tokens" else 1
                placements.append(Placement(node, layer, host, heads_of))
            case ("taken", node, layer, _) if value:
                fetched.append((node, layer))
            case ("placed", node) if not value:
                unplaced.append(node)
            case ("fetch", layer) if value:
                fetch.append(layer)
            case ("h", layer):
                heads[layer - 1] = value
    placements.sort(key=lambda p: p.layer)
    return Schedule(
        tuple(heads),
        tuple(placements),
        tuple(sorted(fetched, key=lambda pair: pair[1])),
        tuple(fetch),
        found[("load",)],
        tuple(unplaced),
    )
