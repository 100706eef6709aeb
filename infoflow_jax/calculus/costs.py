"""Cost laws: by which exponent e the parameters grow, parameters ~ eps^-e, and what that comes to.

Every law gives an exponent, float64; `ln_parameters` turns one into ln of a count, so that nothing
overflows. Tags: [S] arXiv 2605.17930, known here from summaries; [C] arXiv 2510.06662; [D] this
project. Exponents say nothing of constants. Lower bounds assume weights of size at most 1 and
1-Lipschitz activations; beta is no parameter. Which law applies is `planner`'s matter; what has a
construction behind it (widths, digits, pieces) is `sizes`'.

Arguments are scalars or arrays of one shape. Counts are T tokens, d coordinates of a token, E of a
state, n = E / h of a head, h heads, D things to retrieve; all are checked, and none is ever an
integer of fixed size. Errors: ValueError naming the field.
"""

from typing import Literal

import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from sweep_jax.checks import require
from sweep_jax.float64 import in_float64

KthFormula = Literal["counting", "stated", "summary"]


def count(field: str, value: ArrayLike, least: int) -> Array:
    """A whole number of at least `least`, as float64; Python integers of any size."""
    raw = np.asarray(value)
    kind = raw.dtype.kind in "iu" or raw.dtype == object
    require(kind and bool(np.all(raw >= least)), field, value, f"an integer >= {least}")
    return jnp.asarray(raw.astype(np.float64))


def precision(eps: ArrayLike) -> Array:
    """eps in (0, 1), as float64."""
    return positive("eps", eps, below=1.0)


def positive(field: str, value: ArrayLike, below: float = np.inf) -> Array:
    """A number in (0, below), as float64."""
    raw = np.asarray(value)
    require(raw.dtype.kind in "iuf", field, value, "a number")
    real = raw.astype(np.float64)
    span = "a finite number > 0" if below == np.inf else f"a number in (0, {below:g})"
    require(bool(np.all((real > 0) & (real < below))), field, value, span)
    return jnp.asarray(real)


@in_float64
def ln_parameters(exponent: ArrayLike, eps: ArrayLike) -> Array:
    """ln of eps^-e, the parameters up to a constant that no law gives. [S]"""
    return -jnp.asarray(exponent, jnp.float64) * jnp.log(precision(eps))


@in_float64
def ln_comparisons(order: ArrayLike, T: ArrayLike, eps: ArrayLike) -> Array:
    """ln(T^order / eps): the work of a network that makes every comparison itself. [D]

    The decoding law alone would let a wide state carry all tokens at no cost (E2 of the paper, T =
    16 and E = 48, says otherwise); this is what it leaves out.
    """
    work = count("order", order, 0) * jnp.log(count("T", T, 1))
    return work - jnp.log(precision(eps))


@in_float64
def decode_exponent(T0: ArrayLike, c: ArrayLike, E: ArrayLike, baseline: ArrayLike) -> Array:
    """max(e0, T0 c/E - 1): T0 tokens, c <= d coordinates needed of each, out of E. [S], c [D]

    Theorem 3: O(eps^(1 - T0 d/E)), digits of several numbers packed into one coordinate. e0 is the
    exponent of a target that is no harder than its pieces: 1 as printed, gamma for smooth pieces.
    """
    held = count("T0", T0, 0) * count("c", c, 0) / count("E", E, 1)
    return jnp.maximum(positive("baseline", baseline), held - 1.0)


@in_float64
def global_exponent(T: ArrayLike, d: ArrayLike, E: ArrayLike) -> Array:
    """T d/E - 1: a head that brings all T tokens. [S], where d is left out"""
    return count("T", T, 1) * count("d", d, 1) / count("E", E, 1) - 1.0


