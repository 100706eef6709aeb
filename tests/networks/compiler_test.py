"""Compiled plans: the network stays within the stated eps of the brute-force meaning."""

import functools

import jax
import numpy as np
import pytest

from infoflow_jax.calculus import frontier, schedule, targets
from infoflow_jax.calculus.architecture import Architecture, Budget, Rules
from infoflow_jax.calculus.language import add, bilinear, dot, linear, maximum, minimum, target, x
from infoflow_jax.calculus.measures import measure
from infoflow_jax.calculus.planner import predict
from infoflow_jax.calculus.setting import Setting
from infoflow_jax.calculus.text import parse
from infoflow_jax.calculus.tree import Target
from infoflow_jax.networks import transformer
from infoflow_jax.networks.compiler import compile_tree
from infoflow_jax.networks.construction import draw, sup_error
from tests.networks import reference

ROUNDING = 1e-9
DIM = 2


def _plan(tree: Target, heads: tuple[int, ...], T: int) -> schedule.Schedule:
    return schedule.best(Setting(measure(tree), T, DIM, False, Rules()), heads)


@functools.cache
def _smallest(tree: Target, T: int) -> schedule.Schedule:
    setting = Setting(measure(tree), T, DIM, False, Rules())
    point = frontier.fewest_layers(frontier.frontier(setting, Budget(4, 4), 1.0))
    assert point is not None
    return point.schedule


def _errors(made, T, rows=8, seed=0):
    x_BTD = draw(made, np.random.default_rng(seed), rows, T)
    x_BTD[0] = x_BTD[0, 0]  # all equal
    return sup_error(made, x_BTD)


@pytest.mark.parametrize("T", [8, 32])
@pytest.mark.parametrize(
    ("name", "D", "heads"),
    [
        ("single", 1, (1,)),
        ("retrieval", 3, (3,)),
        ("retrieval", 3, (1, 2)),
        ("retrieval", 3, (1, 1, 1)),
        ("kth", 1, (1,)),
        ("pairmin", 1, (1, 1)),
        ("pairmax", 2, (2, 2)),
        ("pairmax", 3, (2, 2, 1)),
        ("pairmax", 3, (1, 2, 2)),
        ("pairmax", 3, (1, 1, 1, 1)),
    ],
)
def test_shipped_targets_in_heads_that_the_planner_finds_feasible(name, D, heads, T):
    tree = targets.named(name, D)
    weights = targets.draw_weights(tree, DIM, np.random.default_rng(D))
    assert predict(Architecture(heads, 12, DIM, T), tree).feasible
    made = compile_tree(tree, weights, _plan(tree, heads, T), DIM, T, 0.05, radius=1.5)
    assert made.config.heads == heads
    assert made.bound(T) <= 0.05 + ROUNDING
    error = _errors(made, T)
    assert error <= made.bound(T) + ROUNDING
    assert error >= 0.01 * made.bound(T)  # the bound says something of this network


def test_a_schedule_of_2_2_1_has_a_shared_head_and_is_the_linen_network():
    tree = targets.pairmax(3)
    plan = _plan(tree, (2, 2, 1), 8)
    assert len(plan.on("tokens", 2)) == 1
    assert len(plan.on("c0", 2)) == 2  # so of two heads one serves both
    weights = targets.draw_weights(tree, DIM, np.random.default_rng(0))
    made = compile_tree(tree, weights, plan, DIM, 8, 0.1)
    x_TD = draw(made, np.random.default_rng(1), 2, 8)[1]
    with jax.enable_x64(True):
        got_O = transformer.apply(made.config, made.params, x_TD)
    np.testing.assert_allclose(got_O, reference.network(made.config, made.params, x_TD), atol=1e-9)


def test_a_smaller_eps_takes_a_wider_network_and_a_larger_beta():
    tree = targets.pairmin()
    coarse, fine = (compile_tree(tree, {}, _plan(tree, (1, 1), 8), DIM, 8, e) for e in (0.1, 0.001))
    assert fine.config.beta > 50 * coarse.config.beta
    assert fine.law == pytest.approx(10 * coarse.law, rel=0.2)  # eps^-1/2
    assert _errors(fine, 8) <= 0.001


