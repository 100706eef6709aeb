"""The planner against every published prediction, the new ones, and tracr's programs."""

import itertools

import numpy as np
import pytest

from infoflow_jax.calculus import doubling, targets
from infoflow_jax.calculus.architecture import Architecture, Budget, Rules
from infoflow_jax.calculus.frontier import fewest_heads, fewest_layers, frontier
from infoflow_jax.calculus.measures import measure
from infoflow_jax.calculus.planner import predict, setting_of
from infoflow_jax.calculus.text import parse

SHARED, DOUBLING = Rules(shared_hosts=True), Rules(pointer_doubling=True)


def ask(name, heads, D=1, positions=False, tokens=16, width=60, d=4, rules=None):
    target = parse(name) if "output" in name else targets.named(name, D)
    return predict(Architecture(heads, width, d, tokens, positions), target, rules)


def published(name, heads, D=1, positions=False):
    found = ask(name, heads, D, positions)
    assert found.published
    assert found.feasible == (found.reasons == ())
    assert found.efficient(1.0) == found.feasible
    return found.feasible


def test_a_maximum_needs_one_head():
    assert published("single", (1,))


@pytest.mark.parametrize(
    "heads", [(1,), (2,), (4,), (5,), (1, 1), (1, 2), (2, 2), (1, 3), (1, 1, 2)]
)
def test_retrieval_needs_as_many_heads_as_dimensions_in_all_layers(heads):
    for D in (1, 2, 3, 4, 5):
        assert published("retrieval", heads, D) == (sum(heads) >= D)


@pytest.mark.parametrize("k", [1, 2, 3, 4])
def test_the_kth_largest_needs_k_layers(k):
    for layers in range(1, 6):
        assert published("kth", (3,) * layers, k) == (layers >= k)
        assert ask("kth", (1,) * layers, k).feasible == (layers >= k)


def test_the_least_inner_product():
    assert published("pairmin", (1, 1))
    assert not published("pairmin", (1,))
    assert not published("pairmin", (12,))


@pytest.mark.parametrize("D", [1, 2, 3, 4, 5, 6])
def test_intrinsic_dimension_needs_as_many_heads_in_both_layers(D):
    for heads in itertools.product(range(1, 7), repeat=2):
        assert published("pairmax", heads, D) == (min(heads) >= D)


def test_the_triangle_at_fixed_size_and_with_T_heads():
    for heads in [(2, 2), (4, 4), (4, 4, 4)]:
        found = ask("triangle", heads, tokens=64, width=48, d=2)
        assert not found.feasible
        (law,) = found.laws
        assert (law.name, law.exponent) == ("global mode", 64 * 2 / 48 - 1)
    assert published("triangle", (4, 4), 1) is False
    wide = ask("triangle", (16, 1, 1), tokens=16, width=48, d=2)
    assert wide.feasible
    assert any("each of its 16 heads stands for one token" in note for note in wide.notes)
    assert not ask("triangle", (15, 1, 1), tokens=16, width=60, d=2).feasible


def test_match():
    assert published("match2", (1,))
    assert any("rank 2" in n for n in ask("match2", (2,), width=2, d=1).notes)  # n = 1
    assert not any("rank" in n for n in ask("match2", (1,), width=2, d=1).notes)
    assert not published("match3", (4,))
    assert not published("match3", (4, 4))
    assert ask("match3", (16, 1), width=64).feasible


@pytest.mark.parametrize("k", [1, 2, 3, 5])
def test_hops_by_chaining(k):
    for layers in range(1, 8):
        assert published("khop", (1,) * layers, k, True) == (layers >= k + 1)


def test_positions_and_the_induction_head():
    assert published("induction", (1, 1), positions=True)
    assert not published("induction", (3,), positions=True)
    plan = ask("induction", (1, 1), positions=True).schedule
    hosts = {(p.node, p.layer, p.host) for p in plan.placements}
    assert hosts == {("x(shift(s, -1))", 1, "tokens"), ("x(-1)", 1, "c0"), ("found", 2, "c0")}
    assert published("positions", (1,), 3, positions=True)
    assert not published("positions", (3,), 3)


