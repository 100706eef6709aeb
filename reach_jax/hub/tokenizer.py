"""Text to token ids and back, with at most one begin token. Not a chat template, not a trainer."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import tokenizers

from sweep_jax.checks import BadInput, require


class Tokenizer:
    """The tokenizer of a checkpoint directory.

    Whether its model wants a begin token is what `add_bos_token` of tokenizer_config.json says, and
    where that is silent, whether tokenizer.json's own post-processor puts one: Gemma and Llama-3
    have one, GPT-2, Pythia, Qwen2.5 and SmolLM2 have none.
    """

    def __init__(self, directory: Path) -> None:
        """Reads tokenizer.json, and tokenizer_config.json and config.json where they are.

        Raises:
          ValueError: no tokenizer.json, a damaged one, or a begin token that is not in it.
        """
        path = directory / "tokenizer.json"
        require(path.is_file(), str(directory), "no tokenizer.json", "the model's tokenizer.json")
        try:
            self._tokenizer = tokenizers.Tokenizer.from_file(str(path))
        except Exception as error:  # the library raises nothing narrower
            raise BadInput(f"{path}: expected a tokenizer.json: {error}") from None
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        options = _json(directory / "tokenizer_config.json")
        config = _json(directory / "config.json")
        adds = options.get("add_bos_token")
        template = self._template_begin()
        self.begin_id: int | None = None  # the id that `encode` can put before a text
        if adds is None:
            self.begin_id = template
        elif adds:
            named = self._id(options.get("bos_token"), config.get("bos_token_id"))
            self.begin_id = template if named is None else named
            expected = "bos_token of tokenizer_config.json, or bos_token_id of config.json"
            require(self.begin_id is not None, f"{directory}: begin token", None, expected)
        # The id that ends a text, or None.
        self.end_of_text_id = self._id(options.get("eos_token"), config.get("eos_token_id"))

    @property
    def size(self) -> int:
        """The number of tokens, which the model's padded vocabulary may exceed."""
        return self._tokenizer.get_vocab_size(with_added_tokens=True)

    def encode(self, text: str, begin: bool) -> list[int]:
        """The ids of a text; with `begin`, after the model's begin token if it has one.

        A text that itself starts with that token, written out, does not get a second one.
        """
        ids = self._tokenizer.encode(text, add_special_tokens=False).ids
        if begin and self.begin_id is not None and ids[:1] != [self.begin_id]:
            return [self.begin_id, *ids]
        return ids

    def decode(self, ids: Sequence[int]) -> str:
        """The text of ids, special tokens written out: the inverse of `encode(text, begin=False)`.

        Exact but for what a tokenizer normalizes away, as Unicode composition (Qwen2, Pythia) and
        U+2581, which SentencePiece takes for a space.

        Raises:
          ValueError: an id that is no token.
        """
        known = self.size
        for number in ids:
            ok = number >= 0 and self._tokenizer.id_to_token(int(number)) is not None
            require(ok, "token id", number, f"an id of the tokenizer's {known} tokens")
        return self._tokenizer.decode([int(i) for i in ids], skip_special_tokens=False)

    def _template_begin(self) -> int | None:
        """The token that tokenizer.json's post-processor puts first, if it does."""
        plain = self._tokenizer.encode("a", add_special_tokens=False).ids
        ids = self._tokenizer.encode("a", add_special_tokens=True).ids
        return ids[0] if ids[:1] != plain[:1] else None

    def _id(self, token: Any, number: Any) -> int | None:
        if isinstance(token, dict):  # an AddedToken written out
            token = token.get("content")
        if token is not None:
            found = self._tokenizer.token_to_id(token)
            require(found is not None, "special token", token, "a token of tokenizer.json")
            return found
        return number[0] if isinstance(number, list) else number


def _json(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    try:
        values = json.loads(path.read_text())
    except ValueError as error:
        raise BadInput(f"{path}: expected JSON: {error}") from None
    require(isinstance(values, dict), str(path), values, "a JSON object")
    return values
