"""What a lane is made of: the frozen model, the task, and all that changes. Types only."""

from typing import NamedTuple

import jax
import optax

from reach_jax.models.config import Params

RUNNING, STALLED, AT_END, OUT_OF_STEPS, FAILED = range(5)  # phases of a lane
REASONS = ("running", "patience", "target_end", "max_steps", "not_finite")


class Limits(NamedTuple):
    """The smallest sets around 0 and in a box that hold the model's real input vectors."""

    radius: jax.Array  # greatest l_2 norm
    lo_D: jax.Array  # least value of each coordinate
    hi_D: jax.Array


class Rounded(NamedTuple):
    """The model as a search with rounded products multiplies with it."""

    params: Params  # matrices of the layers in bfloat16, all else as stored
    head_VD: jax.Array  # bfloat16


class Frozen(NamedTuple):
    """The model that the prompts are for; never changed."""

    params: Params
    prefix_D: jax.Array | None  # input vector of the token before the prompt
    scale: jax.Array  # standard deviation of the input vectors of tokens, the unit of `rate`
    limits: Limits | None = None  # only where `support` or the report asks for them
    tokens: jax.Array | None = None  # V without the table's padding; None for the whole table
    rounded: Rounded | None = None  # only with `products="bfloat16"`


class Trace(NamedTuple):
    """Snapshots of a lane's prompt on its way; see `trace`."""

    prompts_SMD: jax.Array
    at_S: jax.Array  # the step that each was judged at; -1 for none yet
    length: jax.Array  # of the whole way, l_2


class Lane(NamedTuple):
    """All that changes in a lane. Lengths in tokens, times in steps."""

    prompt_MD: jax.Array
    opt: optax.OptState
    best_MD: jax.Array  # the prompt that did best, in any attempt
    best: jax.Array  # how far it got: a prefix's length, or how many tokens were right
    best_at: jax.Array  # the step it was found at
    reached: jax.Array  # the same of this attempt
    grew_at: jax.Array
    step: jax.Array  # answers judged, in all attempts
    phase: jax.Array
    need: jax.Array  # target tokens that the next answer must be judged on
    key: jax.Array  # of this attempt, as raw numbers
    attempt: jax.Array  # 0 for the first
    trace: Trace | None = None  # only where `execution.path` asks for it


class Task(NamedTuple):
    """What a lane works on; constant."""

    target_N: jax.Array  # padded beyond `length`
    length: jax.Array
    used: jax.Array  # prompt vectors in use
