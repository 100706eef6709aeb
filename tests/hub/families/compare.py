"""Compares a loaded model with what the reference said of the same files; needs no torch."""

import functools
from collections.abc import Mapping

import jax
import jax.numpy as jnp
import numpy as np

from reach_jax.hub.loader import Loaded
from reach_jax.models import kinds
from reach_jax.ops import readout


@functools.cache
def _compiled(config: kinds.Config, method: str):
    return jax.jit(functools.partial(kinds.module(config).apply, method=method))


def call(loaded: Loaded, method: str, *arguments):
    """One of the model's methods, compiled once for each config and shape."""
    return _compiled(loaded.config, method)({"params": loaded.params}, *arguments)


def plain(loaded: Loaded, inputs_TD: jax.Array, method: str = "hidden") -> jax.Array:
    """`hidden` or `states` of a sequence without padding."""
    T = inputs_TD.shape[0]
    return call(loaded, method, inputs_TD, jnp.arange(T), jnp.ones(T, bool))


def logits(loaded: Loaded, tokens_T: np.ndarray) -> np.ndarray:
    """Logits (T, V)."""
    return np.asarray(call(loaded, "__call__", jnp.asarray(tokens_T, jnp.int32)))


def errors(loaded: Loaded, want: Mapping[str, np.ndarray]) -> dict[str, float]:
    """Largest differences: absolute of logits and states, relative of the soft prompt's.

    The final state is compared after the final norm, as both sides report it.
    """
    tokens_T = jnp.asarray(want["tokens"], jnp.int32)
    embedded_TD = call(loaded, "embed", tokens_T)
    head_VD = call(loaded, "head")
    states_LTD = np.asarray(plain(loaded, embedded_TD, "states"))

    def nll(soft_MD: jax.Array) -> jax.Array:
        M = soft_MD.shape[0]
        hidden_TD = plain(loaded, jnp.concatenate([soft_MD, embedded_TD]))
        logits_TV = readout.logits(hidden_TD[M - 1 : -1], head_VD)
        rows_T = jnp.arange(tokens_T.shape[0])
        return -jnp.mean(jax.nn.log_softmax(logits_TV)[rows_T, tokens_T])

    loss, grad_MD = jax.value_and_grad(nll)(jnp.asarray(want["soft"]))
    return {
        "logits": float(np.abs(logits(loaded, want["tokens"]) - want["logits"]).max()),
        "states": float(np.abs(states_LTD - want["states"]).max()),
        "nll": float(abs(loss - want["nll"]) / want["nll"]),
        "grad": float(
            np.linalg.norm(np.asarray(grad_MD) - want["grad"]) / np.linalg.norm(want["grad"])
        ),
    }
