"""The whole of Mamba again in float64, one position after the other, as the paper writes it.

Every position sees a list of the inputs before it and one state a channel; there is no parallel
form here, no padding and no batch. Shares nothing with `reach_jax` but the parameter names.
"""

import math

import numpy as np

from tests.models.reference import rms_norm


def silu(x):
    return x / (1 + np.exp(-x))


def convolve(x_TI, kernel_WI, bias_I):
    """Tap by tap: the last tap reads the present."""
    taps = len(kernel_WI)
    out_TI = np.zeros(x_TI.shape)
    for t, i in np.ndindex(*out_TI.shape):
        for back in range(min(taps, t + 1)):
            out_TI[t, i] += float(x_TI[t - back, i]) * float(kernel_WI[taps - 1 - back, i])
    return out_TI if bias_I is None else out_TI + np.asarray(bias_I, np.float64)


def scan(x_TI, dt_TI, a_IN, b_TN, c_TN, d_I):
    """Channel by channel, state by state."""
    (positions, channels), numbers = x_TI.shape, a_IN.shape[1]
    y_TI = np.zeros(x_TI.shape)
    for i in range(channels):
        state = [0.0] * numbers
        for t in range(positions):
            x, dt = float(x_TI[t, i]), float(dt_TI[t, i])
            y_TI[t, i] = float(d_I[i]) * x
            for n in range(numbers):
                state[n] = math.exp(dt * float(a_IN[i, n])) * state[n] + dt * float(b_TN[t, n]) * x
                y_TI[t, i] += float(c_TN[t, n]) * state[n]
    return y_TI


def mixer(x_TD, p, rank, numbers):
    up_TI = x_TD @ p["up"] + p.get("up_bias", 0)
    gate_TI = x_TD @ p["gate"] + p.get("gate_bias", 0)
    u_TI = silu(convolve(up_TI, p["conv"], p.get("conv_bias")))
    select_TE = u_TI @ p["select"]
    b_TN, c_TN = select_TE[:, rank : rank + numbers], select_TE[:, rank + numbers :]
    dt_TI = np.log1p(np.exp(select_TE[:, :rank] @ p["dt"] + p["dt_bias"]))
    y_TI = scan(u_TI, dt_TI, -np.exp(p["a_log"]), b_TN, c_TN, p["d"])
    return (y_TI * silu(gate_TI)) @ p["down"] + p.get("down_bias", 0)


def states(params, config, inputs_TD):
    """The input of each layer, then the last state after the final norm."""
    x_TD, eps = np.array(inputs_TD, np.float64), config.norm_eps
    found = []
    for layer in range(config.layers):
        p = {name: np.asarray(v, np.float64)[layer] for name, v in params["layers"].items()}
        found.append(x_TD)
        normed_TD = np.stack([rms_norm(x_D, p["norm"], eps) for x_D in x_TD])
        x_TD = x_TD + mixer(normed_TD, p, config.step_rank, config.state_size)
    weight_D = np.asarray(params["final_norm"], np.float64)
    return np.stack([*found, np.stack([rms_norm(x_D, weight_D, eps) for x_D in x_TD])])


def hidden(params, config, inputs_TD):
    return states(params, config, inputs_TD)[-1]
