"""What c0 and the tokens know after each layer of a schedule, in names of nodes.

The symbolic form of information sets: "t" is the token itself, "max_s1(t)" what node max_s1 found
for it, "max_t1" what that node found for all, "max_s1(max_t1)" what the token found by max_t1 had
found before. Positions of a real input are `realize`'s.
"""

from infoflow_jax.calculus.schedule import Schedule
from infoflow_jax.calculus.setting import Setting

Knowledge = tuple[dict[str, frozenset[str]], ...]


def knowledge(setting: Setting, schedule: Schedule) -> Knowledge:
    """For l = 0..L: host -> what it knows; "places" are tokens that serve a node of their own."""
    each_token, c0, places = {"t"}, set[str](), set[str]()
    history = [_frozen(each_token, c0, places)]
    for layer in range(1, len(schedule.heads) + 1):
        gained, found = set[str](), set[str]()
        for p in schedule.on("tokens", layer):
            gained |= _seen(p.node, _free(setting, p.node), each_token)
        for p in schedule.on("c0", layer):
            if _free(setting, p.node) == 0:
                found |= _seen(p.node, 0, each_token)
        found |= {node for node, when in schedule.fetched if when == layer}
        places |= {p.node for p in schedule.on("places", layer)}
        each_token |= gained
        c0 |= found
        history.append(_frozen(each_token, c0, places))
    return tuple(history)


def _frozen(tokens: set[str], c0: set[str], places: set[str]) -> dict[str, frozenset[str]]:
    found = {"c0": frozenset(c0), "tokens": frozenset(tokens)}
    return found | ({"places": frozenset(places)} if places else {})


def _free(setting: Setting, name: str) -> int:
    """f of a node; 1 of a pointer, which is no node of the target."""
    return next((node.f for node in setting.measures.nodes if node.name == name), 1)


def _seen(name: str, free: int, each_token: set[str]) -> set[str]:
    """What a head that finds a node brings: the token found and all that it knows."""
    mine = {0: name, 1: f"{name}(t)"}.get(free, f"{name}(.., t)")
    return {item.replace("t", mine, 1) if item == "t" else _at(item, mine) for item in each_token}


def _at(item: str, where: str) -> str:
    """What is known of t, for another token; of an f = 0 node it is the same."""
    return item.replace("(t)", f"({where})").replace("(.., t)", f"(.., {where})")
