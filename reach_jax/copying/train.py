"""One model learning to copy: its state, a chunk of steps, and the check that ends it early.

Everything is of one lane; `copying.program` maps it over many. Data are made on the device from the
lane's key and the step's number, so a resumed run sees what it would have seen. Not a trainer of
language models: that is `reach_jax.pretrain`.
"""

import dataclasses
from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax

from reach_jax.copying import copiers, evaluate, task
from reach_jax.models import decoder, kinds
from reach_jax.models.config import Params
from reach_jax.ops import optimizers, readout
from sweep_jax.checks import require


@dataclasses.dataclass(frozen=True)
class TrainingConfig:
    """Optimiser, length of the run and when it may end."""

    steps: int  # at most
    batch: int  # rows a step
    rate: float  # peak learning rate
    warmup: int  # steps; then it falls in a straight line, to 0 at `steps`
    weight_decay: float
    beta2: float  # of AdamW
    clip: float  # gradients' norm
    chunk: int  # steps between two checks, which are also the checkpoints
    check: int  # strings of the training length that a check decodes
    perfect: int  # checks in a row without a fault that end the run

    def __post_init__(self) -> None:
        for name in ("steps", "batch", "chunk", "check", "perfect"):
            require(getattr(self, name) >= 1, name, getattr(self, name), "an integer >= 1")
        divides = self.steps % self.chunk == 0
        require(divides, "chunk", self.chunk, f"a divisor of steps = {self.steps}")
        for name in ("rate", "clip"):
            require(getattr(self, name) > 0, name, getattr(self, name), "a number > 0")
        expected = f"in [0, steps = {self.steps})"
        require(0 <= self.warmup < self.steps, "warmup", self.warmup, expected)
        require(self.weight_decay >= 0, "weight_decay", self.weight_decay, "a number >= 0")
        require(0 <= self.beta2 < 1, "beta2", self.beta2, "a number in [0, 1)")


class Lesson(NamedTuple):
    """What a lane learns from; never changes."""

    key: jax.Array  # raw data of the key that all rows come from
    shortest: jax.Array
    longest: jax.Array
    questions: evaluate.Batch  # decoded at every check
    rules: decoder.Rules | None  # a decoder's positions, where lanes differ in them


class Learner(NamedTuple):
    """All that a run continues from."""

    step: jax.Array
    params: Params
    opt: optax.OptState
    loss: jax.Array  # nats a symbol of the answers, mean over the last chunk
    exact: jax.Array  # share of the last check's strings that were copied
    perfect: jax.Array  # checks in a row without a fault
    best: Params  # of the check with most copied, of equals the one of least loss
    best_step: jax.Array
    best_exact: jax.Array
    best_loss: jax.Array


def optimizer(config: TrainingConfig) -> optax.GradientTransformation:
    """AdamW, linear warm-up and decay, gradients clipped by their norm."""
    rise = optax.linear_schedule(0.0, config.rate, config.warmup)
    fall = optax.linear_schedule(config.rate, 0.0, config.steps - config.warmup)
    schedule = optax.join_schedules([rise, fall], [config.warmup]) if config.warmup else fall
    adamw = optax.adamw(schedule, b1=0.9, b2=config.beta2, weight_decay=config.weight_decay)
    return optimizers.relaxed(optax.chain(optax.clip_by_global_norm(config.clip), adamw))


def start(config: TrainingConfig, params: Params) -> Learner:
    """Before the first step."""
    zero, worst = jnp.float32(0), jnp.float32(jnp.inf)
    none = jnp.int32(0)
    opt = optimizer(config).init(params)
    return Learner(none, params, opt, worst, zero, none, params, none, zero - 1, worst)


def finished(config: TrainingConfig, learner: Learner) -> jax.Array:
    """Whether the run is over: steps used up, or faultless as often as asked."""
    return (learner.step >= config.steps) | (learner.perfect >= config.perfect)


