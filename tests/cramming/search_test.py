"""How prompts begin and move: optimisers, subspaces, support, restarts, by their meaning."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from reach_jax.cramming import lane, search, subspace
from reach_jax.cramming.freeze import freeze
from reach_jax.cramming.settings import CHOICES, CrammingConfig
from reach_jax.cramming.state import STALLED, Task
from tests.cramming.conftest import MODEL, PROTOCOL, run

D = MODEL.width


def config(**changes) -> CrammingConfig:
    return dataclasses.replace(PROTOCOL, **changes)


def task(setup, targets_CN, used=2, length=12):
    return Task(jnp.asarray(targets_CN[0]), jnp.int32(length), jnp.int32(used))


def first(setup, targets_CN, slots=4, used=2, **changes):
    frozen = freeze(MODEL, setup.frozen.params, config(), 0, MODEL.vocab_size)
    made = search.prompt(
        MODEL,
        config(**changes),
        frozen,
        jax.random.key(3),
        task(setup, targets_CN, used),
        slots,
    )
    return np.asarray(made)[slots - used :]


def test_every_name_is_understood(setup):
    for optimizer in CHOICES["optimizer"]:
        for schedule in CHOICES["schedule"]:
            c = config(optimizer=optimizer, schedule=schedule)
            state = search.begin(c, jnp.zeros((2, D)))
            moved, _ = search.optimizer(c).update(jnp.ones((2, D)), state, jnp.zeros((2, D)))
            assert (np.asarray(moved) < 0).all()


def test_the_published_optimiser_is_adamw_in_absolute_units(setup):
    """Rate 1e-2, betas .9 and .9, decay .01 of the prompt itself, whatever the embeddings' size."""
    c = config(optimizer="adamw", rate=1e-2, b2=0.9, weight_decay=0.01, rate_unit="absolute")
    rng = np.random.default_rng(0)
    prompt_MD = 3 * rng.normal(size=(2, D)).astype(np.float32)
    grads = rng.normal(size=(3, 2, D)).astype(np.float32)
    got, opt = jnp.asarray(prompt_MD), search.begin(c, jnp.asarray(prompt_MD))
    want, m, v = prompt_MD.astype(float), 0.0, 0.0
    for t, grad in enumerate(grads, start=1):
        got, opt = search.move(c, setup.frozen, jax.random.key(0), got, opt, jnp.asarray(grad))
        m, v = 0.9 * m + 0.1 * grad, 0.9 * v + 0.1 * grad.astype(float) ** 2
        step = (m / (1 - 0.9**t)) / (np.sqrt(v / (1 - 0.9**t)) + 1e-8)
        want = want - 1e-2 * (step + 0.01 * want)
    np.testing.assert_allclose(got, want, atol=1e-5)


def test_a_rate_in_embedding_units_does_the_same_at_any_scale(setup):
    """A model whose inputs are ten times as large is searched by ten times as large steps."""
    for optimizer in ("adam", "adamw", "sgd"):
        c = config(optimizer=optimizer, weight_decay=0.1 if optimizer == "adamw" else 0.0)
        ends = []
        for factor in (1.0, 10.0):
            frozen = setup.frozen._replace(scale=factor * setup.frozen.scale)
            prompt_MD = factor * jax.random.normal(jax.random.key(0), (1, D))
            opt = search.begin(c, prompt_MD)
            for _ in range(3):  # of the loss |x|^2 / 2 in units of the scale
                grad_MD = prompt_MD / factor**2
                prompt_MD, opt = search.move(c, frozen, jax.random.key(0), prompt_MD, opt, grad_MD)
            ends.append(np.asarray(prompt_MD) / factor)
        np.testing.assert_allclose(ends[1], ends[0], rtol=1e-4, atol=1e-5)


