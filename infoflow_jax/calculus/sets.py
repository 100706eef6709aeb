"""Information sets I(t, l): which input positions the state at position t can give after l layers.

I(t, 0) = {t}; c0, the last position, starts empty. A layer is a relation: `seen`, the keys that any
of its heads shows to a query. With residuals I(t, l+1) = I(t, l) u U_{s in seen(t)} I(s, l),
without them the union alone (arXiv 2605.17930; the union form is this project's). Sets are bits:
position p is bit p % 32 of the word p // 32, axis W, so 65 positions are 3 words, not 65 bytes.
What a head shows is the matter of `modes`.
"""

import functools

import jax
import jax.numpy as jnp

from sweep_jax.checks import require

WORD = 32


def words(positions: int) -> int:
    """W, the words that hold sets of P positions.

    Raises:
      ValueError: no position.
    """
    require(positions >= 1, "positions", positions, "an integer >= 1")
    return -(-positions // WORD)


def pack(member_P: jax.Array) -> jax.Array:
    """Boolean membership [..., P] to words [..., W], uint32; bits beyond P are 0."""
    positions = member_P.shape[-1]
    spare = words(positions) * WORD - positions
    padded = jnp.pad(member_P.astype(jnp.uint32), [(0, 0)] * (member_P.ndim - 1) + [(0, spare)])
    bits = padded.reshape(*member_P.shape[:-1], words(positions), WORD)
    place = jax.lax.broadcasted_iota(jnp.uint32, bits.shape, bits.ndim - 1)
    return jnp.sum(bits << place, axis=-1, dtype=jnp.uint32)


def unpack(set_W: jax.Array, positions: int) -> jax.Array:
    """Words [..., W] to boolean membership [..., P]."""
    shape = (*set_W.shape, WORD)
    place = jax.lax.broadcasted_iota(jnp.uint32, shape, len(shape) - 1)
    bits = (jnp.broadcast_to(set_W[..., None], shape) >> place) & jnp.uint32(1)
    return bits.reshape(*set_W.shape[:-1], -1)[..., :positions].astype(bool)


def start(tokens: int) -> jax.Array:
    """I(., 0) of T tokens and c0, [T + 1, W]: every token knows itself, c0 nothing."""
    return pack(jnp.eye(tokens + 1, dtype=bool).at[tokens, tokens].set(False))


def union(pick_PK: jax.Array, known_KW: jax.Array) -> jax.Array:
    """U_{k picked by p} known(k): picks [P, K] of sets [K, W] give [P, W]."""
    chosen_PKW = jnp.where(pick_PK[:, :, None], known_KW[None], jnp.uint32(0))
    return jax.lax.reduce(chosen_PKW, jnp.uint32(0), jax.lax.bitwise_or, (1,))


def update(known_PW: jax.Array, seen_PW: jax.Array, residual: bool = True) -> jax.Array:
    """One layer: what each position knows after it, [P, W].

    Args:
      known_PW: I(., l).
      seen_PW: the keys that the layer's heads show to each query, together.
      residual: whether a position keeps what it knew.
    """
    gain_PW = union(unpack(seen_PW, known_PW.shape[0]), known_PW)
    return known_PW | gain_PW if residual else gain_PW


@functools.partial(jax.jit, static_argnames="residual")
def propagate(seen_LPW: jax.Array, residual: bool = True) -> jax.Array:
    """I(., 0..L) for L layers, [L + 1, P, W]."""
    first_PW = start(seen_LPW.shape[1] - 1)

    def layer(known_PW: jax.Array, seen_PW: jax.Array) -> tuple[jax.Array, jax.Array]:
        known_PW = update(known_PW, seen_PW, residual)
        return known_PW, known_PW

    _, rest_LPW = jax.lax.scan(layer, first_PW, seen_LPW)
    return jnp.concatenate([first_PW[None], rest_LPW])


@jax.jit
def covered(
    tables_QPWI: jax.Array, tokens_ALH: jax.Array, c0_ALH: jax.Array, needed_WI: jax.Array
) -> jax.Array:
    """Whether c0 ends up knowing `needed`, for every architecture and input: [A, I], bool.

    An architecture says which table each head follows, apart for token queries and for c0's.
    I(c0, L) is found from its end: the positions that matter after layer l are those that matter
    after l + 1 and those that they see, so no set of a token is ever made. Inputs are the minor
    axis, and one architecture is at work at a time, so nothing grows with A x I x T.

    Args:
      tables_QPWI: Q tables of seen keys, by query and input; table 0 must be empty (a head that
        is off). The last query is c0.
      tokens_ALH, c0_ALH: table of each head, int32 in [0, Q).
      needed_WI: the positions that c0 must know, by input.
    """
    tokens = tables_QPWI.shape[1] - 1
    layers = tokens_ALH.shape[1]
    c0 = jnp.zeros(needed_WI.shape, jnp.uint32)
    c0 = c0.at[tokens // WORD].set(jnp.uint32(1) << jnp.uint32(tokens % WORD))

    def one(choice: tuple[jax.Array, jax.Array]) -> jax.Array:
        tokens_LH, c0_LH = choice
        live_WI = c0
        for layer in reversed(range(layers)):
            gain_WI = jnp.zeros_like(live_WI)
            for head in range(tokens_LH.shape[1]):
                gain_WI |= tables_QPWI[c0_LH[layer, head], tokens]
                if layer < layers - 1:  # after the last layer nothing but c0 is live
                    table_TWI = tables_QPWI[tokens_LH[layer, head], :tokens]
                    gain_WI |= _seen_by(live_WI, table_TWI)
            live_WI |= gain_WI
        return jnp.all((live_WI & needed_WI) == needed_WI, axis=0)

    return jax.lax.map(one, (tokens_ALH, c0_ALH))


def _seen_by(live_WI: jax.Array, table_TWI: jax.Array) -> jax.Array:
    """U_{t live} table(t), [W, I]; t runs outside, so that one pass over the table is made."""
    tokens = table_TWI.shape[0]
    row_T = [live_WI[t // WORD] >> jnp.uint32(t % WORD) for t in range(tokens)]
    keep_TI = jnp.uint32(0) - (jnp.stack(row_T) & jnp.uint32(1))  # all ones where t is live
    return jax.lax.reduce(keep_TI[:, None, :] & table_TWI, jnp.uint32(0), jax.lax.bitwise_or, (0,))
