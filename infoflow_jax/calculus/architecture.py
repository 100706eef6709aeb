"""What is planned for: an architecture, a setting, and the rules by which heads may be used.

Plain descriptions that refuse nonsense; nothing is planned here.
"""

import math
from dataclasses import dataclass

from sweep_jax.checks import require

LARGEST, LAYERS = 2**20, 64  # beyond these a plan says nothing new and takes for ever


@dataclass(frozen=True)
class Architecture:
    """Heads of each layer, and what the cost laws need.

    Attributes:
      heads: h_l of every layer, the first first; its length is L.
      width: E, coordinates of a state.
      d: coordinates of a token.
      tokens: T.
      positions: whether tokens carry a positional encoding.
      baseline: e0, the exponent of a feasible target (1 for O(1/eps); 1/2 for ReLU on C^2 pieces).
    """

    heads: tuple[int, ...]
    width: int
    d: int
    tokens: int
    positions: bool = False
    baseline: float = 1.0

    def __post_init__(self) -> None:
        ok = 1 <= len(self.heads) <= LAYERS
        ok = ok and all(isinstance(h, int) and 1 <= h <= LARGEST for h in self.heads)
        expected = f"1 to {LAYERS} layers, and an integer in 1..{LARGEST} for each"
        require(ok, "heads", self.heads, expected)
        for name in ("width", "d", "tokens"):
            value = getattr(self, name)
            ok = isinstance(value, int) and 1 <= value <= LARGEST
            require(ok, name, value, f"an integer in 1..{LARGEST}")
        for h in self.heads:
            require(self.width % h == 0, "width", self.width, f"a multiple of its {h} heads")
        finite = math.isfinite(self.baseline) and self.baseline > 0
        require(finite, "baseline", self.baseline, "a finite number > 0")

    @property
    def layers(self) -> int:
        """L."""
        return len(self.heads)

    @property
    def head_widths(self) -> tuple[int, ...]:
        """n = E / h of every layer."""
        return tuple(self.width // h for h in self.heads)


@dataclass(frozen=True)
class Rules:
    """Uses of heads beyond the published ones; each makes its answers predictions of this project.

    Attributes:
      shared_hosts: tokens may host nodes that bind no index above them as well, all tokens the
        same one, through a head that at the same time serves c0 in another way, and a later head
        of c0 brings what they found. Nothing in the rules of information sets forbids it.
      pointer_doubling: a chain of equal hops may be followed by tokens that double their pointers.
    """

    shared_hosts: bool = False
    pointer_doubling: bool = False


@dataclass(frozen=True)
class Budget:
    """What a search for the smallest architecture may use.

    Attributes:
      layers: L at most.
      heads: h_l at most, in each layer.
    """

    layers: int
    heads: int

    def __post_init__(self) -> None:
        for name in ("layers", "heads"):
            value = getattr(self, name)
            require(isinstance(value, int) and value >= 1, name, value, "an integer >= 1")
