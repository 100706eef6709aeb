"""The transformer of `networks.transformer` again, as float64 loops over positions and heads."""

import math

import numpy as np

ACT = {
    "relu": lambda v: np.maximum(v, 0),
    "gelu": lambda v: v * (1 + np.vectorize(math.erf)(v / 2**0.5)) / 2,
}


def mlp(p, widths, kind, v):
    for i in range(widths):
        up = v @ p[f"kernel_{i}"] + p[f"bias_{i}"]
        if kind == "bilinear":
            v = up * (v @ p[f"kernel_gate_{i}"] + p[f"bias_gate_{i}"])
        else:
            v = ACT[kind](up)
    return v @ p[f"kernel_{widths}"] + p[f"bias_{widths}"]


def features(c, s):
    if c.positions == "first":
        return [float(s == i) for i in range(1, c.period + 1)]
    if c.positions == "circle":
        return [math.cos(2 * math.pi * s / c.period), math.sin(2 * math.pi * s / c.period)]
    return []


def layers(c, params, x_TD, mask_LH=None):
    """The states of all positions before and after each layer, as lists of vectors."""
    p, states = params, []
    for s, x in enumerate(x_TD, 1):
        given = np.array([*x, *features(c, s)], float)
        if c.encoder == "none":
            states.append(np.concatenate([given, np.zeros(c.width - len(given))]))
        else:
            states.append(mlp(p["encoder"], len(c.encoder_widths), c.encoder_kind, given))
    states.append(np.asarray(p["c0"], float))
    history = [states]
    for layer in range(c.layers):
        w = p[f"layer_{layer}"]
        after = []
        for state in states:
            y = np.zeros(c.width) if c.residual == "none" else state.copy()
            for h in range(c.heads[layer]):
                if mask_LH is not None and not mask_LH[layer][h]:
                    continue
                keys = states if layer > 0 else states[:-1]
                score = [c.beta * (state @ w["query"][:, h]) @ (k @ w["key"][:, h]) for k in keys]
                weight = np.exp(np.array(score) - max(score))
                value = sum(a * (k @ w["value"][:, h]) for a, k in zip(weight, keys, strict=True))
                y = y + value / weight.sum() @ w["output"][h]
            if c.ffn[layer]:
                out = mlp(w["ffn"], len(c.ffn[layer]), c.kind, y)
                y = y + out if c.residual == "both" else out
            after.append(y)
        states = after
        history.append(states)
    return history


def network(c, params, x_TD, mask_LH=None):
    last = layers(c, params, x_TD, mask_LH)[-1]
    return mlp(params["readout"], len(c.readout), c.kind, last[-1])
