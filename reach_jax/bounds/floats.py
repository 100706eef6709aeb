"""How many prompt vectors a float type can hold at all: by bits, and by an exact count in a box.

The counts are integers found on bit patterns, so they are exact, subnormal numbers included.
Not a uniform grid: floats lie closer near zero.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike, DTypeLike

from reach_jax.bounds.inputs import checked, known, whole
from reach_jax.bounds.logmath import tokens
from sweep_jax.checks import require
from sweep_jax.float64 import in_float64

DTYPES = ("float16", "bfloat16", "float32")
_MANTISSA = 52  # bits of float64, in which the interval's ends are given
_BIAS = 1023


def float_bits(dtype: DTypeLike) -> int:
    """Bits of one number of `dtype`. Raises ValueError for a dtype outside `DTYPES`."""
    require(jnp.dtype(dtype).name in DTYPES, "dtype", jnp.dtype(dtype).name, f"one of {DTYPES}")
    return 8 * jnp.dtype(dtype).itemsize


@in_float64
def trivial_slope(d: ArrayLike, vocabulary: ArrayLike, dtype: DTypeLike) -> Array:
    """C = `d b ln 2 / ln V`: d numbers of b bits have no more than 2^(d b) values.

    Args:
      d: embedding dimension >= 0; any shape.
      vocabulary: V >= 2; scalar or of the shape of `d`.
      dtype: the prompt's type, one of `DTYPES`.

    Raises:
      ValueError: an argument is out of its range.
    """
    return tokens(whole("d", d, 0) * float_bits(dtype) * jnp.log(2.0), vocabulary)


@in_float64
def count_floats(lo: ArrayLike, hi: ArrayLike, dtype: DTypeLike) -> Array:
    """The number of finite values of `dtype` in [lo, hi], exactly.

    -0 and +0 are one value, subnormal numbers count, and the ends need not be representable:
    what lies inside is counted. An infinite end means no limit on that side.

    Args:
      lo: lower ends; any shape.
      hi: upper ends, >= lo; of the shape of `lo`, or either is a scalar.
      dtype: one of `DTYPES`.

    Returns:
      int64 of that shape.

    Raises:
      ValueError: lo > hi, an end is NaN, or the dtype is not one of `DTYPES`.
    """
    lo = checked("lo", lo, lambda x: ~np.isnan(x), "no NaN")
    hi = checked("hi", hi, lambda x: ~np.isnan(x), "no NaN")
    if known(lo) and known(hi):
        require(bool(np.all(np.asarray(lo) <= np.asarray(hi))), "lo, hi", (lo, hi), "lo <= hi")
    flipped_lo = jax.lax.bitcast_convert_type(lo, jnp.int64) ^ np.int64(-(2**63))
    last = _floor_index(jax.lax.bitcast_convert_type(hi, jnp.int64), dtype)
    return jnp.maximum(last + _floor_index(flipped_lo, dtype) + 1, 0)


@in_float64
def float_grid_slope(
    lo_D: ArrayLike, hi_D: ArrayLike, vocabulary: ArrayLike, dtype: DTypeLike
) -> Array:
    """C = `sum_i ln(number of floats in [lo_i, hi_i]) / ln V`, in tokens per prompt vector.

    Holds for every prompt of that dtype inside the box: there are no more such prompts. -inf when
    some coordinate has no float at all.

    Args:
      lo_D: [..., D] lower ends.
      hi_D: [..., D] upper ends, >= lo_D.
      vocabulary: V >= 2; scalar or of shape [...].
      dtype: one of `DTYPES`.

    Returns:
      [...] float64.

    Raises:
      ValueError: as for `count_floats` and `tokens`.
    """
    counts_D = count_floats(lo_D, hi_D, dtype).astype(jnp.float64)
    return tokens(jnp.sum(jnp.log(counts_D), axis=-1), vocabulary)


@functools.partial(jax.jit, static_argnames="dtype")
def _floor_index(bits: Array, dtype: DTypeLike) -> Array:
    """The place, counted from zero, of the largest value of `dtype` that is <= x.

    Negative places are negative values; the place below the most negative finite one stands for
    "none". The smallest value >= x has the place -_floor_index(-x).

    Args:
      bits: the float64 x as int64. Integers alone, since XLA flushes subnormal floats.
      dtype: one of `DTYPES`.
    """
    bits_of_dtype, info = float_bits(dtype), jnp.finfo(dtype)
    mantissa, least_exponent = int(info.nmant), int(info.minexp)
    largest = (((1 << (bits_of_dtype - 1 - mantissa)) - 1) << mantissa) - 1
    magnitude = bits & np.int64(2**63 - 1)
    exponent = magnitude >> _MANTISSA
    # Normal in `dtype`: drop the low mantissa bits and rebase the exponent.
    below_normal = jnp.maximum(least_exponent + _BIAS - exponent, 0)
    fraction = magnitude & np.int64(2**_MANTISSA - 1)
    significand = jnp.where(exponent > 0, fraction | np.int64(2**_MANTISSA), fraction)
    # Subnormal in `dtype`: the significand in units of the least value.
    shift = jnp.minimum(_MANTISSA - mantissa + below_normal, 63)
    rebased = (magnitude >> (_MANTISSA - mantissa)) - ((least_exponent - 1 + _BIAS) << mantissa)
    place = jnp.where(below_normal > 0, significand >> shift, rebased)
    inexact = (significand & ((jnp.int64(1) << shift) - 1)) != 0
    outward = jnp.minimum(place + inexact.astype(jnp.int64), largest + 1)
    return jnp.where(bits < 0, -outward, jnp.minimum(place, largest))
