"""The host's loop over an ensemble: chunk, validate, save, until all stages are done.

A checkpoint holds the runs without padding, so it can be resumed on another number of devices.
"""

import dataclasses
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from infoflow_jax.networks.config import Params
from infoflow_jax.tasks.task import fixed, nmse
from infoflow_jax.training.ensemble import GOOD, Ensemble, Run, State, advance, outputs, start
from sweep_jax import mesh as meshes
from sweep_jax import progress
from sweep_jax.checkpoint import Checkpoints
from sweep_jax.checks import require
from sweep_jax.stop import Stop, Stopped

_VALIDATION_KEY = 2**31 - 1  # folded into the key of the task's draw; no run has it


@dataclasses.dataclass(frozen=True)
class Evaluation:
    """The fixed data; a run is validated at the last stage's T after every chunk."""

    examples: int
    tokens: tuple[int, ...]  # at which the trained networks are measured, on other data

    def __post_init__(self) -> None:
        require(self.examples >= 2, "examples", self.examples, "an integer >= 2")
        some = len(self.tokens) >= 1 and min(self.tokens, default=0) >= 1
        require(some, "tokens", self.tokens, "at least one T")


class Fitted(NamedTuple):
    """What training came to; numpy arrays, R runs."""

    params_R: Params
    diverged_R: np.ndarray  # the step, or ensemble.GOOD
    history_CR: np.ndarray  # NMSE after each chunk
    loss_R: np.ndarray  # of the last step, in standardised units


class _Kept(NamedTuple):
    """A checkpoint."""

    states_R: State
    history_CR: np.ndarray
    loss_R: np.ndarray


def measure(shared: Ensemble, params_R: Params, runs_R: Run, x_NTD: Any, y_NO: Any) -> np.ndarray:
    """NMSE of every run on these sequences, (R,); inf where the network gives no numbers.

    Raises:
      ValueError: sequences or targets that are not finite, or targets that do not vary.
    """
    x_NTD = np.asarray(x_NTD)
    require(bool(np.isfinite(x_NTD).all()), "x_NTD", "NaN or infinity", "finite numbers")
    runs, rows = len(runs_R.rate), _rows(shared, len(runs_R.rate))
    params_R, runs_R = _placed(shared, (params_R, runs_R), rows)
    found_RNO = np.asarray(outputs(shared, params_R, runs_R, jnp.asarray(x_NTD)))[:runs]
    return np.array([nmse(found_NO, y_NO) for found_NO in found_RNO])


def fit(
    shared: Ensemble,
    runs_R: Run,
    evaluation: Evaluation,
    directory: Path | None,
    stop: Stop,
    name: str,
) -> Fitted:
    """Trains all runs, from the newest checkpoint in `directory` if there is one.

    Args:
      shared: the program's.
      runs_R: the runs, R >= 1.
      evaluation: of the validation data the number of examples is used.
      directory: of the checkpoints; None keeps none.
      stop: looked at after each chunk.
      name: for the progress bar.

    Raises:
      ValueError: no run, or a stage or length below the target's order.
      Stopped: a stop was asked for; the last chunk is saved.
    """
    training, runs = shared.training, len(runs_R.rate)
    require(runs >= 1, "runs", runs, "at least one")
    for tokens in (*training.tokens, *evaluation.tokens):
        shared.task.require_tokens("tokens", tokens)
    data = validation(shared, evaluation.examples, training.tokens[-1], 0)
    chunks = training.total // training.chunk
    rows = _rows(shared, runs)
    placed_R = _placed(shared, runs_R, rows)
    states_R = start(shared, placed_R)
    empty = (np.full((chunks, runs), np.nan), np.full(runs, np.nan))
    kept = _Kept(_cut(states_R, runs), *empty)
    checkpoints = None if directory is None else Checkpoints(directory)
    if checkpoints is not None and (restored := checkpoints.restore(kept)) is not None:
        kept = restored[1]
        states_R = _placed(shared, kept.states_R, rows)
    _, history_CR, loss_R = kept
    done = int(kept.states_R.step[0])
    before = 0
    with progress.bar(training.total * runs, name, "steps", initial=done * runs) as bar:
        for tokens, steps in training.stages:
            while done < before + steps:
                states_R, last_R = advance(shared, states_R, placed_R, tokens, training.chunk)
                loss_R = np.asarray(last_R)[:runs]
                host = _cut(states_R, runs)
                now_R = measure(shared, host.params, runs_R, *data)
                history_CR[done // training.chunk] = now_R
                done += training.chunk
                if checkpoints is not None:
                    checkpoints.save(done, _Kept(host, history_CR, np.asarray(loss_R, float)))
                good = int((host.diverged == GOOD).sum())
                bar.update(training.chunk * runs, T=tokens, least=f"{now_R.min():.1e}", good=good)
                if stop.requested and done < training.total:
                    raise Stopped(
                        f"stopped after training step {done} of {training.total};"
                        " run the same command again to resume"
                    )
            before += steps
    host = _cut(states_R, runs)
    return Fitted(host.params, host.diverged, history_CR, loss_R)


def validation(
    shared: Ensemble, examples: int, tokens: int, which: int
) -> tuple[jax.Array, jax.Array]:
    """A fixed data set of the task, another one for each `which`."""
    key = jax.random.fold_in(jax.random.key(shared.task.draw), _VALIDATION_KEY - which)
    return fixed(shared.task, key, examples, tokens, shared.network.dtype)


def _rows(shared: Ensemble, runs: int) -> int:
    """Runs with the padding that the devices ask for."""
    devices = 1 if shared.mesh is None else shared.mesh.size
    return -(-runs // devices) * devices


def _placed(shared: Ensemble, tree_R: Any, rows: int) -> Any:
    """The stacked tree on the devices; the last run is repeated up to `rows`."""

    def pad(leaf_R: Any) -> Any:
        leaf_R = np.asarray(leaf_R)
        index = np.minimum(np.arange(rows), len(leaf_R) - 1)
        return leaf_R[index]

    padded = jax.tree.map(pad, tree_R)
    sharding = None if shared.mesh is None else meshes.split(shared.mesh)
    return jax.device_put(padded, sharding)


def _cut(tree_R: Any, runs: int) -> Any:
    """The first `runs` of a stacked tree, as NumPy arrays."""
    return jax.tree.map(lambda leaf_R: np.asarray(leaf_R)[:runs], tree_R)