@in_float64
def statistic_exponent(c: ArrayLike, E: ArrayLike, baseline: ArrayLike) -> Array:
    """max(e0, c/E - 1): a sum over all tokens, of which c coordinates are all that is needed.

    Extension of this project [D]: a sufficient statistic is no retrieval, so T does not count.
    """
    return jnp.maximum(positive("baseline", baseline), count("c", c, 0) / count("E", E, 1) - 1.0)


@in_float64
def rank_shortage(rank: ArrayLike, n: ArrayLike) -> Array:
    """max(0, rank - n): what a score's rank exceeds queries and keys of n coordinates by.

    Extension of this project [D]: not in the papers' laws, which do not count attention's rank
    (arXiv 2407.16153 shows that it can cost exponentially many heads).
    """
    return jnp.maximum(0.0, count("rank", rank, 0) - count("n", n, 1))


@in_float64
def jth_largest_exponent(T: ArrayLike, j: ArrayLike, n: ArrayLike) -> Array:
    """(T - j - 1)/(n + 1) - 1: the j-th largest score, j >= 2, by one head. [S], -1 by counting"""
    return _peeled(count("T", T, 1), count("j", j, 2), n)


@in_float64
def kth_lower_exponent(
    T: ArrayLike, k: ArrayLike, n: ArrayLike, formula: KthFormula = "counting"
) -> Array:
    """Theorem 2, the k-th largest in one layer: Omega(eps^-e).

    Args:
      T: tokens; k >= 2; n of the head.
      formula: "counting": (T - k - 1)/(n + 1) - 1, what the witness gives [D] and is taken here;
        "stated": without the -1 [S]; "summary": (k - 1)/n, as one summary prints it [S].
    """
    T, k = count("T", T, 1), count("k", k, 2)
    if formula == "summary":
        return (k - 1.0) / count("n", n, 1)
    require(formula in ("counting", "stated"), "formula", formula, "counting, stated or summary")
    return _peeled(T, k, n) + (1.0 if formula == "stated" else 0.0)


def _peeled(T: Array, j: Array, n: ArrayLike) -> Array:
    return (T - j - 1.0) / (count("n", n, 1) + 1.0) - 1.0


@in_float64
def head_shortage_exponent(S: ArrayLike, h: ArrayLike, D: ArrayLike, n: ArrayLike) -> Array:
    """(|S| - h - D + 1)/((n + 1) h + 1) - 1: D-retrieval by one layer of h < D heads. [C]

    |S| tokens are those that one of the minima ranges over.

    Raises:
      ValueError: h >= D, where no head is short.
    """
    heads, wanted = count("h", h, 1), count("D", D, 1)
    require(bool(np.all(heads < wanted)), "h", h, f"less than D = {D}")
    free = count("S", S, 1) - heads - wanted + 1.0
    return free / ((count("n", n, 1) + 1.0) * heads + 1.0) - 1.0


@in_float64
def pair_lower_exponent(T: ArrayLike, h: ArrayLike, n: ArrayLike) -> Array:
    """Theorem 1, k(T): the least pairwise inner product in one layer is Omega(eps^-k). [S]

    k = T0/((n + 1) h + 1) - 1 with T0 = T - h - 1 free tokens; two layers of one head need
    O(1/eps) only (`sizes.pair_network`).
    """
    heads = count("h", h, 1)
    free = count("T", T, 1) - heads - 1.0
    return free / ((count("n", n, 1) + 1.0) * heads + 1.0) - 1.0


@in_float64
def softargmax_error(T: ArrayLike, beta: ArrayLike) -> Array:
    """ln T/beta: how far the soft mean of T scores is below their maximum, at most. [D]

    By Gibbs' inequality: <score> + H/beta = ln(sum exp(beta score))/beta >= max, and H <= ln T.
    """
    return jnp.log(count("T", T, 1)) / positive("beta", beta)


@in_float64
def softargmax_beta(T: ArrayLike, eps: ArrayLike) -> Array:
    """ln T/eps: the beta from which on the error is at most eps. [D]"""
    return jnp.log(count("T", T, 1)) / positive("eps", eps)
