"""Theorem 2 for k = 2: the second largest by two layers of one head, in sup norm.

Positions lie on a circle of `period` points. Layer 1 finds the soft argmax: every state gets
p* = sum_s w_s p(s). A token masks itself by clip(2 - 2 |p(t) - p*|_1 / r, 0, 1) with
r = (1 - cos(2 pi / period)) / 2, and c0 takes the soft maximum of f - B mask.

Error (this project's proof). If mask_t > 0 then <p(t), p*> > 1 - r, while <p(t), p*> <= w_t +
(1 - w_t) cos(2 pi / period), so w_t > 1/2: only the largest can be masked, and the output is at
least the second minus ln(T + 1) / beta. If the largest leads by g, |p* - p|_1 <= 2 sqrt(2) (T - 1)
e^(-beta g); below r/2 the mask is full, else g < ln(4 sqrt(2) (T - 1) / r) / beta and an unmasked
largest is off by no more. So the bound is that logarithm, about 3 ln T / beta with period = T.
Not for k >= 3: peeling again fails in sup norm where values tie.
"""

import math

import numpy as np

from infoflow_jax.calculus import targets
from infoflow_jax.networks.config import NetworkConfig
from infoflow_jax.networks.construction import Construction, gibbs, zeros


def second_largest(a_D: np.ndarray, period: int, beta: float, radius: float = 1.0) -> Construction:
    """The second largest a^T x_t, with multiplicity, of 2 <= T <= period tokens in [-R, R]^d."""
    a_D = np.asarray(a_D, np.float64)
    d = len(a_D)
    top = radius * np.abs(a_D).sum()
    f, here, star, one, flag = 0, 1, 3, 5, 6
    config = NetworkConfig(
        d=d,
        width=7,
        heads=(1, 1),
        head_width=2,
        ffn=((7, 5), ()),
        positions="circle",
        period=period,
        beta=beta,
        dtype="float64",
    )
    p = zeros(config)
    r = (1 - math.cos(2 * math.pi / period)) / 2
    p["c0"][[one, flag]] = 1.0
    p["encoder"]["kernel_0"][:d, f] = a_D
    p["encoder"]["kernel_0"][d:, here : here + 2] = np.eye(2)
    p["encoder"]["bias_0"][one] = 1.0
    first, last = p["layer_0"], p["layer_1"]
    first["query"][one, 0, 0] = 1.0
    first["key"][f, 0, 0] = 1.0
    first["value"][here : here + 2, 0] = np.eye(2)
    first["output"][0, :, star : star + 2] = np.eye(2)
    ffn = first["ffn"]
    for unit, side in enumerate((1.0, -1.0)):
        for axis in range(2):  # units 0..3: |p - p*|_1
            ffn["kernel_0"][here + axis, 2 * unit + axis] = side
            ffn["kernel_0"][star + axis, 2 * unit + axis] = -side
        ffn["kernel_0"][f, 4 + unit] = side  # f in two halves
        ffn["kernel_1"][4 + unit, 2 + unit] = 1.0
        ffn["kernel_2"][2 + unit, f] = side
        ffn["kernel_1"][:4, unit] = -2 / r  # relu(2 - 2 dist/r) - relu(1 - 2 dist/r)
        ffn["bias_1"][unit] = 2.0 - unit
        ffn["kernel_2"][unit, f] = -side * (2 * top + 1)
    ffn["kernel_0"][flag, 6] = 1.0
    ffn["kernel_1"][6, 4] = 1.0
    ffn["kernel_2"][4, flag] = 1.0
    last["query"][flag, 0, 0] = 1.0
    for name in ("key", "value"):
        last[name][f, 0, 0] = 1.0
        last[name][flag, 0, 0] = -(2 * top + 1)
    last["output"][0, 0, one] = 1.0  # a slot that is empty by now, so c0's own f adds nothing
    p["readout"]["kernel_0"][one] = 1.0

    def bound(T: int) -> float:
        return max(gibbs(T + 1, beta), math.log(4 * math.sqrt(2) * (T - 1) / r) / beta)

    return Construction(
        config=config,
        params=p,
        target=targets.kth(2),
        weights={"a": a_D},
        exact=lambda x_BTD: np.sort(x_BTD @ a_D, axis=1)[:, -2:-1],
        low=-radius,
        high=radius,
        bound=bound,
        law=12.0,
        shortest=2,
        longest=period,
    )
