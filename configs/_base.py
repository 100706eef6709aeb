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
