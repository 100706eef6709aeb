"""Sampled states are the decoder's own, of the promised tokens, and a function of the key alone."""

import chex
import jax
import numpy as np
import pytest

from reach_jax.geometry import states
from reach_jax.geometry.states import SupportConfig
from tests.models import mamba_reference, reference
from tests.models.tiny import CONFIG, MAMBA, make_params

BEGIN = 4
PARAMS = make_params(CONFIG)


def sample(key, config):
    return list(states.sample(CONFIG, PARAMS, config, BEGIN, key))


@pytest.fixture
def tokens_seen(monkeypatch):
    """Every batch of tokens that the decoder was given."""
    seen, real = [], states._last_states

    def spy(model, params, tokens_BT):
        seen.append(np.asarray(tokens_BT))
        return real(model, params, tokens_BT)

    monkeypatch.setattr(states, "_last_states", spy)
    return seen


def test_states_are_the_last_of_the_tokens_after_the_begin_token(tokens_seen):
    batches = sample(jax.random.key(0), SupportConfig(lengths=(3, 1), samples=5))
    assert [tokens.shape for tokens in tokens_seen] == [(5, 4), (5, 2)]
    for tokens_BT, states_BD in zip(tokens_seen, batches, strict=True):
        chex.assert_shape(states_BD, (5, CONFIG.width))
        assert (tokens_BT[:, 0] == BEGIN).all()
        for tokens_T, state_D in zip(tokens_BT, states_BD, strict=True):
            inputs_TD = np.asarray(PARAMS["embedding"])[tokens_T]
            want_D = reference.hidden(PARAMS, CONFIG, inputs_TD)[-1]
            np.testing.assert_allclose(state_D, want_D, atol=3e-5)


def test_states_of_a_mamba_are_its_own(tokens_seen):
    params = make_params(MAMBA)
    config = SupportConfig(lengths=(5,), samples=3)
    (states_BD,) = states.sample(MAMBA, params, config, BEGIN, jax.random.key(0))
    for tokens_T, state_D in zip(tokens_seen[0], states_BD, strict=True):
        inputs_TD = np.asarray(params["embedding"])[tokens_T]
        want_D = mamba_reference.hidden(params, MAMBA, inputs_TD)[-1]
        np.testing.assert_allclose(state_D, want_D, atol=3e-5)


def test_count_is_exact_when_batches_do_not_divide_it(monkeypatch):
    monkeypatch.setattr(states, "_BATCH_TOKENS", 28)
    batches = sample(jax.random.key(0), SupportConfig(lengths=(7, 9), samples=7))
    assert [len(batch) for batch in batches] == [4, 3, 3, 3, 1]
    assert len(np.unique(np.concatenate(batches), axis=0)) == 14  # no batch is drawn twice


def test_ids_come_from_the_whole_vocabulary_evenly(tokens_seen):
    sample(jax.random.key(1), SupportConfig(lengths=(20,), samples=100))
    counts_V = np.bincount(tokens_seen[0][:, 1:].ravel(), minlength=CONFIG.vocab_size)
    chex.assert_shape(counts_V, (CONFIG.vocab_size,))
    expected = 2000 / CONFIG.vocab_size
    statistic = ((counts_V - expected) ** 2 / expected).sum()
    assert statistic < 33  # chi squared with 12 degrees of freedom: one in a thousand above


def test_the_key_decides():
    config = SupportConfig(lengths=(3, 3), samples=5)
    first, again, other = (sample(jax.random.key(seed), config) for seed in (0, 0, 1))
    chex.assert_trees_all_equal(first, again)
    assert np.abs(first[0] - other[0]).max() > 0.1
    assert np.abs(first[0] - first[1]).max() > 0.1  # a length listed twice is drawn twice


def test_pieces_of_text_and_no_begin_token(tokens_seen):
    stream_S = np.arange(60) % 11
    config = SupportConfig(lengths=(6,), samples=200)
    batches = list(states.sample(CONFIG, PARAMS, config, None, jax.random.key(2), stream_S))
    tokens_BT = tokens_seen[0]
    assert tokens_BT.shape == (200, 6)
    assert ((np.diff(tokens_BT, axis=1) - 1) % 11 == 0).all()
    assert set(tokens_BT[:, 0].tolist()) == set(range(11))
    np.testing.assert_allclose(
        states.last_state(CONFIG, PARAMS, tokens_BT[7]), batches[0][7], atol=3e-5
    )


def test_the_text_may_be_just_long_enough(tokens_seen):
    config = SupportConfig(lengths=(6,), samples=3)
    list(states.sample(CONFIG, PARAMS, config, None, jax.random.key(2), np.arange(6)))
    np.testing.assert_array_equal(tokens_seen[0], np.tile(np.arange(6), (3, 1)))
    with pytest.raises(ValueError, match=r"^tokens of the text = 5"):
        next(states.sample(CONFIG, PARAMS, config, None, jax.random.key(2), np.arange(5)))


def test_random_ids_stay_below_the_vocabulary(tokens_seen):
    config = SupportConfig(lengths=(50,), samples=20)
    list(states.sample(CONFIG, PARAMS, config, None, jax.random.key(2), vocabulary=3))
    assert set(tokens_seen[0].ravel().tolist()) == {0, 1, 2}


def test_long_sequences_go_in_few_at_a_time(monkeypatch):
    monkeypatch.setattr(states, "_BATCH_SCORES", 2 * CONFIG.heads * 7**2)
    assert [len(b) for b in sample(jax.random.key(0), SupportConfig((7,), 5))] == [2, 2, 1]


@pytest.mark.parametrize(
    ("field", "lengths", "samples"),
    [("lengths", (), 5), ("lengths", (4, 0), 5), ("samples", (4,), 0)],
)
def test_a_bad_field_is_named(field, lengths, samples):
    with pytest.raises(ValueError, match=f"^{field} = "):
        SupportConfig(lengths, samples)
