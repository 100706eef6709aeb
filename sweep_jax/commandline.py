"""The command line of `launch.py`: flags and a config file, every error a ValueError of one line.

Starts no device and imports no jax. Not the meaning of a field: the experiment validates that.
"""

import importlib.util
import re
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from absl import flags
from ml_collections import ConfigDict, config_flags

from sweep_jax import overrides
from sweep_jax.cells import Sweep
from sweep_jax.checks import BadInput, require


@dataclass(frozen=True)
class Command:
    """A command line, parsed.

    Attributes:
      flags: the launcher's own flags.
      config: locked, with the overrides set.
      sweep: of the config file, or None.
      name: the config file's stem, with its argument: a name for the run.
    """

    flags: flags.FlagValues
    config: ConfigDict
    sweep: Sweep | None
    name: str


def parse(
    argv: Sequence[str], default_config: str, define: Callable[[flags.FlagValues], None]
) -> Command:
    """Parses `argv`, the program's name first.

    Args:
      argv: launcher's flags; --config=PATH or PATH:ARGUMENT, a Python file with
        `get_config([argument])` and, for more cells than one, `sweep(add, config)`;
        --config.SECTION.FIELD=VALUE in any order; --flagfile=PATH with more of them.
      default_config: the config file if --config is not given.
      define: adds the launcher's flags.

    Raises:
      ValueError: an unknown flag or field, or a value of another type than the field's default.
    """
    values = flags.FlagValues()
    define(values)
    try:
        words = values.read_flags_from_files(list(argv), force_gnu=False)
        path, words = _take_config(words, default_config)
        file, *argument = path.split(":", 1)
        module = _load(file)
        base, config = module.get_config(*argument), module.get_config(*argument)
        for word in words[1:]:
            if match := re.match(r"--?(?:no)?config\.([^=]*)(?:=(.*))?", word):
                overrides.locate(base, match[1], match[2], f"--config.{match[1]}")
        overrides.register_parsers()
        config_flags.DEFINE_config_dict("config", config, flag_values=values, sys_argv=words)
        rest = values(words)[1:]
    except flags.Error as error:
        raise BadInput(_plainly(error)) from error
    require(not rest, "argument", " ".join(rest), "flags only, as --name=value")
    given = config_flags.get_override_values(values["config"])
    with config.unlocked():
        config.update_from_flattened_dict(
            {
                field: overrides.convert(base, field, given[field], f"--config.{field}")
                for field in given
            }
        )
    name = "-".join([Path(file).stem, *filter(None, argument)])
    return Command(values, config, getattr(module, "sweep", None), name)


def help_text(
    about: str, define: Callable[[flags.FlagValues], None], argv: Sequence[str] = ()
) -> str:
    """What --help prints: `about`, the launcher's flags, and of a --config in `argv` its fields.

    Raises:
      ValueError: the config file is none.
    """
    values = flags.FlagValues()
    define(values)
    lines = [about.strip(), "", "Flags:"]
    for name in values:
        flag = values[name]
        default = "" if flag.default is None else f" (default {flag.default})"
        text = f"--{name}{default}: {flag.help}"
        lines += _wrapped(text)
    path, _ = _take_config(list(argv[1:]), "")
    return "\n".join(lines + (_config_help(path) if path else []))


def _config_help(path: str) -> list[str]:
    """What a config file says of itself, and each field with its default and its comment."""
    file, *argument = path.split(":", 1)
    module = _load(file)
    comments = dict(re.findall(r"^ +config\.(\S+) = .*?  # (.*)$", Path(file).read_text(), re.M))
    lines = ["", f"{path}: {(module.__doc__ or '').strip()}", "", "Its fields and their defaults:"]
    todo = list(module.get_config(*argument).items())
    while todo:
        name, value = todo.pop(0)
        if isinstance(value, ConfigDict):
            todo[:0] = [(f"{name}.{part}", item) for part, item in value.items()]
        else:
            about = f": {comments[name]}" if name in comments else ""
            lines += _wrapped(f"--config.{name} (default {value!r}){about}")
    return lines


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, 96, initial_indent="  ", subsequent_indent="      ")


def _take_config(words: list[str], default: str) -> tuple[str, list[str]]:
    """The value of the last --config, and the other words."""
    path, others, position = default, [], 0
    while position < len(words):
        match = re.fullmatch(r"--?config(?:=(.*))?", words[position])
        if match is None:
            others.append(words[position])
        elif match[1] is not None:
            path = match[1]
        else:
            position += 1
            require(position < len(words), "--config", None, "PATH or PATH:ARGUMENT")
            path = words[position]
        position += 1
    return path, others


def _load(file: str) -> ModuleType:
    path = Path(file)
    require(path.suffix == ".py" and path.is_file(), "--config", file, "an existing .py file")
    spec = importlib.util.spec_from_file_location(f"config_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise BadInput(f"--config = {file!r}: expected an importable file")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    require(hasattr(module, "get_config"), "--config", file, "a file that defines get_config")
    return module


def _plainly(error: flags.Error) -> str:
    """One line in the form of `require`, of absl's several forms."""
    if isinstance(error, flags.UnrecognizedFlagError):
        value = error.flagvalue.partition("=")[2]
        hint = str(error).partition(". ")[2].rstrip(" ?")  # Did you mean: ...
        return f"--{error.flagname} = {value!r}: expected a flag of --help{hint and '; ' + hint}"
    match = re.match(r"flag --([^=]+)=(.*): (?:value should be|expected) (.*)$", str(error), re.S)
    if match is None:
        return str(error)
    return f"--{match[1]} = {match[2]!r}: expected {match[3]}"
