"""Learning to copy: what the loss counts, lanes that do not disturb each other, runs cut short."""

import functools
import shutil

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from reach_jax.copying import evaluate, program, task, train
from reach_jax.models import kinds
from reach_jax.models.config import LSTMConfig
from sweep_jax import lanes
from sweep_jax.cells import Cell, hash_name
from sweep_jax.stop import Stop, Stopped
from sweep_jax.store import Result, Store

MODEL = LSTMConfig(vocab_size=task.VOCABULARY, layers=1, width=8, tied=False)
TRAINING = train.TrainingConfig(
    steps=12, batch=3, rate=1e-2, warmup=2, weight_decay=0.1, beta2=0.98, clip=1.0,
    chunk=3, check=4, perfect=2,
)  # fmt: skip
CONTEXT = 24
SHAPE = program.Shape(MODEL, TRAINING, CONTEXT)


def lesson(seed, longest=4):
    rng = np.random.default_rng(seed)
    asked = evaluate.questions(task.strings(rng, TRAINING.check, longest))
    batch = evaluate.Batch(*(jnp.asarray(x) for x in evaluate.padded(asked, 8, 7)))
    key = jax.random.key_data(jax.random.key(seed))
    return train.Lesson(key, jnp.int32(1), jnp.int32(longest), batch, None)


def params(row):
    return kinds.init(MODEL, jax.random.key(100 + row))


def judge(row, learner, compiling, running):
    best, last = (np.asarray(p["embedding"]) for p in (learner.best, learner.params))
    metrics = {"loss": float(learner.best_loss), "step": int(learner.best_step)}
    return Result("ok", metrics, compiling, running), {"best": best, "last": last}


def make(cells, tell=lambda count, state: None):
    rows = [int(cell.config["row"]) for cell in cells]
    lessons = [lesson(row, longest=3 + row % 2) for row in rows]
    return program.CopyProgram(SHAPE, lessons, lambda c: params(rows[c]), judge, tell)


def cell(row):
    return Cell(hash_name({"row": row}), {"row": row}, {})


def run(store, cells, root, stop=None, how=make, count=2):
    lanes.run_pool(
        cells, how, store, root, count, (1,), stop or Stop(), {}, lambda result: None, print
    )


def stored(store, row):
    record = store.read(cell(row))
    return record["metrics"], store.arrays(cell(row))


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    where = tmp_path_factory.mktemp("whole")
    store, told = Store(where), []
    run(store, [cell(r) for r in range(3)], where / "pools",
        how=functools.partial(make, tell=lambda count, state: told.append(count)))  # fmt: skip
    return store, told


def test_the_loss_is_the_mean_over_answers_alone():
    @jax.jit
    def both(params, key):
        token_BT, counts_BT = task.rows(key, 3, 1, 4, CONTEXT)
        logits_BTV = jax.vmap(lambda t: kinds.module(MODEL).apply({"params": params}, t))(token_BT)
        return train.loss(MODEL, params, token_BT, counts_BT, None), logits_BTV, token_BT, counts_BT

    got, logits_BTV, token_BT, counts_BT = both(params(0), jax.random.key(3))
    terms = []
    for b, t in zip(*np.nonzero(np.asarray(counts_BT)), strict=True):
        row_V = np.asarray(logits_BTV[b, t - 1], float)
        terms.append(np.log(np.exp(row_V).sum()) - row_V[token_BT[b, t]])
    np.testing.assert_allclose(got, np.mean(terms), rtol=1e-5)


def test_a_lane_learns_the_same_alone_and_among_others(whole, tmp_path):
    store = Store(tmp_path)
    run(store, [cell(1)], tmp_path / "pools")  # one place is idle
    (alone, arrays), (among, others) = stored(store, 1), stored(whole[0], 1)
    assert alone["step"] == among["step"]
    np.testing.assert_allclose(alone["loss"], among["loss"], rtol=1e-5)
    np.testing.assert_allclose(arrays["last"], others["last"], atol=1e-5)
    assert np.abs(arrays["last"] - np.asarray(params(1)["embedding"])).max() > 0.01


def test_progress_tells_every_step_once(whole):
    assert sum(whole[1]) == 3 * TRAINING.steps


def test_a_killed_run_goes_on_from_the_last_whole_checkpoint(whole, tmp_path, caplog):
    """STO-03: the newest is half written, another was never finished; both are passed over."""
    cells, stop, seen = [cell(r) for r in range(3)], Stop(), []

    def tell(count, state):
        seen.append(count)
        if len(seen) == 4:
            stop.signum = 15

    store = Store(tmp_path)
    with pytest.raises(Stopped):
        run(store, cells, tmp_path / "pools", stop, functools.partial(make, tell=tell))
    (pool,) = (p for p in (tmp_path / "pools").iterdir() if p.is_dir())
    steps = sorted(int(p.name) for p in pool.iterdir() if p.name.isdigit())
    assert len(steps) == 2  # an older one is kept
    (manifest, *_) = sorted((pool / str(steps[-1])).rglob("*.json"))
    manifest.unlink()
    shutil.copytree(pool / str(steps[0]), pool / f"{steps[-1] + 1}.partial")
    with caplog.at_level("WARNING", logger="absl"):
        run(store, cells, tmp_path / "pools")
    assert f"step {steps[-1]} is skipped" in caplog.text
    for row in range(3):
        (metrics, arrays), (want, others) = stored(store, row), stored(whole[0], row)
        assert metrics == want
        np.testing.assert_array_equal(arrays["last"], others["last"])
        np.testing.assert_array_equal(arrays["best"], others["best"])


def test_best_is_kept_and_a_finished_run_stands_still():
    made = make([cell(0), cell(1)])

    def chunk(state):
        copy = jax.tree.map(jnp.copy, state)  # the program takes its argument's memory
        return made.advance(copy, np.arange(2, dtype=np.int32), 1)

    first = chunk(made.start())
    assert first.step.tolist() == first.best_step.tolist() == [TRAINING.chunk] * 2
    better = first._replace(best_exact=jnp.ones(2), perfect=jnp.array([0, 2], jnp.int32))
    second = chunk(better)
    assert made.look(better)[0].tolist() == [False, True]
    assert second.step.tolist() == [2 * TRAINING.chunk, TRAINING.chunk]
    assert second.best_step.tolist() == [TRAINING.chunk] * 2
    kept, before, after = (x["embedding"] for x in (second.best, first.params, second.params))
    np.testing.assert_array_equal(kept, before)
    assert np.abs(after[0] - before[0]).max() > 0
    np.testing.assert_array_equal(after[1], before[1])


@pytest.mark.parametrize(
    ("field", "value"), [("steps", 0), ("chunk", 5), ("warmup", 12), ("rate", 0.0), ("beta2", 1.0)]
)
def test_impossible_settings_are_refused(field, value):
    values = {**train.dataclasses.asdict(TRAINING), field: value}
    with pytest.raises(ValueError, match=field):
        train.TrainingConfig(**values)