def test_the_cosine_schedule_ends_at_zero():
    c = config(schedule="cosine", optimizer="sgd", b1=0.0, steps=4)
    opt, moves = search.begin(c, jnp.zeros((1, D))), []
    for _ in range(5):
        update, opt = search.optimizer(c).update(jnp.ones((1, D)), opt)
        moves.append(-float(update[0, 0]))
    want = [c.rate * (1 + np.cos(np.pi * t / 4)) / 2 for t in range(5)]
    np.testing.assert_allclose(moves, want, atol=1e-6)


@pytest.mark.parametrize("K", [1, 5, D])
def test_frames_are_orthonormal_and_depend_on_the_place_from_the_end(K):
    frames = subspace.basis(jax.random.key(4), 3, D, K)
    columns_KMD = np.stack(
        [subspace.up(frames, jnp.zeros((3, K)).at[:, k].set(1.0)) for k in range(K)]
    )
    for m in range(3):
        gram = columns_KMD[:, m] @ columns_KMD[:, m].T
        np.testing.assert_allclose(gram, np.eye(K), atol=1e-5)
    x_MD = np.random.default_rng(0).normal(size=(3, D)).astype(np.float32)
    want = np.einsum("kmd,md->mk", columns_KMD, x_MD)
    np.testing.assert_allclose(subspace.down(frames, x_MD), want, atol=1e-5)
    longer = subspace.basis(jax.random.key(4), 5, D, K)
    np.testing.assert_array_equal(longer.rows_MK[2:], frames.rows_MK)
    assert not np.array_equal(frames.signs_MD[0], frames.signs_MD[1])


def test_a_search_in_a_subspace_never_leaves_it(setup, targets_CN):
    c = config(coefficients=3, steps=20, patience=20)
    program = setup.program([2, 2], targets_CN[:2], c, slots=2)
    start, end = program.start().lanes_C, run(program).lanes_C
    for row in range(2):
        way_MD = np.asarray(end.prompt_MD[row] - start.prompt_MD[row])
        assert np.linalg.norm(way_MD) > 0.1
        frames = subspace.basis(jax.random.wrap_key_data(start.key[row]), 2, D, 3)
        back_MD = subspace.up(frames, subspace.down(frames, way_MD))
        np.testing.assert_allclose(back_MD, way_MD, atol=1e-4)
    assert jax.tree.leaves(end.opt)[1].shape[-1] == 3  # Adam's moments are of 3 numbers


@pytest.mark.parametrize("support", ["ball", "box"])
def test_prompts_stay_in_the_support_of_real_inputs(setup, targets_CN, support):
    c = config(support=support, init_scale=20.0, steps=10, patience=10)
    inputs_VD = np.asarray(setup.frozen.params["embedding"])[:30]  # the rest is a table's padding
    frozen = freeze(MODEL, setup.frozen.params, c, 0, 30)
    program = dataclasses.replace(setup, frozen=frozen).program([1, 2], targets_CN[:2] % 30, c)
    end = run(program).lanes_C
    for prompts in (program.start().lanes_C.prompt_MD, end.prompt_MD, end.best_MD):
        x = np.asarray(prompts).reshape(-1, D)
        if support == "ball":
            assert (
                np.linalg.norm(x, axis=1).max() <= 1.0001 * np.linalg.norm(inputs_VD, axis=1).max()
            )
        else:
            assert (x >= inputs_VD.min(0)).all()
            assert (x <= inputs_VD.max(0)).all()
    inner = np.asarray(0.1 * inputs_VD[:4] + 0.9 * inputs_VD[:4].mean(0))
    np.testing.assert_allclose(search.inside(c, frozen, jnp.asarray(inner)), inner, rtol=1e-6)


