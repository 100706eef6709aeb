"""Lower bounds on the FFN of a given one-layer network: a search for `certificate.Certificate`s.

All inputs of a family are enumerated: some tokens are fixed, each free one takes G values of its
own band. c0 gets, of each head, sum lambda v / sum lambda; the sums of two inputs are compared by a
KD-tree. Where the extreme free token decides the target, tokens on which two inputs agree are
replaced by one filler, which leaves the difference of the sums alone and makes the first
disagreement decide. Every certificate is run and evaluated again; what the search believes does not
matter. A search gives a lower bound for this network, and none over all networks.
"""

import dataclasses
import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
from scipy.spatial import cKDTree

from infoflow_jax.calculus import targets
from infoflow_jax.calculus.meaning import Weights
from infoflow_jax.calculus.tree import Target
from infoflow_jax.networks.certificate import Certificate, certify
from infoflow_jax.networks.config import NetworkConfig, Params
from infoflow_jax.networks.transformer import Network
from sweep_jax.checks import require

_NEIGHBOURS = 4  # of each input
_TRIED = 32  # pairs that are run for real
MOST = 2**20  # inputs of a family


@dataclasses.dataclass(frozen=True)
class Family:
    """Inputs: `fixed` (K, d) tokens, then M free ones, each with G values (M, G, d).

    Attributes:
      rank_MG: the number that decides the target, a free token's value; the first token on which
        two inputs differ decides, or the largest of all if there is no filler.
      filler_D: what takes the place of a free token on which two inputs agree; None: leave it.
    """

    target: Target
    weights: Weights
    fixed_KD: np.ndarray
    free_MGD: np.ndarray
    rank_MG: np.ndarray
    filler_D: np.ndarray | None

    @property
    def tokens(self) -> int:
        """T."""
        return len(self.fixed_KD) + len(self.free_MGD)


@functools.partial(jax.jit, static_argnames="config")
def _terms(config: NetworkConfig, params: Params, x_BTD: jax.Array) -> tuple[jax.Array, jax.Array]:
    net = Network(config)
    return jax.vmap(lambda x_TD: net.apply({"params": params}, x_TD, method="first_terms"))(x_BTD)


def codes(config: NetworkConfig, params: Params, family: Family, ratio: bool) -> np.ndarray:
    """What each head makes of every input of a family, in float64.

    The first free token is the most significant digit of an input's number.

    Args:
      config, params: a one-layer network.
      family: at most `MOST` inputs.
      ratio: the heads' outputs, (G^M, H N); else their sums (G^M, H (N + 1)), over the largest
        weight.

    Raises:
      ValueError: too many inputs.
    """
    M, G, _ = family.free_MGD.shape
    require(G**M <= MOST, "inputs", G**M, f"at most {MOST}")
    fixed = len(family.fixed_KD)
    x_GTD = np.stack([np.concatenate([family.fixed_KD, family.free_MGD[:, g]]) for g in range(G)])
    with jax.enable_x64(True):
        score_GTH, value_GTHN = _terms(config, params, x_GTD)
        # The largest weight of each head is 1: nothing overflows, and ratios do not change.
        top_11H = jnp.max(score_GTH, axis=(0, 1), keepdims=True)
        weight_GTH1 = jnp.exp(score_GTH - top_11H)[..., None]
        part_GTHC = jnp.concatenate([weight_GTH1 * value_GTHN, weight_GTH1], axis=-1)
        sums_XHC = jnp.sum(part_GTHC[0, :fixed], axis=0)[None]
        for m in range(M):
            sums_XHC = (sums_XHC[:, None] + part_GTHC[None, :, fixed + m]).reshape(
                -1, *sums_XHC.shape[1:]
            )
        if ratio:
            sums_XHC = sums_XHC[..., :-1] / sums_XHC[..., -1:]
        return np.asarray(sums_XHC).reshape(len(sums_XHC), -1)


def search(config: NetworkConfig, params: Params, family: Family) -> Certificate:
    """The certificate of the largest width at eps = gap / 3 among the nearest pairs.

    Raises:
      ValueError: more than one layer, too many inputs, or no pair whose targets differ.
    """
    require(config.layers == 1, "layers", config.layers, "1")
    M, G, _ = family.free_MGD.shape
    replace = family.filler_D is not None
    code_XC = codes(config, params, family, ratio=not replace)
    near = min(_NEIGHBOURS + 1, len(code_XC))
    distance_XK, other_XK = cKDTree(code_XC).query(code_XC, k=near)
    distance, there = np.ravel(distance_XK), np.ravel(other_XK)
    here = np.repeat(np.arange(len(code_XC)), near)
    digit_XM = np.stack(np.unravel_index(np.arange(G**M), (G,) * M), axis=1)
    rank_XM = family.rank_MG[np.arange(M), digit_XM]
    if replace:
        differs = digit_XM[here] != digit_XM[there]
        first = np.argmax(differs, axis=1)
        rows = np.arange(len(here))
        gap = np.abs(rank_XM[here][rows, first] - rank_XM[there][rows, first])
    else:
        gap = np.abs(rank_XM[here].max(1) - rank_XM[there].max(1))
    score = gap / (distance + 1e-14)
    best = np.argsort(-score, kind="stable")[: 2 * _TRIED : 2]  # most pairs stand there twice
    best = best[score[best] > 0]
    require(len(best) > 0, "family", len(code_XC), "a near pair of inputs whose targets differ")
    found = []
    for pair in best:
        inputs = [family.free_MGD[np.arange(M), digit_XM[i]] for i in (here[pair], there[pair])]
        if replace:
            agree_M = digit_XM[here[pair]] == digit_XM[there[pair]]
            inputs = [np.where(agree_M[:, None], family.filler_D, x) for x in inputs]
        pair_TD = [np.concatenate([family.fixed_KD, x]) for x in inputs]
        found.append(certify(config, params, family.target, family.weights, *pair_TD))
    return max(found, key=lambda c: c.width(c.gap / 3))


