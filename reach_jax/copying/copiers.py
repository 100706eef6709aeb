"""Who says the next symbol: a model with its cache, an oracle, a guesser; and greedy decoding.

Every row is decoded from its own first symbol on, so rows of a batch may differ in length without
any padding being read. Not here: questions and scores (`evaluate`).
"""

import functools
from collections.abc import Callable
from typing import Any, Protocol

import jax
import jax.numpy as jnp

from reach_jax.copying import task
from reach_jax.models import decoder, kinds
from reach_jax.models.config import Params
from reach_jax.ops import readout

Step = Callable[[Any, jax.Array, jax.Array], tuple[jax.Array, Any]]


class Copier(Protocol):
    """Anything that says the next symbol; what is evaluated."""

    def start(self, slots: int) -> Any:
        """The state before the first symbol; good for `slots` of them."""

    def step(self, state: Any, token: jax.Array, place: jax.Array) -> tuple[jax.Array, Any]:
        """Logits (V,) of the symbol behind `token`, which stands at `place`; the state after."""


def greedy(
    step: Step, state: Any, prompt_S: jax.Array, given: jax.Array, places: jax.Array, slots: int
) -> jax.Array:
    """What is emitted behind each of the first `places` symbols, (slots,); PAD behind the others.

    The symbols are the prompt's, then those emitted. The first of the answer is emitted behind
    symbol `given - 1`. Ties go to the lowest id.
    """
    padded_S = jnp.pad(prompt_S, (0, slots - prompt_S.shape[0]))

    def body(place: jax.Array, carry: tuple[Any, jax.Array]) -> tuple[Any, jax.Array]:
        state, out_S = carry
        last = out_S[jnp.maximum(place - 1, 0)]
        logits_V, state = step(state, jnp.where(place < given, padded_S[place], last), place)
        return state, out_S.at[place].set(jnp.argmax(logits_V).astype(jnp.int32))

    out_S = jnp.full(slots, task.PAD, jnp.int32)
    # The bound is no constant, so that a bucket costs what its batch needs.
    return jax.lax.fori_loop(jnp.int32(0), places, body, (state, out_S))[1]


class ModelCopier:
    """A model of `reach_jax.models`, with its cache."""

    def __init__(
        self, config: kinds.Config, params: Params, rules: decoder.Rules | None = None
    ) -> None:
        """Takes parameters, and a decoder's positions where the configuration does not say them."""
        self._config, self._variables = config, {"params": params}
        self._named = {} if rules is None else {"rules": rules}

    def start(self, slots: int) -> Any:
        """An empty cache."""
        return kinds.empty_cache(self._config, slots)

    def step(self, state: Any, token: jax.Array, place: jax.Array) -> tuple[jax.Array, Any]:
        """One symbol through the model."""
        apply = functools.partial(kinds.module(self._config).apply, self._variables)
        input_D = apply(token[None], method="embed")[0]
        state_D, state = apply(input_D, place, state, method="step", **self._named)
        return readout.logits(state_D[None], apply(method="head"))[0], state


class Oracle:
    """Copies without fault, whatever the length: what the evaluation must give 1.0."""

    def start(self, slots: int) -> Any:
        """No symbol seen; begin and separator not found."""
        return jnp.full(slots, task.PAD, jnp.int32), jnp.int32(0), jnp.int32(-1)

    def step(self, state: Any, token: jax.Array, place: jax.Array) -> tuple[jax.Array, Any]:
        """The letter as far behind the last begin as this place is behind the last separator."""
        seen_S, begin, separator = state
        seen_S = seen_S.at[place].set(token)
        begin = jnp.where(token == task.BEGIN, place, begin)
        separator = jnp.where(token == task.SEPARATOR, place, separator)
        source = seen_S[begin + 1 + place - separator]
        said = jnp.where(source == task.SEPARATOR, task.END, source)
        return jax.nn.one_hot(said, task.VOCABULARY), (seen_S, begin, separator)


class Guesser:
    """Says a uniformly random symbol, whatever was given."""

    def __init__(self, key: jax.Array) -> None:
        """Takes the key that decides all guesses."""
        self._key = key

    def start(self, slots: int) -> Any:
        """A sum over what was seen, so that rows guess apart."""
        return jnp.uint32(0)

    def step(self, state: Any, token: jax.Array, place: jax.Array) -> tuple[jax.Array, Any]:
        """Logits without meaning."""
        state = state * jnp.uint32(31) + token.astype(jnp.uint32)
        key = jax.random.fold_in(jax.random.fold_in(self._key, state), place)
        return jax.random.uniform(key, (task.VOCABULARY,)), state


def emitted(
    copier: Copier, prompt_BS: jax.Array, given_B: jax.Array, places: jax.Array, slots: int
) -> jax.Array:
    """`greedy` for every row, (B, slots); `places` is the same for all. The caller jits it."""

    def one(prompt_S: jax.Array, given: jax.Array) -> jax.Array:
        return greedy(copier.step, copier.start(slots), prompt_S, given, places, slots)

    return jax.vmap(one)(prompt_BS, given_B)


@functools.partial(jax.jit, static_argnames=("config", "slots"))
def model_emitted(
    config: kinds.Config,
    params: Params,
    rules: decoder.Rules | None,
    prompt_BS: jax.Array,
    given_B: jax.Array,
    places: jax.Array,
    slots: int,
) -> jax.Array:
    """`emitted` of a model."""
    return emitted(ModelCopier(config, params, rules), prompt_BS, given_B, places, slots)


@functools.partial(jax.jit, static_argnames="config")
def memory_after(config: kinds.Config, params: Params, token_BS: jax.Array) -> jax.Array:
    """What a recurrent model keeps of each row, all its numbers in one line: (B, numbers)."""
    copier = ModelCopier(config, params)

    def one(token_S: jax.Array) -> jax.Array:
        S = token_S.shape[0]

        def body(state: Any, item: tuple[jax.Array, jax.Array]) -> tuple[Any, None]:
            return copier.step(state, *item)[1], None

        state = jax.lax.scan(body, copier.start(S), (token_S, jnp.arange(S)))[0]
        return jnp.concatenate([leaf.ravel() for leaf in jax.tree.leaves(state)])

    return jax.vmap(one)(token_BS)
