"""Names of indices change nothing that is counted or planned; what is more than a name does."""

import re

import numpy as np
import pytest

from infoflow_jax.calculus import targets
from infoflow_jax.calculus.alpha import canonical
from infoflow_jax.calculus.architecture import Architecture, Rules
from infoflow_jax.calculus.language import bilinear, dot, linear, maximum, shift, total, x
from infoflow_jax.calculus.language import target as tree
from infoflow_jax.calculus.meaning import evaluate
from infoflow_jax.calculus.measures import measure
from infoflow_jax.calculus.planner import predict
from infoflow_jax.calculus.text import parse
from infoflow_jax.calculus.tree import Target
from tests.calculus.schedule_test import check_on_input

PAIR = 'maximum("{0}", maximum("{1}", bilinear(x("{1}"), "A", x("{0}"))))'
BEST = 'maximum("{0}", maximum("{1}", dot(x("{1}"), x("{0}"))))'
CUBE = 'maximum("{0}", maximum("{1}", maximum("{2}", linear("a", {3}))))'

# text -> number of comparing nodes, order, dimension
COUNTS = {
    "a name": ('maximum("t", linear("a", x("t"))) + maximum("s", linear("a", x("s")))', 1, 1, 1),
    "another weight": (
        'maximum("t", linear("a", x("t"))) + maximum("s", linear("b", x("s")))', 2, 1, 2,
    ),
    "another operation": (
        'maximum("t", linear("a", x("t"))) - minimum("s", linear("a", x("s")))', 2, 1, 2,
    ),
    "both names": (f'{PAIR.format("t", "s")} + {PAIR.format("v", "u")}', 2, 2, 1),
    "names exchanged": (f'{PAIR.format("t", "s")} + {PAIR.format("s", "t")}', 2, 2, 1),
    "roles exchanged": (
        f'{PAIR.format("t", "s")} + '
        'maximum("t", maximum("s", bilinear(x("t"), "A", x("s"))))', 4, 2, 2,
    ),
    "only the inner node": (
        f'{BEST.format("t", "s")} + '
        'maximum("u", linear("a", x("u")) + maximum("s", dot(x("s"), x("u"))))', 3, 2, 1,
    ),
    "a shift": (
        'maximum("t", dot(x(shift("t", -1)), x("t"))) + '
        'maximum("s", dot(x(shift("s", -1)), x("s")))', 1, 1, 1,
    ),
    "another shift": (
        'maximum("t", dot(x(shift("t", -1)), x("t"))) + '
        'maximum("s", dot(x(shift("s", -2)), x("s")))', 2, 1, 2,
    ),
    # Tokens serve the last free index, so the order in which free ones are bound matters.
    "three indices": (
        CUBE.format("r", "s", "t", 'x("r") + x("s") + x("t")') + " + "
        + CUBE.format("i", "j", "k", 'x("i") + x("j") + x("k")'), 3, 3, 1,
    ),
    "the order of binding": (
        CUBE.format("r", "s", "t", 'x("r") + 2.0 * x("s") + x("t")') + " + "
        + CUBE.format("s", "r", "t", 'x("r") + 2.0 * x("s") + x("t")'), 6, 3, 2,
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", COUNTS)
def test_what_counts_as_one(case):
    text, nodes, order, dimension = COUNTS[case]
    found = measure(parse(f"output = {text}"))
    assert len(found.comparisons) == nodes
    assert (found.order, found.dimension) == (order, dimension)


def test_definitions_that_are_equal_stand_for_each_other():
    text = """p = argmax("t", linear("a", x("t")))
q = argmax("s", linear("a", x("s")))
pp = argmax("u", bilinear(x(p), "A", x("u")), (p,))
qq = argmax("v", bilinear(x(q), "A", x("v")), (q,))
output = linear("b", x(pp)) + linear("b", x(qq))"""
    target = parse(text)
    assert str(parse(str(target))) == str(target)  # what is printed keeps its names
    found = measure(target)
    assert [node.name for node in found.nodes] == ["p", "pp"]
    assert found.outputs == ("pp",)
    assert measure(parse(text.replace("(q,))", "(p,))"))).number(5) == 10
    assert measure(parse(text.replace(", (q,))", ")"))).number(5) == 15


def renamed(target: Target) -> Target:
    """The target with other names for indices, through its text."""

    def new(match: re.Match) -> str:
        return f'"{match[1]}_new"'

    names = set(re.findall(r'over="(\w+)"', str(target))) | {target.each} - {None}
    return parse(re.sub(rf'"({"|".join(names)})"', new, str(target))) if names else target


@pytest.mark.parametrize("name", targets.SHIPPED)
def test_every_shipped_target_keeps_its_counts_and_plan(name):
    target = targets.named(name, 3)
    other = renamed(target)
    assert (str(other) == str(target)) == (name == "positions")
    found, again = measure(target), measure(other)
    assert found.number(9) == again.number(9)
    assert (found.depth, found.dimension) == (again.depth, again.dimension)
    a = Architecture((1, 1, 1), 24, 4, 16, name in ("khop", "induction", "positions"))
    for rules in (Rules(), Rules(pointer_doubling=True)):
        one, two = predict(a, target, rules), predict(a, other, rules)
        assert (one.feasible, one.laws) == (two.feasible, two.laws)
    if target.each is None:
        both = Target(target.output + other.output, tuple(dict(other.definitions).items()))
        assert measure(both).number(9) == found.number(9)


def test_the_laws_and_doubling_see_through_names():
    steps = "\n".join(
        f'h{i} = argmax("s{i}", bilinear(x({"-1" if i == 1 else f"h{i - 1}"}), "A", x("s{i}")))'
        for i in range(1, 7)
    )
    chain = parse(f'{steps}\noutput = linear("a", x(h6))')
    a = Architecture((1, 1, 1), 24, 4, 16, True)
    assert predict(a, chain, Rules(pointer_doubling=True)).feasible
    second = parse(
        'z = argmax("s", linear("a", x("s")))\noutput = maximum("t", linear("a", x("t")), (z,))'
    )
    laws = predict(Architecture((1,), 2, 1, 32), second).laws
    assert [law.name for law in laws if law.lower] == ["Theorem 2, by counting"]


def test_one_plan_serves_both_names_on_real_inputs():
    near = dot(x("s"), x("t"))
    first = maximum("t", maximum("s", near))
    second = maximum("u", linear("a", x("u")) + maximum("v", dot(x("v"), x("u"))))
    target = tree(first + second)
    found = predict(Architecture((1, 2), 24, 2, 4), target)
    assert found.feasible  # three nodes, one of them the tokens'
    assert not predict(Architecture((1, 1), 24, 2, 4), target).feasible
    for seed in range(3):
        check_on_input(target, found.schedule, seed)
    each = tree(maximum("s", near) + maximum("u", maximum("v", dot(x("v"), x("u")))), each="t")
    again = predict(Architecture((1, 1), 24, 2, 4), each)
    assert len(measure(each).nodes) == 2
    assert again.feasible
    check_on_input(each, again.schedule, 0)


def test_the_canonical_form_numbers_free_indices_first():
    e = maximum("s", bilinear(x("s"), "A", x("t")) + linear("a", x(shift("r", 1))))
    text = 'maximum(over="2", score=bilinear(x("2"), "A", x("1")) + linear("a", x(shift("0", 1))))'
    assert str(canonical(e, ("r", "t"))) == text
    same = total("w", linear("a", x("w")))
    assert canonical(same, ()) == canonical(total("v", linear("a", x("v"))), ())


def test_the_value_is_that_of_two_equal_terms():
    X = np.random.default_rng(0).standard_normal((5, 3))
    text = f"output = {BEST.format('t', 's')} + {BEST.format('v', 'u')}"
    assert evaluate(parse(text), X) == pytest.approx(2 * (X @ X.T).max())
