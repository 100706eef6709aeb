"""The dual weights of the smallest ellipsoid around points: Khachiyan's method with away steps.

Maximises `ln det sum_i u_i q_i q_i^T` over weights u on the simplex, q = (x, 1), by moving one
weight at a time (Wolfe and Atwood; Todd and Yildirim 2007, which proves linear convergence). Gives
weights and not an ellipsoid: any weights certify one, and a bound on its excess.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from sweep_jax.float64 import in_float64

_REFRESH = 256  # steps between two fresh inverses: rank-one updates gather rounding


class _State(NamedTuple):
    weights_N: Array
    reach_N: Array  # q_i^T X^-1 q_i, of weighted mean n
    inverse: Array  # X^-1, [n, n]
    step: Array


@in_float64
def enclosing_weights(points_NK: ArrayLike, tolerance: float, steps: int) -> Array:
    """Weights whose ellipsoid has at most `tolerance` nats too much, unless `steps` run out.

    Args:
      points_NK: [N, K] of affine rank K, well conditioned (whitened), N > K.
      tolerance: nats > 0.
      steps: at most; the first is uniform weights.

    Returns:
      [N] float64, >= 0, of sum 1 up to rounding.
    """
    return _search(jnp.asarray(points_NK, jnp.float64), tolerance, steps)


@jax.jit
def _search(points_NK: Array, tolerance: Array, steps: Array) -> Array:
    count, k = points_NK.shape
    lifted = jnp.concatenate([points_NK, jnp.ones((count, 1), jnp.float64)], axis=1)
    n = k + 1

    def fresh(state: _State) -> _State:
        moment = (lifted * state.weights_N[:, None]).T @ lifted
        factor = jax.scipy.linalg.cho_factor(moment)
        inverse = jax.scipy.linalg.cho_solve(factor, jnp.eye(n, dtype=jnp.float64))
        reach_N = jnp.sum((lifted @ inverse) * lifted, axis=1)
        return _State(state.weights_N, reach_N, inverse, state.step)

    def unfinished(state: _State) -> Array:
        excess = 0.5 * k * jnp.log((jnp.max(state.reach_N) - 1) / k)
        return (excess > tolerance) & (state.step < steps)

    def move(state: _State) -> _State:
        weights_N, reach_N, inverse, step = state
        top = jnp.argmax(reach_N)
        low = jnp.argmin(jnp.where(weights_N > 0, reach_N, jnp.inf))
        towards = reach_N[top] - n >= n - reach_N[low]
        j = jnp.where(towards, top, low)
        reach, weight = reach_N[j], weights_N[j]
        ideal = (reach - n) / (n * (reach - 1))
        # An away step may drop its point, and from reach <= 1 on it always does.
        most = -weight / (1 - weight)
        away = jnp.where(reach > 1, jnp.maximum(ideal, most), most)
        size = jnp.where(towards, ideal, away)
        direction = inverse @ lifted[j]
        gain = size / (1 - size + size * reach)
        along_N = lifted @ direction
        new_N = weights_N * (1 - size)
        dropped = (~towards) & (size <= most)
        new_N = new_N.at[j].set(jnp.where(dropped, 0.0, new_N[j] + size))
        return _State(
            new_N,
            (reach_N - gain * along_N**2) / (1 - size),
            (inverse - gain * jnp.outer(direction, direction)) / (1 - size),
            step + 1,
        )

    def round_of_moves(state: _State) -> _State:
        last = jnp.minimum(state.step + _REFRESH, steps)
        moved = jax.lax.while_loop(lambda s: unfinished(s) & (s.step < last), move, state)
        return fresh(moved)

    uniform_N = jnp.full(count, 1 / count, jnp.float64)
    empty = _State(uniform_N, jnp.zeros(count), jnp.eye(n), jnp.zeros((), jnp.int64))
    return jax.lax.while_loop(unfinished, round_of_moves, fresh(empty)).weights_N
