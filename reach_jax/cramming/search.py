"""Where a prompt begins and how a gradient moves it. Not what the gradient is of.

L-BFGS is not offered. Its step is a line search, a number of forward passes that differs between
lanes, so that under `vmap` every lane would pay for the slowest; and its curvature is one
function's, while the loss here changes whenever a prefix grows.
"""

import jax
import jax.numpy as jnp
import optax

from reach_jax.cramming import subspace
from reach_jax.cramming.settings import CrammingConfig
from reach_jax.cramming.state import Frozen, Task
from reach_jax.models import kinds
from reach_jax.ops import optimizers
from sweep_jax.checks import BadInput


def optimizer(config: CrammingConfig) -> optax.GradientTransformation:
    """The optimiser by its name, its rate in the unit that `move` multiplies by."""
    rate = config.rate
    if config.schedule == "cosine":
        rate = optax.cosine_decay_schedule(config.rate, config.steps)
    b1, b2, decay = config.b1, config.b2, config.weight_decay
    made = {
        "adam": lambda: optax.adam(rate, b1=b1, b2=b2),
        "adamw": lambda: optax.adamw(rate, b1=b1, b2=b2, weight_decay=decay),
        "nadam": lambda: optax.nadam(rate, b1=b1, b2=b2),
        "lion": lambda: optax.lion(rate, b1=b1, b2=b2, weight_decay=decay),
        "sgd": lambda: optax.sgd(rate, momentum=b1),
    }
    return optimizers.relaxed(made[config.optimizer]())


def begin(config: CrammingConfig, prompt_MD: jax.Array) -> optax.OptState:
    """The optimiser's state before the first step."""
    M, D = prompt_MD.shape
    moved = jnp.zeros((M, config.coefficients or D), prompt_MD.dtype)
    return optimizer(config).init(moved)


def prompt(
    model: kinds.Config,
    config: CrammingConfig,
    frozen: Frozen,
    key: jax.Array,
    task: Task,
    slots: int,
) -> jax.Array:
    """The first prompt (M, D), float32; a row depends on its place from the end, not on M.

    `noise`: N(0, scale^2). `tokens`: input vectors of uniformly drawn tokens. `target`: those of
    the target's first m tokens. `states`: last-layer states at the ends of m equal pieces of the
    target, each brought to the root mean square of an input vector. All times `init_scale`.
    """
    apply = kinds.module(model).apply
    variables = {"params": frozen.params}
    places = range(slots - 1, -1, -1)  # from the end
    if config.init == "noise":
        rows = [
            jax.random.normal(jax.random.fold_in(key, place), (model.width,), jnp.float32)
            for place in places
        ]
        made_MD = frozen.scale * jnp.stack(rows)
    elif config.init == "tokens":
        tokens = model.vocab_size if frozen.tokens is None else frozen.tokens
        ids = [
            jax.random.randint(jax.random.fold_in(key, place), (), 0, tokens) for place in places
        ]
        made_MD = apply(variables, jnp.stack(ids), method="embed").astype(jnp.float32)
    else:
        number_M = jnp.maximum(jnp.arange(slots) - (slots - task.used), 0)  # 0 .. m-1 in its rows
        if config.init == "target":
            ids_M = task.target_N[jnp.minimum(number_M, task.length - 1)]
            made_MD = apply(variables, ids_M, method="embed").astype(jnp.float32)
        else:
            ends_M = jnp.maximum((number_M + 1) * task.length // task.used, 1) - 1
            made_MD = _states(model, frozen, task)[ends_M]
    return made_MD if config.init_scale == 1 else config.init_scale * made_MD


def _states(model: kinds.Config, frozen: Frozen, task: Task) -> jax.Array:
    """Last-layer states (N, D) of the target read alone, in the size of input vectors."""
    apply = kinds.module(model).apply
    variables = {"params": frozen.params}
    inputs_ND = apply(variables, task.target_N, method="embed")
    index_N = jnp.arange(len(inputs_ND))
    states_ND = apply(variables, inputs_ND, index_N, index_N < task.length, method="hidden")
    states_ND = states_ND.astype(jnp.float32)
    size_N1 = jnp.sqrt(jnp.mean(jnp.square(states_ND), axis=-1, keepdims=True))
    return frozen.scale * states_ND / jnp.maximum(size_N1, 1e-30)


def move(
    config: CrammingConfig,
    frozen: Frozen,
    key: jax.Array,
    prompt_MD: jax.Array,
    opt: optax.OptState,
    grad_MD: jax.Array,
) -> tuple[jax.Array, optax.OptState]:
    """The prompt after one step, inside `support`, and the optimiser's state.

    With `coefficients` K the optimiser sees K numbers a vector, coordinates in a random subspace
    around the first prompt, and never leaves it.
    """
    unit = frozen.scale if config.rate_unit == "embeddings" else jnp.float32(1)
    # Plain gradient descent in the prompt's own unit; the other optimisers feel no such factor.
    seen_MD = unit * grad_MD if config.optimizer == "sgd" else grad_MD
    if config.coefficients:
        M, D = prompt_MD.shape
        frames = subspace.basis(key, M, D, config.coefficients)
        updates_MK, opt = optimizer(config).update(subspace.down(frames, seen_MD), opt)
        updates_MD = subspace.up(frames, updates_MK)
    else:
        updates_MD, opt = optimizer(config).update(seen_MD, opt, prompt_MD / unit)
    return inside(config, frozen, prompt_MD + unit * updates_MD), opt


def inside(config: CrammingConfig, frozen: Frozen, prompt_MD: jax.Array) -> jax.Array:
    """The nearest prompt whose vectors all lie in the support of real input vectors."""
    if config.support == "free":
        return prompt_MD
    if frozen.limits is None:
        raise BadInput(f"support = {config.support!r}: expected a model with measured limits")
    if config.support == "box":
        return jnp.clip(prompt_MD, frozen.limits.lo_D[None], frozen.limits.hi_D[None])
    norm_M1 = jnp.sqrt(jnp.sum(jnp.square(prompt_MD), axis=-1, keepdims=True))
    return prompt_MD * jnp.minimum(1.0, frozen.limits.radius / jnp.maximum(norm_M1, 1e-30))
