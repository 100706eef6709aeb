"""One short language-model training run: AdamW, warm-up and cosine, scanned in chunks.

Each chunk of steps is one jitted scan; between chunks the host saves the whole state, so a killed
run loses at most one chunk and continues bit for bit. Not a trainer for large models: one device,
data in memory.
"""

import dataclasses
import functools
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from reach_jax.models import kinds
from reach_jax.models.config import Params
from reach_jax.ops import optimizers, readout
from reach_jax.pretrain.corpus import BEGIN_ID
from sweep_jax import progress
from sweep_jax.checkpoint import Checkpoints
from sweep_jax.checks import require
from sweep_jax.stop import Stop, Stopped


@dataclasses.dataclass(frozen=True)
class TrainingConfig:
    """Length, batch and optimiser of the run."""

    steps: int
    batch: int  # rows a step
    length: int  # tokens a row, the begin token included
    rate: float  # peak learning rate
    warmup: int  # steps
    weight_decay: float
    chunk: int  # steps between checkpoints
    max_loss: float  # nats a token on held-out text; a worse model is refused

    def __post_init__(self) -> None:
        for name in ("steps", "batch", "chunk"):
            require(getattr(self, name) >= 1, name, getattr(self, name), "an integer >= 1")
        require(self.length >= 2, "length", self.length, "an integer >= 2")
        require(self.rate > 0, "rate", self.rate, "a number > 0")
        require(
            0 <= self.warmup < self.steps, "warmup", self.warmup, f"in [0, steps = {self.steps})"
        )
        require(self.max_loss > 0, "max_loss", self.max_loss, "a number > 0")
        require(self.weight_decay >= 0, "weight_decay", self.weight_decay, "a number >= 0")


class TrainState(NamedTuple):
    """All that a run continues from."""

    step: jax.Array
    params: Params
    opt: optax.OptState


def optimizer(config: TrainingConfig) -> optax.GradientTransformation:
    """AdamW with warm-up and cosine decay to a tenth, gradients clipped at norm 1."""
    schedule = optax.warmup_cosine_decay_schedule(
        0.0, config.rate, config.warmup, config.steps, config.rate / 10
    )
    adamw = optax.adamw(schedule, b1=0.9, b2=0.95, weight_decay=config.weight_decay)
    return optimizers.relaxed(optax.chain(optax.clip_by_global_norm(1.0), adamw))


def rows(stream_S: jax.Array, starts_B: jax.Array, length: int) -> jax.Array:
    """`length` tokens from each start, the first replaced by the begin token: (B, length)."""
    index_BT = starts_B[:, None] + jnp.arange(length)[None, :]
    return stream_S[index_BT].at[:, 0].set(BEGIN_ID)


def mean_loss(config: kinds.Config, params: Params, tokens_BT: jax.Array) -> jax.Array:
    """Cross entropy in nats a token, each row's tokens 1.. predicted from those before."""
    model = kinds.module(config)

    def one(tokens_T: jax.Array) -> jax.Array:
        T = tokens_T.shape[0] - 1
        variables = {"params": params}
        inputs_TD = model.apply(variables, tokens_T[:-1], method="embed")
        positions_T, valid_T = jnp.arange(T), jnp.ones(T, bool)
        hidden_TD = model.apply(variables, inputs_TD, positions_T, valid_T, method="hidden")
        head_VD = model.apply(variables, method="head")
        return jnp.mean(readout.score(hidden_TD, head_VD, tokens_T[1:], chunk=T).nll)

    return jnp.mean(jax.vmap(one)(tokens_BT))


@functools.partial(jax.jit, static_argnames=("model", "training", "steps"), donate_argnums=0)
def _advance(
    state: TrainState,
    stream_S: jax.Array,
    key: jax.Array,
    model: kinds.Config,
    training: TrainingConfig,
    steps: int,
) -> tuple[TrainState, jax.Array]:
    update = optimizer(training).update

    def body(state: TrainState, _: None) -> tuple[TrainState, jax.Array]:
        last = stream_S.shape[0] - training.length + 1
        step_key = jax.random.fold_in(key, state.step)
        starts_B = jax.random.randint(step_key, (training.batch,), 0, last)
        batch_BT = rows(stream_S, starts_B, training.length)
        loss, grads = jax.value_and_grad(functools.partial(mean_loss, model))(
            state.params, batch_BT
        )
        updates, opt = update(grads, state.opt, state.params)
        return TrainState(state.step + 1, optax.apply_updates(state.params, updates), opt), loss

    return jax.lax.scan(body, state, length=steps)


_evaluate = jax.jit(mean_loss, static_argnums=0)


def heldout_loss(model: kinds.Config, params: Params, stream_S: np.ndarray, length: int) -> float:
    """Mean loss in nats a token over consecutive whole rows of held-out text.

    Raises:
      ValueError: the text is shorter than one row.
    """
    size = len(stream_S)
    require(size >= length, "training.length", length, f"at most the {size} tokens held out")
    starts = np.arange(0, size - length + 1, length)
    batches = np.array_split(starts, max(1, len(starts) // 32))
    total = 0.0
    for part in batches:
        tokens_BT = rows(jnp.asarray(stream_S), jnp.asarray(part), length)
        total += float(_evaluate(model, params, tokens_BT)) * len(part)
    return total / len(starts)


def train(
    model: kinds.Config,
    training: TrainingConfig,
    stream_S: np.ndarray,
    key: jax.Array,
    directory: Path,
    stop: Stop,
    name: str = "the quick model",
) -> Params:
    """Trains from the newest checkpoint in `directory`, or from the start; `name` is for the bar.

    Raises:
      Stopped: a stop was asked for; the state of the last chunk is saved.
    """
    require(len(stream_S) >= training.length, "training.length", training.length, "at most the"
            f" {len(stream_S)} tokens of the corpus")  # fmt: skip
    params = kinds.init(model, jax.random.fold_in(key, 0))
    state = TrainState(jnp.int32(0), params, optimizer(training).init(params))
    checkpoints = Checkpoints(directory)
    restored = checkpoints.restore(state)
    state = state if restored is None else restored[1]
    data_key, stream = jax.random.fold_in(key, 1), jnp.asarray(stream_S)
    done = int(state.step)
    if done >= training.steps:
        return state.params
    with progress.bar(training.steps, f"training {name}", "step", initial=done) as bar:
        while done < training.steps:
            size = min(training.chunk, training.steps - done)
            state, losses = _advance(state, stream, data_key, model, training, size)
            done += size
            checkpoints.save(done, state)
            bar.update(size, loss=f"{float(losses[-1]):.3f}")
            if stop.requested and done < training.steps:
                raise Stopped(
                    f"stopped after training step {done} of {training.steps};"
                    " run the same command again to resume"
                )
    return state.params
