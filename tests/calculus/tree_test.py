"""Trees: the theory's table, text and back, brute-force meaning against NumPy, what is refused."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from infoflow_jax.calculus import targets
from infoflow_jax.calculus.language import argmax, dot, linear, maximum, minimum, shift, the, x
from infoflow_jax.calculus.language import target as tree
from infoflow_jax.calculus.meaning import Evaluator, evaluate
from infoflow_jax.calculus.measures import measure, score_rank
from infoflow_jax.calculus.text import parse
from infoflow_jax.calculus.tree import Target
from infoflow_jax.calculus.validation import reasons

D = 3
ROWS = {  # order, dimension, depth, exponents 1 + f of its comparisons
    "single": (1, 1, 1, (1,)),
    "retrieval": (1, D, 1, (1,) * D),
    "kth": (1, D, D, (1,) * D),
    "pairmin": (2, 1, 2, (2, 1)),
    "pairmax": (2, D, 2, (2, 1) * D),
    "triangle": (3, 1, 3, (3, 2, 1)),
    "match2": (2, 1, 1, (2,)),
    "match3": (3, 1, 2, (3, 2)),
    "induction": (1, 1, 2, (1,)),
    "positions": (0, 0, 1, ()),
}


@pytest.mark.parametrize("name", ROWS)
def test_the_table_of_the_theory(name):
    found = measure(targets.named(name, D))
    order, dimension, depth, exponents = ROWS[name]
    assert (found.order, found.dimension, found.depth) == (order, dimension, depth)
    assert found.number(10**6) == sum(10 ** (6 * e) for e in exponents)  # beyond 64 bits


@pytest.mark.parametrize("hops", [1, 2, 5])
def test_hops_are_a_chain_of_comparisons_after_one_read(hops):
    found = measure(targets.khop(hops))
    assert (found.order, found.dimension, found.comparison_depth) == (1, hops, hops)
    assert found.depth == hops + 1


@pytest.mark.parametrize("name", targets.SHIPPED)
def test_every_target_is_well_formed_and_reads_back_what_it_prints(name):
    target = targets.named(name, D)
    assert reasons(target) == ()
    assert parse(str(target)) == target


def numpy_value(name, X, w):
    """The targets again, with arrays and sorting instead of trees."""
    match name:
        case "single":
            return (X @ w["a"]).max()
        case "retrieval":
            return sum((X @ w[f"a{i}"]).min() for i in (1, 2, 3))
        case "kth":
            return np.sort(X @ w["a"])[-D]
        case "pairmin":
            return (X @ X.T).min()
        case "pairmax":
            return sum((X @ w[f"A{i}"] @ X.T).max() for i in (1, 2, 3))
        case "triangle":
            return min(np.linalg.norm(sum(p)) for p in itertools.product(X, repeat=3))
        case "match2":
            return np.cos(np.pi / 8 * (X[:, None, 0] + X[None, :, 0])).max(1)
        case "match3":
            s = X[:, 0]
            return np.cos(np.pi / 8 * (s[:, None, None] + s[:, None] + s)).max((1, 2))
        case "khop":
            here = X[-1]
            for _ in range(D):
                here = X[np.argmax(X @ w["A"].T @ here)]
            return here @ w["a"]
        case "induction":
            before = np.vstack([np.zeros(X.shape[1]), X[:-1]])
            return X[np.argmax(before @ X[-1])]
        case "positions":
            return X[:3].sum(0)
    raise AssertionError(name)


@pytest.mark.parametrize("name", targets.SHIPPED)
@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), T=st.integers(3, 7))
def test_brute_force_meaning(name, seed, T):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((T, 2))
    if name.startswith("match"):
        X = rng.integers(0, targets.MODULUS, (T, 2)).astype(float)
    target = targets.named(name, D)
    weights = targets.draw_weights(target, 2, rng)
    want = numpy_value(name, X, weights)
    np.testing.assert_allclose(evaluate(target, X, weights), want, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", targets.SHIPPED)
def test_brute_force_meaning_on_all_small_inputs(name):
    """Every input over three letters, T = 3 and 4: ties, equal tokens and zeros among them."""
    target = targets.named(name, D)
    weights = targets.draw_weights(target, 1, np.random.default_rng(0))
    letters = (0.0, 8.0, 11.0) if name.startswith("match") else (-1.0, 0.0, 2.0)
    for T in (3, 4):
        for letter in itertools.product(letters, repeat=T):
            X = np.array(letter)[:, None]
            want = numpy_value(name, X, weights)
            np.testing.assert_allclose(evaluate(target, X, weights), want, atol=1e-12)


def test_match_finds_exactly_the_pairs_that_sum_to_nothing():
    for values in itertools.product(range(0, targets.MODULUS, 3), repeat=2):
        X = np.array(values, float)[:, None]
        hit = [any((a + b) % targets.MODULUS == 0 for b in values) for a in values]
        np.testing.assert_array_equal(evaluate(targets.match2(), X) > 1 - 1e-9, hit)


def test_equal_scores_go_to_the_first_and_exclusion_is_by_place():
    X = np.array([[2.0], [5.0], [5.0], [1.0]])
    target = targets.kth(2)
    run = Evaluator(target, X, {"a": np.ones(1)})
    assert run.value() == 5.0
    z1, second = run.measures.nodes
    assert (run.choice(z1, {}), run.choice(second, {})) == (1, 2)
    shifted = tree(x(the("f")), define={"f": argmax("s", dot(x(shift("s", -1)), x(-1)))})
    read = measure(shifted).nodes[0]
    assert Evaluator(shifted, X, {}).choice(read, {"s": 0}) is None


def test_rank_of_a_score():
    rank = {n: score_rank(measure(targets.named(n, 1)).nodes[0], 4) for n in targets.SHIPPED}
    assert rank["single"] == 1  # of the key alone
    assert rank["pairmin"] == rank["pairmax"] == 4
    assert rank["triangle"] == 5  # 2 <q, k> + |k|^2
    assert rank["match2"] == rank["match3"] == 2  # cos cos - sin sin


a_t = linear("a", x("t"))
BAD = {
    "unbound index": (tree(linear("a", x("t"))), "index 't' is unbound"),
    "cycle": (
        tree(
            linear("a", x(the("p"))),
            define={"p": argmax("t", a_t, (the("q"),)), "q": argmax("t", a_t, (the("p"),))},
        ),
        "is cyclic",
    ),
    "own cycle": (
        tree(linear("a", x(the("p"))), define={"p": argmax("t", a_t, (the("p"),))}),
        "is cyclic: p needs p",
    ),
    "unknown name": (tree(linear("a", x(the("p")))), "uses 'p', which is not defined"),
    "unused": (tree(maximum("t", a_t), define={"p": argmax("t", a_t)}), "p: is defined and never"),
    "twice": (tree(maximum("t", maximum("t", a_t))), "bound twice"),
    "not used": (tree(maximum("t", linear("a", x(1)))), "does not use the index 't'"),
    "vector score": (tree(maximum("t", x("t"))), "score is of type vector"),
    "index output": (tree(argmax("t", a_t)), "is an index"),
    "mixed sum": (tree(x(1) + maximum("t", a_t)), "a sum of scalar and vector"),
    "norm of scalar": (tree(linear("a", a_t)), "expected vector"),
    "open definition": (
        tree(linear("a", x(the("p"))), define={"p": argmax("t", dot(x("t"), x("s")))}),
        "index 's' is unbound",
    ),
    "position 0": (tree(x(0)), "position 0"),
    "exclude a value": (tree(maximum("t", a_t, (maximum("s", linear("a", x("s"))),))), "index"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_is_wrong_is_named(case):
    target, wanted = BAD[case]
    assert any(wanted in str(reason) for reason in reasons(target)), reasons(target)
    with pytest.raises(ValueError, match=r"^target: "):
        measure(target)


def test_a_definition_given_twice():
    again = Target(x(the("p")), (("p", argmax("t", a_t)), ("p", argmax("t", a_t))))
    assert "defined twice" in str(reasons(again)[0])


@pytest.mark.parametrize(
    ("name", "d", "T", "wanted"),
    [
        ("kth", 3, 2, "T = 2: expected an integer >= 3"),
        ("triangle", 1, 2, "T = 2: expected an integer >= 3"),
        ("positions", 4, 3, "T = 3: expected an integer >= 4"),
    ],
)
def test_a_sequence_that_is_too_short(name, d, T, wanted):
    target = targets.named(name, d)
    with pytest.raises(ValueError, match=wanted):
        evaluate(target, np.ones((T, 2)), targets.draw_weights(target, 2, np.random.default_rng(0)))


@pytest.mark.parametrize(
    ("X", "weights", "wanted"),
    [
        (np.ones(3), {"a": np.ones(2)}, "x_TD = "),
        (np.array([[np.nan, 1.0]]), {"a": np.ones(2)}, "x_TD = 'NaN"),
        (np.ones((3, 2)), {}, "expected a weight 'a'"),
        (np.ones((3, 2)), {"a": np.ones(3)}, "weights\\['a'\\] = \\(3,\\)"),
    ],
)
def test_bad_inputs_and_weights(X, weights, wanted):
    with pytest.raises(ValueError, match=wanted):
        evaluate(targets.single(), X, weights)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("output = open('x')", "expected a word of"),
        ("output = x(", "Python syntax"),
        ("z = x(1)", "a line `output"),
        ("output = x(1)\noutput = x(2)", "defined once"),
        ("output = maximum(over='t')", "missing 1 required"),
        ("output = x(1) * x(2)", "number \\* expression"),
        ("output = 3", "an expression"),
        ("import os", "name = expression"),
        ("x = argmax('t', x('t'))\noutput = x(x)", "not a word"),
        ("output = x(1).__class__", "a word of the language"),
    ],
)
def test_text_that_is_not_a_target(text, wanted):
    with pytest.raises(ValueError, match=wanted):
        parse(text)


def test_names_and_sums_as_in_python():
    text = 'output = minimum("t", 2 * linear("a", x("t")) - linear("b", x("t")))'
    by_hand = tree(minimum("t", 2 * a_t - linear("b", x("t"))))
    assert parse(text) == by_hand
    X = np.array([[1.0], [-1.0]])
    assert evaluate(by_hand, X, {"a": [3.0], "b": [1.0]}) == -5.0
    with pytest.raises(ValueError, match="target = 'nope'"):
        targets.named("nope", 1)
    with pytest.raises(ValueError, match="D = 0"):
        targets.named("kth", 0)


@pytest.mark.parametrize(
    "output",
    [
        "x(True)",
        "linear(3, x(1))",
        "bilinear(x(1), 2, x(2))",
        'each(3, x("t"))',
        'each("", x("t"))',
        'minimum("t", linear("a", x(shift("t", -1.5))))',
        "1e400 * linear('a', x(1))",
        "cosine(linear('a', x(1)), 1e999)",
        'part(x(1), "b")',
        "part(x(1), 1.5)",
        'minimum(3, linear("a", x(1)))',
    ],
)
def test_what_has_the_wrong_type_is_refused(output):
    assert reasons(parse(f"output = {output}"))


def test_a_made_name_never_meets_a_given_one():
    text = 'min_t1 = argmin("s", linear("b", x("s")))\n'
    text += 'output = minimum("t", linear("a", x("t"))) + linear("c", x(min_t1))'
    names = [node.name for node in measure(parse(text)).nodes]
    assert len(names) == len(set(names)) == 2
    many = " + ".join(f'minimum("t", linear("a{i}", x("t")))' for i in range(12))
    many += ' + minimum("t1", linear("b", x("t1")))'
    names = [node.name for node in measure(parse(f"output = {many}")).nodes]
    assert len(names) == len(set(names)) == 13


def test_the_depth_of_a_long_chain_is_counted_once():
    assert measure(targets.kth(targets.MOST)).depth == targets.MOST
    assert measure(targets.khop(targets.MOST)).depth == targets.MOST + 1


def test_multiples_of_multiples_read_back():
    tree_ = tree(linear("b", x(1)) - 0.5 * (2.0 * linear("a", x(1))))
    assert parse(str(tree_)) == tree_
