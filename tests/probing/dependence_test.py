"""Dependence against loops, a closed form, and explicit weights whose truth is known."""

import itertools

import jax
import numpy as np
import pytest

from infoflow_jax.calculus.meaning import evaluate
from infoflow_jax.networks import transformer
from infoflow_jax.networks.construction import draw
from infoflow_jax.probing import dependence
from infoflow_jax.probing.planned import plan_inputs
from tests.networks import reference
from tests.probing import cases

TOLERANCE = 1e-6  # far from rounding, 1e-11 of a spread, and from what is depended on, 1e-3


def inputs(made, N, K, T):
    rng = np.random.default_rng(7)
    shape = (T, made.config.d)
    x_NTD = rng.uniform(made.low, made.high, (N, *shape))
    return x_NTD, rng.uniform(made.low, made.high, (N, K, *shape))


@pytest.fixture(scope="module")
def known():
    T = 5
    made, plan = cases.hard("pairmax 3 in 2 2 1", T)
    x_NTD, other_NKTD = inputs(made, 3, 4, T)
    return made, plan, x_NTD, other_NKTD


def computed(array_LPS):
    """Of the last layer only c0, the rest of all positions."""
    return np.concatenate([array_LPS[:-1].ravel(), array_LPS[-1, -1]])


def test_measured_sets_are_what_the_plan_uses(known):
    made, plan, x_NTD, other_NKTD = known
    found = dependence.measure(made.config, made.params, None, x_NTD, other_NKTD)
    answer = plan_inputs(plan, made.target, made.weights, x_NTD)
    for method in ("nudged", "gradient"):
        for got_LPS, want_LPS in zip(found[method], answer.used_NLPS, strict=True):
            np.testing.assert_array_equal(computed(got_LPS > TOLERANCE), computed(want_LPS))
    missed_NLPS = answer.used_NLPS & (found["resampled"] <= TOLERANCE)
    assert not any(computed(missed_LPS).any() for missed_LPS in missed_NLPS)


def test_a_draw_moves_the_states_that_used_the_token_or_use_the_draw(known):
    """The exact truth of one intervention: the sets before and after it, in every state."""
    made, plan, x_NTD, other_NKTD = known
    x_TD, other_KTD = x_NTD[0], other_NKTD[0, :1]
    with jax.enable_x64(True):
        moved_LPS = np.asarray(dependence.moves(made.config, made.params, x_TD, other_KTD))[0]
    answer = plan_inputs(plan, made.target, made.weights, x_NTD[:1]).used_NLPS[0]
    for s in range(len(x_TD)):
        changed_TD = np.where(np.arange(len(x_TD))[:, None] == s, other_KTD[0], x_TD)
        after = plan_inputs(plan, made.target, made.weights, changed_TD[None]).used_NLPS[0]
        either = (answer | after)[:, :, s : s + 1]
        np.testing.assert_array_equal(computed(moved_LPS[:, :, s : s + 1] > 1e-9), computed(either))


def test_every_input_over_four_letters():
    """INF-01: the real network on all inputs; where no two tokens are equal, its sets too."""
    letters, apart = (-0.9, -0.25, 0.4, 0.8), []
    made, plan = cases.hard("pairmin 1 in 1 1", 4)
    for T in range(2, 5):
        every = np.array(list(itertools.product(letters, repeat=T)))
        # Three coordinates of one letter, unequal enough that no two scores tie.
        x_BTD = every[:, :, None] * np.array([1.0, 0.31, -0.17])
        with jax.enable_x64(True):
            got_BO = transformer.apply_batch(made.config, made.params, x_BTD)
        want_B = [evaluate(made.target, x_TD, made.weights) for x_TD in x_BTD]
        np.testing.assert_allclose(np.ravel(got_BO), want_B, atol=made.bound(T) + 1e-9)
        apart.append(x_BTD[[len(set(row)) == T for row in every]])
    x_NTD = apart[-1]
    assert len(x_NTD) == 24
    found = dependence.measure(made.config, made.params, None, x_NTD, -0.5 * x_NTD[:, None])
    used_NLPS = plan_inputs(plan, made.target, made.weights, x_NTD).used_NLPS
    for got_LPS, want_LPS in zip(found["gradient"], used_NLPS, strict=True):
        np.testing.assert_array_equal(computed(got_LPS > TOLERANCE), computed(want_LPS))


