"""D-retrieval in one layer and by positions, and sums of fixed positions.

One layer (arXiv 2510.06662): the encoder gives f_1..f_D, head i of c0 the soft minimum of f_i.
By positions (this project): token t <= D serves f_t, so that one head finds all D minima in layer 1
and one head collects them in layer 2, at E = 2 D + 2; it needs T >= D.
"""

import math

import numpy as np

from infoflow_jax.calculus import targets
from infoflow_jax.calculus.language import add, dot, linear, minimum, target, x
from infoflow_jax.networks.config import NetworkConfig
from infoflow_jax.networks.construction import Construction, gibbs, square_knots, zeros


def retrieval(
    a_ID: np.ndarray, beta: float, K: int | None = None, radius: float = 1.0
) -> Construction:
    """sum_i min_t f_i(x_t) in one layer of D heads, tokens in [-R, R]^d.

    f_i = a_i^T x, or with K, <x, x> + a_i^T x through an interpolant of u^2 with K intervals a
    side, which adds at most d R^2 / (4 K^2) to each. c0 is no key in layer 1, so the soft minimum
    is over the T tokens alone.
    """
    a_ID = np.asarray(a_ID, np.float64)
    D, d = a_ID.shape
    hidden = 2 * d * (1 + K) if K else 0
    config = NetworkConfig(
        d=d,
        width=D + 1,
        heads=(D,),
        head_width=1,
        ffn=((),),
        encoder="mlp" if K else "linear",
        encoder_widths=(hidden,) if K else (),
        beta=beta,
        dtype="float64",
    )
    p = zeros(config)
    p["c0"][D] = 1.0
    if K:
        knot_K, slope_K = square_knots(radius, K)
        for j in range(d):
            for place, side in enumerate((1.0, -1.0)):
                first = (2 * j + place) * (1 + K)
                p["encoder"]["kernel_0"][j, first : first + 1 + K] = side
                p["encoder"]["bias_0"][first + 1 : first + 1 + K] = -knot_K
                p["encoder"]["kernel_1"][first, :D] = side * a_ID[:, j]
                p["encoder"]["kernel_1"][first + 1 : first + 1 + K, :D] = slope_K[:, None]
    else:
        p["encoder"]["kernel_0"][:, :D] = a_ID.T
    layer = p["layer_0"]
    layer["query"][D, :, 0] = -1.0
    layer["key"][:D, :, 0] = np.eye(D)
    layer["value"][:D, :, 0] = np.eye(D)
    layer["output"][:, 0, :D] = np.eye(D)
    p["readout"]["kernel_0"][:D] = 1.0
    miss = d * radius**2 / (4 * K**2) if K else 0.0

    def exact(x_BTD: np.ndarray) -> np.ndarray:
        f_BTI = x_BTD @ a_ID.T + ((x_BTD**2).sum(2, keepdims=True) if K else 0.0)
        return f_BTI.min(1).sum(1, keepdims=True)

    square = [minimum("t", dot(x("t"), x("t")) + linear(f"a{i + 1}", x("t"))) for i in range(D)]
    return Construction(
        config=config,
        params=p,
        target=target(add(list(square))) if K else targets.retrieval(D),
        weights={f"a{i + 1}": a_ID[i] for i in range(D)},
        exact=exact,
        low=-radius,
        high=radius,
        bound=lambda T: D * (miss + gibbs(T, beta)),
        law=float(hidden),
    )


