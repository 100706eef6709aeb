"""The published sweep over lengths: rounds in which every group of targets tries one length.

A group is a prompt length and a source. Which length it tries next depends on how many of its
targets succeeded so far (`cramming.paper`), so the lengths are no axis of the sweep: each try is a
cell of its own in a store below the workdir, and a target's result is what its tries say together.
"""

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from reach_jax.cramming import paper
from reach_jax.experiments import pools
from reach_jax.experiments.settings import assignments
from sweep_jax import lanes
from sweep_jax.cells import Cell, hash_name
from sweep_jax.experiment import Context
from sweep_jax.store import Result, Store

Group = list[Cell]


def groups(cells: Sequence[Cell]) -> list[Group]:
    """The cells by prompt length and source, in order: the unit of sharding."""
    found: dict[tuple[int, str], Group] = {}
    for cell, item in zip(cells, assignments(cells), strict=True):
        found.setdefault((item.prompt_length, item.source), []).append(cell)
    return list(found.values())


def run(
    subject: pools.Subject,
    mine: Sequence[Group],
    context: Context,
    origin: Mapping[str, Any],
    tell: Callable[[Result], None],
    say: Callable[[str], None],
) -> None:
    """Tries lengths until every group's sweep is over, and stores each target's result.

    Raises:
      Stopped: a stop was asked for; the last chunk is saved.
    """
    tries = Store(context.workdir / "tries")
    cap = min(paper.CAP, subject.settings.cramming.max_target)
    lengths: dict[int, list[int]] = {at: [] for at in range(len(mine))}
    running = [at for at, group in enumerate(mine) if context.store.pending(group)]
    while running:
        due: list[Cell] = []
        for at in list(running):
            m = assignments(mine[at][:1])[0].prompt_length
            shares = {n: _share(tries, mine[at], n) for n in lengths[at]}
            length = paper.next_length(shares, m, cap)
            if length is None:
                for cell in context.store.pending(mine[at]):
                    result, arrays = gather(tries, cell, lengths[at], cap)
                    context.store.write(cell, result, origin, arrays)
                    tell(result)
                running.remove(at)
            else:
                lengths[at].append(length)
                due += [one_try(cell, length) for cell in mine[at]]
        for pool in lanes.pools(due, subject.settings.execution.pool) if due else []:
            root = context.workdir / "pools"
            pools.run(subject, pool, tries, root, context.stop, origin, lambda _: None, say)


def one_try(cell: Cell, length: int) -> Cell:
    """The cell of this target at one length."""
    config = copy.deepcopy(cell.config)
    config["cell"]["length"] = length
    return Cell(hash_name(config), config, {**cell.axes, "cell.length": length})


def gather(
    tries: Store, cell: Cell, lengths: Sequence[int], cap: int
) -> tuple[Result, dict[str, np.ndarray]]:
    """A target's result: its success at every length, and the prompt of the longest one.

    `threshold` is the longest length tried at which the greedy decode was right to the end, 0 if
    none; it is censored where that is within a step of the cap.
    """
    ordered = sorted(lengths)
    at = {n: one_try(cell, n) for n in ordered}
    records = {n: tries.read(at[n]) or {} for n in ordered}
    metrics = {n: records[n]["metrics"] for n in ordered}
    failed = [n for n in ordered if records[n]["status"] == "failed"]
    reached = [n for n in ordered if metrics[n].get("success")]
    threshold = max(reached, default=0)
    kept = threshold or ordered[0]
    result = Result(
        status="failed" if failed else "censored" if threshold + paper.FINE > cap else "ok",
        metrics={
            "threshold": threshold,
            "confirmed": all(metrics[n]["confirmed"] for n in ordered),
            "lengths": ordered,
            "successes": [bool(metrics[n]["success"]) for n in ordered],
            "teacher_forced_successes": [metrics[n]["teacher_forced_success"] for n in ordered],
            "teacher_forced": [metrics[n]["teacher_forced"] for n in ordered],
            "least_margin": metrics[kept]["least_margin"],
            "steps": sum(metrics[n]["steps"] for n in ordered),
            "prompt_max": metrics[kept]["prompt_max"],
            "prompt_rms": metrics[kept]["prompt_rms"],
            "text_bits": metrics[kept].get("text_bits", float("nan")) if reached else 0.0,
            **{k: v for k, v in metrics[kept].items() if k.startswith("path_")},
        },
        compile_seconds=sum(records[n]["compile_seconds"] for n in ordered),
        run_seconds=sum(records[n]["run_seconds"] for n in ordered),
        traceback=f"loss or gradient not finite at length {failed[0]}" if failed else None,
    )
    return result, tries.arrays(at[kept])


def _share(tries: Store, group: Group, length: int) -> float:
    """The share of a group that succeeded at a length, as published: under teacher forcing."""
    records = [tries.read(one_try(cell, length)) or {} for cell in group]
    right = [record.get("metrics", {}).get("teacher_forced_success", False) for record in records]
    return float(np.mean(right))
