"""A synthetic language for models too small for text: a Markov chain over a few tokens.

Its entropy rate is known, so a loss can be judged. Not a benchmark: one chain a seed.
"""

import dataclasses
from pathlib import Path

import jax
import numpy as np

from reach_jax.models import decoder
from reach_jax.models.config import DecoderConfig
from reach_jax.pretrain import train
from sweep_jax.cells import hash_name
from sweep_jax.checks import require
from sweep_jax.lock import held
from sweep_jax.stop import Stop

_KEY = 0x4D


@dataclasses.dataclass(frozen=True)
class MarkovConfig:
    """The chain, and how much of it there is."""

    concentration: float  # of the Dirichlet that rows are drawn from; small is nearly deterministic
    tokens: int  # of the training stream
    heldout: int  # tokens of the stream after it

    def __post_init__(self) -> None:
        positive = 0 < self.concentration < np.inf
        require(positive, "concentration", self.concentration, "a finite number > 0")
        for name in ("tokens", "heldout"):
            require(getattr(self, name) >= 2, name, getattr(self, name), "an integer >= 2")


def transition(config: MarkovConfig, vocabulary: int, seed: int) -> np.ndarray:
    """Probabilities (V, V) of the next token given this one; every row is Dirichlet, all > 0."""
    require(vocabulary >= 2, "vocabulary", vocabulary, "an integer >= 2")
    rng = np.random.default_rng([seed, _KEY, vocabulary])
    rows_VV = rng.dirichlet(np.full(vocabulary, config.concentration), size=vocabulary)
    rows_VV = 0.99 * rows_VV + 0.01 / vocabulary  # no token is cut off
    return rows_VV / rows_VV.sum(axis=1, keepdims=True)


def streams(config: MarkovConfig, vocabulary: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Training and held-out tokens, int32; two parts of one walk from token 0."""
    edges_VV = np.cumsum(transition(config, vocabulary, seed), axis=1)
    draws = np.random.default_rng([seed, _KEY]).random(config.tokens + config.heldout)
    tokens, state = np.zeros(len(draws), np.int32), 0
    for place, draw in enumerate(draws):
        tokens[place] = state
        state = min(int(np.searchsorted(edges_VV[state], draw, side="right")), vocabulary - 1)
    return tokens[: config.tokens], tokens[config.tokens :]


def entropy_rate(transition_VV: np.ndarray) -> float:
    """Nats a token: the least mean cross entropy that any model of the chain can reach."""
    V = len(transition_VV)
    system = np.concatenate([transition_VV.T - np.eye(V), np.ones((1, V))])
    stationary_V = np.linalg.lstsq(system, np.concatenate([np.zeros(V), [1.0]]))[0]
    logs_VV = np.log(transition_VV)
    return float(-(stationary_V[:, None] * transition_VV * logs_VV).sum())


@dataclasses.dataclass(frozen=True)
class MarkovModel:
    """A decoder trained on one chain, and how well it learnt it.

    Attributes:
      params: of the decoder.
      loss: nats a token on held-out text.
      entropy_rate: nats a token, the least possible loss.
    """

    params: decoder.Params
    loss: float
    entropy_rate: float


def load_or_train(
    language: MarkovConfig,
    model: DecoderConfig,
    training: train.TrainingConfig,
    seed: int,
    root: Path,
    stop: Stop,
) -> MarkovModel:
    """The model under `root`, trained first (or on) if its last checkpoint is not there.

    Raises:
      Stopped: a stop was asked for while training; the last chunk is saved.
      RuntimeError: the held-out loss is not within `training.max_loss`.
    """
    parts = [dataclasses.asdict(part) for part in (language, model, training)]
    directory = root / hash_name({"parts": parts, "seed": seed})
    stream_S, heldout_S = streams(language, model.vocab_size, seed)
    key = jax.random.fold_in(jax.random.key(seed), _KEY)
    what = f"on a chain of {model.vocab_size} tokens (d = {model.width}, seed {seed})"
    with held(directory):
        params = train.train(model, training, stream_S, key, directory, stop, what)
    loss = train.heldout_loss(model, params, heldout_S, training.length)
    if not loss <= training.max_loss:  # NaN is refused too
        raise RuntimeError(
            f"training.max_loss = {training.max_loss}: the model reached {loss:.3f} nats a token;"
            " train longer or allow more"
        )
    rate = entropy_rate(transition(language, model.vocab_size, seed))
    return MarkovModel(params, loss, rate)
