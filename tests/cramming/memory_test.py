"""What a whole step of many lanes takes at a vocabulary of real size (CRM-05)."""

import dataclasses
import functools

import jax
import pytest

from reach_jax.cramming import cost
from reach_jax.models import decoder
from reach_jax.ops import readout
from tests.cramming.conftest import MODEL, PROTOCOL

WIDE = dataclasses.replace(MODEL, vocab_size=50_000, layers=1, width=8, heads=1, head_width=8)
ONE_ROW = 4 * WIDE.vocab_size  # bytes of float32 logits at one position
B, N = 2, 256
SHAPES = jax.eval_shape(functools.partial(decoder.init, WIDE), jax.random.key(0))


def temporary(slots=2, **changes):
    """Bytes that a step needs beside its arguments, compiled for shapes and never run."""
    found = cost.step_memory(WIDE, dataclasses.replace(PROTOCOL, **changes), SHAPES, slots, N, B)
    return found.temporary


@pytest.fixture(scope="module")
def chunked():
    return temporary()


def test_the_logits_of_a_target_are_never_there_at_once(chunked, monkeypatch):
    """B x N rows are 102 MB; 16 positions of two lanes at a time are 6 MB, whatever N is."""
    whole = functools.partial(readout.score, chunk=N)
    monkeypatch.setattr(readout, "score", whole)
    dense = temporary()
    assert dense > B * N * ONE_ROW
    assert chunked < dense / 6
    assert chunked < B * N * ONE_ROW / 2


def test_positions_of_the_prompt_are_not_projected(chunked):
    """128 prompt slots more would be 51 MB of logits."""
    more = temporary(slots=130) - chunked
    assert more < 128 * B * ONE_ROW / 8