def loss(
    model: kinds.Config,
    params: Params,
    token_BT: jax.Array,
    counts_BT: jax.Array,
    rules: decoder.Rules | None,
) -> jax.Array:
    """Mean cross entropy of the symbols that count, nats.

    Args:
      model: the description.
      params: its parameters.
      token_BT: training rows.
      counts_BT: which symbols are an answer's.
      rules: positions, as in `Lesson`.
    """
    module, variables = kinds.module(model), {"params": params}
    named = {} if rules is None else {"rules": rules}

    def one(token_T: jax.Array, counts_T: jax.Array) -> jax.Array:
        T = token_T.shape[0] - 1
        inputs_TD = module.apply(variables, token_T[:-1], method="embed")
        where = (jnp.arange(T), jnp.ones(T, bool))
        hidden_TD = module.apply(variables, inputs_TD, *where, method="hidden", **named)
        head_VD = module.apply(variables, method="head")
        nll_T = readout.score(hidden_TD, head_VD, token_T[1:], chunk=T).nll
        return jnp.sum(jnp.where(counts_T[1:], nll_T, 0.0))

    # At least 1: a row so short that its only example is cut teaches nothing.
    count = jnp.maximum(jnp.sum(counts_BT[:, 1:]), 1).astype(jnp.float32)
    return jnp.sum(jax.vmap(one)(token_BT, counts_BT)) / count


def advance(
    model: kinds.Config, config: TrainingConfig, context: int, learner: Learner, lesson: Lesson
) -> Learner:
    """A chunk of steps, then a check. A finished run stays as it is.

    Args:
      model: the description.
      config: the optimiser's.
      context: symbols of a training row.
      learner: the state.
      lesson: the data.
    """
    update = optimizer(config).update
    key = jax.random.wrap_key_data(lesson.key)

    def body(
        carry: tuple[jax.Array, Params, optax.OptState], _: None
    ) -> tuple[tuple[jax.Array, Params, optax.OptState], jax.Array]:
        step, params, opt = carry
        ends = (lesson.shortest, lesson.longest)
        batch = task.rows(jax.random.fold_in(key, step), config.batch, *ends, context)
        value, grads = jax.value_and_grad(lambda p: loss(model, p, *batch, lesson.rules))(params)
        updates, opt = update(grads, opt, params)
        return (step + 1, optax.apply_updates(params, updates), opt), value

    begin = (learner.step, learner.params, learner.opt)
    (step, params, opt), losses = jax.lax.scan(body, begin, length=config.chunk)
    mean, exact = jnp.mean(losses), share_copied(model, params, lesson)
    faultless = exact >= 1
    better = (exact > learner.best_exact) | (
        (exact == learner.best_exact) & (mean < learner.best_loss)
    )

    def pick(new: jax.Array, old: jax.Array) -> jax.Array:
        return jnp.where(better, new, old)

    after = Learner(
        step,
        params,
        opt,
        mean,
        exact,
        jnp.where(faultless, learner.perfect + 1, 0),
        jax.tree.map(pick, params, learner.best),
        pick(step, learner.best_step),
        pick(exact, learner.best_exact),
        pick(mean, learner.best_loss),
    )
    over = finished(config, learner)
    return jax.tree.map(lambda new, old: jnp.where(over, old, new), after, learner)


def share_copied(model: kinds.Config, params: Params, lesson: Lesson) -> jax.Array:
    """Share of the lesson's questions that are answered without a fault."""
    batch = lesson.questions
    prompt_BS, given_B = jnp.asarray(batch.prompt_BS), jnp.asarray(batch.given_B)
    slots = batch.prompt_BS.shape[1] + batch.answer_BS.shape[1]
    copier = copiers.ModelCopier(model, params, lesson.rules)
    out_BS = copiers.emitted(copier, prompt_BS, given_B, jnp.int32(slots), slots)
    return jnp.mean(evaluate.score(out_BS, batch)[0].astype(jnp.float32))