def _random_tree(rng: np.random.Generator) -> Target:
    """A sum of nodes, some of pairs, some whose scores use other nodes' values."""

    def reduce(over, score):
        return (minimum if rng.integers(2) else maximum)(over, score)

    def pair():
        cross = [dot(x("s"), x("t")), bilinear(x("s"), "A", x("t"))]
        score = cross[rng.integers(2)] + linear("b", x("s"))
        if rng.integers(2):
            score = score + 0.5 * linear("c", x("t") - x("s"))
        if rng.integers(2):
            score = score - 0.7 * bilinear(x("t"), "A", x("s"))
        return reduce("s", score)

    def node():
        own = linear(f"a{rng.integers(3)}", x("t"))
        kinds = [own, own + pair(), pair() - 2.0 * pair()]
        score = kinds[rng.integers(3)]
        if rng.integers(3) == 0:
            score = score + reduce("u", linear("a1", x("u")))
        return reduce("t", score)

    return target(add([node() if rng.integers(3) else -1.5 * node() for _ in range(2)]))


@pytest.mark.parametrize("seed", range(8))
def test_random_trees_in_their_smallest_architecture(seed):
    rng = np.random.default_rng(seed)
    tree, T = _random_tree(rng), 8
    assert str(parse(str(tree))) == str(tree)
    weights = targets.draw_weights(tree, DIM, rng)
    plan = _smallest(tree, T)
    made = compile_tree(tree, weights, plan, DIM, T, 0.05)
    assert made.config.heads == plan.heads
    assert made.bound(T) <= 0.05 + ROUNDING
    assert _errors(made, T, seed=seed) <= made.bound(T) + ROUNDING


def test_a_node_written_twice_with_other_names_is_built_once():
    pair = 'maximum("{0}", linear("a", x("{0}")) + maximum("{1}", dot(x("{1}"), x("{0}"))))'
    tree = parse(f"output = {pair.format('t', 's')} - 0.5 * {pair.format('v', 'u')}")
    once = parse(f"output = {pair.format('t', 's')}")
    weights = {"a": np.ones(DIM)}
    made = compile_tree(tree, weights, _plan(tree, (1, 1), 8), DIM, 8, 0.1)
    single = compile_tree(once, weights, _plan(once, (1, 1), 8), DIM, 8, 0.1)
    assert made.config.width == single.config.width
    assert _errors(made, 8) <= made.bound(8) + ROUNDING


@pytest.mark.parametrize(
    ("name", "heads", "what"),
    [
        ("kth", (1, 1), "z1: argmax jumps at ties"),
        ("triangle", (1, 1, 1), "order 3"),
        ("match2", (1,), "every token"),
        ("positions", (1,), "reads a position"),
        ("pairmin", (1,), r"has no place in heads \(1,\)"),
        ("retrieval", (1,), "has no place"),
    ],
)
def test_what_cannot_be_compiled_is_refused_by_node_and_reason(name, heads, what):
    tree = targets.named(name, 2)
    weights = targets.draw_weights(tree, DIM, np.random.default_rng(0))
    with pytest.raises(ValueError, match=what):
        compile_tree(tree, weights, _plan(tree, heads, 8), DIM, 8, 0.1)


def test_other_refusals():
    tree = targets.single()
    plan = _plan(tree, (1,), 8)
    with pytest.raises(ValueError, match="a weight 'a'"):
        compile_tree(tree, {}, plan, DIM, 8, 0.1)
    with pytest.raises(ValueError, match="eps"):
        compile_tree(tree, {"a": np.ones(2)}, plan, DIM, 8, 0.0)
    square = target(minimum("t", dot(x("t"), x("t"))))
    with pytest.raises(ValueError, match="min_t1: multiplies tokens of one index"):
        compile_tree(square, {}, _plan(square, (1,), 8), DIM, 8, 0.1)
