"""Schedules against every use of heads tried in turn, and on real inputs."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from infoflow_jax.calculus import targets
from infoflow_jax.calculus.architecture import Architecture, Rules
from infoflow_jax.calculus.meaning import Evaluator
from infoflow_jax.calculus.measures import measure
from infoflow_jax.calculus.planner import setting_of
from infoflow_jax.calculus.realize import realize
from infoflow_jax.calculus.schedule import best, smallest
from infoflow_jax.calculus.text import parse
from tests.calculus.exhaustive import can, random_target, rests_on

T, d = 4, 2


def setting(target, positions, shared=False, tokens=T):
    architecture = Architecture((1,), 8, d, tokens, positions)
    return setting_of(architecture, target, Rules(shared))


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    heads=st.lists(st.integers(1, 2), min_size=1, max_size=3),
    positions=st.booleans(),
    shared=st.booleans(),
)
def test_what_fits_is_what_some_use_of_the_heads_finds(seed, heads, positions, shared):
    target = random_target(np.random.default_rng(seed), positions)
    plan = best(setting(target, positions, shared), tuple(heads))
    assert (not plan.unplaced) == can(measure(target), T, positions, heads, shared)


@pytest.mark.parametrize("name", targets.SHIPPED)
@pytest.mark.parametrize("shared", [False, True])
def test_no_smaller_architecture_does_it(name, shared):
    D, positions = 2, name in ("khop", "induction", "positions")
    target = targets.named(name, D)
    for layers in (1, 2, 3):
        plan = smallest(setting(target, positions, shared), layers, 4)
        fits = [
            sum(heads)
            for heads in itertools.product(range(1, 5), repeat=layers)
            if sum(heads) <= (sum(plan.heads) if plan else 99)
            and can(measure(target), T, positions, heads, shared)
        ]
        assert (sum(plan.heads) if plan else None) == min(fits, default=None), (layers, plan)


def check_on_input(target, plan, seed, tokens=T):
    """Every head can compute its score, and what is read knows what the value rests on."""
    rng = np.random.default_rng(seed)
    run = Evaluator(target, rng.standard_normal((tokens, d)), targets.draw_weights(target, d, rng))
    flow = realize(plan, run)
    nodes = {n.name: n for n in run.measures.nodes}
    for layer, head, query, key, name in flow.moves:
        assert flow.shown_LPP[layer - 1, query, key]
        node = nodes[name]
        if node.kind != "compare" or flow.mode_LHP[layer - 1, head, query] != 1:
            continue
        contexts = [dict.fromkeys(node.free, query)]
        given_tokens = set()  # what a head of a group of T^(f-1) stands for, its host must know
        if node.f > 1:
            contexts = [
                dict(zip(node.free, (*v, query), strict=True))
                for v in itertools.product(range(tokens), repeat=node.f - 1)
            ]
            given_tokens = set(range(tokens))
        before = flow.known_LPP[layer - 1]
        for context in contexts:
            for s in range(tokens):
                needs = rests_on(run, node.expression.score, {**context, node.expression.over: s})
                has = set(np.flatnonzero(before[query] | before[s])) | given_tokens
                assert needs <= has, (name, layer, query, s, needs, has)
    last = flow.known_LPP[-1]
    each = target.each
    for reader in range(tokens) if each else [tokens]:
        needs = rests_on(run, target.output, {each: reader} if each else {})
        assert needs <= set(np.flatnonzero(last[reader])), (reader, needs)
    return flow


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), positions=st.booleans(), shared=st.booleans())
def test_a_schedule_brings_what_it_says(seed, positions, shared):
    target = random_target(np.random.default_rng(seed), positions)
    plan = smallest(setting(target, positions, shared), 1 + seed % 5, 4)
    if plan is not None:
        assert not plan.unplaced
        check_on_input(target, plan, seed)


@pytest.mark.parametrize("name", targets.SHIPPED)
@pytest.mark.parametrize("shared", [False, True])
def test_schedules_of_the_shipped_targets_bring_what_they_say(name, shared):
    target = targets.named(name, 3)
    found = 0
    for layers in range(1, 5):
        plan = smallest(setting(target, True, shared), layers, 4)
        if plan is not None:
            found += 1
            for seed in range(3):
                check_on_input(target, plan, seed)
    assert found


@pytest.mark.parametrize("name", ["single", "retrieval", "kth", "pairmin", "pairmax", "induction"])
def test_what_c0_knows_decides_the_target_on_every_input(name):
    """INF-01: all inputs over 3 letters, T = 3, ties and equal tokens among them."""
    target, tokens, letters = targets.named(name, 2), 3, (-1.0, 0.5, 2.0)
    weights = targets.draw_weights(target, 1, np.random.default_rng(1))
    plan = next(p for n in (1, 2, 3) if (p := smallest(setting(target, True, tokens=tokens), n, 3)))
    values, views = {}, {}
    for letter in itertools.product(letters, repeat=tokens):
        run = Evaluator(target, np.array(letter)[:, None], weights)
        known = np.flatnonzero(realize(plan, run).known_LPP[-1, tokens])
        assert tokens not in known  # c0 itself has no content
        view = tuple((int(p), letter[p]) for p in known)
        values.setdefault(view, set()).add(round(float(run.value()[..., None].ravel()[0]), 9))
        views.setdefault(view, []).append(letter)
    assert all(len(found) == 1 for found in values.values()), values
    sizes = np.array([len(inputs) for inputs in views.values()])
    assert sizes.sum() == len(letters) ** tokens  # the views are a partition of all inputs
    whole = np.log(sizes.sum())
    share = sizes / sizes.sum()
    told, left = -(share * np.log(share)).sum(), (share * np.log(sizes)).sum()
    assert abs(whole - told - left) < 1e-12
    assert (sizes > 1).any()  # it is no trivial partition: c0 does not know everything


def test_a_schedule_with_nothing_to_do_shows_nothing():
    target = targets.named("positions", 3)
    plan = best(setting(target, False), (1, 1))
    assert set(plan.unplaced) == {"x(1)", "x(2)", "x(3)"}
    flow = realize(plan, Evaluator(target, np.ones((T, d)), {}))
    assert not flow.shown_LPP.any()
    assert not flow.known_LPP[-1, T].any()


QUERY = 'output = maximum("t", dot(x("t"), {}))'


@pytest.mark.parametrize(
    ("heads", "published", "shared"),
    [((2, 2), True, True), ((1, 2), False, True), ((1, 1, 2), True, True), ((1, 1), False, False)],
)
def test_what_tokens_found_serves_c0_only_where_hosts_are_shared(heads, published, shared):
    found = [f'z{i} = argmax("t", linear("a{i}", x("t")))' for i in (1, 2)]
    line = 'maximum("t", dot(x("t"), x(z{})))'
    target = parse("\n".join([*found, f"output = {line.format(1)} + {line.format(2)}"]))
    for rule, wanted in ((False, published), (True, shared)):
        plan = best(setting(target, False, rule), heads)
        assert (not plan.unplaced) == wanted == can(measure(target), T, False, heads, rule)


@pytest.mark.parametrize(("heads", "wanted"), [((1, 1, 1), False), ((1, 1, 1, 1), True)])
def test_c0_collects_from_places_only_what_they_knew_before(heads, wanted):
    found = [f'z{i} = argmax("t", linear("a{i}", x("t")))' for i in range(1, 5)]
    target = parse("\n".join([*found, QUERY.format("x(z1) + x(z2) + x(z3) + x(z4)")]))
    plan = best(setting(target, True, tokens=2), heads)
    assert (not plan.unplaced) == wanted == can(measure(target), 2, True, heads)
