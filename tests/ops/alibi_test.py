"""Slopes, windows and biases of ALiBi and hard-ALiBi against their definitions, key by key."""

import jax.numpy as jnp
import numpy as np

from reach_jax.ops import alibi, attention


def test_slopes_are_those_of_the_paper():
    np.testing.assert_allclose(alibi.slopes(8), [0.5**i for i in range(1, 9)])
    np.testing.assert_allclose(alibi.slopes(12)[[2, 11]], [2 ** (-8 * 3 / 12), 2**-8], rtol=1e-6)


def test_masked_heads_see_one_more_key_each_and_the_others_all():
    windows_H = alibi.windows(5, 3)
    assert windows_H.tolist() == [1, 2, 3, alibi.EVERYTHING, alibi.EVERYTHING]


def test_attention_with_a_bias_equals_a_loop():
    T, H, N = 6, 4, 3
    rng = np.random.default_rng(0)
    q_THN, k_THN, v_THN = (rng.standard_normal((T, H, N)).astype(np.float32) for _ in range(3))
    place_T = jnp.arange(T) + 7  # only distances count
    slopes_H, windows_H = alibi.slopes(H), alibi.windows(H, 2)
    bias_HTS = alibi.bias(place_T, place_T, jnp.asarray(slopes_H), jnp.asarray(windows_H))
    mask_TT = np.tril(np.ones((T, T), bool))
    got_THN = attention.attend(q_THN, k_THN, v_THN, mask_TT, bias_HTS=bias_HTS)
    for t, h in np.ndindex(T, H):
        seen = [s for s in range(t + 1) if t - s < windows_H[h]]
        scores = [float(q_THN[t, h] @ k_THN[s, h]) / N**0.5 - slopes_H[h] * (t - s) for s in seen]
        weights = np.exp(scores) / np.exp(scores).sum()
        np.testing.assert_allclose(got_THN[t, h], weights @ v_THN[seen, h], atol=2e-6)
