"""Which tokens do states really depend on, and is it what the planner says?

Paper:    InfoFlow (arXiv 2605.17930): the probe of the token that a head looks at; attention
          rollout: Abnar and Zuidema (2020). Sets and plans: infoflow_jax/calculus.
Command:  python launch.py --config=configs/infoflow_probe.py:quick   # minutes, planar, D = 2
          python launch.py --config=configs/infoflow_probe.py         # random, D = 2, 3, for a GPU
          python launch.py --config=configs/infoflow_probe.py:smoke   # seconds
Expected: networks with explicit weights depend on what their plan uses and on nothing else;
          trained ones nearly so (docs/results/infoflow_probe.md).
"""

from collections.abc import Callable

from ml_collections import ConfigDict

from configs import _base, _trained

LEAD = """A token is put in place of another and all states are looked at: which moved? Distances
are shares of a state's usual spread over inputs. "known": all that the planner says a state can
give, I(t, l); "used", where it is less: what its schedule keeps there. The token itself is not
counted. The tolerance above which a dependence counts is the best one on half of the inputs;
precision, recall and the share of states whose set is exactly right are those of the other half,
with 95 % intervals over inputs. resampled: what three quarters of other draws move a state by;
nudged: a thousandth of the way there, half of the draws; gradient: the Jacobian's norm; rollout:
attention alone. A trained network of too few heads is held against the plan of D heads a layer."""


def get_config(arg: str = "") -> ConfigDict:
    """`arg` is "" for the full sweep, "quick", or "smoke"."""
    _base.check_arg(arg, ("", "quick", "smoke"))
    title = "What states depend on"
    config = _trained.new_config("infoflow_probe", title, LEAD, arg)
    config.experiment = "probe"
    config.network.beta = 1.0
    config.training.gain = 0.6
    config.training.steps = (500, 2500, 1500)
    config.training.batch = 64
    config.evaluation.tokens = (16,)

    config.subject = ConfigDict()  # the sweep sets network and beta
    config.subject.network = "trained"  # or a key of networks.constructions.BUILDERS, or a plan
    config.subject.tokens = 12  # T of a network with explicit weights
    config.subject.eps = 1e-3  # that a plan is compiled for; its argmaxima are then the true ones
    config.subject.beta = 1e9  # of its scores

    config.probing = ConfigDict()
    config.probing.inputs = 128
    config.probing.draws = 16  # in place of each token
    config.probing.linear_inputs = 512  # for linear probes

    config.axes.plans = ("retrieval", "pairmax 2 in 2 2", "pairmax 3 in 2 2 1")
    config.axes.betas = (1e9,)  # of their scores: hard attention
    config.axes.soft = ("pairmax 2 in 2 2",)  # at these as well
    config.axes.soft_betas = (10.0, 100.0)
    config.axes.dims = (2,)
    config.axes.runs = 2
    config.axes.rates = (1.2e-2,)
    if arg == "":
        config.task.target = "pairmax_random"
        config.task.d = 4
        config.network.width = 96
        config.network.head_width = 16
        config.network.ffn = ((256,), (256,))
        config.network.kind = "gelu"
        config.network.residual = "both"
        config.network.beta = 0.0
        config.training.gain = 1.0
        config.training.tokens = (4, 8, 16, 32)
        config.training.steps = (20_000, 20_000, 20_000, 40_000)
        config.training.batch = 256
        config.training.optimizer = "adamw"
        config.training.options = "weight_decay=0.01"
        config.training.warmup = 1000
        config.training.chunk = 1000
        config.evaluation.tokens = (32,)
        config.subject.tokens = 16
        config.probing.inputs = 512
        config.probing.draws = 32
        config.probing.linear_inputs = 4096
        config.axes.dims = (2, 3)
        config.axes.runs = 4
        config.axes.rates = (1e-3,)
        config.execution.batching = "vmap"
    if arg == "smoke":
        _trained.shrink(config)
        config.training.tokens = config.evaluation.tokens = (4,)
        config.subject.tokens = 4
        config.probing.inputs = 8
        config.probing.draws = 4
        config.probing.linear_inputs = 32
        config.axes.plans = ("pairmax 2 in 2 2",)
        config.axes.soft_betas = (10.0,)
    return config.lock()


def sweep(add: Callable[..., None], config: ConfigDict) -> None:
    """One cell a network with explicit weights and beta, and a trained one: D, heads, rate, run."""
    _base.check_axes(config.axes)
    axes = config.axes
    chosen = [(plan, beta) for plan in axes.plans for beta in axes.betas]
    chosen += [(plan, beta) for plan in axes.soft for beta in axes.soft_betas]
    for plan, beta in chosen:
        add({"subject.network": plan, "subject.beta": beta})
    for D in axes.dims:
        for heads in ((D, D), (D - 1, D), (D, D - 1)):
            values = {
                "subject.network": "trained",
                "task.D": D,
                "cell.heads": heads,
                "cell.slots": (D, D),
            }
            _trained.each_run(add, axes, values)