def by_positions(a_ID: np.ndarray, beta: float, radius: float = 1.0) -> Construction:
    """sum_i min_t a_i^T x_t by two layers of one head, T >= D.

    Slots: f + 4 M onehot(position) is split as f (D), served (D), inside, flag. Token t <= D asks
    with its one-hot, score -f_t, and adds a = the value f to `served` = 4 M onehot: relu(. - 2 M)
    is 2 M + a_t at its own place and 0 elsewhere. Layer 2 averages the D tokens that are inside.
    Error: ln T / beta a minimum, and the share (T + 1 - D) e^-beta / (D + ...) of 3 M D.
    """
    a_ID = np.asarray(a_ID, np.float64)
    D, d = a_ID.shape
    M = radius * np.abs(a_ID).sum(1).max()
    config = NetworkConfig(
        d=d,
        width=2 * D + 2,
        heads=(1, 1),
        head_width=D,
        ffn=((D + 2,), ()),
        positions="first",
        period=D,
        beta=beta,
        dtype="float64",
    )
    p = zeros(config)
    inside, flag = 2 * D, 2 * D + 1
    eye_DD = np.eye(D)
    p["c0"][flag] = 1.0
    p["encoder"]["kernel_0"][:d, :D] = a_ID.T
    p["encoder"]["kernel_0"][d:, D : 2 * D] = 4 * M * eye_DD
    p["encoder"]["kernel_0"][d:, inside] = 1.0
    one, two = p["layer_0"], p["layer_1"]
    one["query"][D : 2 * D, 0] = eye_DD / (4 * M)
    one["key"][:D, 0] = -eye_DD
    one["value"][:D, 0] = eye_DD
    one["output"][0, :, D : 2 * D] = eye_DD
    ffn = one["ffn"]
    ffn["kernel_0"][D : 2 * D, :D] = eye_DD
    ffn["bias_0"][:D] = -2 * M
    ffn["kernel_0"][inside, D] = 1.0
    ffn["kernel_0"][flag, D + 1] = 1.0
    ffn["kernel_1"][:D, D : 2 * D] = eye_DD
    ffn["kernel_1"][D, inside] = 1.0
    ffn["kernel_1"][D + 1, flag] = 1.0
    two["query"][flag, 0, 0] = 1.0
    two["key"][inside, 0, 0] = 1.0
    two["value"][D : 2 * D, 0] = D * eye_DD
    two["output"][0, :, D : 2 * D] = eye_DD
    p["readout"]["kernel_0"][D : 2 * D] = 1.0
    p["readout"]["bias_0"][:] = -2 * M * D

    def bound(T: int) -> float:
        outside = (T + 1 - D) * math.exp(-beta)
        return D * gibbs(T, beta) + outside / (D + outside) * 3 * M * D

    return Construction(
        config=config,
        params=p,
        target=targets.retrieval(D),
        weights={f"a{i + 1}": a_ID[i] for i in range(D)},
        exact=lambda x_BTD: (x_BTD @ a_ID.T).min(1).sum(1, keepdims=True),
        low=-radius,
        high=radius,
        bound=bound,
        law=float(D + 2),
        shortest=D,
    )


def positions(d: int, count: int, beta: float, radius: float = 1.0) -> Construction:
    """x(1) + .. + x(count) by one layer of one head: an average over the first positions.

    Error a coordinate: weight p = (T - count) e^-beta / (count + ...) goes to other tokens and
    moves count times the mean by at most 2 R count p.
    """
    config = NetworkConfig(
        d=d,
        width=d + 2,
        heads=(1,),
        head_width=d,
        ffn=((),),
        outputs=d,
        positions="first",
        period=count,
        beta=beta,
        dtype="float64",
    )
    p = zeros(config)
    p["c0"][d + 1] = 1.0
    p["encoder"]["kernel_0"][:d, :d] = np.eye(d)
    p["encoder"]["kernel_0"][d:, d] = 1.0
    layer = p["layer_0"]
    layer["query"][d + 1, 0, 0] = 1.0
    layer["key"][d, 0, 0] = 1.0
    layer["value"][:d, 0] = count * np.eye(d)
    layer["output"][0, :, :d] = np.eye(d)
    p["readout"]["kernel_0"][:d] = np.eye(d)

    def bound(T: int) -> float:
        rest = (T - count) * math.exp(-beta)
        return 2 * radius * count * rest / (count + rest)

    return Construction(
        config=config,
        params=p,
        target=targets.positions(count),
        weights={},
        exact=lambda x_BTD: x_BTD[:, :count].sum(1),
        low=-radius,
        high=radius,
        bound=bound,
        law=0.0,
        shortest=count,
    )
