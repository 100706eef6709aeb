"""The way of a prompt through its search: snapshots of it, its length, its principal components.

A lane keeps at most S snapshots, evenly spaced over the steps it took however many these are: at
first of every step; once S are held every other one gives its place up to a newer one, and the
stride doubles. Which step goes where is known before the search, so that nothing is moved and no
host is asked. All of it is part of the lane's state and of its checkpoint. Changes no search.
"""

import jax.numpy as jnp
import numpy as np

from reach_jax.cramming.state import RUNNING, Lane, Task, Trace

SHARE = 0.99  # of the variance


def empty(cells: int, most: int, slots: int, width: int) -> Trace:
    """The traces of lanes that took no step yet, stacked; S = `most`."""
    return Trace(
        prompts_SMD=jnp.zeros((cells, most, slots, width), jnp.float32),
        at_S=jnp.full((cells, most), -1, jnp.int32),
        length=jnp.zeros(cells, jnp.float32),
    )


def nbytes(most: int, slots: int, width: int) -> int:
    """What a lane's trace takes."""
    return most * (4 * slots * width + 4) + 4 if most else 0


def places(steps: int, most: int) -> np.ndarray:
    """Which of the `most` places the prompt of each step goes to; `most` for nowhere, (steps,).

    Args:
      steps: a search's most steps.
      most: a power of two.
    """
    place_T = np.full(steps, most, np.int32)
    place_T[:most] = np.arange(min(most, steps))
    half, stride = most // 2, 2
    while half * stride < steps:
        new = stride * np.arange(half, most)
        old = stride // 2 * (2 * np.arange(half) + 1)  # every other one of those held
        inside = new < steps
        place_T[new[inside]] = place_T[old[inside]]
        stride *= 2
    return place_T


def note(steps: int, before: Lane, after: Lane, task: Task, trace: Trace) -> Trace:
    """The trace after a step: of the prompt that the step judged, and of how far it then moved.

    Args:
      steps: a search's most steps.
      before: the lane before the step.
      after: the same lane after it; where it stood still the trace does not change.
      task: what it works on.
      trace: the trace so far.
    """
    most = len(trace.at_S)
    ran = after.step > before.step
    place_T = jnp.asarray(places(steps, most))
    place = jnp.where(ran, place_T[jnp.minimum(before.step, steps - 1)], most)
    in_use_M = jnp.arange(len(before.prompt_MD)) >= len(before.prompt_MD) - task.used
    moved_MD = jnp.where(in_use_M[:, None], after.prompt_MD - before.prompt_MD, 0.0)
    moved = jnp.sqrt(jnp.sum(jnp.square(moved_MD)))
    return Trace(
        prompts_SMD=trace.prompts_SMD.at[place].set(before.prompt_MD, mode="drop"),
        at_S=trace.at_S.at[place].set(before.step, mode="drop"),
        # The last move of all is never judged: no part of the way.
        length=trace.length + jnp.where(ran & (after.phase == RUNNING), moved, 0.0),
    )


def held(trace: Trace, used: int) -> tuple[np.ndarray, np.ndarray]:
    """Steps (K,) and prompts (K, m, D) of the evenly spaced snapshots of one lane, in order."""
    at_S = np.asarray(trace.at_S)
    stride = 1
    while at_S.max() >= len(at_S) * stride:
        stride *= 2
    order = [i for i in np.argsort(at_S, kind="stable") if at_S[i] >= 0 and at_S[i] % stride == 0]
    return at_S[order], np.asarray(trace.prompts_SMD)[order][:, -used:]


def measure(trace: Trace, used: int, unit: float) -> tuple[dict[str, float | int], np.ndarray]:
    """What the report tells of a way.

    Args:
      trace: of one lane, on the host.
      used: m.
      unit: of the lengths: the standard deviation of the model's input vectors.

    Returns:
      Metrics, lengths over the m D numbers of the whole prompt: `path_length` of every step,
      `path_straight` from the first snapshot to the last, `path_components` that hold 99 % of the
      snapshots' variance about their mean (at most `path_snapshots` - 1), and `path_stride`, steps
      between two snapshots. NaN for fewer than two of them, or where one is not finite. Then the
      share of the variance that each component holds, descending.
    """
    at_K, prompts_KmD = held(trace, used)
    K = len(at_K)
    rows_KX = prompts_KmD.reshape(K, -1).astype(np.float64)
    found: dict[str, float | int] = {"path_snapshots": K, "path_length": float(trace.length) / unit}
    found["path_stride"] = int(at_K[1] - at_K[0]) if K > 1 else 0
    names = ("path_straight", "path_components")
    if K < 2 or not np.isfinite(rows_KX).all():
        return found | dict.fromkeys(names, float("nan")), np.zeros(0)
    centred_KX = rows_KX - rows_KX.mean(axis=0)
    variances = np.linalg.eigvalsh(centred_KX @ centred_KX.T)[::-1].clip(0)[: K - 1]
    if variances.sum() == 0:
        return found | dict.fromkeys(names, 0), np.zeros(0)
    shares = variances / variances.sum()
    # A hair below: a sum that is the share but for rounding has reached it.
    components = 1 + int(np.searchsorted(np.cumsum(shares), SHARE - 1e-12))
    straight = float(np.linalg.norm(rows_KX[-1] - rows_KX[0])) / unit
    return found | dict(zip(names, (straight, components), strict=True)), shares
