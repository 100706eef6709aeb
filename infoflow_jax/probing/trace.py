"""What a network does on an input: its states, its attention weights, and attention rollout.

States are the transformer's own; the weights are made again from them and the parameters. What
follows from either is said elsewhere.
"""

import contextlib
import functools

import jax
import jax.numpy as jnp
import numpy as np

from infoflow_jax.networks.config import NetworkConfig, Params
from infoflow_jax.networks.transformer import Network


def states(
    config: NetworkConfig, params: Params, x_TD: jax.Array, mask_LH: jax.Array | None
) -> jax.Array:
    """States after each layer, (L, P, E), P = T + 1, the last position c0.

    Of the last layer only c0's is computed; its tokens' are 0.
    """
    found = Network(config).apply({"params": params}, x_TD, mask_LH, method="states")
    spare = ((x_TD.shape[0], 0), (0, 0))
    return jnp.stack([*found[1:-1], jnp.pad(found[-1], spare)])


def weights(
    config: NetworkConfig, params: Params, x_TD: jax.Array, mask_LH: jax.Array | None
) -> jax.Array:
    """Attention weights, (L, H, P, P): what each query gives each key.

    Heads that a layer lacks or that are masked, and the last layer's queries but c0, have 0.
    """
    found = Network(config).apply({"params": params}, x_TD, mask_LH, method="states")
    P, most = found[0].shape[0], max(config.heads)
    made = []
    for place, state_PE in enumerate(found[:-1]):
        layer = params[f"layer_{place}"]
        query_PHN = jnp.einsum("pe,ehn->phn", state_PE, layer["query"])
        key_PHN = jnp.einsum("pe,ehn->phn", state_PE, layer["key"])
        scores_HPS = config.beta * jnp.einsum("phn,shn->hps", query_PHN, key_PHN)
        key_S = jnp.ones(P, bool) if place > 0 else jnp.arange(P) < P - 1
        weights_HPS = jax.nn.softmax(jnp.where(key_S[None, None], scores_HPS, -jnp.inf), axis=-1)
        on_P = jnp.arange(P) >= (P - 1 if place == config.layers - 1 else 0)
        on_H = jnp.ones(config.heads[place], bool)
        if mask_LH is not None:
            on_H = mask_LH[place, : config.heads[place]]
        weights_HPS = jnp.where(on_H[:, None, None] & on_P[None, :, None], weights_HPS, 0)
        made.append(jnp.pad(weights_HPS, ((0, most - config.heads[place]), (0, 0), (0, 0))))
    return jnp.stack(made)


def rollout(config: NetworkConfig, weights_LHPS: jax.Array) -> jax.Array:
    """Attention rollout (Abnar and Zuidema 2020), (L, P, T): the mean head, half of it residual.

    A baseline that knows attention and nothing of values, FFNs and heads that are not used.
    """
    P = weights_LHPS.shape[-1]
    eye_PP = jnp.eye(P, dtype=weights_LHPS.dtype)
    heads_L = (weights_LHPS[:, :, -1].sum(-1) > 0).sum(1)
    mean_LPS = weights_LHPS.sum(1) / heads_L.astype(weights_LHPS.dtype)[:, None, None]
    keep = 0.0 if config.residual == "none" else 0.5
    known_PS, made = eye_PP, []
    for mean_PS in mean_LPS:
        known_PS = (keep * eye_PP + (1 - keep) * mean_PS) @ known_PS
        made.append(known_PS[:, :-1])
    return jnp.stack(made)


def observe(
    config: NetworkConfig, params: Params, mask_LH: np.ndarray | None, x_NTD: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """`states` (N, L, P, E) and `weights` (N, L, H, P, P) of many inputs, as NumPy arrays."""
    with jax.enable_x64(True) if config.dtype == "float64" else contextlib.nullcontext():
        mask = None if mask_LH is None else jnp.asarray(mask_LH)
        found = _observe(config, params, mask, jnp.asarray(x_NTD, config.dtype))
        states_NLPE, weights_NLHPS = map(np.asarray, found)
    return states_NLPE, weights_NLHPS


@functools.partial(jax.jit, static_argnames="config")
def _observe(
    config: NetworkConfig, params: Params, mask_LH: jax.Array | None, x_NTD: jax.Array
) -> tuple[jax.Array, jax.Array]:
    def one(x_TD: jax.Array) -> tuple[jax.Array, jax.Array]:
        given = (config, params, x_TD, mask_LH)
        return states(*given), weights(*given)

    return jax.lax.map(one, x_NTD, batch_size=32)
