"""Networks of one shape trained in one program: any head counts, seeds and learning rates.

Head masks make all head counts one shape. A chunk of steps is a scan inside one jit; runs are
batched by `vmap` or `lax.map`, and cut over devices by `shard_map`, as no run talks to another.
Inputs are drawn inside, from the run's own key and its step: what a run does depends neither on the
others nor on the chunk. The host's loop is `fit`.
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax import flatten_util
from jax.sharding import Mesh, PartitionSpec

from infoflow_jax.networks import batched, transformer
from infoflow_jax.networks.config import NetworkConfig, Params
from infoflow_jax.tasks.task import Scale, TaskConfig, inputs, values
from infoflow_jax.training.settings import TrainingConfig
from reach_jax.ops import optimizers
from sweep_jax import mesh as meshes

GOOD = -1  # `diverged` of a run that has not


class Run(NamedTuple):
    """What tells one run from another; stacked over runs, axis R."""

    key: jax.Array  # key data
    mask_LH: jax.Array  # heads that it has
    rate: jax.Array  # peak learning rate


class State(NamedTuple):
    """All that a run continues from."""

    step: jax.Array
    params: Params
    opt: Any
    diverged: jax.Array  # the step whose loss or gradient was not finite, or GOOD; it stands still


@dataclass(frozen=True)
class Ensemble:
    """What all runs of a program share."""

    network: NetworkConfig
    task: TaskConfig
    scale: Scale
    training: TrainingConfig
    batching: str  # vmap or map
    mesh: Mesh | None = None  # devices, whose number divides that of the runs; None is one


def _over_runs(shared: Ensemble, one: Callable[..., Any]) -> Callable[..., Any]:
    """`one(stacked item, ..., common)` over runs and devices; the last argument is not stacked."""

    def many(*args: Any) -> Any:
        *stacked, common = args
        if shared.batching == "vmap":
            return jax.vmap(lambda item: one(*item, common))(tuple(stacked))
        return jax.lax.map(lambda item: one(*item, common), tuple(stacked))

    if shared.mesh is None:
        return many
    rows, copied = PartitionSpec(meshes.AXIS), PartitionSpec()

    def split(*args: Any) -> Any:
        specs = (*([rows] * (len(args) - 1)), copied)
        return jax.shard_map(
            many, mesh=shared.mesh, in_specs=specs, out_specs=rows, check_vma=False
        )(*args)

    return split


def _flat(shared: Ensemble, params: Params) -> tuple[Any, Callable[[Any], Params]]:
    """The parameters as the optimiser gets them, and the way back.

    One vector where that changes nothing: on a CPU, Adam over many small leaves takes as long as
    the gradient.
    """
    if shared.training.elementwise:
        return flatten_util.ravel_pytree(params)
    return params, lambda params: params


def _optimiser(shared: Ensemble) -> optax.GradientTransformation:
    return optimizers.relaxed(shared.training.optimiser())


# Run once: compiled in a third of the time without optimisation.
@functools.partial(
    jax.jit,
    static_argnames="shared",
    compiler_options={"xla_backend_optimization_level": 0},
)
def start(shared: Ensemble, runs_R: Run) -> State:
    """Every run before its first step."""

    def one(run: Run, _: None) -> State:
        key = jax.random.fold_in(jax.random.wrap_key_data(run.key), 0)
        drawn = transformer.init(shared.network, key)
        params = jax.tree.map(lambda leaf: shared.training.gain * leaf, drawn)
        opt = _optimiser(shared).init(_flat(shared, params)[0])
        return State(jnp.int32(0), params, opt, jnp.int32(GOOD))

    return _over_runs(shared, one)(runs_R, None)


def loss(
    shared: Ensemble, params: Params, mask_LH: jax.Array, x_BTD: jax.Array, y_BO: jax.Array
) -> jax.Array:
    """Mean squared error in standardised units."""
    if shared.batching == "map":
        found_BO = batched.apply(shared.network, params, x_BTD, mask_LH)
    else:
        one = functools.partial(transformer.apply, shared.network, params, mask_LH=mask_LH)
        found_BO = jax.vmap(one)(x_BTD)
    return jnp.mean((found_BO - (y_BO - shared.scale.mean) / shared.scale.deviation) ** 2)


@functools.partial(
    jax.jit, static_argnames=("shared", "tokens", "steps"), donate_argnames="states_R"
)
def advance(
    shared: Ensemble, states_R: State, runs_R: Run, tokens: int, steps: int
) -> tuple[State, jax.Array]:
    """`steps` steps of every run at T = `tokens`; also the loss of the last step, (R,)."""
    update = _optimiser(shared).update
    share = shared.training.rate_share()
    dtype = shared.network.dtype

    def step(run: Run, back: Callable[[Any], Params], state: State) -> tuple[State, jax.Array]:
        data = jax.random.fold_in(jax.random.wrap_key_data(run.key), 1)
        key = jax.random.fold_in(data, state.step)
        x_BTD = inputs(shared.task, key, (shared.training.batch, tokens), dtype)
        y_BO = values(shared.task, x_BTD)
        value, grads = jax.value_and_grad(
            lambda params: loss(shared, back(params), run.mask_LH, x_BTD, y_BO)
        )(state.params)
        with jax.numpy_dtype_promotion("standard"):
            rate = (run.rate * share(state.step)).astype(dtype)
        updates, opt = update(grads, state.opt, state.params)
        params = jax.tree.map(lambda p, u: p + rate * u, state.params, updates)
        sound = jnp.stack([jnp.isfinite(leaf).all() for leaf in jax.tree.leaves((value, grads))])
        good = (state.diverged == GOOD) & sound.all()
        kept, opt = jax.tree.map(
            lambda new, old: jnp.where(good, new, old), (params, opt), (state.params, state.opt)
        )
        at = jnp.where(good | (state.diverged != GOOD), state.diverged, state.step)
        return State(state.step + 1, kept, opt, at), value

    def one(state: State, run: Run, _: None) -> tuple[State, jax.Array]:
        params, back = _flat(shared, state.params)
        state = state._replace(params=params)
        state, losses = jax.lax.scan(lambda s, _: step(run, back, s), state, length=steps)
        return state._replace(params=back(state.params)), losses[-1]

    return _over_runs(shared, one)(states_R, runs_R, None)


@functools.partial(jax.jit, static_argnames="shared")
def outputs(shared: Ensemble, params_R: Params, runs_R: Run, x_NTD: jax.Array) -> jax.Array:
    """What every run gives for the sequences, in the target's units: (R, N, O)."""

    def one(params: Params, run: Run, x_NTD: jax.Array) -> jax.Array:
        def single(x_TD: jax.Array) -> jax.Array:
            return transformer.apply(shared.network, params, x_TD, run.mask_LH)

        return jax.lax.map(single, x_NTD, batch_size=32)

    found_RNO = _over_runs(shared, one)(params_R, runs_R, x_NTD)
    return shared.scale.mean + shared.scale.deviation * found_RNO
