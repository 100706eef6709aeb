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
from infoflow_jax.calculus.tree import Target
from infoflow_jax.calculus.validation import Reason


@dataclass(frozen=True)
class Prediction:
    """What is predicted of a target in an architecture.

    Attributes:
      feasible: whether every node has a host.
      exponent: e of parameters ~ eps^-e: of the schedule, or of the cheapest law that is left.
      laws: every law that was compared, by name, exponent and whether it is a lower bound.
      schedule: complete, or as many nodes as fit.
      knows: what c0, every token and the special tokens know after each layer, by that schedule.
      reasons: (node, reason) for each node without a host.
      notes: extensions and assumptions that the answer rests on.
      published: whether the published rules alone give the answer; otherwise it is a prediction of
        this project.
    """

    feasible: bool
    exponent: float
    laws: tuple[Law, ...]
    schedule: Schedule
    knows: Knowledge
    reasons: tuple[Reason, ...]
    notes: tuple[str, ...]
    published: bool

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
        min(law.exponent for law in laws),
        laws,
        plan,
        knowledge(setting, plan),
        why(setting, plan),
        (*notes(architecture, setting, plan), *_beyond(architecture, setting, plan)),
        doubled is None and not _ours(setting, plan),
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


def _beyond(
    architecture: Architecture, setting: Setting, plan: Schedule
) -> list[str]:
    """What uses of heads beyond `setting.rules` would do for a target that does not fit."""
    heads = architecture.heads
    found = []
    if plan.unplaced and not setting.rules.shared_hosts:
        shared = Rules(True, setting.rules.pointer_doubling)
        if not best(dataclasses.replace(setting, rules=shared), heads).unplaced:
            found.append("with shared hosts it is feasible, by the rules of sets (prediction)")
    if plan.unplaced and not setting.rules.pointer_doubling:
        if doubling.schedule(setting, heads) is not None:
            found.append("by pointer doubling it is feasible (prediction)")
    return found


def _ours(setting: Setting, plan: Schedule) -> bool:
    """Whether a plan uses heads in a way that no published prediction does."""
    places = any(p.host == "places" for p in plan.placements)
    token_hosted = (
        p.host == "tokens" and setting.measures.node(p.node).f == 0 for p in plan.placements
    )
    return places or (setting.measures.each is None and any(token_hosted))
