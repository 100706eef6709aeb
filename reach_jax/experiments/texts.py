"""The texts that a model is made to say, in its own tokens: held-out text, words, random tokens.

A target depends on the seed, its source and its number only (`cramming.targets` draws them).
"""

import dataclasses
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from reach_jax.cramming import targets
from reach_jax.cramming.settings import Assignment
from reach_jax.experiments import zoo
from sweep_jax.checks import BadInput, require

QUICK, WORDFREQ = "quick", "wordfreq"
WORDS = 100_000  # of wordfreq's list, the most frequent
BREAK = -1  # between two documents; no token


@dataclasses.dataclass(frozen=True)
class Texts:
    """Where text and words come from."""

    text: str  # quick (its held-out part), a text file, or a directory of .txt files
    words: str  # wordfreq (its 100,000 most frequent English words) or a text file

    def __post_init__(self) -> None:
        if self.text != QUICK:
            found = Path(self.text).expanduser()
            ok = found.is_file() or (found.is_dir() and any(found.glob("*.txt")))
            require(ok, "text", self.text, "quick, a text file, or a directory with .txt files")
        if self.words != WORDFREQ:
            ok = Path(self.words).expanduser().is_file()
            require(ok, "words", self.words, "wordfreq or a text file")


def check(
    texts: Texts, sources: set[str], length: int, encode: Callable[[str], list[int]] | None
) -> None:
    """Refuses a source that cannot be had here.

    Args:
      texts: where they come from; of the quick text its experiment checks the length.
      sources: those that are asked for.
      length: tokens that a target needs.
      encode: the ids of a text, None for a tokenizer that is not at hand yet: then only what has
        fewer bytes than tokens are needed is refused.

    Raises:
      ValueError: no document of `texts.text` is long enough, or there is no list of words.
    """
    if "words" in sources:
        word_list(texts)
    if "text" in sources and texts.text != QUICK:
        documents = _documents(texts)
        require(any(documents), "config.texts.text", texts.text, "a text; this one is empty")
        unit = "bytes" if encode is None else "tokens"
        longest = 0
        for document in documents:
            size = len(document.encode() if encode is None else encode(document))
            longest = max(longest, size)
            if longest >= length:
                return
        expected = f"at most {longest}, the {unit} of the longest document of {texts.text}"
        raise BadInput(f"config.cramming.max_target = {length}: expected {expected}")


def make(
    texts: Texts,
    choice: zoo.Choice,
    model: zoo.Model,
    items: Sequence[Assignment],
    length: int,
    seed: int,
) -> np.ndarray:
    """The targets of these cells, (len(items), length), int32.

    Raises:
      ValueError: the model has no tokenizer for text or words; no document is long enough; or a
        tokenizer gives an id that the model's table has no row for.
    """
    made: dict[tuple[str, int], np.ndarray] = {}
    for source in sorted({item.source for item in items}):
        numbers = sorted({item.target for item in items if item.source == source})
        rows = _rows(texts, choice, model, source, numbers, length, seed)
        V, largest = model.config.vocab_size, int(rows.max())
        expected = f"one of the {V} tokens in the table of {model.name}"
        require(largest < V, f"token of config.axes.sources = {source}", largest, expected)
        made |= {(source, n): row for n, row in zip(numbers, rows, strict=True)}
    return np.stack([made[item.source, item.target] for item in items])


def _rows(
    texts: Texts,
    choice: zoo.Choice,
    model: zoo.Model,
    source: str,
    numbers: list[int],
    length: int,
    seed: int,
) -> np.ndarray:
    if source == "random":
        return targets.random_targets(model.tokens, model.prefix_id, numbers, length, seed)
    if source == "words":
        picked = targets.random_words(word_list(texts), numbers, length, seed)
        return np.array([model.encode(text)[:length] for text in picked], np.int32)
    if texts.text == QUICK:
        stream_S = zoo.heldout(choice, model)
        begin = BREAK if model.prefix_id is None else model.prefix_id
        return targets.text_targets(stream_S, begin, numbers, length, seed)
    return targets.text_targets(_stream(texts, model), BREAK, numbers, length, seed)


def _stream(texts: Texts, model: zoo.Model) -> np.ndarray:
    parts = [[BREAK, *model.encode(text)] for text in _documents(texts)]
    return np.concatenate([np.array(part, np.int32) for part in parts])


def _documents(texts: Texts) -> list[str]:
    path = Path(texts.text).expanduser()
    files = [path] if path.is_file() else sorted(path.glob("*.txt"))
    return [file.read_text(encoding="utf-8") for file in files]


def word_list(texts: Texts) -> list[str]:
    """The words to draw from; a file's are its distinct ones, sorted.

    Raises:
      ValueError: the package is not installed, or the file holds no word.
    """
    if texts.words != WORDFREQ:
        words = sorted(set(Path(texts.words).expanduser().read_text(encoding="utf-8").split()))
        require(len(words) > 0, "config.texts.words", texts.words, "a file with words")
        return words
    try:
        import wordfreq
    except ImportError:
        expected = "a text file, or the package wordfreq: pip install 'reach-infoflow-jax[words]'"
        raise BadInput(f"config.texts.words = 'wordfreq': expected {expected}") from None
    return list(wordfreq.top_n_list("en", WORDS))
