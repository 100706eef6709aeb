"""Which model: the quick one, or any checkpoint; refused early, described without weights."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from configs import inspect as inspect_config
from reach_jax.experiments import zoo
from reach_jax.pretrain.corpus import BEGIN_ID
from sweep_jax.stop import Stop

GOLDENS = Path(__file__).parents[1] / "hub" / "families" / "goldens"


def choice(**source):
    config = inspect_config.get_config("smoke").to_dict()
    config["source"] |= source
    return zoo.choice(config)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ({"path": ""}, "config.source.path = '': expected quick, a directory"),
        ({"dtype": "float8"}, "config.source.dtype = 'float8': expected one of"),
        ({"path": 3}, "config.source.path = 3: expected a value of type str"),
    ],
)
def test_bad_sources_are_named(source, message):
    with pytest.raises(ValueError, match=message.replace("(", r"\(")):
        choice(**source)


@pytest.mark.parametrize("path", ["no/such/place", "absent.gguf", "one_word"])
def test_what_is_not_there_is_refused_before_any_work(path):
    with pytest.raises(ValueError, match="model = "):
        zoo.describe(choice(path=path))


def test_a_hub_id_is_not_fetched_to_describe_it():
    assert zoo.describe(choice(path="org/name")) is None


def test_a_checkpoint_and_what_is_stored_of_it(tmp_path):
    chosen = choice(path=str(GOLDENS / "llama"), dtype="float32")
    model = zoo.load(chosen, tmp_path, Stop())
    assert model.config == zoo.describe(chosen)
    assert (model.tokenizer, model.prefix_id, model.tokens) == (None, None, 40)
    assert model.card["family"] == "llama"
    assert not model.card["quantised"]
    assert model.directory.parent == tmp_path / "models"
    assert str(GOLDENS) not in (model.directory / "model.json").read_text()
    assert model.text([3, 4]) == "<3> <4>"
    with pytest.raises(ValueError, match=r"expected a tokenizer\.json"):
        model.encode("a text")


def test_another_checkpoint_of_the_same_name_has_another_directory(tmp_path):
    paths = []
    for number, family in enumerate(("llama", "qwen2")):
        copy = tmp_path / str(number) / "model"
        shutil.copytree(GOLDENS / family, copy)
        loaded = zoo.load(choice(path=str(copy), dtype="float32"), tmp_path, Stop())
        paths.append(loaded.directory)
    assert paths[0] != paths[1]


def test_the_quick_model_reads_and_writes_text(tmp_path):
    chosen = choice()
    model = zoo.load(chosen, tmp_path, Stop())
    ids = model.encode("a short text")
    assert model.text(ids) == "a short text"
    assert model.prefix_id == BEGIN_ID
    assert model.text([BEGIN_ID]) == "<|begin|>"
    stream_S = zoo.heldout(chosen, model)
    assert stream_S[0] == BEGIN_ID
    assert np.all(stream_S < model.tokens)
