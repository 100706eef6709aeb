"""How much each state depends on each token, in four ways, relative to how much it varies.

resampled: another draw in the token's place; how far at least three quarters of the draws move the
state. A draw that wins a comparison moves states that did not hold the token before.
nudged: a thousandth of the way to such a draw, which seldom wins; half of the draws.
gradient: the norm of the Jacobian. rollout: attention alone, the baseline.

Soft attention lets every token touch every state a little, so dependence is a number here; from
which size on it counts is `agreement`'s. Not a claim about what a state is used for.
"""

import contextlib
import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from infoflow_jax.networks.config import NetworkConfig, Params
from infoflow_jax.probing import trace
from sweep_jax.checks import require

States = Callable[[jax.Array], jax.Array]
METHODS = ("resampled", "nudged", "gradient", "rollout")
_NUDGE = 1e-3
_QUIET = 1e-6  # a state that varies less than this share of the layer's largest is constant


def measure(
    config: NetworkConfig,
    params: Params,
    mask_LH: np.ndarray | None,
    x_NTD: np.ndarray,
    other_NKTD: np.ndarray,
) -> dict[str, np.ndarray]:
    """Every method on every input: name -> (N, L, P, S), P = T + 1 states, S = T tokens.

    States of the last layer's tokens are not computed; theirs is 0.

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
        arrays = [jnp.asarray(part, config.dtype) for part in (x_NTD, other_NKTD)]
        found = _every(config, params, None if mask_LH is None else jnp.asarray(mask_LH), *arrays)
        scores = list(map(np.asarray, found))
    states_NLPE, _ = trace.observe(config, params, mask_LH, x_NTD)
    spread_LP1 = _spread(states_NLPE)[:, :, None]
    step = float(x_NTD.std())  # a gradient times the size of a usual change of a token
    units = (1 / spread_LP1, 1 / spread_LP1, step / spread_LP1, 1.0)
    return {m: s * u for m, s, u in zip(METHODS, scores, units, strict=True)}


@functools.partial(jax.jit, static_argnames="config")
def moves(
    config: NetworkConfig,
    params: Params,
    x_TD: jax.Array,
    other_KTD: jax.Array,
    mask_LH: jax.Array | None = None,
) -> jax.Array:
    """How far each state of one input moves if one token is another draw, (K, L, P, S)."""
    return _moved(lambda x_TD: trace.states(config, params, x_TD, mask_LH), x_TD, other_KTD)


def _moved(states: States, x_TD: jax.Array, other_KTD: jax.Array) -> jax.Array:
    states_LPE, tokens = states(x_TD), jnp.arange(x_TD.shape[0])

    def moved(token: jax.Array, new_D: jax.Array) -> jax.Array:
        return jnp.linalg.norm(states(x_TD.at[token].set(new_D)) - states_LPE, axis=-1)

    moved_KSLP = jax.vmap(lambda new_TD: jax.vmap(moved)(tokens, new_TD))(other_KTD)
    return jnp.moveaxis(moved_KSLP, 1, -1)


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

        def quantile(step: float, share: float) -> jax.Array:
            """What at least `share` of the draws move each state by, per `step`, (L, P, S)."""
            moved_KLPS = _moved(states, x_TD, x_TD[None] + step * (other_KTD - x_TD[None]))
            return jnp.sort(moved_KLPS, axis=0)[int((1 - share) * len(moved_KLPS))] / step

        slope_LPETD = jax.jacfwd(states)(x_TD)
        return (
            quantile(1.0, 0.75),
            quantile(_NUDGE, 0.5),
            jnp.sqrt(jnp.sum(slope_LPETD**2, axis=(2, 4))),
            trace.rollout(config, trace.weights(config, params, x_TD, mask_LH)),
        )

    return jax.lax.map(one, (x_NTD, other_NKTD))
