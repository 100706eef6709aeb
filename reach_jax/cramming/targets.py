"""The texts that prompts must reach. A target depends on the seed, its source and its number only.

So every prompt length crams the same targets, and asking for more of them changes none.
"""

import jax
import numpy as np

from sweep_jax.checks import require

_STREAMS = {"text": 1, "random": 2, "words": 3}  # keeps the sources' keys apart


def text_targets(
    stream_S: np.ndarray, begin_id: int, numbers: list[int], length: int, seed: int
) -> np.ndarray:
    """Pieces of held-out text, (len(numbers), length), none of which holds the begin token.

    Raises:
      ValueError: no document of the stream is that long.
    """
    breaks = np.concatenate([[0], np.cumsum(stream_S == begin_id)])
    first = max(len(breaks) - length, 0)  # no piece begins there or later
    starts = np.flatnonzero(breaks[length:] == breaks[:first])
    require(len(starts) > 0, "max_target", length, "at most the longest held-out document")
    picks = [_pick(seed, "text", number, len(starts)) for number in numbers]
    return np.stack([stream_S[starts[p] : starts[p] + length] for p in picks])


def random_targets(
    vocab_size: int, begin_id: int | None, numbers: list[int], length: int, seed: int
) -> np.ndarray:
    """Tokens drawn uniformly from all but the begin token, if any: (len(numbers), length)."""
    count = vocab_size if begin_id is None else vocab_size - 1
    rows = [
        np.asarray(jax.random.randint(_key(seed, "random", n), (length,), 0, count))
        for n in numbers
    ]
    tokens = np.stack(rows).astype(np.int32)
    if begin_id is None:
        return tokens
    return tokens + (tokens >= begin_id)  # step over the begin token


def random_words(words: list[str], numbers: list[int], count: int, seed: int) -> list[str]:
    """Texts of `count` words drawn uniformly, with repetition, a space between two."""
    picked = [jax.random.randint(_key(seed, "words", n), (count,), 0, len(words)) for n in numbers]
    return [" ".join(words[i] for i in np.asarray(row)) for row in picked]


def _key(seed: int, source: str, number: int) -> jax.Array:
    return jax.random.fold_in(jax.random.fold_in(jax.random.key(seed), _STREAMS[source]), number)


def _pick(seed: int, source: str, number: int, count: int) -> int:
    return int(jax.random.randint(_key(seed, source, number), (), 0, count))