def test_a_hand_set_head_has_its_closed_form():
    config, params = cases.one_head(2.0)
    rng = np.random.default_rng(1)
    x_NTD, other_NKTD = rng.standard_normal((6, 4, 1)), rng.standard_normal((6, 8, 4, 1))
    found = dependence.measure(config, params, None, x_NTD, other_NKTD)
    p_NT = np.stack([cases.softmax(2.0 * x_TD[:, 0]) for x_TD in x_NTD])
    mean_N = (p_NT * x_NTD[:, :, 0]).sum(1)
    slope_NT = p_NT * (1 + 2.0 * (x_NTD[:, :, 0] - mean_N[:, None]))
    spread = mean_N.std()
    want_NT = np.abs(slope_NT) * x_NTD.std() / spread
    np.testing.assert_allclose(found["gradient"][:, 0, 4], want_NT, rtol=1e-9)
    np.testing.assert_allclose(found["rollout"][:, 0, 4], 0.5 * p_NT, rtol=1e-9)
    for n, s in itertools.product(range(6), range(4)):
        at = []
        for new in other_NKTD[n, :, s, 0]:
            x_T = np.where(np.arange(4) == s, new, x_NTD[n, :, 0])
            at.append(abs((cases.softmax(2.0 * x_T) * x_T).sum() - mean_N[n]))
        want = np.sort(at)[2] / spread  # 6 of 8 move it at least so far
        assert found["resampled"][n, 0, 4, s] == pytest.approx(want, rel=1e-9)
        usual = np.median(np.abs(other_NKTD[n, :, s, 0] - x_NTD[n, s, 0]))
        assert found["nudged"][n, 0, 4, s] == pytest.approx(
            abs(slope_NT[n, s]) * usual / spread, rel=0.6
        )


def test_moves_are_those_of_a_loop():
    made, _ = cases.hard("pairmax 2 in 2 2", 5)
    config, params = made.config, made.params
    x_NTD, other_NKTD = inputs(made, 1, 2, 5)
    with jax.enable_x64(True):
        got_KLPS = np.asarray(dependence.moves(config, params, x_NTD[0], other_NKTD[0]))
    before = reference.layers(config, params, x_NTD[0])
    for k, s in ((0, 1), (1, 4)):
        x_TD = x_NTD[0].copy()
        x_TD[s] = other_NKTD[0, k, s]
        after = reference.layers(config, params, x_TD)
        want_LP = [
            [np.linalg.norm(a - b) for a, b in zip(after[n], before[n], strict=True)]
            for n in (1, 2)
        ]
        np.testing.assert_allclose(got_KLPS[k, 0, :, s], want_LP[0], atol=1e-7)
        np.testing.assert_allclose(got_KLPS[k, 1, -1, s], want_LP[1][-1], atol=1e-7)


def test_bad_input_is_refused():
    config, params = cases.one_head(1.0)
    x_NTD = np.zeros((2, 3, 1))
    with pytest.raises(ValueError, match="other_NKTD"):
        dependence.measure(config, params, None, x_NTD, np.zeros((2, 4, 2, 1)))
    with pytest.raises(ValueError, match="NaN or infinity"):
        dependence.measure(config, params, None, x_NTD * np.nan, np.zeros((2, 4, 3, 1)))
    made, plan = cases.hard("retrieval 3 in 1 2", 5)
    odd = [p.__class__(p.node, p.layer, "places") for p in plan.placements]
    plan = plan.__class__(plan.heads, tuple(odd), (), (), plan.load, ())
    x_NTD = draw(made, np.random.default_rng(0), 1, 5)
    with pytest.raises(ValueError, match="nodes of c0 or of one token"):
        plan_inputs(plan, made.target, made.weights, x_NTD)
