"""MOD-19: at most one begin token, as each family's own files say, and exact round trips."""

import json

import pytest
import tokenizers
from tokenizers import decoders, models, pre_tokenizers, processors

from reach_jax.hub.tokenizer import Tokenizer

BEGIN, END = "<bos>", "<eos>"
TEMPLATE = processors.TemplateProcessing(
    single=f"{BEGIN} $A", pair=f"{BEGIN} $A {BEGIN} $B", special_tokens=[(BEGIN, 256)]
)
LEVEL = processors.ByteLevel(trim_offsets=False)


def directory(tmp_path, post, options=None, config=None):
    """A checkpoint's tokenizer files: bytes as tokens 0..255, begin 256, end 257."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = tokenizers.Tokenizer(models.BPE({c: i for i, c in enumerate(alphabet)}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([BEGIN, END])
    tokenizer.post_processor = post
    tokenizer.enable_truncation(4)  # some files carry it; a text must never be cut in silence
    tokenizer.enable_padding(length=16)
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    for name, values in (("tokenizer_config.json", options), ("config.json", config)):
        if values is not None:
            (tmp_path / name).write_text(json.dumps(values))
    return tmp_path


GEMMA = {"add_bos_token": True, "bos_token": BEGIN, "eos_token": {"content": END}}
FAMILIES = {
    "gemma": (TEMPLATE, GEMMA, None, 1),
    "gemma without a template": (LEVEL, GEMMA, None, 1),
    "llama-3": (processors.Sequence([LEVEL, TEMPLATE]), {"bos_token": BEGIN}, None, 1),
    "llama-3 without options": (TEMPLATE, None, {"bos_token_id": 256}, 1),
    "llama-2": (TEMPLATE, {"add_bos_token": True}, {"bos_token_id": 256}, 1),
    "gpt-2": (LEVEL, {"model_max_length": 1024}, {"bos_token_id": 256, "eos_token_id": 257}, 0),
    "pythia": (LEVEL, {"add_bos_token": False, "bos_token": BEGIN}, {"bos_token_id": 256}, 0),
    "qwen2.5": (LEVEL, {"add_bos_token": False, "bos_token": None}, {"bos_token_id": 256}, 0),
    "smollm2": (LEVEL, {"bos_token": BEGIN, "eos_token": END}, {"bos_token_id": 256}, 0),
    "told not to, against its template": (TEMPLATE, {"add_bos_token": False}, None, 0),
}


@pytest.mark.parametrize("family", list(FAMILIES))
def test_one_begin_token_or_none(tmp_path, family):
    post, options, config, count = FAMILIES[family]
    tokenizer = Tokenizer(directory(tmp_path, post, options, config))
    ids = tokenizer.encode("hello", begin=True)
    assert ids.count(256) == count
    assert ids[:count] == [256] * count
    assert tokenizer.begin_id == (256 if count else None)
    assert tokenizer.encode("hello", begin=False).count(256) == 0
    assert ids[count:] == tokenizer.encode("hello", begin=False)
    assert tokenizer.encode("", begin=True) == [256] * count
    # A text that has the token written out gets no second one.
    assert tokenizer.encode(f"{BEGIN}hello", begin=True).count(256) == 1


@pytest.mark.parametrize(
    "text", ["hello", "", "  é 🙂\n\t", f"a{END}b{BEGIN}", "longer than the truncation of four"]
)
def test_decode_is_the_inverse_of_encode(tmp_path, text):
    tokenizer = Tokenizer(directory(tmp_path, TEMPLATE, GEMMA))
    assert tokenizer.decode(tokenizer.encode(text, begin=False)) == text
    assert tokenizer.decode(tokenizer.encode(text, begin=True)) == BEGIN + text


@pytest.mark.parametrize(
    ("options", "config", "expected"),
    [
        (GEMMA, {"eos_token_id": 3}, 257),
        ({}, {"eos_token_id": 257}, 257),
        ({}, {"eos_token_id": [257, 9]}, 257),
        (None, None, None),
    ],
)
def test_the_end_of_text(tmp_path, options, config, expected):
    assert Tokenizer(directory(tmp_path, LEVEL, options, config)).end_of_text_id == expected


def test_ids_that_are_no_tokens_are_refused(tmp_path):
    tokenizer = Tokenizer(directory(tmp_path, LEVEL))
    assert tokenizer.size == 258
    for wrong in (258, -1):
        with pytest.raises(ValueError, match=f"token id = {wrong}"):
            tokenizer.decode([1, wrong])


def test_missing_and_damaged_files_are_named(tmp_path):
    with pytest.raises(ValueError, match=r"tokenizer\.json"):
        Tokenizer(tmp_path)
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(ValueError, match=r"tokenizer\.json: expected"):
        Tokenizer(tmp_path)
    directory(tmp_path, LEVEL, {"add_bos_token": True})
    with pytest.raises(ValueError, match=r"begin token.*bos_token"):
        Tokenizer(tmp_path)
    directory(tmp_path, LEVEL, {"add_bos_token": True, "bos_token": "<other>"})
    with pytest.raises(ValueError, match=r"special token = '<other>'"):
        Tokenizer(tmp_path)
    (tmp_path / "tokenizer_config.json").write_text("[")
    with pytest.raises(ValueError, match=r"tokenizer_config\.json: expected JSON"):
        Tokenizer(tmp_path)
