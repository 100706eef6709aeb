"""How far an attention layer can carry two measures apart: a Lipschitz estimate in W_q.

For T_mu(x) = x + sum_h f_h(x), f(x) = E_p[y V] where p has density exp(x A y) / Z against mu, and
measures on the ball of radius R, ||.|| the spectral norm and a = ||A|| R^2:

1. One mu, two points: the gradient of f in x is V' Cov_p(y) A', and a covariance on the ball is at
   most R^2, so f is `||V|| a`-Lipschitz.
2. One point, two measures: g(y) = exp(x A y) (y V - f_nu(x)) has mean 0 under nu, so
   f_mu(x) - f_nu(x) = (E_mu g - E_nu g) / Z_mu. The gradient of g is at most
   e^a (||V|| + 2 R ||V|| ||A|| R), and Z_mu >= e^-a: so the difference is at most
   `||V|| (1 + 2a) e^(2a) W_1(mu, nu)`, and W_1 <= W_q.
3. Move an optimal coupling of mu and nu along: W_q(T mu, T nu) <= L W_q(mu, nu), every q >= 1, with
   L = 1 + sum_h ||V_h|| (a_h + (1 + 2 a_h) exp(2 a_h)).

Own derivation; Castin, Ablin and Peyre ("How Smooth Is Attention?", arXiv 2312.14820) have bounds
of this kind, whatever the length. Not the least constant: the exponential is paid for the worst
measures on the ball.
"""

import jax.numpy as jnp
from jax import Array
from jax.scipy.special import logsumexp
from jax.typing import ArrayLike

from reach_jax.bounds.inputs import nonnegative
from sweep_jax.float64 import in_float64


@in_float64
def ln_attention_lipschitz(norm_a_H: ArrayLike, norm_v_H: ArrayLike, radius: ArrayLike) -> Array:
    """ln L of the module's docstring, residual included.

    Args:
      norm_a_H: [H] spectral norms of the heads' score matrices A, scale included, >= 0.
      norm_v_H: [H] those of value times output, V, >= 0.
      radius: R >= 0, of a ball around the origin that holds both measures; a scalar.

    Returns:
      A float64 scalar >= 0.

    Raises:
      ValueError: an argument is negative or not finite.
    """
    a_H = nonnegative("norm_a_H", norm_a_H) * nonnegative("radius", radius) ** 2
    head_H = jnp.logaddexp(jnp.log(a_H), jnp.log1p(2 * a_H) + 2 * a_H)
    heads = logsumexp(jnp.log(nonnegative("norm_v_H", norm_v_H)) + head_H)
    return jnp.logaddexp(0.0, heads)
