"""A vocabulary cut to 30 rows: the right ones in the right order; refused where there are less."""

import dataclasses

import jax
import numpy as np
import pytest

from reach_jax.copying import task, vocabulary
from reach_jax.models import kinds
from tests.models.tiny import CONFIG

TOKENS = 40


def encode(symbol):
    """Letters have their own token, the separator two, the end symbol that of "a"."""
    special = {"|": [38, 39], ".": [7], "$": [2], "*": [41]}
    return special.get(symbol, [7 + ord(symbol) - ord("a")])


def test_symbols_take_their_own_rows_where_they_have_one():
    rows = vocabulary.rows_of(encode, TOKENS)
    assert rows[:26] == list(range(7, 33))
    assert rows[task.BEGIN] == 2
    assert [rows[task.SEPARATOR], rows[task.END], rows[task.PAD]] == [0, 1, 3]  # the first free
    assert vocabulary.rows_of(None, 30) == list(range(30))
    with pytest.raises(ValueError, match="at least 30 rows"):
        vocabulary.rows_of(encode, 29)


@pytest.mark.parametrize("tied", [True, False])
def test_the_cut_model_says_what_the_whole_one_says_of_these_rows(tied):
    config = dataclasses.replace(CONFIG, vocab_size=TOKENS, tied=tied)
    params = kinds.init(config, jax.random.key(0))
    rows = vocabulary.rows_of(encode, TOKENS)
    small, cut = vocabulary.cut(config, params, rows)
    assert small.vocab_size == 30
    ids_T = task.encode("$copy|co")
    got_TV = jax.jit(kinds.module(small).apply)({"params": cut}, ids_T)
    whole = jax.jit(kinds.module(config).apply)
    want_TV = whole({"params": params}, np.array(rows, np.int32)[ids_T])
    np.testing.assert_allclose(got_TV, want_TV[:, np.array(rows)], atol=1e-5)
    with pytest.raises(ValueError, match="different rows"):
        vocabulary.cut(config, params, [*rows[:29], rows[0]])