@pytest.mark.parametrize(("D", "h"), [(4, 1), (4, 2), (4, 3)])
def test_one_layer_with_too_few_heads_pays_the_companions_law(D, h):
    found = ask("retrieval", (h,), D, tokens=128, width=8 * h)
    shortage = next(law for law in found.laws if law.name == "head shortage")
    assert shortage.lower
    assert found.at_least == shortage.exponent == (128 - h - D + 1) / (9 * h + 1) - 1
    assert found.exponent > found.at_least  # what is known to be enough
    assert "heads of c0 that could find it, in layers 1 to 1, are all taken" in str(
        found.reasons[0]
    )


def test_one_layer_for_pairs_and_ranks_pays_theorems_1_and_2():
    pair = ask("pairmin", (2,), tokens=256, width=16, d=3)
    assert pair.at_least == (256 - 3) / (9 * 2 + 1) - 1
    kth = ask("kth", (1,), 3, tokens=256, width=16, d=3)
    assert kth.at_least == (256 - 3 - 1) / 17 - 1


def test_theorem_2_speaks_of_a_kth_largest_only():
    """A maximum without something else, or two second largest, are no k-th largest."""
    other = 'z = argmin("s", linear("b", x("s")))\n'
    other += 'output = maximum("t", linear("a", x("t")), exclude=(z,))'
    twice = 'y = argmax("t", linear("a", x("t")))\nz = argmax("t", linear("b", x("t")))\n'
    twice += 'output = maximum("t", linear("a", x("t")), exclude=(y,))'
    twice += ' + maximum("t", linear("b", x("t")), exclude=(z,))'
    for text in (other, twice):
        found = predict(Architecture((1,), 3, 4, 64), parse(text))
        assert not found.feasible
        assert found.at_least is None


def test_exponents_of_the_infeasible_grow_with_T_and_of_the_feasible_do_not():
    lengths = (64, 256, 1024, 10**6)
    bad = [ask("pairmax", (2, 3), 3, tokens=T).exponent for T in lengths]
    good = [ask("pairmax", (3, 3), 3, tokens=T).exponent for T in lengths]
    assert bad == sorted(set(bad))
    assert set(good) == {1.0}


# What follows is not published: predictions of this project, to be tested by training.


def test_three_layers_of_2_2_1_do_what_two_layers_do_with_3_3():
    for heads in [(2, 2, 1), (1, 2, 2), (1, 1, 1, 1)]:
        found = ask("pairmax", heads, 3)
        assert found.feasible
        assert not found.published
    assert not published("pairmax", (2, 1, 1), 3)
    assert not published("pairmax", (1, 1, 2), 3)


def test_with_positions_two_layers_of_one_head_retrieve_up_to_T_things():
    for D in (3, 8, 16):
        found = ask("retrieval", (1, 1), D, positions=True, width=2 * D)
        assert found.feasible
        assert not found.published
        assert found.efficient(1.0)
    assert not ask("retrieval", (1, 1), 18, positions=True).feasible  # 16 tokens and c0
    narrow = ask("retrieval", (1, 1), 16, positions=True, width=4)
    assert narrow.feasible
    assert narrow.exponent == 3.0 == 16 / 4 - 1
    assert not ask("retrieval", (1,), 2, positions=True).feasible


def test_the_second_largest_by_two_layers_of_one_head():
    found = ask("kth", (1, 1), 2)
    assert found.feasible
    assert not found.published


def test_shared_hosts_are_a_labelled_prediction():
    """By sets alone D-retrieval needs 2 sum_{l<L} h_l + h_L >= D."""
    for heads in [(1,), (2,), (1, 1), (2, 1), (1, 2), (1, 1, 1)]:
        for D in range(1, 8):
            found = ask("retrieval", heads, D, rules=SHARED)
            assert found.feasible == (2 * sum(heads[:-1]) + heads[-1] >= D)
            assert found.published == (not found.feasible or sum(heads) >= D)
    plain = ask("retrieval", (1, 1), 3)
    assert not plain.feasible
    assert any("with shared hosts it is feasible" in note for note in plain.notes)
    assert not any("shared" in note for note in ask("retrieval", (1, 1), 4).notes)


