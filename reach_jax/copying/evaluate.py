"""Copying judged by what a model emits: greedy decoding with a cache, counted string by string.

A string counts as copied when its letters and the end symbol come out, all of them right. Decoding
is not cut where the end symbol came too early: every symbol of the answer is compared with what
stands at its place, so that one who guesses scores 1/V a symbol. Padding is never read, emitted or
counted, as every row is decoded from its own first symbol on.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from reach_jax.copying import task
from sweep_jax.checks import require

LEAST_BUCKET = 32  # slots

Run = Callable[[jax.Array, jax.Array, jax.Array, int], jax.Array]


class Batch(NamedTuple):
    """Questions with their answers; rows may differ in length."""

    prompt_BS: np.ndarray  # what is given, then PAD
    given_B: np.ndarray  # symbols given, the separator the last
    answer_BS: np.ndarray  # the string and END, then PAD
    length_B: np.ndarray  # symbols of the answer, END included


class Scores(NamedTuple):
    """What came out, by string."""

    copied_B: np.ndarray  # bool: the whole answer
    right_B: np.ndarray  # symbols of the answer that are right
    length_B: np.ndarray  # symbols of the answer


def questions(strings_BN: np.ndarray, before_BS: np.ndarray | None = None) -> Batch:
    """`$s|` for every string, behind what stands before it.

    Args:
      strings_BN: letters.
      before_BS: whole examples to stand in front, one row each; nothing if None.
    """
    whole_BS, B = task.examples(strings_BN), len(strings_BN)
    front_BS = np.zeros((B, 0), np.int32) if before_BS is None else before_BS
    cut = strings_BN.shape[1] + 2
    prompt_BS = np.concatenate([front_BS, whole_BS[:, :cut]], axis=1)
    answer_BS = whole_BS[:, cut:]
    full = [np.full(B, size, np.int32) for size in (prompt_BS.shape[1], answer_BS.shape[1])]
    return Batch(prompt_BS, full[0], answer_BS, full[1])


def check(batch: Batch) -> None:
    """Refuses a batch whose rows are not what their lengths say.

    Raises:
      ValueError: lengths do not fit the arrays; a prompt does not end with the separator, an
        answer with the end symbol; symbols stand where padding should.
    """
    sides = (
        ("prompt", batch.prompt_BS, batch.given_B, task.SEPARATOR),
        ("answer", batch.answer_BS, batch.length_B, task.END),
    )
    for name, token_BS, size_B, last in sides:
        B, S = token_BS.shape
        fits = size_B.shape == (B,) and bool(((size_B >= 1) & (size_B <= S)).all())
        require(fits, f"lengths of {name}s", size_B.tolist(), f"{B} integers in [1, {S}]")
        ends_B = token_BS[np.arange(B), size_B - 1]
        row = int(np.argmax(ends_B != last))
        expected = f"{task.SYMBOLS[last]!r} as symbol {size_B[row]} of {name} {row}, its last one"
        require(bool((ends_B == last).all()), "symbol", task.decode([ends_B[row]]), expected)
        behind_BS = np.arange(S)[None, :] >= size_B[:, None]
        pads = bool((token_BS[behind_BS] == task.PAD).all())
        require(pads, f"{name}s of mixed lengths", "symbols behind the end", "padding there")


def bucket(symbols: int) -> int:
    """Slots for so many symbols: the least of 32, 48, 64, 96, 128, 192, .. that holds them."""
    power = max(LEAST_BUCKET, 1 << (symbols - 1).bit_length())
    between = 3 * power // 4
    return between if between >= max(symbols, LEAST_BUCKET) else power


def score(emitted_BS: jax.Array, batch: Batch) -> tuple[jax.Array, jax.Array]:
    """Whole answers right, (B,) bool, and symbols right, (B,); arrays of either library."""
    N = batch.answer_BS.shape[1]
    place_BN = batch.given_B[:, None] - 1 + jnp.arange(N)[None, :]
    said_BN = jnp.take_along_axis(emitted_BS, place_BN, axis=1, mode="clip")
    counts_BN = jnp.arange(N)[None, :] < batch.length_B[:, None]
    right_BN = (said_BN == batch.answer_BS) & counts_BN
    right_B = jnp.sum(right_BN, axis=1)
    return right_B == batch.length_B, right_B


def evaluate(run: Run, batch: Batch, rows: int) -> Scores:
    """Decodes a batch by buckets of its rows' lengths.

    Args:
      run: prompts (rows, S), symbols given, places to decode, slots -> what is emitted behind each.
      batch: checked here.
      rows: strings that are decoded at once; what is missing to them is filled up and dropped.

    Raises:
      ValueError: as `check`.
    """
    check(batch)
    copied_B = np.zeros(len(batch.given_B), bool)
    right_B = np.zeros(len(batch.given_B), np.int64)
    need_B = np.array([bucket(int(n)) for n in batch.given_B + batch.length_B])
    for slots in np.unique(need_B):
        members = np.flatnonzero(need_B == slots)
        for first in range(0, len(members), rows):
            some = members[first : first + rows]
            part = _cut(batch, np.resize(some, rows), int(slots))
            places = jnp.int32((part.given_B + part.length_B).max() - 1)
            given_R = jnp.asarray(part.given_B)
            out_RS = run(jnp.asarray(part.prompt_BS), given_R, places, int(slots))
            copied_R, right_R = score(out_RS, part)
            copied_B[some] = np.asarray(copied_R)[: len(some)]
            right_B[some] = np.asarray(right_R)[: len(some)]
    return Scores(copied_B, right_B, np.asarray(batch.length_B))


def padded(batch: Batch, prompt: int, answer: int) -> Batch:
    """The same batch in arrays of these widths, at least its own."""

    def wide(part_BS: np.ndarray, size: int) -> np.ndarray:
        missing = ((0, 0), (0, size - part_BS.shape[1]))
        return np.pad(part_BS, missing, constant_values=task.PAD)

    sides = (wide(batch.prompt_BS, prompt), wide(batch.answer_BS, answer))
    return Batch(sides[0], batch.given_B, sides[1], batch.length_B)


def joined(batches: Sequence[Batch]) -> Batch:
    """One batch of all rows."""
    prompt = max(batch.prompt_BS.shape[1] for batch in batches)
    answer = max(batch.answer_BS.shape[1] for batch in batches)
    parts = zip(*(padded(batch, prompt, answer) for batch in batches), strict=True)
    return Batch(*(np.concatenate(part) for part in parts))


def _cut(batch: Batch, index_R: np.ndarray, slots: int) -> Batch:
    """These rows, in arrays as wide as their bucket, so that one program serves it."""
    some = Batch(*(part[index_R] for part in batch))
    narrow = some._replace(prompt_BS=some.prompt_BS[:, :slots], answer_BS=some.answer_BS[:, :slots])
    return padded(narrow, slots, slots)
