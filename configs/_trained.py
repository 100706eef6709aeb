"""What the configurations of trained networks share. Imports nothing but ml_collections."""

from collections.abc import Callable
from typing import Any

from ml_collections import ConfigDict

from configs import _base


def new_config(name: str, title: str, lead: str, arg: str) -> ConfigDict:
    """Sections of `infoflow_jax.experiments.trained`, with the values that most of them take."""
    config = _base.new_config("trained")

    config.task = ConfigDict()
    config.task.target = "pairmax_planar"  # a name of infoflow_jax/tasks/functions.py
    config.task.D = 2
    config.task.d = 2  # coordinates of a token
    config.task.draw = 0  # which random weights

    config.network = ConfigDict()  # networks.config.NetworkConfig
    config.network.width = 32  # E
    config.network.head_width = 8  # N; 0 is E / heads
    config.network.ffn = ((64,), (64,))  # hidden widths of each layer's FFN
    config.network.readout = ()
    config.network.kind = "bilinear"
    config.network.residual = "attention"
    config.network.encoder = "linear"
    config.network.encoder_widths = ()
    config.network.encoder_kind = "relu"
    config.network.positions = "none"
    config.network.period = 0
    config.network.beta = 0.0  # of the scores; 0 is N^-1/2
    config.network.dtype = "float32"

    config.cell = ConfigDict()  # the sweep sets all of it
    config.cell.heads = (2, 2)
    config.cell.slots = (2, 2)  # heads of the program that the cell runs in; the others are masked
    config.cell.run = 0
    config.cell.rate = 1.2e-2

    config.training = ConfigDict()  # training.settings.TrainingConfig
    config.training.tokens = (4, 8, 16)  # T of each stage
    config.training.steps = (1000, 1000, 2000)
    config.training.batch = 128
    config.training.optimizer = "adam"
    config.training.options = "b2=0.99"
    config.training.warmup = 100
    config.training.final = 0.0
    config.training.clip = 1.0
    config.training.gain = 1.0  # initial weights are multiplied by it
    config.training.chunk = 500

    config.evaluation = ConfigDict()
    config.evaluation.examples = 2000
    config.evaluation.tokens = (4, 8, 16, 32, 64)

    config.axes = ConfigDict()
    config.axes.runs = 4

    config.execution = ConfigDict()  # how, not what: changes no result but by rounding
    config.execution.batching = "map"  # vmap on a GPU
    config.execution.most = 256  # runs in one program

    config.page = ConfigDict()  # of the report
    config.page.name = name
    config.page.title = title
    config.page.lead = " ".join(lead.split())
    suffix = f":{arg}" if arg else ""
    config.page.command = f"python launch.py --config=configs/{name}.py{suffix}"
    config.page.published = ""  # a table of experiments/published_training.py
    config.page.curves = "all"  # corner: only (D,D) and its two neighbours
    config.page.law = False  # whether to fit error against the parameters of the FFNs
    return config


def smooth(config: ConfigDict) -> None:
    """Networks of depth against width: GELU encoder and FFNs, both residuals."""
    config.network.beta = 1.0
    config.network.kind = "gelu"
    config.network.residual = "both"
    config.network.encoder = "mlp"
    config.network.encoder_widths = (64,)
    config.network.encoder_kind = "gelu"
    config.training.gain = 0.6
    config.training.batch = 64
    config.axes.tokens = (4, 8, 16)
    config.axes.runs = 2
    config.axes.rates = (6e-3,)


def lengthen(config: ConfigDict) -> None:
    """A run for a GPU, each T trained for itself."""
    config.training.steps = (100_000,)
    config.training.batch = 256
    config.training.warmup = 1000
    config.training.chunk = 1000
    config.axes.runs = 4
    config.execution.batching = "vmap"


def as_wide(network: ConfigDict, hidden: int, layers: int) -> int:
    """FFN width at which one layer has about the parameters of `layers`, `hidden` wide each."""
    width, n = network.width, network.head_width
    unit = 2 * width + 1  # parameters of a hidden unit: in, out, bias
    besides = (layers - 1) * (4 * width * n + width)  # of the layers that it has not
    return layers * hidden + round(besides / unit)


def each_run(add: Callable[..., None], axes: ConfigDict, values: dict[str, Any]) -> None:
    """One cell with these values a rate and run."""
    for rate in axes.rates:
        for run in range(axes.runs):
            add(values | {"cell.rate": rate, "cell.run": run})


def shrink(config: ConfigDict) -> None:
    """A run of seconds that shows nothing but that it runs."""
    config.training.tokens = config.training.tokens[-1:]
    config.training.steps = (2,)
    config.training.batch = 8
    config.training.warmup = 1
    config.training.chunk = 2
    config.evaluation.examples = 32
    config.evaluation.tokens = config.training.tokens
    config.axes.runs = 1
