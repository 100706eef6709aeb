"""The whole decoder again in slow float64 loops over positions, heads and channel pairs.

Written from the papers' formulas; shares nothing with `reach_jax` but the parameter names.
"""

import math

import numpy as np


def rms_norm(x_D, weight_D, eps):
    return x_D / math.sqrt(sum(v * v for v in x_D) / len(x_D) + eps) * weight_D


def rotate(x_N, position, base):
    half = len(x_N) // 2
    out_N = np.zeros(len(x_N))
    for i in range(half):
        turn = complex(x_N[i], x_N[i + half]) * np.exp(1j * position * base ** (-2 * i / len(x_N)))
        out_N[i], out_N[i + half] = turn.real, turn.imag
    return out_N


def kv_head(head, heads, kv_heads):
    return head // (heads // kv_heads)


def attention(x_TD, kernels, base, kv_of):
    """Causal attention of positions 0, 1, 2, ... with `kernels` q, k, v, o of one layer."""
    heads, kv_heads, width = (*kernels["q"].shape[1:2], *kernels["k"].shape[1:])
    out_TD = np.zeros_like(x_TD)
    for t in range(len(x_TD)):
        for h in range(heads):
            g = kv_of(h, heads, kv_heads)
            query_N = rotate(x_TD[t] @ kernels["q"][:, h], t, base)
            keys_SN = [rotate(x_TD[s] @ kernels["k"][:, g], s, base) for s in range(t + 1)]
            weights_S = np.exp([query_N @ key_N / math.sqrt(width) for key_N in keys_SN])
            values_SN = [x_TD[s] @ kernels["v"][:, g] for s in range(t + 1)]
            mixed_N = sum(w * v for w, v in zip(weights_S, values_SN, strict=True))
            out_TD[t] += mixed_N / weights_S.sum() @ kernels["o"][h]
    return out_TD


def swiglu(x_D, gate_DF, up_DF, down_FD):
    gate_F = x_D @ gate_DF
    return (gate_F / (1 + np.exp(-gate_F)) * (x_D @ up_DF)) @ down_FD


def hidden(params, config, inputs_TD, kv_of=kv_head):
    """Last-layer states of input vectors at positions 0, 1, 2, ..."""
    x_TD = np.array(inputs_TD, np.float64)
    eps = config.norm_eps
    for layer in range(config.layers):
        p = _float64(params["layers"], layer)
        normed = [rms_norm(x_D, p["attention_norm"]["weight"], eps) for x_D in x_TD]
        x_TD = x_TD + attention(np.stack(normed), p["attention"], config.rope_base, kv_of)
        normed = [rms_norm(x_D, p["mlp_norm"]["weight"], eps) for x_D in x_TD]
        x_TD = x_TD + np.stack([swiglu(x_D, p["gate"], p["up"], p["down"]) for x_D in normed])
    weight_D = np.asarray(params["final_norm"]["weight"], np.float64)
    return np.stack([rms_norm(x_D, weight_D, eps) for x_D in x_TD])


def logits(params, config, inputs_TD, kv_of=kv_head):
    head_VD = params["embedding"] if config.tied else params["head"]
    return hidden(params, config, inputs_TD, kv_of) @ np.asarray(head_VD, np.float64).T


def log_softmax(logits_NV):
    shifted_NV = logits_NV - logits_NV.max(axis=-1, keepdims=True)
    return shifted_NV - np.log(np.exp(shifted_NV).sum(axis=-1, keepdims=True))


def _float64(tree, layer):
    if isinstance(tree, dict):
        return {name: _float64(item, layer) for name, item in tree.items()}
    return np.asarray(tree, np.float64)[layer]
