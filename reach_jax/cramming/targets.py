"""The texts that prompts must reach. A target depends on the seed, its source and its number only.

So every prompt length crams the same targets, and asking for more of them changes none.
"""

import jax
import numpy as np

from sweep_jax.checks import require

_STREAMS = {"text": 1, "random": 2}  # keeps the sources' keys apart


def text_targets(
    stream_S: np.ndarray, begin_id: int, numbers: list[int], length: int, seed: int
) -> np.ndarray:
    """Pieces of held-out text, (len(numbers), length), none of which holds the begin token.

    Raises:
      ValueError: no document of the stream is that long.
    """
    breaks = np.concatenate([[0], np.cumsum(stream_S == begin_id)])
    starts = np.flatnonzero(breaks[length:] == breaks[: len(breaks) - length])
    require(len(starts) > 0, "max_target", length, "at most the longest held-out document")
    picks = [_pick(seed, "text", number, len(starts)) for number in numbers]
    return np.stack([stream_S[starts[p] : starts[p] + length] for p in picks])


def random_targets(
    vocab_size: int, begin_id: int, numbers: list[int], length: int, seed: int
) -> np.ndarray:
    """Tokens drawn uniformly from all but the begin token: (len(numbers), length)."""
    rows = [
        np.asarray(jax.random.randint(_key(seed, "random", n), (length,), 0, vocab_size - 1))
        for n in numbers
    ]
    tokens = np.stack(rows).astype(np.int32)
    return tokens + (tokens >= begin_id)  # step over the begin token


def _key(seed: int, source: str, number: int) -> jax.Array:
    return jax.random.fold_in(jax.random.fold_in(jax.random.key(seed), _STREAMS[source]), number)


def _pick(seed: int, source: str, number: int, count: int) -> int:
    return int(jax.random.randint(_key(seed, source, number), (), 0, count))
