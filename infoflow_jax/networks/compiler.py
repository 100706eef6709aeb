"""From a feasible plan to weights: closed trees of minima and maxima of order at most 2.

Slots of a state: x (d), one (1 at tokens), flag (1 at c0), and for each placed node a number `sum`
and, for each product in its score, the d coordinates y of its argument and, shared, the product.
A node with score k.key + q.query + sum (L query).(R key) is a head whose scores are the part that
depends on the key, negated for a minimum; values are k.key and R key. FFNs multiply, copy (relu(u)
- relu(-u)), and clear at c0 what is the tokens' and at tokens what is c0's, by relu(u - C flag), C
the slot's bound. A head that serves c0 and tokens has separate channels, which cleared slots keep
apart. From layer 2 on c0 is one more key with k.key = -B, below every token's part of the score.

Bound. A value is linear in the key's slots, so the head gives the soft mean sum_s p_s S(s) of the
very scores S that it compares; it misses their extreme by at most ln(items) / beta, items = T in
layer 1 and T + 1 later. Extremes are 1-Lipschitz in sup norm, so errors of the values inside S come
through multiplied by their coefficients. A product u_j y_j with |u_j| <= r, |y_j| <= m through
r m ((u/r + y/m)^2 - (u/r - y/m)^2)/4, squares interpolated on [-2, 2], misses r m / (4 K^2). The
total is linear in 1/beta and 1/K^2: the products get half of eps, soft extremes the rest.
"""

import math
from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike

from infoflow_jax.calculus.meaning import evaluate, weight_shapes
from infoflow_jax.calculus.schedule import Schedule
from infoflow_jax.calculus.tree import Target
from infoflow_jax.networks.config import NetworkConfig, Params
from infoflow_jax.networks.construction import Construction, square_knots, zeros
from infoflow_jax.networks.layout import Layout, Piece
from sweep_jax.checks import require


def compile_tree(
    target: Target,
    weights: Mapping[str, ArrayLike],
    plan: Schedule,
    d: int,
    tokens: int,
    eps: float,
    radius: float = 1.0,
) -> Construction:
    """The network of a plan, within eps of the target for all 1 <= T <= `tokens`.

    Args:
      target: closed, of minima and maxima, order at most 2; sums at the output.
      weights: [d] and [d, d] by name.
      plan: complete; of `planner.predict`, `schedule.best` or `schedule.smallest`.
      d: coordinates of a token.
      tokens: T of the law of beta.
      eps: of the sup error, rounding left out.
      radius: R; tokens are in [-R, R]^d.

    Raises:
      ValueError: a number is out of range, a weight is missing or of another shape, or the tree or
        the plan has no compiled form, by node and reason.
    """
    for name, number in (("eps", eps), ("radius", radius)):
        require(0 < number < math.inf, name, number, "a number > 0")
    require(tokens >= 1, "tokens", tokens, "an integer >= 1")
    arrays = {}
    for name, shape in weight_shapes(target, d).items():
        require(name in weights, "weights", sorted(weights), f"a weight {name!r} {shape}")
        arrays[name] = np.asarray(weights[name], np.float64)
        require(
            arrays[name].shape == shape, f"weights[{name!r}]", arrays[name].shape, f"shape {shape}"
        )
    made = Layout(target, plan, arrays, d, radius)
    loss = made.output.loss
    K = max(1, math.ceil(math.sqrt(2 * loss.product / eps)))

    def soft(T: int) -> float:
        return loss.log_T * math.log(T) + loss.log_next * math.log(T + 1)

    beta = max(1.0, soft(tokens) / (eps - loss.product / K**2))
    config, params = _write(made, plan, K, beta)
    return Construction(
        config=config,
        params=params,
        target=target,
        weights=arrays,
        exact=lambda x_BTD: np.stack([np.atleast_1d(evaluate(target, x, arrays)) for x in x_BTD]),
        low=-radius,
        high=radius,
        bound=lambda T: soft(T) / beta + loss.product / K**2,
        law=float(sum(4 * K * d * len(piece.sizes) for piece in made.pieces)),
        longest=tokens,
    )


