"""Token cells of unequal size: outputs made of large cells use up the prompts, few stay for others.

A token cell is the part of the last layer's space in which one token wins. Under the heuristic of
arXiv 2605.22223 the prompts that reach an output of n tokens are the product of n independent
shares of cells, so their median falls as `exp(-s n)`, and with it a slope C is cut to
`C ln V / s`. Heuristic: cells along an output are taken for independent. Not a measurement of
cells: hits come in.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from reach_jax.bounds.inputs import known, nonnegative, positive, whole
from sweep_jax.checks import require
from sweep_jax.float64 import in_float64


@in_float64
def mean_rate(hits_V: ArrayLike) -> Array:
    """s in closed form: the mean over tokens of `-ln share`, by the central limit theorem.

    Tokens without a hit are left out, as published. Their shares are below all that were seen, so
    s is too small then and the slope too large, which keeps it an upper bound.
    At least ln of the number of tokens hit, with equality for equal shares.

    Args:
      hits_V: [..., V] hits, volumes or shares of the cells, >= 0; need not sum to 1.

    Returns:
      [...] float64, nats per token; NaN where nothing was hit.

    Raises:
      ValueError: a number is negative or not finite, or a row has no hit.
    """
    hits = _hits(hits_V)
    hit = hits > 0
    ln_hits = jnp.log(jnp.where(hit, hits, 1.0))
    return jnp.log(jnp.sum(hits, axis=-1)) - jnp.sum(ln_hits, axis=-1) / jnp.sum(
        hit, axis=-1, dtype=jnp.float64
    )


@in_float64
def ln_median_products(hits_V: ArrayLike, lengths: tuple[int, ...], bins: int = 4096) -> Array:
    """ln of the median product of n shares of independent uniformly drawn tokens, for each n.

    The distribution of one `-ln share` is laid on a grid, between whose points each token's weight
    is split so that the mean stays exact; its n-th power under the FFT is that of the sum. Memory
    is `max(lengths) * bins` numbers, where an outer product would take V^n. Off by at most a grid
    step n or so, which the slope against n does not see. Jit it with `lengths` and `bins` static.

    Args:
      hits_V: [V] as for `mean_rate`; tokens without a hit are left out.
      lengths: output lengths n >= 1.
      bins: of the grid, >= 2.

    Returns:
      [len(lengths)] float64, nats.

    Raises:
      ValueError: as for `mean_rate`, or a length or `bins` is out of its range.
    """
    hits = _hits(hits_V)
    require(hits.ndim == 1, "hits_V", hits.shape, "[V]")
    require(len(lengths) > 0 and min(lengths) >= 1, "lengths", lengths, "whole numbers >= 1")
    require(bins >= 2, "bins", bins, "a whole number >= 2")
    return _ln_medians(hits, tuple(int(n) for n in lengths), bins)


@functools.partial(jax.jit, static_argnums=(1, 2))
def _ln_medians(hits: Array, lengths: tuple[int, ...], bins: int) -> Array:
    hit = hits > 0
    rates_V = jnp.log(jnp.sum(hits)) - jnp.log(jnp.where(hit, hits, 1.0))
    least = jnp.min(jnp.where(hit, rates_V, jnp.inf))
    width = jnp.max(jnp.where(hit, rates_V, -jnp.inf)) - least
    step = jnp.where(width > 0, width, 1.0) / (bins - 1)
    place_V = jnp.where(hit, (rates_V - least) / step, 0.0)
    low_V = jnp.clip(jnp.floor(place_V), 0, bins - 2)
    upper_V = place_V - low_V
    weight_V = jnp.where(hit, 1.0, 0.0) / jnp.sum(hit, dtype=jnp.float64)
    index_V = low_V.astype(jnp.int64)
    one = jnp.zeros(bins, jnp.float64).at[index_V].add(weight_V * (1 - upper_V))
    one = one.at[index_V + 1].add(weight_V * upper_V)
    size = 1 << (max(lengths) * (bins - 1)).bit_length()
    spectrum = jnp.fft.rfft(one, size)

    def median(n: int) -> Array:
        mass = jnp.fft.irfft(spectrum**n, size)
        below = jnp.cumsum(mass)
        at = jnp.argmax(below >= 0.5 * below[-1])
        # Mass is spread evenly over its grid step, half to either side.
        part = (0.5 * below[-1] - (below[at] - mass[at])) / mass[at]
        return -(n * least + step * (at.astype(jnp.float64) + part - 0.5))

    return jnp.stack([median(n) for n in lengths])


@in_float64
def product_rate(
    hits_V: ArrayLike, lengths: tuple[int, ...] = (32, 40, 48, 56, 64), bins: int = 4096
) -> Array:
    """s from the product's distribution: minus the least-squares slope of ln median against n.

    Arguments and errors as for `ln_median_products`; at least two different lengths.
    """
    require(len(set(lengths)) >= 2, "lengths", lengths, "at least two different ones")
    n = np.asarray(lengths, np.float64)
    lever = (n - n.mean()) / np.square(n - n.mean()).sum()
    return -jnp.sum(jnp.asarray(lever) * ln_median_products(hits_V, lengths, bins))


@in_float64
def nonuniform_slope(slope: ArrayLike, vocabulary: ArrayLike, rate: ArrayLike) -> Array:
    """`C ln V / s`: a slope cut down to the median output, in tokens per prompt vector.

    Args:
      slope: C >= 0 of another bound, tokens per prompt vector.
      vocabulary: V >= 2.
      rate: s > 0, nats per token; ln V leaves C as it is.

    Returns:
      float64 of the common shape; the arguments are scalars or of that shape.

    Raises:
      ValueError: an argument is out of its range or not finite.
    """
    ln_vocabulary = jnp.log(whole("vocabulary", vocabulary, 2))
    return nonnegative("slope", slope) * ln_vocabulary / positive("rate", rate)


def _hits(hits_V: ArrayLike) -> Array:
    hits = nonnegative("hits_V", hits_V)
    require(hits.ndim >= 1 and hits.shape[-1] >= 1, "hits_V", hits.shape, "[..., V] with V >= 1")
    if known(hits_V):
        some = bool(np.all(np.asarray(jnp.sum(hits, axis=-1)) > 0))
        require(some, "hits_V", "a row of zeros", "at least one hit")
    return hits