def test_pointer_doubling_reaches_exactly_as_far_as_it_says():
    """Sets of Python, one head: which hops c0 can know after L layers, all choices tried."""
    for layers in range(1, 6):
        reached = {0}  # after layer 1 c0 has the start; tokens know themselves and one hop
        farthest = 1
        for _ in range(2, layers + 1):
            reached |= {c + 1 + j for c in reached for j in range(farthest + 1)}
            farthest = 2 * farthest + 1
        assert max(reached) == doubling.reach(layers)
    for k in range(1, 40):
        layers = doubling.fewest_layers(k)
        assert doubling.reach(layers - 1) < k <= doubling.reach(layers)
        assert layers == int(np.ceil(np.log2(k + 2)))
        steps = doubling.jumps(k, layers)
        assert sum(steps) == k
        assert all(step <= 2 ** (layer - 1) for layer, step in enumerate(steps, 1))


@pytest.mark.parametrize("k", [1, 2, 3, 6, 7])
def test_hops_by_doubling_on_real_pointers(k):
    """The sets that the schedule claims, by following random pointers through its layers."""
    rng, tokens = np.random.default_rng(k), 12
    layers = doubling.fewest_layers(k)
    found = ask("khop", (1,) * layers, k, positions=True, rules=DOUBLING)
    assert found.feasible
    assert found.published == (layers >= k + 1)
    if layers < k + 1:
        assert not ask("khop", (1,) * layers, k, positions=True).feasible
    assert (
        not ask("khop", (1,) * (layers - 1), k, positions=True, rules=DOUBLING).feasible
        if layers > 1
        else True
    )
    jump = rng.integers(0, tokens, tokens)

    def hop(t, m):
        for _ in range(m):
            t = jump[t]
        return t

    known = [{t} for t in range(tokens)]
    c0, here, done = set(), tokens - 1, 0
    for layer, step in enumerate(doubling.jumps(k, layers), 1):
        if layer == 1:
            c0 |= known[here]
        elif step:
            c0 |= known[hop(here, 1)]  # the key that the head shows brings what it knew
            here, done = hop(here, step), done + step
        assert here in c0
        known = [mine | known[hop(t, 2 ** (layer - 1))] for t, mine in enumerate(known)]
    assert done == k
    assert here == hop(tokens - 1, k)


def test_a_chain_is_seen_only_where_it_is_one():
    assert doubling.hops(measure(targets.khop(3))) == 3
    for name in ("kth", "induction", "retrieval", "match2"):
        assert doubling.hops(measure(targets.named(name, 3))) in (None, 1)
    other = str(targets.khop(2)).replace('x(hop1), "A"', 'x(hop1), "B"')
    assert '"B"' in other
    assert doubling.hops(measure(parse(other))) is None


def test_the_frontier_of_pairmax_trades_layers_for_heads():
    setting = setting_of(Architecture((1,), 8, 4, 16), targets.pairmax(3), Rules())
    points = {p.size[:2]: p for p in frontier(setting, Budget(4, 8), 1.0)}
    assert set(points) == {(2, 6), (3, 5), (4, 4)}
    assert points[2, 6].heads == (3, 3)
    assert points[4, 4].heads == (1, 1, 1, 1)
    assert points[2, 6].width == 9  # 4 + 3 * 4 coordinates in a token's state, over 1 + e0, by 3
    assert fewest_heads(tuple(points.values())).heads == (1, 1, 1, 1)
    assert fewest_layers(tuple(points.values())).heads == (3, 3)
    assert frontier(setting, Budget(1, 8), 1.0) == ()


