"""Information sets in words against sets in Python, on random architectures and exact cases."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from infoflow_jax.calculus import modes, sets
from infoflow_jax.calculus.modes import Mode

T, H, L = 5, 2, 3
P = T + 1
layer_shown = jax.jit(jax.vmap(modes.shown))
many = jax.jit(jax.vmap(sets.propagate))


def slow(mode_LHP, key_LHP, fixed_LHPP, allowed_LPP, residual):
    """Sets of Python, one element at a time."""
    known = [{t} for t in range(T)] + [set()]
    history = [known]
    for mode_HP, key_HP, fixed_HPP, allowed_PP in zip(
        mode_LHP, key_LHP, fixed_LHPP, allowed_LPP, strict=True
    ):
        after = []
        for t in range(P):
            mine = set(known[t]) if residual else set()
            for h in range(len(mode_HP)):
                mode = mode_HP[h][t]
                for s in range(P):
                    shows = (
                        (mode == 1 and s == key_HP[h][t])
                        or (mode == 2 and fixed_HPP[h][t][s])
                        or mode == 3
                    )
                    if shows and allowed_PP[t][s]:
                        mine |= known[s]
            after.append(mine)
        known = after
        history.append(known)
    return history


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), residual=st.booleans(), causal=st.booleans())
def test_arrays_propagate_as_sets_do(seed, residual, causal):
    rng = np.random.default_rng(seed)
    mode_LHP = rng.integers(0, 4, (L, H, P))
    key_LHP = rng.integers(-1, P, (L, H, P))
    fixed_LHPP = rng.random((L, H, P, P)) < rng.random()
    allowed_LPP = np.stack([np.asarray(modes.allowed(T, causal, layer > 0)) for layer in range(L)])
    allowed_LPP &= rng.random((L, P, P)) < 0.9  # so that some query has no key at all
    seen = layer_shown(
        jnp.asarray(mode_LHP, jnp.int32),
        jnp.asarray(key_LHP, jnp.int32),
        jnp.asarray(fixed_LHPP),
        jnp.asarray(allowed_LPP),
    )
    got = np.asarray(sets.unpack(sets.propagate(seen, residual), P))
    for layer, known in enumerate(slow(mode_LHP, key_LHP, fixed_LHPP, allowed_LPP, residual)):
        assert [set(np.flatnonzero(row)) for row in got[layer]] == known


@pytest.mark.parametrize("positions", [1, 31, 32, 33, 65])
def test_words_hold_every_position(positions):
    member = np.random.default_rng(positions).random((3, positions)) < 0.5
    member[0], member[1] = True, False  # the full set and the empty one
    packed = sets.pack(jnp.asarray(member))
    assert packed.dtype == jnp.uint32
    for row, words in zip(member, np.asarray(packed), strict=True):
        number = sum(int(word) << (32 * place) for place, word in enumerate(words))
        assert number == sum(1 << int(p) for p in np.flatnonzero(row))
    np.testing.assert_array_equal(np.asarray(sets.unpack(packed, positions)), member)


def test_c0_starts_empty_and_every_token_with_itself():
    known = np.asarray(sets.unpack(sets.start(40), 41))
    np.testing.assert_array_equal(known[:40, :40], np.eye(40, dtype=bool))
    assert not known[40].any()
    assert not known[:, 40].any()


def test_a_head_without_keys_shows_nothing_and_the_first_of_equals_wins():
    scores = jnp.asarray([[1.0, 2.0, 2.0], [0.0, 0.0, 0.0], [-jnp.inf, -jnp.inf, 5.0]])
    allowed = jnp.asarray([[1, 1, 1], [0, 0, 0], [0, 1, 0]], bool)
    np.testing.assert_array_equal(np.asarray(modes.best_key(scores, allowed)), [1, -1, 1])
    mode = jnp.full((1, 3), Mode.GLOBAL, jnp.int32)
    none = jnp.zeros((1, 3), jnp.int32)
    seen = modes.shown(mode, none, jnp.zeros((1, 3, 3), bool), allowed)
    np.testing.assert_array_equal(np.asarray(sets.unpack(seen, 3)), np.asarray(allowed))


@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_the_sweep_over_architectures_agrees_with_propagation(seed):
    tokens, inputs, tables, archs = 40, 6, 5, 7  # two words
    rng = np.random.default_rng(seed)
    member = rng.random((tables, tokens + 1, inputs, tokens + 1)) < 0.03
    member[0] = False
    packed_QPIW = sets.pack(jnp.asarray(member))
    choice = rng.integers(0, tables, (2, archs, 3, 2))
    queries = np.arange(tokens + 1)[:, None]
    is_c0 = queries == tokens
    want = np.zeros((archs, inputs), bool)
    needed = rng.random((inputs, tokens + 1)) < 0.05
    needed[:, tokens] = False
    for a in range(archs):
        seen = np.zeros((3, tokens + 1, inputs, tokens + 1), bool)
        for layer in range(3):
            for head in range(2):
                of_tokens, of_c0 = choice[0, a, layer, head], choice[1, a, layer, head]
                seen[layer] |= np.where(is_c0[:, :, None], member[of_c0], member[of_tokens])
        known = many(sets.pack(jnp.asarray(np.moveaxis(seen, 2, 0))))
        known = np.asarray(sets.unpack(known[:, 3, tokens], tokens + 1))
        want[a] = ~(needed & ~known).any(1)
    got = sets.covered(
        jnp.moveaxis(packed_QPIW, -1, 2),
        jnp.asarray(choice[0], jnp.int32),
        jnp.asarray(choice[1], jnp.int32),
        jnp.moveaxis(sets.pack(jnp.asarray(needed)), -1, 0),
    )
    np.testing.assert_array_equal(np.asarray(got), want)
    assert needed.any(1).all() or want.any()


def test_causal_masks_and_bad_sizes():
    keep = np.asarray(modes.allowed(3, causal=True, c0_as_key=False))
    want = [[1, 0, 0, 0], [1, 1, 0, 0], [1, 1, 1, 0], [1, 1, 1, 0]]
    np.testing.assert_array_equal(keep, np.array(want, bool))
    with pytest.raises(ValueError, match="T = 0"):
        modes.allowed(0, False, False)
    with pytest.raises(ValueError, match="positions = 0"):
        sets.words(0)
