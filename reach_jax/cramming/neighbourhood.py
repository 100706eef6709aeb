"""Does a ball around a prompt still emit its text? Points of the ball are tried; none proves it.

arXiv 2605.22223 calls a text accessible at eps when the *whole* ball B(X, eps/2) lies in its cell.
A finite number of points can refute that and never prove it: what held is evidence, what failed is
a fact (up to rounding), and the first-order distance is neither, but an estimate. Two balls:

    cube   l_inf, |Y - X|_inf <= eps/2: the paper's grid of cubes of side eps
    ball   l_2,   |Y - X|_2   <= eps/2: inside the cube of the same eps

A point is judged with its own target in the inputs (teacher forcing). Under a causal model that is
a greedy decode of it: if token i is the argmax behind tokens 1..i-1 of the target for every i <= n,
then by induction the decode emits just these, and if i is the first that is not, it emits another
one there. Both take the lowest id among exact ties. `certificate.py` decodes some points for real.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from reach_jax.cramming import layout
from reach_jax.models import kinds
from reach_jax.models.config import Params
from reach_jax.ops import readout

GROUPS = ("cube_random", "ball_random", "cube_directed", "ball_directed")
_IS_CUBE_G = np.array([name.startswith("cube") for name in GROUPS])


class Case(NamedTuple):
    """One prompt, its text and the model that must emit it."""

    params: Params
    prefix_D: jax.Array | None  # embedding of what stands before the prompt
    prompt_MD: jax.Array  # in its last `used` rows
    used: jax.Array
    target_N: jax.Array  # padded beyond `length`
    length: jax.Array  # n, tokens that must be right


class Explored(NamedTuple):
    """What the points told; eps in the prompt's own units. G: `GROUPS`; 2: cube, ball."""

    held_G: jax.Array  # largest eps of the grid at which all points held; 0 for none
    at_end_G: jax.Array  # that is the end of the grid: the true one may be larger
    refuted_2: jax.Array  # least eps that a point seen to fail refutes, of every group; inf: none
    witness_2MD: jax.Array  # that point (the prompt itself for none)
    first_order_2: jax.Array  # 2 min_j margin_j / |gradient of margin_j|_dual: an estimate
    inside_QMD: jax.Array  # the first random points of cube and of ball at the eps that they held


def scores(model: kinds.Config, case: Case, prompt_MD: jax.Array) -> readout.Scores:
    """Margin and correctness of every target token behind the true ones before it, (N,)."""
    apply = functools.partial(kinds.module(model).apply, {"params": case.params})
    target_ND = apply(case.target_N, method="embed")
    parts = layout.arrange(prompt_MD, case.used, case.prefix_D, target_ND)
    hidden_TD = apply(*parts, method="hidden")
    return readout.score(hidden_TD[-case.target_N.shape[0] :], apply(method="head"), case.target_N)


def holds(model: kinds.Config, case: Case, prompt_MD: jax.Array) -> jax.Array:
    """Whether the prompt emits the first `length` tokens of the target, a bool scalar."""
    beyond_N = jnp.arange(case.target_N.shape[0]) >= case.length
    return jnp.all(scores(model, case, prompt_MD).correct | beyond_N)


