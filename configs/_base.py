"""What every configuration of this folder shares. Imports nothing but ml_collections."""

from ml_collections import ConfigDict


def new_config(experiment: str) -> ConfigDict:
    """A configuration for one experiment of `launch.EXPERIMENTS`, still unlocked."""
    config = ConfigDict()
    config.experiment = experiment
    config.seed = 0
    return config


def check_arg(arg: str, allowed: tuple[str, ...]) -> None:
    """Refuses an unknown argument after the colon of `--config=PATH:ARG`."""
    if arg not in allowed:
        raise ValueError(f"config argument = {arg!r}: expected one of {allowed}")


def check_axes(axes: ConfigDict) -> None:
    """Refuses an axis without values, by the name it has on the command line."""
    for name, value in axes.items():
        empty = len(value) == 0 if isinstance(value, tuple) else value < 1
        if empty:
            raise ValueError(f"config.axes.{name} = {value!r}: expected at least one")
