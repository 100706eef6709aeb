"""The tokenizer that a GGUF file's metadata describe, as tokenizer.json and tokenizer_config.json.

Two kinds: byte-level BPE with merges ("gpt2"), and SentencePiece BPE with scores ("llama"). Not a
guesser: another kind, or a pre-tokenizer that is not in the table, is refused by name, for text
split otherwise than in training is silently worse.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers

from sweep_jax import atomic
from sweep_jax.checks import require

_KEY = "tokenizer.ggml."
_NORMAL, _CONTROL, _USER_DEFINED, _BYTE = 1, 3, 4, 6
_LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_QWEN2 = _LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
_LLAMA3_NAMES = ("llama-bpe", "llama3", "llama-v3")
PRE_TOKENIZERS = ("gpt-2", "smollm", "qwen2", *_LLAMA3_NAMES)


def write(metadata: Mapping[str, Any], directory: Path, label: str) -> None:
    """Writes the two files, or none for a file without a vocabulary (no `tokenizer.ggml.model`).

    Args:
      metadata: of the GGUF file.
      directory: where the files go.
      label: the file's name, for errors.

    Raises:
      ValueError: a tokenizer that is not known here, or one that contradicts itself.
    """
    kind = metadata.get(_KEY + "model", "none")
    if kind == "none":
        return
    tokens = metadata[_KEY + "tokens"]
    kinds = metadata.get(_KEY + "token_type", [_NORMAL] * len(tokens))
    require(len(set(tokens)) == len(tokens), f"{label}: tokens", len(tokens), "no token twice")
    require(len(kinds) == len(tokens), f"{label}: token_type", len(kinds), f"{len(tokens)} values")
    if kind == "gpt2":
        tokenizer, begins = _byte_level(metadata, tokens, label)
    else:
        require(kind == "llama", f"{label}: tokenizer.ggml.model", kind, "gpt2 or llama")
        tokenizer, begins = _sentencepiece(metadata, tokens, kinds, label)
    special = {_CONTROL: True, _USER_DEFINED: False}
    tokenizer.add_tokens(
        [
            AddedToken(token, special=special[kind], normalized=False)
            for token, kind in zip(tokens, kinds, strict=True)
            if kind in special
        ]
    )
    atomic.write_text(directory / "tokenizer.json", tokenizer.to_str())
    config: dict[str, Any] = {"add_bos_token": metadata.get(_KEY + "add_bos_token", begins)}
    for name, key in (("bos_token", "bos_token_id"), ("eos_token", "eos_token_id")):
        number = metadata.get(_KEY + key)
        config[name] = None if number is None else tokens[number]
    atomic.write_text(directory / "tokenizer_config.json", json.dumps(config, indent=2) + "\n")


def _byte_level(
    metadata: Mapping[str, Any], tokens: list[str], label: str
) -> tuple[Tokenizer, bool]:
    """The tokenizer, and whether this kind begins a text with a token when the file is silent."""
    pre = metadata.get(_KEY + "pre")
    require(pre in PRE_TOKENIZERS, f"{label}: tokenizer.ggml.pre", pre, f"one of {PRE_TOKENIZERS}")
    merges = []
    for merge in metadata[_KEY + "merges"]:
        parts = merge.split(" ")
        require(len(parts) == 2, f"{label}: merge", merge, "two tokens and a space between")
        merges.append((parts[0], parts[1]))
    vocab = {token: i for i, token in enumerate(tokens)}
    model = models.BPE(vocab=vocab, merges=merges, ignore_merges=pre in _LLAMA3_NAMES)
    tokenizer = Tokenizer(model)
    steps: list[pre_tokenizers.PreTokenizer]
    if pre == "gpt-2":
        steps = [pre_tokenizers.ByteLevel(add_prefix_space=False)]
    elif pre == "smollm":
        digits = pre_tokenizers.Digits(individual_digits=True)
        steps = [digits, pre_tokenizers.ByteLevel(add_prefix_space=False)]
    else:
        pattern = Regex(_QWEN2 if pre == "qwen2" else _LLAMA3)
        split = pre_tokenizers.Split(pattern, behavior="isolated")
        steps = [split, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
    if pre == "qwen2":
        tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(steps)
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer, pre in _LLAMA3_NAMES


def _sentencepiece(
    metadata: Mapping[str, Any], tokens: list[str], kinds: list[int], label: str
) -> tuple[Tokenizer, bool]:
    scores = metadata[_KEY + "scores"]
    require(len(scores) == len(tokens), f"{label}: scores", len(scores), f"{len(tokens)} values")
    bytes_there = sum(kind == _BYTE for kind in kinds)
    require(bytes_there == 256, f"{label}: byte tokens", bytes_there, "256, for byte fallback")
    unknown = metadata.get(_KEY + "unknown_token_id")
    model = models.BPE(
        vocab={token: i for i, token in enumerate(tokens)},
        merges=merges(tokens, scores, kinds),
        unk_token=None if unknown is None else tokens[unknown],
        fuse_unk=True,
        byte_fallback=True,
    )
    tokenizer = Tokenizer(model)
    spaces = normalizers.Replace(" ", "\u2581")
    words = [decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse()]
    if metadata.get(_KEY + "add_space_prefix", True):
        tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("\u2581"), spaces])
        tokenizer.decoder = decoders.Sequence([*words, decoders.Strip(" ", 1, 0)])
    else:
        tokenizer.normalizer = spaces
        tokenizer.decoder = decoders.Sequence(words)
    return tokenizer, True


def merges(tokens: list[str], scores: list[float], kinds: list[int]) -> list[tuple[str, str]]:
    """The merges that make SentencePiece's best-score-first pieces: every split, best piece first.

    Only normal pieces are made by merging; user-defined ones are found whole in the text.
    """
    normal = {token for token, kind in zip(tokens, kinds, strict=True) if kind == _NORMAL}
    best_first = sorted(
        (i for i, kind in enumerate(kinds) if kind == _NORMAL), key=lambda i: (-scores[i], i)
    )
    return [
        (tokens[i][:cut], tokens[i][cut:])
        for i in best_first
        for cut in range(1, len(tokens[i]))
        if tokens[i][:cut] in normal and tokens[i][cut:] in normal
    ]
