"""Greedy decoding of numbered prompts: a block of them in one jit, split over the devices.

Prompts are made on the device from their numbers. A tie goes to the lowest token id, and a row of
tokens is exact for this program's arithmetic: where two logits nearly tie, another order of
summation could choose the other token, so each prompt's least margin comes back with its tokens.
Not a search, and not for one long prompt: `cramming.verify` decodes that.
"""

import dataclasses
import functools
from typing import Literal, get_args

import jax
import jax.numpy as jnp
import numpy as np

from reach_jax.enumeration.grid import Grid
from reach_jax.models import decoder
from reach_jax.models.config import DecoderConfig
from reach_jax.models.layers import Cache
from reach_jax.ops import readout
from sweep_jax.checks import require

Attention = Literal["causal", "full"]
End = Literal["vector", "token"]
END_ID = 0  # the token that stands behind the prompt, where one does


@dataclasses.dataclass(frozen=True)
class Layout:
    """How a prompt is laid before the model.

    Attributes:
      attention: "causal", or "full": prompt vectors (and the token behind them) see each other
        whatever their order; tokens that the model emits are causal either way.
      end: what predicts the first token: the last "vector" of the prompt, or a "token" behind it.
    """

    attention: Attention
    end: End

    def __post_init__(self) -> None:
        for name, kinds in (("attention", get_args(Attention)), ("end", get_args(End))):
            value = getattr(self, name)
            require(value in kinds, name, value, f"one of {kinds}")


def free_vectors(model: DecoderConfig, layout: Layout, vectors: int) -> int:
    """How many leading prompt vectors can change places without changing any output.

    With rotary or learned positions only 1: none can. Without, attention reads a set, but a causal
    mask still tells positions apart from the second layer on, as vector i's state has then seen
    1..i. So the order is free in one layer or under full attention; and where the last vector
    itself predicts the first token, it is not one of the set: m - 1 are free, else m.
    """
    placed = model.turning > 0 or model.learned_positions
    ordered = layout.attention == "causal" and model.layers > 1
    if placed or ordered:
        return 1
    return vectors if layout.end == "token" else max(1, vectors - 1)


def decode_one(
    model: DecoderConfig,
    layout: Layout,
    params: decoder.Params,
    prompt_MD: jax.Array,
    length: int,
) -> tuple[jax.Array, jax.Array]:
    """The `length` >= 1 tokens after one prompt, (N,), and the least margin among them.

    A margin is the largest logit minus the next one; 0 is an exact tie.
    """
    apply = functools.partial(decoder.Decoder(model).apply, {"params": params})
    head_VD, inputs_PD = apply(method="head"), prompt_MD
    if layout.end == "token":
        end_1D = apply(jnp.array([END_ID]), method="embed").astype(prompt_MD.dtype)
        inputs_PD = jnp.concatenate([prompt_MD, end_1D])
    P = inputs_PD.shape[0]
    cache = decoder.empty_cache(model, P + length - 1)
    full = layout.attention == "full"
    states_PD, cache = apply(inputs_PD, cache, full, method="prefill")

    def emit(state_D: jax.Array) -> tuple[jax.Array, jax.Array]:
        logits_V = readout.logits(state_D[None], head_VD)[0]
        token = jnp.argmax(logits_V)
        others_V = jnp.where(jnp.arange(logits_V.shape[0]) == token, -jnp.inf, logits_V)
        return token, logits_V[token] - jnp.max(others_V)

    def body(
        carry: tuple[jax.Array, Cache], position: jax.Array
    ) -> tuple[tuple[jax.Array, Cache], tuple[jax.Array, jax.Array]]:
        state_D, cache = carry
        token, margin = emit(state_D)
        input_D = apply(token[None], method="embed")[0]
        return apply(input_D, position, cache, method="step"), (token, margin)

    positions_N = jnp.arange(P, P + length - 1)
    (state_D, _), (tokens_N, margins_N) = jax.lax.scan(body, (states_PD[-1], cache), positions_N)
    token, margin = emit(state_D)
    least = jnp.min(margins_N, initial=margin)
    return jnp.concatenate([tokens_N, token[None]]), least


@functools.partial(jax.jit, static_argnames=("model", "layout", "grid", "length"))
def decode_block(
    model: DecoderConfig,
    layout: Layout,
    grid: Grid,
    params: decoder.Params,
    numbers_B: jax.Array,
    length: int,
) -> tuple[jax.Array, jax.Array]:
    """Tokens (B, N) as uint8 and least margins (B,) of the prompts with these numbers (uint32)."""

    def one(number: jax.Array) -> tuple[jax.Array, jax.Array]:
        return decode_one(model, layout, params, grid.prompt(number), length)

    tokens_BN, margins_B = jax.vmap(one)(numbers_B)
    return tokens_BN.astype(jnp.uint8), margins_B


def pack(tokens_BN: np.ndarray, vocabulary: int) -> np.ndarray:
    """Rows of N tokens as uint64 numbers in base V, first token first: one number a row, no other.

    So numbers order as rows do, and a number over V^j (rounded down) is the row without its last j.

    Raises:
      ValueError: V^N > 2^64: numbers would not tell all rows apart.
    """
    longest = longest_row(vocabulary)
    N = tokens_BN.shape[1]
    require(longest >= N, "length", N, f"at most {longest} tokens, as V^n must fit into 64 bits")
    key_B = np.zeros(len(tokens_BN), np.uint64)
    for place in range(N):
        key_B = key_B * np.uint64(vocabulary) + tokens_BN[:, place].astype(np.uint64)
    return key_B


def longest_row(vocabulary: int) -> int:
    """The most tokens of which every row has its own 64-bit number: greatest n with V^n <= 2^64."""
    require(2 <= vocabulary <= 256, "vocab_size", vocabulary, "an integer in [2, 256]")
    length = 0
    while vocabulary ** (length + 1) <= 1 << 64:
        length += 1
    return length
