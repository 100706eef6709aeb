"""The config of fake_experiment.py, with a field of every type."""

from ml_collections import ConfigDict, config_dict


def get_config(arg=""):
    if arg not in ("", "small"):
        raise ValueError(f"config argument = {arg!r}: expected small")
    config = ConfigDict()
    config.experiment = "fake"
    config.seed = config_dict.placeholder(int)
    config.precision = "highest"
    config.nothing = None
    config.cell = ConfigDict({"number": 0})
    config.train = ConfigDict({"rate": 0.1, "steps": 5, "tied": True, "source": "text"})
    config.train.lens = (1, 2)
    config.train.names = ("a", "b")
    config.axes = ConfigDict({"numbers": (0, 1) if arg else (0, 1, 2)})
    config.execution = ConfigDict({"broken": -1, "crash": -1, "refused": -1, "seconds": 0.0})
    return config.lock()


def sweep(add, config):
    for number in config.axes.numbers:
        add({"cell.number": number})
