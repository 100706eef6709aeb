"""The question a schedule answers: a target, where it is to be found, and who may host its nodes.

Hosts: "c0"; "tokens", each of which serves its own index; and "places", T tokens of which each
serves a node of its own, which needs a positional encoding. Which layer and head is the matter of
`schedule`.
"""

from dataclasses import dataclass
from typing import Literal

from infoflow_jax.calculus.architecture import Rules
from infoflow_jax.calculus.measures import Measures, Node, key_decides

Host = Literal["c0", "tokens", "places"]


@dataclass(frozen=True)
class Setting:
    """A target and where it is to be found.

    Attributes:
      measures: of the target.
      tokens: T.
      d: coordinates of a token.
      positions: whether there is a positional encoding.
      rules: of the use of heads.
    """

    measures: Measures
    tokens: int
    d: int
    positions: bool
    rules: Rules


def group(node: Node, tokens: int) -> int:
    """Heads that a node takes at its host: T^(f - 1), at least 1."""
    return tokens ** max(0, node.f - 1)


def hosts(node: Node, setting: Setting) -> tuple[Host, ...]:
    """Hosts that the kind of a node and the setting allow, whatever the layer."""
    if node.kind == "read" and not setting.positions:
        return ()
    if node.kind == "total" and not key_decides(node):
        return ()
    if setting.measures.each is not None or node.f > 0:
        return ("tokens",)
    alone = setting.positions and node.kind == "compare" and not node.deps
    return ("c0", "tokens", "places") if alone else ("c0", "tokens")


def last_layer(host: Host, layers: int, setting: Setting) -> int:
    """The last layer in which a host is of use: only c0 is read, unless every token is."""
    return layers if host == "c0" or setting.measures.each is not None else layers - 1
