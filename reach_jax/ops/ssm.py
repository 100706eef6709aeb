"""Selective state spaces (Gu and Dao 2023, Mamba): causal convolution and scan, whole and by step.

Arrays in, float32 arrays out, whatever the dtype of the inputs: a recurrence adds up its rounding
errors. Not here: projections, gates, padding (`models.mamba` takes it out before the first layer).
"""

import functools

import jax
import jax.numpy as jnp


def convolve(x_TI: jax.Array, kernel_WI: jax.Array, bias_I: jax.Array | None) -> jax.Array:
    """Each channel's own causal convolution, (T, I); tap W-1 is on the present, zeros before 0."""
    T, (W, _) = x_TI.shape[0], kernel_WI.shape
    past_SI = jnp.pad(x_TI, ((W - 1, 0), (0, 0)))
    windows_WTI = jnp.stack([past_SI[tap : tap + T] for tap in range(W)])
    return _taps(windows_WTI, kernel_WI[:, None], bias_I)


def convolve_step(
    x_I: jax.Array, kernel_WI: jax.Array, bias_I: jax.Array | None, past_SI: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """`convolve` at one more position, (I,), and the past that the next one needs.

    Args:
      x_I: the position's input.
      kernel_WI: as in `convolve`.
      bias_I: as in `convolve`.
      past_SI: the W-1 inputs before it, zeros where there were none.
    """
    window_WI = jnp.concatenate([past_SI, x_I[None]])
    return _taps(window_WI[:, None], kernel_WI[:, None], bias_I)[0], window_WI[1:]


def _taps(windows_WTI: jax.Array, kernel_W1I: jax.Array, bias_I: jax.Array | None) -> jax.Array:
    products_WTI = windows_WTI.astype(jnp.float32) * kernel_W1I.astype(jnp.float32)
    sum_TI = jnp.sum(products_WTI, axis=0)
    return sum_TI if bias_I is None else sum_TI + bias_I[None].astype(jnp.float32)


def scan(
    x_TI: jax.Array,
    dt_TI: jax.Array,
    a_IN: jax.Array,
    b_TN: jax.Array,
    c_TN: jax.Array,
    d_I: jax.Array,
    chunk: int = 16,
) -> jax.Array:
    """h_t = exp(dt_t a) h_{t-1} + dt_t b_t x_t from h = 0; y_t = c_t h_t + d x_t: (T, I).

    The N numbers of all channels at all positions, N times the activations, never exist at once.
    A sequential scan goes over chunks and an associative one over the positions inside, and
    the backward pass computes a chunk's states again: between the two it keeps one state a chunk.
    With `chunk` near N that is about as much as one of the inputs.

    Args:
      x_TI: inputs of the channels.
      dt_TI: time steps, >= 0.
      a_IN: the channels' diagonals, < 0, so that nothing grows whatever the length.
      b_TN: what the inputs write, shared by the channels.
      c_TN: what the outputs read.
      d_I: weight of the way around the state.
      chunk: positions whose states are alive at once; T is cut evenly into as few as that allows.
    """
    T = x_TI.shape[0]
    count = -(-T // chunk)
    size = -(-T // count)

    def cut(rows: jax.Array) -> jax.Array:  # rows of zeros at the end: no time passes in them
        padded = jnp.pad(rows.astype(jnp.float32), ((0, count * size - T), (0, 0)))
        return padded.reshape(count, size, -1)

    @functools.partial(jax.checkpoint, prevent_cse=False)
    def one(state_IN: jax.Array, part: tuple[jax.Array, ...]) -> tuple[jax.Array, jax.Array]:
        x_CI, dt_CI, b_CN, c_CN = part
        decay_CIN = jnp.exp(dt_CI[:, :, None] * a32_IN[None])
        write_CIN = (dt_CI * x_CI)[:, :, None] * b_CN[:, None]
        write_CIN = write_CIN.at[0].add(decay_CIN[0] * state_IN)
        _, states_CIN = jax.lax.associative_scan(_after, (decay_CIN, write_CIN))
        return states_CIN[-1], jnp.einsum("cin,cn->ci", states_CIN, c_CN)

    a32_IN, d_1I = a_IN.astype(jnp.float32), d_I[None].astype(jnp.float32)
    _, y_CTI = jax.lax.scan(one, jnp.zeros_like(a32_IN), tuple(map(cut, (x_TI, dt_TI, b_TN, c_TN))))
    return y_CTI.reshape(count * size, -1)[:T] + d_1I * x_TI.astype(jnp.float32)


def _after(
    first: tuple[jax.Array, jax.Array], second: tuple[jax.Array, jax.Array]
) -> tuple[jax.Array, jax.Array]:
    """h -> decay h + write, twice in a row, as one such map."""
    return first[0] * second[0], second[0] * first[1] + second[1]


def step(
    x_I: jax.Array,
    dt_I: jax.Array,
    a_IN: jax.Array,
    b_N: jax.Array,
    c_N: jax.Array,
    d_I: jax.Array,
    state_IN: jax.Array,
) -> tuple[jax.Array, jax.Array]:
    """`scan` at one more position: its output (I,) and the state after it, (I, N) float32."""
    x_I, dt_I, a_IN, b_N, c_N, d_I = (
        v.astype(jnp.float32) for v in (x_I, dt_I, a_IN, b_N, c_N, d_I)
    )
    write_IN = (dt_I * x_I)[:, None] * b_N[None]
    state_IN = jnp.exp(dt_I[:, None] * a_IN) * state_IN + write_IN
    return state_IN @ c_N + d_I * x_I, state_IN
