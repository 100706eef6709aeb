"""Tokenizers out of GGUF metadata: the ids of the trained tokenizer, and exact round trips."""

import itertools
import json
import random

import pytest
import tokenizers
from tokenizers import Regex, decoders, models, normalizers, pre_tokenizers, trainers

from reach_jax.hub import gguf_tokenizer
from reach_jax.hub.tokenizer import Tokenizer

TEXTS = [
    "hello",
    "The quick brown fox jumps over the lazy dog, and then it runs away.",
    "  two  spaces,   three\n\n\nlines\t\ttabs\r\n and trailing  ",
    "Numbers 1234567 and 3.14159, 1st 22nd; I'll don't WE'LL",
    "Привет мир, 你好世界, こんにちは, 안녕하세요, مرحبا",
    "emoji 🙂 👩‍👩‍👧‍👦, math ∑ ½, quotes “x” «y»",
    "",
    "<s>not special</s> <|endoftext|",
    "def f(x):\n    return x ** 2  # square\n",
]
LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|"
    r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def whole(use_regex):
    return pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=use_regex)


def split(pattern):
    return pre_tokenizers.Split(Regex(pattern), "isolated")


STEPS = {
    "gpt-2": [whole(True)],
    "smollm": [pre_tokenizers.Digits(individual_digits=True), whole(True)],
    "llama-bpe": [split(LLAMA3), whole(False)],
    "qwen2": [split(LLAMA3.replace("{1,3}", "")), whole(False)],
}


def trained(pre):
    """A byte-level tokenizer trained on TEXTS, put together without the code under test."""
    tokenizer = tokenizers.Tokenizer(models.BPE(ignore_merges=pre == "llama-bpe"))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(STEPS[pre])
    tokenizer.decoder = decoders.ByteLevel()
    if pre == "qwen2":
        tokenizer.normalizer = normalizers.NFC()
    trainer = trainers.BpeTrainer(
        vocab_size=500,
        special_tokens=["<|endoftext|>", "<|begin|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(TEXTS * 3, trainer)
    return tokenizer


def metadata(tokenizer, pre, **more):
    model = json.loads(tokenizer.to_str())["model"]
    tokens = [tokenizer.id_to_token(i) for i in range(tokenizer.get_vocab_size())]
    values = {
        "model": "gpt2",
        "pre": pre,
        "tokens": tokens,
        "token_type": [3, 3] + [1] * (len(tokens) - 2),
        "merges": [" ".join(pair) for pair in model["merges"]],
        "bos_token_id": 1,
        "eos_token_id": 0,
    }
    return {f"tokenizer.ggml.{key}": value for key, value in (values | more).items()}


@pytest.mark.parametrize("pre", list(STEPS))
def test_byte_level_tokenizers_give_the_trained_ids_and_round_trip(tmp_path, pre):
    reference = trained(pre)
    gguf_tokenizer.write(metadata(reference, pre), tmp_path, "tiny.gguf")
    tokenizer = Tokenizer(tmp_path)
    assert tokenizer.size == reference.get_vocab_size() > 300
    for text in [*TEXTS, "a<|endoftext|>b", "unseen zebra 998877"]:
        ids = tokenizer.encode(text, begin=False)
        assert ids == reference.encode(text, add_special_tokens=False).ids
        assert tokenizer.decode(ids) == text
    assert tokenizer.end_of_text_id == 0
    # Llama-3's kind begins a text with a token when the file is silent; the others do not.
    ids = tokenizer.encode("hello", begin=True)
    assert ids.count(1) == (1 if pre == "llama-bpe" else 0)


@pytest.mark.parametrize("pre", ["gpt-2", "llama-bpe"])
@pytest.mark.parametrize("adds", [True, False])
def test_the_file_decides_about_the_begin_token(tmp_path, pre, adds):
    fields = metadata(trained(pre), pre, add_bos_token=adds)
    gguf_tokenizer.write(fields, tmp_path, "tiny.gguf")
    tokenizer = Tokenizer(tmp_path)
    assert tokenizer.begin_id == (1 if adds else None)
    assert tokenizer.encode("hello", begin=True).count(1) == int(adds)
    assert tokenizer.encode("hello", begin=False).count(1) == 0


def test_digits_are_split_as_the_pre_tokenizer_says(tmp_path):
    counts = {}
    for pre in STEPS:
        gguf_tokenizer.write(metadata(trained(pre), pre), tmp_path, "tiny.gguf")
        counts[pre] = len(Tokenizer(tmp_path).encode("1234567", begin=False))
    assert counts["smollm"] == counts["qwen2"] == 7
    assert counts["gpt-2"] < 7
    assert counts["llama-bpe"] < 7


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"pre": "falcon"}, r"tokenizer\.ggml\.pre = 'falcon'"),
        ({"pre": None}, r"tokenizer\.ggml\.pre = None"),
        ({"model": "bert"}, r"tokenizer\.ggml\.model = 'bert'"),
        ({"merges": ["a b c"]}, r"merge = 'a b c'"),
        ({"token_type": [1]}, r"token_type = 1"),
        ({"tokens": ["a", "a"], "token_type": [1, 1]}, r"no token twice"),
    ],
)
def test_other_tokenizers_are_refused_by_name(tmp_path, change, message):
    fields = metadata(trained("gpt-2"), "gpt-2")
    fields |= {f"tokenizer.ggml.{key}": value for key, value in change.items()}
    with pytest.raises(ValueError, match=message):
        gguf_tokenizer.write(fields, tmp_path, "tiny.gguf")


