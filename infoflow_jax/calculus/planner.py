"""Can an architecture find a target, by which schedule, at what cost; and if not, why not.

Feasible means: every node has a host by the rules of `constraints`, so parameters grow as eps^-e
with an e that does not grow with T. The rules are sufficient as far as information sets go
(`realize` shows it on real inputs) and give back every published prediction; that an infeasible
target cannot be found in another way is the papers' claim, not proved here. Not a search for
architectures: that is `frontier`.
"""

import dataclasses
from dataclasses import dataclass

from infoflow_jax.calculus import costs, doubling
from infoflow_jax.calculus.architecture import Architecture, Rules
from infoflow_jax.calculus.explain import Law, lower_law, notes, why
from infoflow_jax.calculus.knowledge import Knowledge, knowledge
from infoflow_jax.calculus.measures import measure
from infoflow_jax.calculus.schedule import Schedule, best
from infoflow_jax.calculus.setting import Setting
from infoflow_jax.calculus.tree import Reduce, Target
from infoflow_jax.calculus.validation import Reason


@dataclass(frozen=True)
class Prediction:
    """What is predicted of a target in an architecture.

    Attributes:
      feasible: whether every node has a host.
      exponent: e of parameters ~ eps^-e: of the schedule, or of the cheapest way that is left.
      laws: every law that was compared, by name, exponent and whether it is a lower bound.
      schedule: complete, or as many nodes as fit.
      knows: what c0, every token and the special tokens know after each layer, by that schedule.
      reasons: (node, reason) for each node without a host.
      notes: extensions and assumptions that the answer rests on.
      published: whether the published predictions cover the answer. If not, it is a prediction of
        this project: nodes at places, shared hosts, pointers that double, tokens that find later
        what they could have found before, or a chain of maxima by one head a layer.
    """

    feasible: bool
    exponent: float
    laws: tuple[Law, ...]
    schedule: Schedule
    knows: Knowledge
    reasons: tuple[Reason, ...]
    notes: tuple[str, ...]
    published: bool

    @property
    def at_least(self) -> float | None:
        """The greatest exponent that a law bounds from below; None if none speaks of this."""
        return max((law.exponent for law in self.laws if law.lower), default=None)

    def efficient(self, baseline: float) -> bool:
        """Whether it costs no more than a single comparison does."""
        return self.feasible and self.exponent <= baseline


def setting_of(architecture: Architecture, target: Target, rules: Rules) -> Setting:
    """What is planned for.

    Raises:
      ValueError: the target is not well formed, or T is too short for it.
    """
    measures = measure(target)
    a = architecture
    measures.require_length(a.tokens)
    return Setting(measures, a.tokens, a.d, a.positions, rules)


def predict(architecture: Architecture, target: Target, rules: Rules | None = None) -> Prediction:
    """Plans a target for an architecture.

    Args:
      architecture: heads of each layer, E, d, T, positional encoding, e0.
      target: well formed.
      rules: None for the published ones.

    Raises:
      ValueError: the target is not well formed, or T is too short for it.
    """
    rules = rules or Rules()
    setting = setting_of(architecture, target, rules)
    plan = best(setting, architecture.heads)
    doubled = None
    if plan.unplaced and rules.pointer_doubling:
        doubled = doubling.schedule(setting, architecture.heads)
    plan = doubled or plan
    feasible = not plan.unplaced
    laws = _laws(architecture, setting, plan)
    return Prediction(
        feasible,
        min(law.exponent for law in laws if not law.lower),
        laws,
        plan,
        knowledge(setting, plan),
        why(setting, plan),
        (*notes(architecture, setting, plan), *_beyond(architecture, setting, plan)),
        published(setting, plan),
    )


def _laws(architecture: Architecture, setting: Setting, plan: Schedule) -> tuple[Law, ...]:
    """The law of the schedule; without one, the global mode and what bounds one layer below."""
    a = architecture
    if not plan.unplaced:
        exponent = float(costs.decode_exponent(plan.load, 1, a.width, a.baseline))
        return (Law("decoding" if exponent > a.baseline else "baseline", exponent, False),)
    everything = max(a.baseline, float(costs.global_exponent(a.tokens, a.d, a.width)))
    found = [Law("global mode", everything, False)]
    if a.layers == 1:
        found += lower_law(architecture, setting.measures)
    return tuple(found)


def _beyond(architecture: Architecture, setting: Setting, plan: Schedule) -> list[str]:
    """What uses of heads beyond `setting.rules` would do for a target that does not fit."""
    heads = architecture.heads
    found = []
    rules, open_ = setting.rules, bool(plan.unplaced)
    if open_ and not rules.shared_hosts:
        shared = dataclasses.replace(setting, rules=Rules(True, rules.pointer_doubling))
        if not best(shared, heads).unplaced:
            found.append("with shared hosts it is feasible, by the rules of sets (prediction)")
    if open_ and not rules.pointer_doubling and doubling.schedule(setting, heads) is not None:
        found.append("by pointer doubling it is feasible (prediction)")
    return found


def published(setting: Setting, plan: Schedule) -> bool:
    """Whether published predictions cover how a plan uses heads; see `Prediction`."""
    nodes = {node.name: node for node in setting.measures.nodes}
    for p in plan.placements if not plan.unplaced else ():
        if p.node not in nodes or p.host == "places":  # a pointer, or a token of its own
            return False
        node = nodes[p.node]
        shared = p.host == "tokens" and node.f == 0 and setting.measures.each is None
        late = p.host == "tokens" and node.f > 0 and p.layer > setting.measures.level(node)
        excludes = isinstance(node.expression, Reduce) and bool(node.expression.exclude)
        if shared or late or (excludes and max(plan.heads) == 1):
            return False
    return True
