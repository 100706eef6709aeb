"""Slow references for the planner: every use of heads tried in turn, and what a value rests on.

Written from the rules in docs/theory_infoflow.md, without the planner's code.
"""

import itertools

from infoflow_jax.calculus.language import argmax, bilinear, dot, linear, maximum, minimum, the, x
from infoflow_jax.calculus.language import target as tree
from infoflow_jax.calculus.measures import Node, key_decides
from infoflow_jax.calculus.tree import Fixed, Reduce, Ref, Shift, Token, Var, children


def subsets(items, room, size=lambda item: 1):
    """Every subset whose sizes sum to at most `room`."""
    for count in range(len(items) + 1):
        for chosen in itertools.combinations(items, count):
            if sum(size(item) for item in chosen) <= room:
                yield chosen


def can(measures, T, positions, heads, shared=False):
    """Whether some use of the heads finds the target: all of them are tried."""
    nodes = {n.name: n for n in measures.nodes}
    each = measures.each is not None
    heads_of = {name: T ** max(0, n.f - 1) for name, n in nodes.items()}
    usable = {
        name
        for name, n in nodes.items()
        if not (n.kind == "read" and not positions)
        and not (n.kind == "total" and not key_decides(n))
    }

    def step(state, h, last):
        """Every state after one more layer."""
        tokens_know = {name for host, name in state if host == "tokens"}
        c0_knows = {name for host, name in state if host == "c0"}
        by_key = {name for name in tokens_know if nodes[name].f > 0 or shared}
        for_c0 = [
            name
            for name in usable
            if not each and nodes[name].f == 0 and set(nodes[name].deps) <= c0_knows | by_key
        ]
        for_tokens = [
            name for name in usable if (each or not last) and set(nodes[name].deps) <= tokens_know
        ]
        alone = [
            name
            for name in usable
            if positions and not each and not last and nodes[name].kind == "compare"
            and nodes[name].f == 0 and not nodes[name].deps
        ]  # fmt: skip
        busy = {name for name in usable if nodes[name].kind != "read"}
        for fetch, read, places in itertools.product((0, 1), (0, 1), range(h + 1)):
            if read + places > h:
                continue
            reads_c0 = [("c0", n) for n in for_c0 if n not in busy and fetch]
            reads_tokens = [("tokens", n) for n in for_tokens if n not in busy and read]
            fetched = [("c0", n) for host, n in state if host == "places" and fetch]
            for mine in subsets([n for n in for_c0 if n in busy], h - fetch):
                brings = fetch or any(nodes[n].kind == "compare" for n in mine)
                by_any = tokens_know if shared and brings and not each else ()
                brought = [("c0", n) for n in by_any if nodes[n].f == 0]
                room = h - read - places
                for theirs in subsets([n for n in for_tokens if n in busy], room, heads_of.get):
                    for others in subsets(alone, T * places):
                        yield state.union(
                            reads_c0, reads_tokens, fetched, brought,
                            (("c0", n) for n in mine), (("tokens", n) for n in theirs),
                            (("places", n) for n in others),
                        )  # fmt: skip

    states = {frozenset()}
    for layer, h in enumerate(heads, 1):
        states = {after for s in states for after in step(s, h, layer == len(heads))}
        # A state that is part of another can do nothing that the other cannot.
        states = {s for s in states if not any(s < other for other in states)}
    wanted = {("tokens" if each else "c0", name) for name in measures.outputs}
    return any(wanted <= state for state in states)


def rests_on(run, expression, context):
    """Positions whose tokens the value of an expression is computed from."""
    if isinstance(expression, Token):
        place = position(run, expression.index, context)
        return set() if place is None else {place}
    if isinstance(expression, Ref):
        return rests_on(run, dict(run.target.definitions)[expression.name], context)
    if isinstance(expression, Reduce):
        winner = position(run, expression, context)
        return {winner} | rests_on(run, expression.score, {**context, expression.over: winner})
    return set().union(*(rests_on(run, child, context) for child in children(expression)))


def position(run, index, context):
    match index:
        case Var(name=name):
            return context[name]
        case Ref(name=name):
            return position(run, dict(run.target.definitions)[name], {})
        case Reduce():
            return run.choice(Node("", "compare", index, (), ()), context)
        case Fixed() | Shift():
            return run.choice(Node("", "read", Token(index), (), ()), context)
    raise AssertionError(index)


def random_target(rng, reads):
    """A small target: a chain of found tokens, maxima of tokens and of pairs that may use them."""
    define, found = {}, []
    t, s = x("t"), x("s")
    for i in range(rng.integers(0, 3)):
        score = linear(f"b{i}", t)
        if found and rng.random() < 0.5:
            score = score + bilinear(x(the(rng.choice(found))), "B", t)
        if reads and rng.random() < 0.4:
            score = score + bilinear(x(int(rng.integers(1, 4))), "B", t)
        exclude = tuple(the(name) for name in found if rng.random() < 0.3)
        define[f"z{i}"] = argmax("t", score, exclude)
        found.append(f"z{i}")
    terms = [linear("c", x(the(name))) for name in found]
    for i in range(rng.integers(0 if terms else 1, 3)):
        pair = rng.random() < 0.5
        score = minimum("s", dot(s, t) + linear(f"a{i}", s)) if pair else linear(f"a{i}", t)
        if found and rng.random() < 0.3:
            score = score + bilinear(x(the(rng.choice(found))), "B", t)
        terms.append(maximum("t", score))
    output = terms[0]
    for term in terms[1:]:
        output = output + term
    return tree(output, define=define)
