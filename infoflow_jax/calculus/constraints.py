"""The rules of the use of heads, as rows of an integer program.

They are docs/theory_infoflow.md's, from arXiv 2605.17930 and this project: what they refuse,
another use of the same heads may still do. Solving and reading is the matter of `schedule`.
"""

from collections.abc import Sequence

from infoflow_jax.calculus.measures import Node
from infoflow_jax.calculus.program import Name, Program
from infoflow_jax.calculus.setting import Host, Setting, group, hosts, last_layer


def build(
    setting: Setting, heads: Sequence[int] | None, most_heads: int, layers: int = 0
) -> Program:
    """The rules as rows; ("y", node, layer, host) is 1 where a node has that place."""
    program, measures = Program(), setting.measures
    layers = layers if heads is None else len(heads)
    span = range(1, layers + 1)
    for layer in span:
        low, high = (1, most_heads) if heads is None else (heads[layer - 1],) * 2
        program.variable(("h", layer), high, low)
        program.variable(("fetch", layer), 1)  # a head of c0 that reads or takes over
        program.variable(("read", layer), 1)  # a head of the tokens that reads
        program.variable(("at places", layer), high)
    for node in measures.nodes:
        program.variable(("placed", node.name), 1)
        for host in hosts(node, setting):
            room = group(node, setting.tokens) <= most_heads
            for layer in span[: last_layer(host, layers, setting)] if room else ():
                program.variable(("y", node.name, layer, host), 1)
        for source in _carriers(node, setting):
            for layer in span[1:]:
                program.variable(("taken", node.name, layer, source), 1)
    for node in measures.nodes:
        _rows_of_node(program, setting, node, span)
    for layer in span:
        _rows_of_layer(program, setting, layer)
    _rows_of_load(program, setting, span)
    return program


def _places(program: Program, name: str, hosts: Sequence[Host], span: range) -> dict[Name, int]:
    found = (("y", name, layer, host) for layer in span for host in hosts)
    return {variable: 1 for variable in found if variable in program}


def _carriers(node: Node, setting: Setting) -> list[Host]:
    """Hosts other than c0 from which c0 may take over what a node found."""
    shared = setting.rules.shared_hosts and node.f == 0 and setting.measures.each is None
    wanted: list[Host] = ["tokens", "places"] if shared else ["places"]
    return [host for host in hosts(node, setting) if host in wanted]


def _rows_of_node(program: Program, setting: Setting, node: Node, span: range) -> None:
    measures = setting.measures
    compares = [other.name for other in measures.comparisons]
    for layer in span[1:]:
        for source in _carriers(node, setting):
            taken = ("taken", node.name, layer, source)
            program.row({taken: -1, **_places(program, node.name, [source], span[: layer - 1])}, 0)
            # What single places hold only a head at fixed positions collects; what all tokens
            # hold, any head of c0 brings.
            able: dict[Name, int] = {("fetch", layer): 1}
            for name in compares if source == "tokens" else ():
                able |= _places(program, name, ["c0"], range(layer, layer + 1))
            program.row({taken: -1, **able}, 0)
    for layer in span:
        for host in hosts(node, setting):
            mine = ("y", node.name, layer, host)
            for name in node.deps if mine in program else ():
                sources = _sources(program, setting, name, host, range(1, layer))
                program.row({mine: -1, **sources}, 0)
    needs_c0 = node.name in measures.outputs and measures.each is None
    ends: list[Host] = ["c0"] if needs_c0 else ["c0", "tokens", "places"]
    there = _places(program, node.name, ends, span) | _taken(program, node.name, span)
    program.row({("placed", node.name): -1, **there}, 0)


def _taken(program: Program, name: str, span: range) -> dict[Name, int]:
    found = (("taken", name, layer, host) for layer in span for host in ("tokens", "places"))
    return {variable: 1 for variable in found if variable in program}


def _sources(
    program: Program, setting: Setting, name: str, host: Host, earlier: range
) -> dict[Name, int]:
    """Where a host may have a dependency from: its own state, or that of the key it looks at."""
    if host != "c0":
        return _places(program, name, ["tokens"], earlier)
    by_key = setting.measures.node(name).f > 0 or setting.rules.shared_hosts
    own = _places(program, name, ["c0", "tokens"] if by_key else ["c0"], earlier)
    return own | _taken(program, name, earlier)


def _rows_of_layer(program: Program, setting: Setting, layer: int) -> None:
    """Heads are not more than there are, for c0 and for the tokens apart."""
    at_c0: dict[Name, int] = {("h", layer): -1, ("fetch", layer): 1}
    at_tokens: dict[Name, int] = {
        ("h", layer): -1,
        ("read", layer): 1,
        ("at places", layer): 1,
    }
    served: dict[Name, int] = {("at places", layer): -setting.tokens}
    for node in setting.measures.nodes:
        for host, terms, reader in (
            ("c0", at_c0, "fetch"),
            ("tokens", at_tokens, "read"),
            ("places", served, ""),
        ):
            mine = ("y", node.name, layer, host)
            if mine not in program:
                continue
            if node.kind == "read":
                program.row({mine: -1, (reader, layer): 1}, 0)
            else:
                terms[mine] = group(node, setting.tokens) if host == "tokens" else 1
    for terms in (at_c0, at_tokens, served):
        program.row(terms, high=0)


def _rows_of_load(program: Program, setting: Setting, span: range) -> None:
    nodes = setting.measures.nodes
    size = {node.name: node.coordinates(setting.d) for node in nodes}
    most = setting.d + 2 * len(span) * sum(
        size[node.name] * group(node, setting.tokens) for node in nodes
    )
    program.variable(("load",), min(most, 2**31))
    at_c0: dict[Name, int] = {("load",): -1}
    at_tokens: dict[Name, int] = {("load",): -1}
    for node in nodes:
        at_c0 |= {name: size[node.name] for name in _taken(program, node.name, span)}
        for layer in span:
            for host, terms in (("c0", at_c0), ("tokens", at_tokens)):
                mine = ("y", node.name, layer, host)
                if mine in program:
                    share = group(node, setting.tokens) if host == "tokens" else 1
                    terms[mine] = size[node.name] * share
    largest = max(size.values(), default=0)
    at_tokens |= {("at places", layer): largest for layer in span}
    program.row(at_c0, high=0)
    program.row(at_tokens, high=-setting.d)


def tidiness(program: Program, setting: Setting) -> dict[Name, int]:
    """Few places, early ones, and no head that does nothing: of equal plans the plainest."""
    weight = {"y": 100, "taken": 100, "fetch": 50, "read": 50, "at places": 50}
    order = [node.name for node in setting.measures.nodes]
    terms: dict[Name, int] = {}
    for name in program.names():
        if name[0] in weight:
            whole = name[0] in ("fetch", "read", "at places")
            layer, after = (name[1], 0) if whole else (name[2], order.index(name[1]))
            terms[name] = len(order) * weight[name[0]] + layer * (len(order) - after)
    return terms
