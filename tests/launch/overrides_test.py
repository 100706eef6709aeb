"""Overrides: every value has its field's type, or the field is named."""

from pathlib import Path

import pytest

import launch
from sweep_jax import commandline

CONFIG = str(Path(__file__).with_name("fake_config.py"))


def parse(*words):
    return commandline.parse(["launch.py", *words], CONFIG, launch.define_flags)


@pytest.fixture(params=["flag", "flagfile", "two words"])
def override(request, tmp_path):
    """Sets one field in each way there is; returns the config."""

    def call(field, value):
        boolean = field == "train.tied"  # such a flag takes no second word
        if request.param == "flag" or (request.param == "two words" and boolean):
            return parse(f"--config.{field}={value}").config
        if request.param == "two words":
            return parse(f"--config.{field}", value).config
        path = tmp_path / "flags.txt"
        path.write_text(f"# a comment\n--mode=plan\n--config.{field}={value}\n")
        command = parse(f"--flagfile={path}")
        assert command.flags.mode == "plan"
        return command.config

    return call


@pytest.mark.parametrize(
    ("field", "text", "value"),
    [
        ("train.rate", "1", 1.0),
        ("train.rate", "1e-5", 1e-5),
        ("train.steps", "-3", -3),
        ("train.tied", "False", False),
        ("train.tied", "true", True),
        ("train.tied", "0", False),
        ("train.source", "1", "1"),
        ("train.source", "a=b, c", "a=b, c"),
        ("train.lens", "(8,16)", (8, 16)),
        ("train.lens", "8,16", (8, 16)),
        ("train.lens", "8", (8,)),
        ("train.lens", "(8,)", (8,)),
        ("train.lens", "()", ()),
        ("train.names", "x,y", ("x", "y")),
        ("train.names", "x", ("x",)),
        ("train.names", "('x','y')", ("x", "y")),
        ("seed", "3", 3),
        ("seed", "None", None),
        ("nothing", "3", 3),
        ("nothing", "None", None),
    ],
)
def test_good_values(override, field, text, value):
    config = override(field, text)
    for part in field.split("."):
        config = config[part]
    assert config == value
    assert type(config) is type(value)
    assert not isinstance(value, tuple) or [type(x) for x in config] == [type(x) for x in value]


@pytest.mark.parametrize(
    ("field", "text", "expected"),
    [
        ("train.rate", "fast", "expected float"),
        ("train.rate", "nan", "expected a finite number"),
        ("train.rate", "inf", "expected a finite number"),
        ("train.steps", "10.5", "expected int"),
        ("train.steps", "1e3", "expected int"),
        ("train.steps", "True", "expected int"),
        ("train.steps", "None", "expected int"),
        ("train.steps", "a: expected b", "expected int"),
        ("train.tied", "maybe", "expected bool"),
        ("train.lens", "(8,1.5)", "[1] = 1.5: expected int"),
        ("train.lens", "(8,True)", "[1] = True: expected int"),
        ("train.lens", "a", "[0] = 'a': expected int"),
        ("train.lens", "(8", "expected tuple"),
        ("train.names", "1", "[0] = 1: expected str"),
        ("seed", "1.5", "expected int"),
        ("train.rat", "1", "expected an existing field; 'rat' is none of"),
        ("trains.rate", "1", "expected an existing field; 'trains' is none of"),
        ("train.rate.x", "1", "expected an existing field"),
        ("train", "{'rate': 1.0}", "expected a field, not a section"),
    ],
)
def test_bad_values_name_the_field(override, field, text, expected):
    with pytest.raises(ValueError, match="expected") as error:
        override(field, text)
    message = str(error.value)
    assert message.startswith(f"--config.{field}")
    assert expected in message


def test_booleans_without_a_value():
    assert parse("--config.train.tied").config.train.tied is True
    assert parse("--noconfig.train.tied").config.train.tied is False


def test_none_and_back():
    assert parse("--config.seed=3", "--config.seed=None").config.seed is None
    assert parse("--config.seed=None", "--config.seed=3").config.seed == 3


def test_the_config_file_may_come_anywhere():
    for words in (
        ["--config.train.steps=7", f"--config={CONFIG}:small"],
        ["--config", f"{CONFIG}:small", "--config.train.steps=7"],
        ["--config=nowhere.py", f"--config={CONFIG}:small", "--config.train.steps=7"],
    ):
        command = parse(*words)
        assert command.name == "fake_config-small"
        assert command.config.train.steps == 7
        assert len(command.config.axes.numbers) == 2
        assert command.config.is_locked


def test_the_last_of_two_values_counts(tmp_path):
    path = tmp_path / "flags.txt"
    path.write_text("--config.train.steps=8\n")
    assert parse(f"--flagfile={path}", "--config.train.steps=9").config.train.steps == 9
    assert parse("--config.train.steps=9", f"--flagfile={path}").config.train.steps == 8
    assert parse("--config.train.lens=1", "--config.train.lens=2").config.train.lens == (2,)


@pytest.mark.parametrize(
    "words",
    [
        ["--config.train.steps"],
        ["--config"],
        ["--config=here.json"],
        ["--flagfile=nowhere.txt"],
        ["--config.="],
        ["--", "--config.train.steps"],
    ],
)
def test_incomplete_command_lines(words):
    with pytest.raises(ValueError, match=r"config|flagfile"):
        parse(*words)


def test_a_config_without_sweep_is_one_cell(tmp_path):
    path = tmp_path / "one.py"
    path.write_text(
        "from ml_collections import ConfigDict\ndef get_config(): return ConfigDict()\n"
    )
    command = parse(f"--config={path}")
    assert command.sweep is None
    assert command.name == "one"
    (tmp_path / "two.py").write_text("")
    with pytest.raises(ValueError, match="defines get_config"):
        parse(f"--config={tmp_path / 'two.py'}")
