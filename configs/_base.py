"""What every configuration of this folder shares. Imports nothing but ml_collections."""

from ml_collections import ConfigDict


def new_config(experiment: str) -> ConfigDict:
    """A configuration for one experiment of `launch.EXPERIMENTS`, still unlocked."""
    config = ConfigDict()
    config.experiment = experiment
    config.seed = 0
    config.precision = "highest"  # of matrix products: highest is true float32 on every device
    return config


def add_model(config: ConfigDict, path: str, smoke: bool) -> None:
    """The sections that say which model: `source`, and how the quick one is made."""
    config.source = ConfigDict()
    config.source.path = path  # quick, a directory, a .gguf file, or a hub id org/name
    config.source.dtype = "float32" if path != "quick" else "file"  # file: as the checkpoint says
    config.source.offline = False  # True: never ask the network for a hub id
    add_quick_model(config, smoke)


def add_quick_model(config: ConfigDict, smoke: bool) -> None:
    """The small model that the project trains itself; `smoke` is one that is hardly trained."""
    config.corpus = ConfigDict()
    config.corpus.vocab_size = 512  # byte-level BPE, the begin-of-text token included
    config.corpus.heldout = 0.1  # share of the topics never trained on

    config.model = ConfigDict()
    config.model.layers = 2 if smoke else 4
    config.model.width = 64  # D
    config.model.heads = 4
    config.model.kv_heads = 4
    config.model.head_width = 16
    config.model.mlp_width = 176  # F
    config.model.rope_base = 10_000.0
    config.model.norm_eps = 1e-5
    config.model.tied = True  # output head = input embedding
    config.model.dtype = "float32"

    config.training = ConfigDict()
    config.training.steps = 40 if smoke else 600
    config.training.batch = 16
    config.training.length = 32 if smoke else 128  # tokens a row
    config.training.rate = 3e-3  # AdamW, peak
    config.training.warmup = 5 if smoke else 50
    config.training.weight_decay = 0.1
    config.training.chunk = 20 if smoke else 50  # steps between two checkpoints
    config.training.max_loss = 7.0 if smoke else 2.9  # nats a token on held-out text; worse fails


def check_arg(arg: str, allowed: tuple[str, ...]) -> None:
    """Refuses an unknown argument after the colon of `--config=PATH:ARG`."""
    if arg not in allowed:
        raise ValueError(f"config argument = {arg!r}: expected one of {allowed}")


def check_axes(axes: ConfigDict) -> None:
    """Refuses an axis without values, by the name it has on the command line."""
    for name, value in axes.items():
        empty = value < 1 if isinstance(value, int) else len(value) == 0
        if empty:
            raise ValueError(f"config.axes.{name} = {value!r}: expected at least one")
