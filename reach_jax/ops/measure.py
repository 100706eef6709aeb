"""Attention as a map between measures: weighted points go in, the same weights on moved points out.

A prompt without positions is its empirical measure, `mu = (1/S) sum_s delta(x_s)`, as in Theorem
4.9 of arXiv 2605.22223. Attention sees that measure and nothing else of it, so neither the order of
the points nor writing the whole prompt twice changes where a point goes:

  T_mu(x) = x + sum_h integral of softmax weight(q_h(x) . k_h(y)) v_h(y) o_h  over mu(dy)

No causal mask and no rotary phases: with either, the layer is not such a map. Norm and feed-forward
act on every point alone and need nothing from here. `ops.attention` is the layer of sequences.
"""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp


class Measure(NamedTuple):
    """sum_s exp(ln_weight_S[s]) delta(points_SD[s]); weights need not sum to 1, and may be 0."""

    points_SD: jax.Array
    ln_weight_S: jax.Array


class Kernels(NamedTuple):
    """Projections of one attention layer; query head h reads key/value head h // (H/K)."""

    q_DHN: jax.Array
    k_DKN: jax.Array
    v_DKN: jax.Array
    o_HND: jax.Array


def empirical(points_SD: jax.Array) -> Measure:
    """The measure of a prompt: weight 1/S on each of its vectors."""
    S = points_SD.shape[0]
    return Measure(points_SD, jnp.full(S, -math.log(S), points_SD.dtype))


def attend(
    q_THN: jax.Array,
    k_SKN: jax.Array,
    v_SKN: jax.Array,
    ln_weight_S: jax.Array,
    scale: float | None = None,
) -> jax.Array:
    """Softmax attention of queries over weighted keys: weight_s exp(q.k_s) over its sum.

    Args:
      q_THN: queries; H must be a multiple of K.
      k_SKN: keys.
      v_SKN: values.
      ln_weight_S: log weights; -inf is a key that is not there. One at least is finite.
      scale: of the scores; None is N^-1/2.

    Returns:
      (T, H, N) in v's dtype; scores and softmax in float32, or in float64 if the queries are.
    """
    T, H, N = q_THN.shape
    K = k_SKN.shape[1]
    wide = jnp.float64 if q_THN.dtype == jnp.float64 else jnp.float32
    q_TKGN = q_THN.reshape(T, K, H // K, N)
    scores_KGTS = jnp.einsum("tkgn,skn->kgts", q_TKGN, k_SKN, preferred_element_type=wide)
    scores_KGTS = scores_KGTS * jnp.asarray(N**-0.5 if scale is None else scale, wide)
    shifted_KGTS = scores_KGTS + ln_weight_S.astype(wide)[None, None, None]
    weights_KGTS = jax.nn.softmax(shifted_KGTS, axis=-1).astype(v_SKN.dtype)
    return jnp.einsum("kgts,skn->tkgn", weights_KGTS, v_SKN).reshape(T, H, N)


def move(
    x_TD: jax.Array, measure: Measure, kernels: Kernels, scale: float | None = None
) -> jax.Array:
    """T_mu(x) of points, which need not be in the measure: (T, D)."""
    q_THN = jnp.einsum("td,dhn->thn", x_TD, kernels.q_DHN)
    k_SKN = jnp.einsum("sd,dkn->skn", measure.points_SD, kernels.k_DKN)
    v_SKN = jnp.einsum("sd,dkn->skn", measure.points_SD, kernels.v_DKN)
    out_THN = attend(q_THN, k_SKN, v_SKN, measure.ln_weight_S, scale)
    return x_TD + jnp.einsum("thn,hnd->td", out_THN, kernels.o_HND)


def push(measure: Measure, kernels: Kernels, scale: float | None = None) -> Measure:
    """The image of mu under T_mu: every point moves, every weight stays."""
    moved_SD = move(measure.points_SD, measure, kernels, scale)
    return Measure(moved_SD, measure.ln_weight_S)


def forms(kernels: Kernels, scale: float | None = None) -> tuple[jax.Array, jax.Array]:
    """Each head's matrices A and V, both (H, D, D): scores are x A y, and y adds y V to x."""
    H, N = kernels.q_DHN.shape[1:]
    group = H // kernels.k_DKN.shape[1]
    k_DHN, v_DHN = (jnp.repeat(x, group, axis=1) for x in (kernels.k_DKN, kernels.v_DKN))
    a_HDD = jnp.einsum("dhn,ehn->hde", kernels.q_DHN, k_DHN)
    v_HDD = jnp.einsum("dhn,hne->hde", v_DHN, kernels.o_HND)
    return a_HDD * jnp.asarray(N**-0.5 if scale is None else scale, a_HDD.dtype), v_HDD
