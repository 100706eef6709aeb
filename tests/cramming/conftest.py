"""A tiny random model for every cramming test; compiled programs are shared by the session."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from reach_jax.cramming import outcome
from reach_jax.cramming.program import CrammingProgram, Pool
from reach_jax.cramming.settings import Assignment, CrammingConfig
from reach_jax.cramming.state import Frozen
from reach_jax.models import decoder, kinds
from reach_jax.models.config import DecoderConfig

MODEL = DecoderConfig(
    vocab_size=40,
    layers=2,
    width=16,
    heads=2,
    kv_heads=1,
    head_width=8,
    mlp_width=24,
    rope_base=10_000.0,
    norm_eps=1e-5,
    tied=True,
    dtype="float32",
)
PROTOCOL = CrammingConfig(
    prefix="begin",
    max_target=16,
    lookahead=2,
    temperature=0.5,
    rate=0.5,
    b1=0.9,
    b2=0.99,
    steps=60,
    patience=30,
)


@dataclasses.dataclass(frozen=True)
class Setup:
    """A model to cram and how to make programs for it."""

    frozen: Frozen
    model: kinds.Config = MODEL

    def program(
        self, lengths, targets_CN, config=PROTOCOL, slots=4, chunk=10, keys=None, mesh=None, path=0
    ):
        items = [Assignment(m, "random", i) for i, m in enumerate(lengths)]
        keys = keys or [jax.random.fold_in(jax.random.key(7), i) for i in range(len(items))]
        rows = np.asarray(targets_CN)
        how = (items, rows, keys, slots, chunk, mesh, path)
        return CrammingProgram(self.model, config, self.frozen, *how)

    def decode(self, prompt_mD, count):
        """What the model says after its prefix and a prompt."""
        task = outcome.Finished(
            self.model, PROTOCOL, self.frozen, len(prompt_mD), count, np.zeros(16, np.int32), 4
        )
        return outcome.decode(task, prompt_mD, count)


def run(program: CrammingProgram, buckets=(8, 16), lanes=4) -> Pool:
    """All cells to their end, without a store."""
    from sweep_jax.lanes import schedule

    state = program.start()
    while True:
        finished_C, need_C = program.look(state)
        if finished_C.all():
            return state
        bucket, rows_L = schedule(finished_C, need_C, buckets, lanes)
        state = program.advance(state, rows_L, bucket)


@pytest.fixture(scope="session")
def setup() -> Setup:
    params = decoder.init(MODEL, jax.random.key(1))
    params = jax.tree.map(lambda x: 2.0 * x, params)  # sharper answers than at initialisation
    embedding_VD = params["embedding"]
    return Setup(Frozen(params, embedding_VD[0], jnp.std(embedding_VD)))


@pytest.fixture(scope="session")
def targets_CN() -> np.ndarray:
    return np.random.default_rng(0).integers(1, MODEL.vocab_size, (8, 16)).astype(np.int32)
