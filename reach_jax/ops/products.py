"""Products of activations with weights, in the precision that the weights are kept in.

Where a weight is narrower than what it meets (bfloat16 beside float32), both operands are rounded
to its format, in the backward pass too, and the sum is kept in float32. That is what a matrix unit
is fastest at, several times faster than float32, and everything between the products stays float32.
Made for frozen weights: a weight's own gradient is not rounded and not fast. Not a format for
parameters: see `hub` for those.
"""

import functools

import jax
import jax.numpy as jnp


def product(spec: str, x: jax.Array, weight: jax.Array) -> jax.Array:
    """`jnp.einsum(spec, x, weight)`, in x's dtype.

    Args:
      spec: an einsum of two operands of which every letter stands in two of the three terms.
      x: activations.
      weight: of x's dtype, or of a narrower float that both are then rounded to.
    """
    if jnp.finfo(weight.dtype).bits >= jnp.finfo(x.dtype).bits:
        return jnp.einsum(spec, x, weight)
    return _rounded(spec, x, weight)


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def _rounded(spec: str, x: jax.Array, weight: jax.Array) -> jax.Array:
    narrow = x.astype(weight.dtype)
    return jnp.einsum(spec, narrow, weight, preferred_element_type=jnp.float32).astype(x.dtype)


def _forward(spec: str, x: jax.Array, weight: jax.Array) -> tuple[jax.Array, tuple]:
    return _rounded(spec, x, weight), (x.astype(weight.dtype), weight)


def _backward(spec: str, kept: tuple, grad: jax.Array) -> tuple[jax.Array, jax.Array]:
    narrow, weight = kept
    of_x, of_weight, of_out = spec.replace("->", ",").split(",")
    to_x = _rounded(f"{of_out},{of_weight}->{of_x}", grad, weight)
    to_weight = jnp.einsum(f"{of_x},{of_out}->{of_weight}", narrow.astype(grad.dtype), grad)
    return to_x, to_weight.astype(weight.dtype)


_rounded.defvjp(_forward, _backward)