def _write(made: Layout, plan: Schedule, K: int, beta: float) -> tuple[NetworkConfig, Params]:
    E, d, last = made.next, made.d, len(plan.heads) - 1
    width = 2 + d * max(len(piece.sizes) for piece in made.pieces)
    ffn: list[tuple[int, ...]] = [()] * (last + 1)
    for layer in range(last):
        here = [piece for piece in made.pieces if piece.at.layer == layer + 1]
        ffn[layer] = (2 * E + 4 * K * d * sum(len(piece.sizes) for piece in here),)
    config = NetworkConfig(
        d=d,
        width=E,
        heads=plan.heads,
        head_width=width,
        ffn=tuple(ffn),
        beta=beta,
        dtype="float64",
    )
    p = zeros(config)
    p["encoder"]["kernel_0"][:, :d] = np.eye(d)
    p["encoder"]["bias_0"][made.one] = 1.0
    p["c0"][made.flag] = 1.0
    for piece in made.pieces:
        _head(p[f"layer_{piece.at.layer - 1}"], made, piece, E)
    for layer in range(last):
        here = [piece for piece in made.pieces if piece.at.layer == layer + 1]
        _feed(p[f"layer_{layer}"]["ffn"], made, here, K, E)
    p["readout"]["kernel_0"][:, 0] = made.output.form_E[:E]
    return config, p


def _head(layer: Params, made: Layout, piece: Piece, E: int) -> None:
    """Channel 0 is the sum of a c0-hosted node, 1 that of a token's, the rest its arguments."""
    h, d, at_c0 = piece.head, made.d, piece.at.host == "c0"
    channel = 0 if at_c0 else 1
    layer["query"][made.flag if at_c0 else made.one, h, channel] = piece.sign
    layer["key"][:, h, channel] = piece.form.key_E[:E]
    layer["value"][:, h, channel] = piece.form.key_E[:E]
    layer["output"][h, channel, piece.sum_slot] = 1.0
    for place, (L, R) in enumerate(piece.form.atoms):
        channels = slice(2 + place * d, 2 + (place + 1) * d)
        y = piece.y_slots[place]
        layer["query"][:, h, channels] = piece.sign * L[:, :E].T
        layer["key"][:, h, channels] = R[:, :E].T
        layer["value"][:, h, channels] = R[:, :E].T
        layer["output"][h, channels, y : y + d] = np.eye(d)


def _feed(ffn: Params, made: Layout, pieces: list[Piece], K: int, E: int) -> None:
    """Copies and clears the slots, units 2e and 2e + 1 for slot e, and adds the products."""
    for e in range(E):
        other = made.one if e in made.c0_slots else made.flag
        for half, side in enumerate((1.0, -1.0)):
            unit = 2 * e + half
            ffn["kernel_0"][e, unit] = side
            ffn["kernel_0"][other, unit] -= made.bound_E[e]
            ffn["kernel_1"][unit, e] = side
    unit = 2 * E
    knot_K, slope_K = square_knots(2.0, K)
    for piece in pieces:
        for (L, _), y, size in zip(piece.form.atoms, piece.y_slots, piece.sizes, strict=True):
            for j, (r, m) in enumerate(size.T):
                for sign in (1.0, -1.0) if r * m > 0 else ():
                    for side in (1.0, -1.0):
                        units = slice(unit, unit + K)
                        ffn["kernel_0"][:, units] = side * L[j, :E, None] / r
                        ffn["kernel_0"][y + j, units] += side * sign / m
                        ffn["bias_0"][units] = -knot_K
                        ffn["kernel_1"][units, piece.product_slot] = sign * r * m * slope_K / 4
                        unit += K