def test_points_of_the_frontier_are_feasible_and_no_smaller_one_is():
    for name, D, positions in [("retrieval", 3, False), ("retrieval", 3, True), ("kth", 2, False)]:
        target = targets.named(name, D)
        setting = setting_of(Architecture((1,), 8, 4, 8, positions), target, Rules())
        for point in frontier(setting, Budget(3, 4), 1.0):
            architecture = Architecture(point.heads, point.width, 4, 8, positions)
            assert predict(architecture, target).efficient(1.0)
            least = point.schedule.load / 2
            assert point.width >= least
            assert all((point.width - s) % h or point.width - s < least
                       for s in range(1, point.width) for h in [max(point.heads)])  # fmt: skip


def test_what_is_known_after_each_layer():
    found = ask("pairmin", (1, 1))
    assert found.knows[0] == {"c0": frozenset(), "tokens": frozenset({"t"})}
    assert found.knows[1]["tokens"] == {"t", "min_s1(t)"}
    assert found.knows[2]["c0"] == {"min_t1", "min_s1(min_t1)"}
    assert ask("retrieval", (1, 1), 3, positions=True).knows[1]["places"] == {"min_t2", "min_t3"}


def test_reasons_name_node_and_cause():
    def said(*args, **more):
        return [str(reason) for reason in ask(*args, **more).reasons]

    assert said("pairmax", (2, 3), 3) == [
        "max_s1: the heads of tokens that could find it, in layers 1 to 1, are all taken",
        "max_t1: needs max_s1 first",
    ]
    assert said("pairmin", (4,))[0] == (
        "min_s1: needs a layer before, and tokens are of use in 0 of 1"
    )
    assert "needs T = 16 heads in one layer" in said("triangle", (4, 4, 4))[0]
    assert said("positions", (1,), 2) == [
        f"x({i}): reads a position, which needs a positional encoding" for i in (1, 2)
    ]
    pairs = 'output = total("s", total("t", linear("a", x("t")) + dot(x("s"), x("t"))))'
    assert "sums over pairs" in said(pairs, (4, 4))[0]


# tracr (github.com/google-deepmind/tracr, compiler/lib.py): the programs that this language can
# say, their attention layers, and their heads: its compiler gives one to each aggregation.
TRACR = {
    "shift_by(1)": ('output = each("t", x(shift("t", -1)))', 1, 1),
    "detect_pattern(abc)": (
        'output = each("t", linear("c", x("t")) + linear("b", x(shift("t", -1))) '
        '+ linear("a", x(shift("t", -2))))', 1, 2),
    "count": ('output = each("t", linear("b", x("t")) + total("s", linear("a", x("s"))))', 1, 1),
}  # fmt: skip


@pytest.mark.parametrize("name", TRACR)
def test_programs_of_tracr_need_no_more_than_its_compiler_gives_them(name):
    text, layers, heads = TRACR[name]
    setting = setting_of(Architecture((1,), 8, 4, 16, True), parse(text), Rules())
    point = fewest_layers(frontier(setting, Budget(3, 4), 1.0))
    selectors = len(setting.measures.nodes)
    assert (len(point.heads), selectors) == (layers, heads)
    assert point.heads == (1,)  # a head here reads several fixed offsets at once


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (((), 8, 4, 16), "heads = \\(\\): expected 1 to 64 layers"),
        (((1, 0), 8, 4, 16), "heads = \\(1, 0\\)"),
        (((3,), 8, 4, 16), "width = 8: expected a multiple of its 3 heads"),
        (((1,), 8, 0, 16), "d = 0"),
        (((1,), 8, 4, 0), "tokens = 0"),
        (((1,), 8, 4, 16, False, -1.0), "baseline = -1.0"),
    ],
)
def test_bad_architectures(arguments, message):
    with pytest.raises(ValueError, match=message):
        Architecture(*arguments)


def test_bad_questions():
    with pytest.raises(ValueError, match="T = 2: expected an integer >= 3"):
        ask("triangle", (1,), tokens=2)
    with pytest.raises(ValueError, match="index 't' is unbound"):
        ask('output = linear("a", x("t"))', (1,))
    with pytest.raises(ValueError, match="layers = 0"):
        Budget(0, 1)