def heaviest(config: NetworkConfig, params: Params, tokens_SD: np.ndarray) -> np.ndarray:
    """Of these tokens, the one that each head weighs most: (H, d)."""
    with jax.enable_x64(True):
        score_SH, _ = _terms(config, params, tokens_SD[:, None])
    return tokens_SD[np.argmax(np.asarray(score_SH)[:, 0], axis=0)]


def pair_family(config: NetworkConfig, params: Params, free: int, choices: int) -> Family:
    """Theorem 1: min pairwise inner product of T = free + H + 1 tokens on the unit circle.

    An arc of 120 degrees has H + 1 sectors, so one without any head's heaviest token y. b stands
    opposite its middle; the free tokens lie in the sector, in bands of their offset from its
    middle, so <b, .> of the least offset is the minimum: every y is farther from the middle, and
    two tokens of the arc have an inner product of at least -1/2.
    """
    _check(config, 2, free, choices)
    heads, arc = config.heads[0], 2 * math.pi / 3
    angle_S = np.linspace(0, arc, 601)
    y_HD = heaviest(config, params, _circle(angle_S))
    sector = arc / (heads + 1)
    angle_H = np.arctan2(y_HD[:, 1], y_HD[:, 0])
    taken = np.clip((angle_H / sector).astype(int), 0, heads)
    middle = (next(s for s in range(heads + 1) if s not in taken) + 0.5) * sector
    step = sector / 4 / (free * choices + 1)
    offset_MG = sector / 4 + step * np.arange(free * choices).reshape(free, choices)
    return Family(
        target=targets.pairmin(),
        weights={},
        fixed_KD=np.concatenate([y_HD, _circle(np.array([middle + math.pi]))]),
        free_MGD=_circle(middle + offset_MG),
        rank_MG=-np.cos(offset_MG),
        filler_D=_circle(np.array(middle + sector / 2 - step / 2)),
    )


def kth_family(config: NetworkConfig, params: Params, k: int, free: int, choices: int) -> Family:
    """Theorem 2: the k-th largest of numbers in [0, 1], d = 1.

    Fixed are each head's heaviest token y and tops at 1 so that k - 1 fixed tokens are above the
    bands; those fill the widest interval without a y that has at most k - 1 of them above.
    """
    _check(config, 1, free, choices)
    require(k >= 1, "k", k, "an integer >= 1")
    y_H = heaviest(config, params, np.linspace(0, 1, 513)[:, None])[:, 0]
    ends = np.sort(np.concatenate([[0.0, 1.0], y_H]))
    above = [int((y_H >= high).sum()) for high in ends[1:]]
    length = [
        high - low if count < k else 0.0
        for low, high, count in zip(ends[:-1], ends[1:], above, strict=True)
    ]
    place = int(np.argmax(length))
    require(length[place] > 0, "k", k, "room below k - 1 tokens; every head is heaviest at the top")
    low, step = ends[place], length[place] / (free * choices + 2)
    value_MG = low + step * (np.arange(free * choices, 0, -1).reshape(free, choices) + 1.0)
    fixed = np.concatenate([np.ones(k - 1 - above[place]), y_H])
    return Family(
        target=targets.kth(k),
        weights={"a": np.ones(1)},
        fixed_KD=fixed[:, None],
        free_MGD=value_MG[:, :, None],
        rank_MG=value_MG,
        filler_D=np.array([low + step / 2]),
    )


def packing_family(config: NetworkConfig, choices: int) -> Family:
    """Theorem 3: the maximum of T numbers that are multiples of 1/choices, T the positions known.

    No filler: the layer tells positions apart, and the codes themselves are compared.
    """
    require(config.positions == "first", "positions", config.positions, "first")
    M = config.period
    value_MG = np.broadcast_to(np.arange(choices) / choices, (M, choices))
    return Family(
        target=targets.single(),
        weights={"a": np.ones(1)},
        fixed_KD=np.zeros((0, 1)),
        free_MGD=value_MG[:, :, None],
        rank_MG=value_MG,
        filler_D=None,
    )


def _circle(angle: np.ndarray) -> np.ndarray:
    return np.stack([np.cos(angle), np.sin(angle)], axis=-1)


def _check(config: NetworkConfig, d: int, free: int, choices: int) -> None:
    require(config.d == d, "d", config.d, f"{d}")
    require(config.positions == "none", "positions", config.positions, "none")
    require(free >= 1 and choices >= 2, "free, choices", (free, choices), "free >= 1, choices >= 2")
