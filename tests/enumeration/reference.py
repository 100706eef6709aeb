"""Every prompt again in float64 numpy: all at once, no cache, the whole sequence for each token.

Written from the papers' formulas; shares nothing with `reach_jax` but the names of parameters.
"""

import itertools

import numpy as np


def all_prompts(width, vectors, bits, radius):
    """(2^(k m d), M, D), in the order of numbers whose lowest bits are the first coordinate's."""
    levels = [radius * (2 * level / (2**bits - 1) - 1) for level in range(2**bits)]
    rows = itertools.product(levels, repeat=vectors * width)  # the last one turns fastest
    flat = np.array([row[::-1] for row in rows], np.float32)  # as the model is given them
    return flat.reshape(-1, vectors, width).astype(np.float64)


def rms_norm(x, weight, eps):
    return x / np.sqrt((x**2).mean(-1, keepdims=True) + eps) * weight


def rotate(x_BTHN, base):
    out, half = x_BTHN.copy(), x_BTHN.shape[-1] // 2
    for t, i in itertools.product(range(x_BTHN.shape[1]), range(half)):
        turn = np.exp(1j * t * base ** (-2 * i / (2 * half)))
        turned = (x_BTHN[:, t, :, i] + 1j * x_BTHN[:, t, :, i + half]) * turn
        out[:, t, :, i], out[:, t, :, i + half] = turned.real, turned.imag
    return out


def last_state(params, config, inputs_BTD, given, full):
    """State of the last position; the first `given` see each other in full where `full`."""
    x, T, eps = inputs_BTD, inputs_BTD.shape[1], config.norm_eps
    seen = np.tril(np.ones((T, T), bool))
    if full:
        seen[:given, :given] = True
    for layer in range(config.layers):
        p = _layer(params["layers"], layer)
        h = rms_norm(x, p["attention_norm"]["weight"], eps)
        q, k, v = (np.einsum("btd,dhn->bthn", h, p["attention"][name]) for name in "qkv")
        if config.rotary_width != 0:
            q, k = rotate(q, config.rope_base), rotate(k, config.rope_base)
        scores = np.einsum("bthn,bshn->bhts", q, k) / np.sqrt(config.head_width)
        weights = np.where(seen, np.exp(scores - scores.max(-1, keepdims=True)), 0)
        weights /= weights.sum(-1, keepdims=True)
        mixed = np.einsum("bhts,bshn->bthn", weights, v)
        x = x + np.einsum("bthn,hnd->btd", mixed, p["attention"]["o"])
        h = rms_norm(x, p["mlp_norm"]["weight"], eps)
        gate = h @ p["gate"]
        x = x + (gate / (1 + np.exp(-gate)) * (h @ p["up"])) @ p["down"]
    return rms_norm(x[:, -1], np.asarray(params["final_norm"]["weight"], np.float64), eps)


def greedy(params, config, prompts_BMD, full, end, length):
    """Tokens (B, N) and the least margins (B,)."""
    embedding = np.asarray(params["embedding"], np.float64)
    head = np.asarray(params["head"], np.float64)
    x, B = prompts_BMD, len(prompts_BMD)
    if end == "token":
        x = np.concatenate([x, np.broadcast_to(embedding[0], (B, 1, x.shape[-1]))], axis=1)
    given, tokens, margins = x.shape[1], [], []
    for _ in range(length):
        logits = last_state(params, config, x, given, full) @ head.T
        tokens.append(logits.argmax(-1))
        order = np.sort(logits, axis=-1)
        margins.append(order[:, -1] - order[:, -2])
        x = np.concatenate([x, embedding[tokens[-1]][:, None]], axis=1)
    return np.stack(tokens, 1), np.min(margins, axis=0)


def _layer(tree, layer):
    if isinstance(tree, dict):
        return {name: _layer(item, layer) for name, item in tree.items()}
    return np.asarray(tree, np.float64)[layer]
