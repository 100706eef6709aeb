"""The cramming program runs on a Mamba as it stands, and its successes are real ones."""

import dataclasses

import jax.numpy as jnp
import numpy as np
import pytest

from reach_jax.cramming.state import Frozen
from reach_jax.models.config import MambaConfig
from sweep_jax import mesh
from tests.cramming.conftest import PROTOCOL, Setup, run
from tests.models import mamba_reference
from tests.models.tiny import make_params

MODEL = MambaConfig(
    vocab_size=40,
    layers=2,
    width=32,
    inner=40,
    state_size=4,
    conv_width=4,
    step_rank=2,
    norm_eps=1e-5,
    tied=False,
    dtype="float32",
    projection_bias=True,  # padding would leave its mark
)


@pytest.fixture(scope="module")
def setup() -> Setup:
    params = make_params(MODEL)
    embedding_VD = params["embedding"]
    frozen = Frozen(params, embedding_VD[0], jnp.std(embedding_VD))
    return Setup(frozen, MODEL)


def emitted(frozen, prompt_MD, count):
    """Greedy decode by the float64 loop: whole sequences, no memory, no padding."""
    embedding_VD, head_VD = (np.asarray(frozen.params[k], float) for k in ("embedding", "head"))
    sequence, tokens = np.concatenate([embedding_VD[:1], prompt_MD]), []
    for _ in range(count):
        hidden_D = mamba_reference.hidden(frozen.params, MODEL, sequence)[-1]
        tokens.append(int(np.argmax(head_VD @ hidden_D)))
        sequence = np.concatenate([sequence, embedding_VD[tokens[-1:]]])
    return tokens


def test_a_mamba_is_crammed_and_says_what_was_reported(setup, targets_CN):
    """The search had padding before every prompt but the longest; the decodes have none."""
    config = dataclasses.replace(PROTOCOL, steps=200, patience=60)
    lengths = [1, 2, 3, 4]
    program = setup.program(lengths, targets_CN[:4], config, chunk=50)
    state = run(program)
    thresholds = []
    for row in range(4):
        result, arrays = program.finish(state, row)
        thresholds.append(result.metrics["threshold"])
        assert result.metrics["confirmed"]
        assert arrays["prompt"].shape == (lengths[row], MODEL.width)
        said = emitted(setup.frozen, arrays["prompt"], thresholds[-1])
        assert said == targets_CN[row, : thresholds[-1]].tolist()
    assert max(thresholds) >= 3  # or this test has looked at nothing


def test_lanes_over_eight_devices_need_no_collective(setup, targets_CN):
    """The gather that takes the padding out stays inside its lane."""
    program = setup.program([1, 2, 3, 4] * 2, targets_CN, mesh=mesh.row())
    program.advance(program.start(), np.arange(8, dtype=np.int32), 8)
    (text,) = (compiled.as_text() for compiled in program.compiled.values())
    for word in ("all-reduce", "all-gather", "collective-permute", "all-to-all"):
        assert word not in text