@functools.partial(jax.jit, static_argnames=("model", "samples", "directed", "decodes", "batch"))
def explore(
    model: kinds.Config,
    case: Case,
    key: jax.Array,
    grid_E: jax.Array,
    samples: int,
    directed: int,
    decodes: int,
    batch: int,
) -> Explored:
    """Bisects for the largest eps at which every point holds, for all groups at once.

    Random points are uniform in the cube or the ball; directed ones lie where a token's margin
    falls fastest to first order, for the `directed` tokens of least margin. A group's points are
    the same up to scale at every eps. Balls are nested, so a failure refutes every larger eps: a
    group holds at no eps that one of its own points refutes.

    Args:
      model: the model's description.
      case: a prompt that holds.
      key: of the random points.
      grid_E: ascending eps to choose from.
      samples: random points of each norm.
      directed: tokens whose margin is attacked, in each norm.
      decodes: points of each random group to return, at most `samples`.
      batch: points judged at once.
    """
    M = len(case.prompt_MD)
    used_1M1 = (jnp.arange(M) >= M - case.used).astype(jnp.float32)[None, :, None]
    first_order_2, attack = _attack(model, case, directed, used_1M1)
    steps_BMD = jnp.concatenate([*_random(case, key, samples, used_1M1), *attack])
    sizes = (samples, samples, directed, directed)
    group_B = np.repeat(np.arange(len(GROUPS)), sizes)
    cubes_B = _IS_CUBE_G[group_B]
    judge = functools.partial(holds, model, case)

    def least(values_B: jax.Array) -> jax.Array:
        return jax.ops.segment_min(values_B, group_B, len(GROUPS))

    def body(state: Any) -> Any:
        lo_G, hi_G, seen_G, refuted_2, witness_2MD = state
        active_G = hi_G - lo_G > 1
        mid_G = jnp.clip((lo_G + hi_G) // 2, 0, len(grid_E) - 1)
        points_BMD = case.prompt_MD[None] + grid_E[mid_G][group_B][:, None, None] / 2 * steps_BMD
        right_B = jax.lax.map(judge, points_BMD, batch_size=batch)
        eps_2B = 2 * _norms(points_BMD - case.prompt_MD[None])
        eps_2B = jnp.where(right_B[None], jnp.inf, eps_2B)
        seen_G = jnp.minimum(seen_G, least(jnp.where(cubes_B, eps_2B[0], eps_2B[1])))
        ok_G = (least(right_B.astype(jnp.int32)) == 1) & (grid_E[mid_G] < seen_G)
        lo_G = jnp.where(active_G & ok_G, mid_G, lo_G)
        hi_G = jnp.where(active_G & ~ok_G, mid_G, hi_G)
        hi_G = jnp.minimum(hi_G, jnp.searchsorted(grid_E, seen_G).astype(jnp.int32))
        lo_G = jnp.where(lo_G >= hi_G, -1, lo_G)  # refuted afterwards: look further down
        nearer_2 = eps_2B.min(axis=1) < refuted_2
        found_2MD = points_BMD[eps_2B.argmin(axis=1)]
        witness_2MD = jnp.where(nearer_2[:, None, None], found_2MD, witness_2MD)
        refuted_2 = jnp.minimum(refuted_2, eps_2B.min(axis=1))
        return lo_G, hi_G, seen_G, refuted_2, witness_2MD

    start = (
        jnp.full(len(GROUPS), -1, jnp.int32),
        jnp.full(len(GROUPS), len(grid_E), jnp.int32),
        jnp.full(len(GROUPS), jnp.inf),
        jnp.full(2, jnp.inf),
        jnp.stack([case.prompt_MD] * 2),
    )
    end = jax.lax.while_loop(lambda state: jnp.any(state[1] - state[0] > 1), body, start)
    lo_G, _, _, refuted_2, witness_2MD = end
    held_G = jnp.where(lo_G >= 0, grid_E[jnp.maximum(lo_G, 0)], 0.0)
    first = np.concatenate([np.arange(decodes), samples + np.arange(decodes)])
    half_Q = held_G[group_B[first]] / 2
    inside_QMD = case.prompt_MD[None] + half_Q[:, None, None] * steps_BMD[first]
    at_end_G = lo_G == len(grid_E) - 1
    return Explored(held_G, at_end_G, refuted_2, witness_2MD, first_order_2, inside_QMD)


def _norms(x_BMD: jax.Array) -> jax.Array:
    """The l_inf and the l_2 norm of each point, all its vectors taken as one: (2, B)."""
    flat_BX = x_BMD.reshape(len(x_BMD), -1)
    return jnp.stack([jnp.abs(flat_BX).max(axis=1), jnp.linalg.norm(flat_BX, axis=1)])


def _random(
    case: Case, key: jax.Array, samples: int, used_1M1: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Uniform in the unit cube and in the unit ball of the used coordinates, (B, M, D) each."""
    M, D = case.prompt_MD.shape
    cube_key, ball_key, radius_key = jax.random.split(key, 3)

    def rows(draw: Callable[[jax.Array], jax.Array], key: jax.Array) -> jax.Array:
        """A key a row, counted from the end, so that no number depends on the padding."""
        keys_M = jax.vmap(lambda row: jax.random.fold_in(key, M - 1 - row))(jnp.arange(M))
        return jax.vmap(draw, out_axes=1)(keys_M) * used_1M1

    shape = (samples, D)
    cube_BMD = rows(lambda k: jax.random.uniform(k, shape, minval=-1.0, maxval=1.0), cube_key)
    normal_BMD = rows(lambda k: jax.random.normal(k, shape), ball_key)
    dimensions = (case.used * D).astype(jnp.float32)
    radius_B = jax.random.uniform(radius_key, (samples,)) ** (1 / dimensions)
    scale_B = radius_B / _norms(normal_BMD)[1]
    return cube_BMD, normal_BMD * scale_B[:, None, None]


def _attack(
    model: kinds.Config, case: Case, directed: int, used_1M1: jax.Array
) -> tuple[jax.Array, tuple[jax.Array, jax.Array]]:
    """First-order eps in both norms, and the unit steps that lower each chosen token's margin."""

    def margins(prompt_MD: jax.Array) -> jax.Array:
        margin_N = scores(model, case, prompt_MD).margin
        return jnp.where(jnp.arange(len(margin_N)) < case.length, margin_N, jnp.inf)

    margin_N, pull = jax.vjp(margins, case.prompt_MD)
    _, token_J = jax.lax.top_k(-margin_N, min(directed, len(margin_N)))
    token_J = jnp.where(jnp.isfinite(margin_N[token_J]), token_J, token_J[0])  # fewer tokens: again
    token_J = token_J[np.arange(directed) % len(token_J)]
    index_N = jnp.arange(len(margin_N))
    grad_JMD = jax.lax.map(lambda j: pull((index_N == j).astype(jnp.float32))[0], token_J)
    grad_JMD = grad_JMD * used_1M1
    flat_JX = grad_JMD.reshape(directed, -1)
    dual_2J = jnp.stack([jnp.abs(flat_JX).sum(axis=1), jnp.linalg.norm(flat_JX, axis=1)])
    first_order_2 = 2 * (margin_N[token_J][None] / dual_2J).min(axis=1)
    unit_JMD = grad_JMD / jnp.maximum(dual_2J[1], jnp.finfo(jnp.float32).tiny)[:, None, None]
    return first_order_2, (-jnp.sign(grad_JMD), -unit_JMD)
