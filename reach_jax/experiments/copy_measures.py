"""What a cell of copying is asked, what is counted of it, and what it costs."""

import dataclasses
import functools
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from reach_jax.bounds import floats
from reach_jax.copying import copiers, evaluate, task
from reach_jax.copying.train import Learner
from reach_jax.experiments.copy_settings import Settings
from reach_jax.models import kinds
from reach_jax.models.config import Params

_TEST, _BEFORE = 0xC1, 0xC2  # strings, the same for every cell


@dataclasses.dataclass(frozen=True)
class Subject:
    """What the cells of a pool begin with."""

    model: kinds.Config
    params: Params | None  # None: fresh ones from the cell's key
    card: Mapping[str, Any]


def asked(s: Settings) -> evaluate.Batch:
    """Every test question: by examples before it, length, string; the same for all variants."""
    e, batches = s.evaluation, []
    for before in e.before:
        front_BS = np.zeros((e.strings, 0), np.int32)
        rng = np.random.default_rng([s.seed, _BEFORE, before, s.task.longest])
        for _ in range(before):
            example_BS = task.examples(task.strings(rng, e.strings, s.task.longest))
            front_BS = np.concatenate([front_BS, example_BS], axis=1)
        for length in e.lengths:
            rng = np.random.default_rng([s.seed, _TEST, length])
            batches.append(evaluate.questions(task.strings(rng, e.strings, length), front_BS))
    return evaluate.joined(batches)


def measure(
    s: Settings, subject: Subject, learner: Learner, rows: int
) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """What the best parameters copy, and how the training went."""
    e, rules = s.evaluation, s.rules
    run = functools.partial(copiers.model_emitted, subject.model, learner.best, rules)
    scores = evaluate.evaluate(run, asked(s), rows)
    shape = (len(e.before), len(e.lengths), e.strings)
    copied_PNK, right_PNK, size_PNK = (part.reshape(shape) for part in scores)
    inside = [length <= s.task.longest for length in e.lengths]
    share = float(copied_PNK[0][inside].mean())
    metrics: dict[str, Any] = {
        "steps": int(learner.step),
        "best_step": int(learner.best_step),
        "loss": float(learner.best_loss),
        "check": float(learner.best_exact),
        "inside": share,
        "undertrained": share < e.learnt,
        "parameters": sum(leaf.size for leaf in jax.tree.leaves(learner.best)),
        "lengths": list(e.lengths),
        "before": list(e.before),
        "copied": copied_PNK.sum(axis=2),
        "right": right_PNK.sum(axis=2),
        "symbols": size_PNK.sum(axis=2),
        "strings": e.strings,
        **subject.card,
    }
    if kinds.memory_size(subject.model) is not None:
        metrics |= _memory(s, subject.model, learner.best)
    return metrics, {"copied_PNK": copied_PNK}


def _memory(s: Settings, model: kinds.Config, params: Params) -> dict[str, Any]:
    """Letters that a fixed memory can tell apart, by counting its values; nothing is rounded."""
    e = s.evaluation
    rng = np.random.default_rng([s.seed, _TEST, e.lengths[-1]])
    batch = evaluate.questions(task.strings(rng, e.strings, e.lengths[-1]))
    after_BE = np.asarray(copiers.memory_after(model, params, jnp.asarray(batch.prompt_BS)))
    ends = (after_BE.min(axis=0), after_BE.max(axis=0))
    grid = floats.float_grid_slope(*ends, task.LETTERS, "float32")
    numbers = after_BE.shape[1]
    return {
        "memory_numbers": numbers,
        "memory_largest": float(np.abs(after_BE).max()),
        "memory_bits_letters": float(floats.trivial_slope(numbers, task.LETTERS, "float32")),
        "memory_grid_letters": float(grid),
    }


def cost(s: Settings, model: kinds.Config, rows: int) -> dict[str, Any]:
    """Parameters, FLOPs of all steps (forward 1, backward 2) and of the evaluation, its caches."""
    if s.choice is not None:
        model = dataclasses.replace(model, vocab_size=task.VOCABULARY)
    shapes = jax.eval_shape(lambda: kinds.init(model, jax.random.key(0)))
    slots = evaluate.bucket(s.most_symbols)
    caches = jax.eval_shape(lambda: kinds.empty_cache(model, slots))
    token = model.flops_per_token + 2 * model.width * task.VOCABULARY
    T, e = s.task.context, s.evaluation
    trained = s.training.steps * s.training.batch * T * (token + model.mixing_flops(T // 2))
    # A step of decoding looks at all slots of its bucket.
    front = [before * task.size(s.task.longest) for before in e.before]
    slots_Q = [evaluate.bucket(f + task.size(n)) for f in front for n in e.lengths]
    decoded = e.strings * sum(S * (token + model.mixing_flops(S)) for S in slots_Q)
    return {
        "parameters": sum(leaf.size for leaf in jax.tree.leaves(shapes)),
        "TFLOP_at_most": round(3 * trained / 1e12, 3),
        "evaluation_TFLOP_at_most": round(decoded / 1e12, 3),
        "caches_MB": round(
            rows * sum(x.size * x.dtype.itemsize for x in jax.tree.leaves(caches)) / 1e6, 1
        ),
    }