def test_a_file_without_a_vocabulary_gets_no_tokenizer(tmp_path):
    gguf_tokenizer.write({}, tmp_path, "tiny.gguf")
    assert list(tmp_path.iterdir()) == []


# SentencePiece: pieces with scores, best first.

BYTES = [f"<0x{i:02X}>" for i in range(256)]
CONTROL = ["<pad>", "<eos>", "<bos>", "<unk>"]
USER = ["\n", "\n\n", "  ", "   ", "<b>"]
_WORDS = """_t he _the in er _a an _an _and aa aaa aaaa ab ba aba abab _b llo he_ ell hello _hello
lo o_ __a"""
PIECES = _WORDS.replace("_", "\u2581").split()
CHARACTERS = sorted(set("".join(PIECES)) | set("abcdefhilnort\u2581.é"))


def sentencepiece(**more):
    tokens = CONTROL + USER + BYTES + PIECES + CHARACTERS
    kinds = [3] * 4 + [4] * len(USER) + [6] * 256 + [1] * (len(PIECES) + len(CHARACTERS))
    normal = [-float(i) for i in range(len(PIECES) + len(CHARACTERS))]
    values = {
        "model": "llama",
        "pre": "default",
        "tokens": tokens,
        "token_type": kinds,
        "scores": [-1000.0] * (4 + len(USER)) + [0.0] * 256 + normal,
        "bos_token_id": 2,
        "eos_token_id": 1,
        "unknown_token_id": 3,
        "add_space_prefix": False,
    }
    return {f"tokenizer.ggml.{key}": value for key, value in (values | more).items()}


def best_first(text):
    """SentencePiece's algorithm, slowly: user pieces whole, then the best pair, leftmost first."""
    symbols, at = [], 0
    while at < len(text):
        found = max((u for u in USER if text.startswith(u, at)), key=len, default=None)
        symbols.append((found, True) if found else (text[at].replace(" ", "\u2581"), False))
        at += len(found or " ")
    score = {piece: -i for i, piece in enumerate(PIECES + CHARACTERS)}
    while True:
        pairs = [
            (score[a + b], -i)
            for i, ((a, fixed), (b, fixed_too)) in enumerate(itertools.pairwise(symbols))
            if not (fixed or fixed_too) and a + b in score
        ]
        if not pairs:
            break
        i = -max(pairs)[1]
        symbols[i : i + 2] = [(symbols[i][0] + symbols[i + 1][0], False)]
    out = []
    for piece, fixed in symbols:
        known = fixed or piece in score
        out += [piece] if known else [BYTES[b] for b in piece.encode()]
    return out


def test_sentencepiece_gives_the_best_first_pieces_and_round_trips(tmp_path):
    fields = sentencepiece()
    gguf_tokenizer.write(fields, tmp_path, "tiny.gguf")
    tokenizer = Tokenizer(tmp_path)
    tokens = fields["tokenizer.ggml.tokens"]
    rng = random.Random(0)
    letters = "aab bheln lo  t\nd.éж🙂<b>"
    drawn = ["".join(rng.choices(letters, k=rng.randint(1, 25))) for _ in range(1000)]
    for text in [*TEXTS, "hello the and", "aaaaaaa ababab", *drawn]:
        if any(name in text for name in CONTROL):
            continue
        ids = tokenizer.encode(text, begin=False)
        assert [tokens[i] for i in ids] == best_first(text), text
        assert tokenizer.decode(ids) == text
    assert (tokenizer.begin_id, tokenizer.end_of_text_id) == (2, 1)
    assert tokenizer.encode("hello", begin=True).count(2) == 1
    assert tokenizer.encode("hello", begin=False).count(2) == 0


def test_sentencepiece_with_a_space_before_the_text(tmp_path):
    fields = sentencepiece(add_space_prefix=True, add_bos_token=False)
    gguf_tokenizer.write(fields, tmp_path, "tiny.gguf")
    tokenizer = Tokenizer(tmp_path)
    tokens = fields["tokenizer.ggml.tokens"]
    assert [tokens[i] for i in tokenizer.encode("hello", begin=True)] == ["\u2581hello"]
    for text in ("hello", " hello", "the ж aaa", ""):
        assert tokenizer.decode(tokenizer.encode(text, begin=True)) == text


def test_sentencepiece_without_byte_tokens_is_refused(tmp_path):
    kinds = [1 if kind == 6 else kind for kind in sentencepiece()["tokenizer.ggml.token_type"]]
    with pytest.raises(ValueError, match="byte tokens = 0: expected 256"):
        gguf_tokenizer.write(sentencepiece(token_type=kinds), tmp_path, "tiny.gguf")
