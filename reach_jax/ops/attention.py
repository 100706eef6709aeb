"""Scaled dot-product attention with grouped key/value heads. No projections, no cache."""

import jax
import jax.numpy as jnp

# Finite, so that a row without any visible key becomes a uniform average and never a NaN.
_HIDDEN = -1e30


def attend(
    q_THN: jax.Array,
    k_SKN: jax.Array,
    v_SKN: jax.Array,
    mask_TS: jax.Array,
    scale: float | None = None,
    bias_HTS: jax.Array | None = None,
) -> jax.Array:
    """Softmax attention of one sequence; query head h reads key/value head h // (H/K).

    Args:
      q_THN: queries; H must be a multiple of K.
      k_SKN: keys.
      v_SKN: values.
      mask_TS: True where the query may see the key.
      scale: of the scores; None is N^-1/2.
      bias_HTS: added to the scaled scores, by query head.

    Returns:
      The heads' outputs, (T, H, N), in v's dtype; scores and softmax in float32, or in float64 of
      float64 queries.
    """
    T, H, N = q_THN.shape
    K = k_SKN.shape[1]
    q_TKGN = q_THN.reshape(T, K, H // K, N)
    dtype = jnp.float64 if q_THN.dtype == jnp.float64 else jnp.float32
    scores_KGTS = jnp.einsum(
        "tkgn,skn->kgts", q_TKGN, k_SKN, preferred_element_type=dtype
    ) * jnp.asarray(N**-0.5 if scale is None else scale, dtype)
    if bias_HTS is not None:
        scores_KGTS += bias_HTS.reshape(scores_KGTS.shape).astype(dtype)
    scores_KGTS = jnp.where(mask_TS[None, None], scores_KGTS, jnp.asarray(_HIDDEN, dtype))
    weights_KGTS = jax.nn.softmax(scores_KGTS, axis=-1).astype(v_SKN.dtype)
    return jnp.einsum("kgts,skn->tkgn", weights_KGTS, v_SKN).reshape(T, H, N)
