"""Theorem 3: T0 numbers packed into E coordinates as digits, decoded, and their maximum taken.

Tokens are digits v/b, v in 0..b-1 (an encoder that is continuous cannot round, so the grid is an
assumption). Token t goes to coordinate t // m as v b^-(1 + t mod m), m = ceil(T0 / E) digits a
coordinate. Prefixes floor(y b^i) / b^i, i < m, are staircases of 2 b^i - 1 linear pieces whose
breakpoints are among those of i = m - 1; digits are differences of prefixes, the last one
y - prefix_(m-1), so one hidden layer of 2 b^(m-1) - 1 units a coordinate decodes all of them: with
b = 1/eps that is the theorem's eps^(1 - T0 d / E). Then the maximum over T0 numbers by a 3-layer
ReLU net (arXiv 2510.06662): h1(t, i) = relu(x_t - i/n), S_j = sum_t h1(t, j),
h2(j) = relu(S_j) - relu(S_j - 1/n), out = sum_j h2(j), which lies in [max, max + 1/n].
"""

import numpy as np

from infoflow_jax.calculus import targets
from infoflow_jax.networks.config import NetworkConfig
from infoflow_jax.networks.construction import Construction, zeros
from sweep_jax.checks import require


def maximum(T0: int, n: int) -> Construction:
    """max_t x_t of T = T0 tokens in [0, 1], one coordinate each, none packed: error at most 1/n."""
    return _packed(T0, T0, n, 0)


def packed(T0: int, E: int, b: int) -> Construction:
    """max_t x_t of T = T0 tokens that are multiples of 1/b in [0, 1), through E coordinates.

    On the grid the maximum is exact, so what is left is rounding.

    Raises:
      ValueError: E is not in 1..T0, b < 2, or a digit would be lost in float64.
    """
    require(1 <= E <= T0, "E", E, f"an integer in 1..{T0}")
    m = -(-T0 // E)
    require(b >= 2 and b**m <= 2**30, "b", b, f"2 <= b, b^{m} <= 2^30: float64 keeps the digits")
    return _packed(T0, E, b, b)


def _packed(T0: int, E: int, b: int, grid: int) -> Construction:
    require(T0 >= 1 and b >= 1, "T0", T0, "T0 >= 1 and n >= 1")
    m = -(-T0 // E)
    units = 2 * b ** (m - 1) - 1  # of one coordinate
    widths = (E * units, T0 * b, 2 * b)
    config = NetworkConfig(
        d=1,
        width=E,
        heads=(1,),
        head_width=E,
        ffn=(widths,),
        encoder="mlp",
        encoder_widths=(T0,),
        positions="first",
        period=T0,
        dtype="float64",
    )
    p = zeros(config)
    code = p["encoder"]
    code["kernel_0"][0] = 1.0
    code["kernel_0"][1:] = np.eye(T0)
    code["bias_0"][:] = -1.0  # relu(x + onehot - 1): x at its own place
    for t in range(T0):
        code["kernel_1"][t, t // m] = float(b) ** -(t % m)
    layer = p["layer_0"]
    layer["value"][:, 0] = T0 * np.eye(E)  # no scores: the mean, times T0
    layer["output"][0] = np.eye(E)
    ffn = layer["ffn"]
    _decode(ffn, T0, E, b, m, units)
    for i in range(b):
        ffn["bias_1"][i::b] = -i / b  # unit t b + i is relu(x_t - i/b)
        for half in range(2):
            ffn["kernel_2"][i::b, 2 * i + half] = 1.0
            ffn["bias_2"][2 * i + half] = -half / b
            ffn["kernel_3"][2 * i + half, 0] = 1.0 - 2 * half
    p["readout"]["kernel_0"][0] = 1.0
    return Construction(
        config=config,
        params=p,
        target=targets.single(),
        weights={"a": np.ones(1)},
        exact=lambda x_BTD: x_BTD.max(1),
        low=0.0,
        high=1.0,
        bound=lambda T: 0.0 if grid else 1 / b,
        law=float(E) * float(b) ** (T0 / E - 1),
        grid=grid,
        shortest=T0,  # the mean is taken times T0
        longest=T0,
    )


def staircase(b: int, m: int) -> tuple[np.ndarray, np.ndarray]:
    """Breakpoints and their level i of all prefixes, sorted; a riser ends at a multiple of b^-i.

    Returns:
      Where each of the b^(m-1) - 1 risers ends, and the smallest i whose prefix rises there.
    """
    step_R = np.arange(1, b ** (m - 1))
    level_R = np.full(len(step_R), m - 1)
    for i in range(m - 1, 0, -1):
        level_R[step_R % b ** (m - 1 - i) == 0] = i
    return step_R / b ** (m - 1), level_R


def _decode(ffn: dict[str, np.ndarray], T0: int, E: int, b: int, m: int, units: int) -> None:
    """Hidden layer 1 of the FFN and what hidden layer 2 reads of it."""
    ends_R, level_R = staircase(b, m)
    fine = float(b) ** -m  # distance of two codes; a riser is that wide
    for e in range(E):
        at = e * units
        ffn["kernel_0"][e, at : at + units] = 1.0
        ffn["bias_0"][at + 1 : at + units : 2] = -(ends_R - fine)
        ffn["bias_0"][at + 2 : at + units : 2] = -ends_R
        for t in range(e * m, min(T0, (e + 1) * m)):
            i = t % m + 1
            weight_U = np.zeros(units)
            weight_U[0] = 1.0 if i == m else 0.0  # the finest prefix is the code itself
            for prefix, sign in ((i, 1.0), (i - 1, -1.0)):
                if 1 <= prefix < m:
                    slope_R = sign * float(b) ** -prefix / fine * (level_R <= prefix)
                    weight_U[1::2] += slope_R
                    weight_U[2::2] -= slope_R
            # Every unit relu(x_t - j/b) of token t reads the digit.
            ffn["kernel_1"][at : at + units, t * b : (t + 1) * b] = weight_U[:, None] * float(
                b
            ) ** (i - 1)


def decoder_pieces(b: int, m: int) -> int:
    """Linear pieces of the last digit as a function of the code, counted on its graph."""
    ends_R, _ = staircase(b, m)
    end_R = np.rint(ends_R * b**m).astype(int)  # codes as integers
    code_K = np.unique(np.concatenate([[0], end_R - 1, end_R, [b**m - 1]]))
    slope = np.diff(code_K % b) / np.diff(code_K)
    return 1 + int(np.count_nonzero(np.diff(slope)))
