r"""From a target to the smallest transformer that can retrieve it, and what a given one can do.

Paper:    InfoFlow (arXiv 2605.17930); the rules are docs/theory_infoflow.md's
Command:  python launch.py --config=configs/infoflow_analyze.py --config.target=pairmax \
              --config.D=3 --config.heads=2,3
          python launch.py --config=configs/infoflow_analyze.py --config.heads="()" \
              --config.tree='output = minimum("t", minimum("s", dot(x("s"), x("t"))))'
          python launch.py --config=configs/infoflow_analyze.py:all   # every shipped target
Expected: seconds on a CPU. Prints tree, order, dimension and depth, whether the heads suffice and
          why not, a schedule, and the frontier of smallest architectures; draws on a page how
          information flows. A copy of what `:all` writes (runs/infoflow_analyze-all/docs) is
          docs/results/infoflow_targets.md.
"""

from collections.abc import Callable

from ml_collections import ConfigDict, config_dict

from configs import _base

ALL = (
    *("single", "retrieval", "kth", "pairmin", "pairmax", "triangle", "match2", "match3"),
    *("khop", "induction", "positions"),
)


def get_config(arg: str = "") -> ConfigDict:
    """`arg` is "" for one target or "all" for every shipped one; both take seconds."""
    _base.check_arg(arg, ("", "all"))
    config = _base.new_config("analyze")  # the seed draws the input that the flow is shown on

    config.target = "pairmax"  # a shipped target, as docs/theory_infoflow.md lists them
    config.D = 3  # its dimension, where it has one
    config.tree = ""  # a target as text instead: lines `name = expression`, the last `output = ...`

    config.heads = (2, 3) if arg == "" else ()  # h_l; () for the fewest layers in the budget
    config.layers = config_dict.placeholder(int)  # L, only to be checked against heads; or None
    config.width = 24  # E; without heads at least this, and said so where it is more
    config.d = 4  # coordinates of a token
    config.tokens = 16  # T
    config.positions = config_dict.placeholder(bool)  # encoding; None: if the target reads one
    config.baseline = 1.0  # e0: 1 as in O(1/eps); 0.5 for ReLU on smooth pieces
    config.eps = 1e-3  # precision at which parameters are counted, 1e-300 to below 1
    config.lengths = (16, 64, 256, 1024)  # T at which the exponent is given

    config.rules = ConfigDict()  # beyond the published ones; answers are then predictions
    config.rules.shared_hosts = False  # a head serves c0 and, otherwise, all tokens alike
    config.rules.pointer_doubling = False  # tokens double their pointers along a chain of hops

    config.budget = ConfigDict()  # of the search for the smallest architectures
    config.budget.layers = 6
    config.budget.heads = 8  # of one layer

    config.drawing = ConfigDict()
    config.drawing.tokens = 6  # T of the input that the flow is drawn for

    config.axes = ConfigDict()
    config.axes.targets = () if arg == "" else ALL
    config.axes.predictions = arg == "all"  # also what only rules beyond the published ones do
    return config.lock()


def sweep(add: Callable[..., None], config: ConfigDict) -> None:
    """One cell a target of `axes.targets`; without any, the one target that is set."""
    for name in config.axes.targets:
        add({"target": name})
    if config.axes.predictions:
        add({"target": "retrieval", "positions": True})
        add({"target": "retrieval", "rules.shared_hosts": True})
        add({"target": "khop", "rules.pointer_doubling": True})
    elif not config.axes.targets:
        add({})
