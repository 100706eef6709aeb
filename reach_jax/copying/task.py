"""The copying task: `$s|s.` over 30 symbols, endless training rows, and strings kept for tests.

A row of training packs whole examples one behind the other, without padding; the last one is cut
where the row ends and then teaches nothing. Only the answer and its end symbol do. A string whose
letters add up to a multiple of 26 is never trained on, and every test string is one: the two are
disjoint at every length. After Jelassi et al. 2024 (*Repeat After Me*) and arXiv 2605.22223.
"""

import dataclasses
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

from sweep_jax.checks import require

LETTERS = 26
SYMBOLS = "abcdefghijklmnopqrstuvwxyz$|.*"
VOCABULARY = len(SYMBOLS)
BEGIN, SEPARATOR, END, PAD = range(LETTERS, VOCABULARY)


@dataclasses.dataclass(frozen=True)
class TaskConfig:
    """Which strings a model is trained on."""

    shortest: int  # letters
    longest: int  # letters; what "training length" means
    context: int  # symbols of a training row

    def __post_init__(self) -> None:
        require(self.shortest >= 1, "shortest", self.shortest, "an integer >= 1")
        expected = f"an integer >= shortest = {self.shortest}"
        require(self.longest >= self.shortest, "longest", self.longest, expected)
        need = size(self.longest)
        expected = f"at least {need}, the symbols of the longest example"
        require(self.context >= need, "context", self.context, expected)


def size(length: int) -> int:
    """Symbols of an example of `length` letters: twice the string, begin, separator and end."""
    return 2 * length + 3


def encode(text: str) -> np.ndarray:
    """Ids of a text of the 30 symbols, int32.

    Raises:
      ValueError: another symbol.
    """
    ids = [SYMBOLS.find(symbol) for symbol in text]
    require(-1 not in ids, "text", text, f"symbols of {SYMBOLS!r}")
    return np.array(ids, np.int32)


def decode(ids: Sequence[int] | np.ndarray) -> str:
    """The text of ids."""
    return "".join(SYMBOLS[int(i)] for i in ids)


def rows(
    key: jax.Array, batch: int, shortest: jax.Array | int, longest: jax.Array | int, context: int
) -> tuple[jax.Array, jax.Array]:
    """Training rows: tokens (B, T) and whether each is an answer's, to be predicted, (B, T).

    Args:
      key: decides all of it.
      batch: B.
      shortest: letters; a traced integer serves, so that lanes may differ.
      longest: letters; 2 longest + 3 <= context is the caller's to see to.
      context: T.
    """
    one = jax.vmap(lambda key: _row(key, shortest, longest, context))
    return one(jax.random.split(key, batch))


def _row(
    key: jax.Array, shortest: jax.Array | int, longest: jax.Array | int, context: int
) -> tuple[jax.Array, jax.Array]:
    E, N = context // size(1) + 1, (context - 3) // 2  # more examples or letters never fit
    key_lengths, key_letters = jax.random.split(key)
    length_E = jax.random.randint(key_lengths, (E,), shortest, longest + 1)
    letter_EN = jax.random.randint(key_letters, (E, N), 0, LETTERS)
    place_1N = jnp.arange(N)[None, :]
    total_E = jnp.sum(jnp.where(place_1N < length_E[:, None], letter_EN, 0), axis=1)
    last_EN = (place_1N == length_E[:, None] - 1) & (total_E % LETTERS == 0)[:, None]
    letter_EN = jnp.where(last_EN, (letter_EN + 1) % LETTERS, letter_EN)  # kept for tests
    end_E = jnp.cumsum(size_of(length_E))
    here_T = jnp.arange(context)
    example_T = jnp.searchsorted(end_E, here_T, side="right")
    length_T = length_E[example_T]
    offset_T = here_T - (end_E - size_of(length_E))[example_T]
    answer_T = offset_T >= length_T + 2
    within_T = jnp.where(answer_T, offset_T - length_T - 2, offset_T - 1)
    token_T = letter_EN[example_T, jnp.clip(within_T, 0, N - 1)]
    token_T = jnp.where(offset_T == 0, BEGIN, token_T)
    token_T = jnp.where(offset_T == length_T + 1, SEPARATOR, token_T)
    token_T = jnp.where(offset_T == 2 * length_T + 2, END, token_T)
    return token_T, answer_T & (end_E[example_T] <= context)


def size_of(length_E: jax.Array) -> jax.Array:
    """`size` of an array."""
    return 2 * length_E + 3


def held_out(strings_BN: np.ndarray) -> np.ndarray:
    """Whether each string is one that is never trained on, (B,) bool."""
    return strings_BN.sum(axis=1) % LETTERS == 0


def strings(rng: np.random.Generator, count: int, length: int) -> np.ndarray:
    """Test strings, uniform over those that are never trained on: (count, length) int32.

    Raises:
      ValueError: a length < 1.
    """
    require(length >= 1, "length", length, "an integer >= 1")
    drawn_BN = rng.integers(0, LETTERS, (count, length)).astype(np.int32)
    drawn_BN[:, -1] = -drawn_BN[:, :-1].sum(axis=1) % LETTERS
    return drawn_BN


def examples(strings_BN: np.ndarray) -> np.ndarray:
    """Whole examples `$s|s.`, (B, 2N + 3)."""

    def column(symbol: int) -> np.ndarray:
        return np.full((len(strings_BN), 1), symbol, np.int32)

    parts = [column(BEGIN), strings_BN, column(SEPARATOR), strings_BN, column(END)]
    return np.concatenate(parts, axis=1)