def test_where_a_prompt_begins(setup, targets_CN):
    embedding_VD = np.asarray(setup.frozen.params["embedding"])
    scale = embedding_VD.std()
    noise = first(setup, targets_CN, slots=400, used=400)
    np.testing.assert_allclose(noise.std(), scale, rtol=0.05)
    tripled = first(setup, targets_CN, slots=400, used=400, init_scale=3.0)
    np.testing.assert_allclose(tripled, 3 * noise, rtol=1e-6)
    rows = first(setup, targets_CN, init="tokens", slots=6, used=6)
    gaps = np.abs(rows[:, None] - embedding_VD[None]).max(-1).min(-1)
    np.testing.assert_allclose(gaps, 0, atol=1e-6)
    own = first(setup, targets_CN, init="target")
    np.testing.assert_allclose(own, embedding_VD[targets_CN[0, :2]], rtol=1e-6)
    made = first(setup, targets_CN, init="states")
    np.testing.assert_allclose(np.sqrt((made**2).mean(-1)), scale, rtol=1e-4)
    assert np.abs(made[0] - made[1]).max() > 0.01
    for init in CHOICES["init"]:  # more slots change no row in use
        few, many = (first(setup, targets_CN, init=init, slots=n) for n in (2, 7))
        np.testing.assert_allclose(few, many, rtol=1e-5, atol=1e-6)


def test_a_stalled_lane_starts_anew_and_keeps_its_best(setup, targets_CN):
    """Each attempt is the run of another key; the best of all is kept; patience is each one's."""
    c = config(restarts=2, patience=6, steps=200)
    program = setup.program([1, 2], targets_CN[:2], c)
    end = run(program).lanes_C
    assert end.attempt.tolist() == [2, 2]
    assert end.phase.tolist() == [STALLED, STALLED]
    single = dataclasses.replace(c, restarts=0)
    keys = [jax.random.fold_in(jax.random.key(7), i) for i in range(2)]
    best, steps = np.zeros(2, int), np.zeros(2, int)
    for _ in range(3):
        alone = run(setup.program([1, 2], targets_CN[:2], single, keys=keys)).lanes_C
        best, steps = np.maximum(best, alone.best), steps + np.asarray(alone.step)
        keys = [jax.random.fold_in(key, lane.RESTART) for key in keys]
    assert end.best.tolist() == best.tolist()
    assert end.step.tolist() == steps.tolist()


def test_all_attempts_share_the_budget(setup, targets_CN):
    c = config(restarts=50, patience=6, steps=40)
    end = run(setup.program([1, 2], targets_CN[:2], c)).lanes_C
    assert end.step.tolist() == [40, 40]
    assert (np.asarray(end.attempt) >= 1).all()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"optimizer": "lbfgs"}, "optimizer = 'lbfgs': expected one of"),
        ({"weight_decay": 0.1}, "weight_decay = 0.1: expected 0 but for adamw and lion"),
        ({"coefficients": 2, "support": "box"}, "support = 'box': expected free with"),
        ({"restarts": 1, "init": "target"}, "restarts = 1: expected 0 with init = target"),
        ({"first_token": "given", "max_target": 1}, "max_target = 1: expected at least 2"),
        ({"init_scale": 0.0}, "init_scale = 0.0: expected a number > 0"),
    ],
)
def test_settings_that_cannot_be(changes, message):
    with pytest.raises(ValueError, match=message):
        config(**changes)


def test_a_begin_token_that_a_model_has_not(setup):
    with pytest.raises(ValueError, match=r"config\.cramming\.prefix = 'begin': expected none"):
        freeze(MODEL, setup.frozen.params, PROTOCOL, None, MODEL.vocab_size)


def test_inputs_are_measured_as_the_model_receives_them(setup):
    """A family's embedding scale is in the unit of the rate and in what stands before a prompt."""
    scaled = dataclasses.replace(MODEL, embedding_scale=4.0)
    plain, large = (freeze(c, setup.frozen.params, PROTOCOL, 0, 40) for c in (MODEL, scaled))
    np.testing.assert_allclose(large.scale, 4 * plain.scale, rtol=1e-6)
    np.testing.assert_allclose(large.prefix_D, 4 * plain.prefix_D, rtol=1e-6)
    np.testing.assert_allclose(plain.scale, np.std(setup.frozen.params["embedding"]), rtol=1e-5)
