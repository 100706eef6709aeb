"""Linear probes: what is written linearly is read, what is not is not; the protocol's ranks."""

import numpy as np
import pytest

from infoflow_jax.probing import linear


def test_a_token_is_read_where_it_is_written_linearly_and_only_there():
    rng = np.random.default_rng(0)
    wanted = rng.standard_normal((60, 5, 2))
    other = rng.standard_normal((60, 5, 3))
    mixed = np.concatenate([wanted, other], 2) @ rng.standard_normal((5, 5)) + 3.0
    assert linear.error(mixed, wanted) < 1e-20
    noise = 0.5 * rng.standard_normal(wanted.shape)
    assert linear.error(wanted + noise, wanted) == pytest.approx(0.2, abs=0.05)  # s/(1 + s), s=1/4
    assert linear.error(other, wanted) == pytest.approx(1.0, abs=0.1)
    with pytest.raises(ValueError, match="inputs = 2"):
        linear.error(mixed[:2], wanted[:2])


def test_tokens_are_ranked_by_attention():
    weights_NPS = np.array([[[0.1, 0.6, 0.3, 0.9], [0.5, 0.2, 0.3, 0.0]]])  # the last is c0
    x_NTD = np.array([[[1.0], [2.0], [3.0]]])
    for rank, want in ((1, [2, 1]), (2, [3, 3])):
        assert linear.ranked_tokens(weights_NPS, x_NTD, rank)[0, :, 0].tolist() == want
