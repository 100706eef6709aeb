"""How much each state depends on each token, in three ways, relative to how much it varies.

Interventions are the measure: put another draw in a token's place and see how far a state moves.
A draw that wins a comparison moves states that never held the token, so what counts is how far at
least three quarters of the draws move it. Gradients see an infinitesimal step, rollout attention.
Soft attention lets every token touch every state a little, so dependence is a number here; from
which size on it counts is `agreement`'s. Not a claim about what a state is used for.
"""

import contextlib
import functools
from collections.abc import Mapping
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from infoflow_jax.networks.config import NetworkConfig, Params
from infoflow_jax.probing import trace
from sweep_jax.checks import require

METHODS = ("resampled", "gradient", "rollout")
_MOVED = 0.75  # share of the draws that must move a state
_QUIET = 1e-6  # a state that varies less than this share of the layer's largest is constant


class Measured(NamedTuple):
    """NumPy arrays over N inputs, L layers, P = T + 1 positions, the last c0, and S = T tokens.

    Attributes:
      scores: method -> (N, L, P, S).
      states_NLPE: after each layer; of the last only c0's.
      weights_NLHPS: attention weights, S = P keys here.
    """

    scores: Mapping[str, np.ndarray]
    states_NLPE: np.ndarray
    weights_NLHPS: np.ndarray


def measure(
    config: NetworkConfig,
    params: Params,
    mask_LH: np.ndarray | None,
    x_NTD: np.ndarray,
    other_NKTD: np.ndarray,
) -> Measured:
    """Every method on every input.

    Args:
      config, params, mask_LH: the network and its heads, as of `transformer.apply`.
      x_NTD: N >= 2 inputs.
      other_NKTD: K draws to put in place of each input's tokens, one token at a time.

    Raises:
      ValueError: shapes that do not fit, or numbers that are not finite.
    """
    N, T, d = x_NTD.shape
    shape = other_NKTD.shape
    ok = N >= 2 and shape == (N, *shape[1:2], T, d) and shape[1] >= 1
    require(ok, "other_NKTD", shape, f"({N}, K, {T}, {d}), N >= 2, K >= 1")
    for name, given in (("x_NTD", x_NTD), ("other_NKTD", other_NKTD)):
        require(bool(np.isfinite(given).all()), name, "NaN or infinity", "finite numbers")
    with jax.enable_x64(True) if config.dtype == "float64" else contextlib.nullcontext():
        given = [jnp.asarray(part, config.dtype) for part in (x_NTD, other_NKTD)]
        found = _every(config, params, None if mask_LH is None else jnp.asarray(mask_LH), *given)
        moved_NLPS, jacobian_NLPS, rolled_NLPS, states_NLPE, weights = map(np.asarray, found)
    spread_LP1 = _spread(states_NLPE)[:, :, None]
    step = float(x_NTD.std())  # a gradient times the size of a usual change of a token
    scores = (moved_NLPS / spread_LP1, step * jacobian_NLPS / spread_LP1, rolled_NLPS)
    return Measured(dict(zip(METHODS, scores, strict=True)), states_NLPE, weights)


def _spread(states_NLPE: np.ndarray) -> np.ndarray:
    """Root mean square distance of a state from its mean over inputs, (L, P), never 0."""
    away_NLPE = states_NLPE.astype(np.float64) - states_NLPE.mean(0)
    spread_LP = np.sqrt((away_NLPE**2).sum(-1).mean(0))
    floor_L1 = _QUIET * spread_LP.max(1, keepdims=True)
    return np.maximum(spread_LP, np.maximum(floor_L1, np.finfo(np.float64).tiny))


@functools.partial(jax.jit, static_argnames="config")
def _every(
    config: NetworkConfig,
    params: Params,
    mask_LH: jax.Array | None,
    x_NTD: jax.Array,
    other_NKTD: jax.Array,
) -> tuple[jax.Array, ...]:
    def states(x_TD: jax.Array) -> jax.Array:
        return trace.states(config, params, x_TD, mask_LH)

    def one(given: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, ...]:
        x_TD, other_KTD = given
        states_LPE, tokens = states(x_TD), jnp.arange(x_TD.shape[0])

        def moved(token: jax.Array, new_D: jax.Array) -> jax.Array:
            return jnp.linalg.norm(states(x_TD.at[token].set(new_D)) - states_LPE, axis=-1)

        moved_KSLP = jax.vmap(lambda new_TD: jax.vmap(moved)(tokens, new_TD))(other_KTD)
        slope_LPETD = jax.jacfwd(states)(x_TD)
        weights_LHPS = trace.weights(config, params, x_TD, mask_LH)
        still = int((1 - _MOVED) * len(moved_KSLP))  # draws that need not move it so far
        return (
            jnp.moveaxis(jnp.sort(moved_KSLP, axis=0)[still], 0, -1),
            jnp.sqrt(jnp.sum(slope_LPETD**2, axis=(2, 4))),
            trace.rollout(config, weights_LHPS),
            states_LPE,
            weights_LHPS,
        )

    return jax.lax.map(one, (x_NTD, other_NKTD))
