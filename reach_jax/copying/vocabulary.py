"""A language model with its vocabulary cut to the 30 symbols of copying, to be tuned further.

Rows of the embedding and of the output head are taken over as they are; a symbol's row is that of
its own token where the tokenizer has one. Not a tokenizer, and nothing is trained here.
"""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from reach_jax.copying import task
from reach_jax.models import kinds
from reach_jax.models.config import Params
from sweep_jax.checks import require


def rows_of(encode: Callable[[str], list[int]] | None, vocabulary: int) -> list[int]:
    """The row of each of the 30 symbols.

    Args:
      encode: a text's ids; None where there is no tokenizer.
      vocabulary: rows to choose from.

    Returns:
      30 different rows: a symbol's own token where it is one and not taken, else the first free
      rows from 0 on.

    Raises:
      ValueError: fewer than 30 rows.
    """
    expected = f"at least {task.VOCABULARY} rows, one a symbol"
    require(vocabulary >= task.VOCABULARY, "vocabulary", vocabulary, expected)
    found: list[int | None] = []
    for symbol in task.SYMBOLS:
        ids = [] if encode is None else encode(symbol)
        single = len(ids) == 1 and 0 <= ids[0] < vocabulary and ids[0] not in found
        found.append(ids[0] if single else None)
    free = iter(i for i in range(vocabulary) if i not in found)
    return [next(free) if row is None else row for row in found]


def cut(config: Any, params: Params, rows: Sequence[int]) -> tuple[kinds.Config, Params]:
    """The model with only these rows of its embedding and head, in this order.

    Raises:
      ValueError: a row is not in the table, or stands twice.
    """
    V = config.vocab_size
    inside = len(set(rows)) == len(rows) and all(0 <= row < V for row in rows)
    require(inside, "rows", list(rows), f"different rows of a table of {V}")
    index = np.asarray(rows, np.int32)
    tables = [name for name in ("embedding", "head") if name in params]
    kept: Params = {name: jnp.asarray(params[name])[index] for name in tables}
    return dataclasses.replace(config, vocab_size=len(rows)), {**params, **kept}
