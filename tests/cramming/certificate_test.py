"""Certificates against cells that are known: exact cones, and a plane that is gridded (CRM-07)."""

import dataclasses
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from reach_jax.cramming import certificate, neighbourhood
from reach_jax.cramming.verify import greedy_decode
from reach_jax.models import kinds
from tests.cramming.conftest import MODEL
from tests.models import reference, tiny

CONFIG = certificate.CertificateConfig(
    samples=64, directed=4, decodes=2, low=-16, high=4, per_octave=4, batch=48
)
FLAT = dataclasses.replace(
    MODEL, vocab_size=7, layers=1, width=2, heads=1, head_width=2, mlp_width=3, tied=False
)
STEP = 2 ** (1 / CONFIG.per_octave)  # between neighbours of the grid


def subject(model, params, slots=1, bucket=4, prefix=None):
    inputs = certificate.measure_inputs(model, params, model.vocab_size)
    return certificate.Subject(model, params, prefix, inputs, slots, bucket)


def emitted(of, prompt_MD, count):
    """What a prompt says, by the real decode."""
    before = [] if of.prefix_D is None else [of.prefix_D[None]]
    given = np.concatenate([*before, prompt_MD]).astype(np.float32)
    return greedy_decode(of.model, of.params, given, count, of.slots + of.bucket)[0]


def certify(of, prompt_MD, count, config=CONFIG, seed=0):
    target = emitted(of, prompt_MD, count)
    return certificate.certify(of, config, prompt_MD, target, count, jax.random.key(seed))


@pytest.fixture(scope="module")
def cones():
    """A model that reads its last input only: its cells are the cones of the unembedding."""
    model = dataclasses.replace(FLAT, vocab_size=9, width=5)
    params = tiny.make_params(model, seed=3)
    params["final_norm"]["weight"] = jnp.ones(5)
    params["layers"]["attention"]["o"] *= 0
    params["layers"]["down"] *= 0
    return subject(model, params)


@pytest.fixture(scope="module")
def plane():
    """A real layer in two dimensions, so that a prompt of one vector is a point of a plane."""
    return subject(FLAT, tiny.make_params(FLAT, seed=5), prefix=np.array([0.3, -0.4], np.float32))


@pytest.mark.parametrize("seed", range(4))
def test_exact_cone_cells(cones, seed):
    """The distance of x to the cell's border is min_j (F_t - F_j) x / |F_t - F_j|_dual, exactly."""
    x = np.random.default_rng(seed).normal(size=(1, 5)).astype(np.float32)
    head = np.asarray(cones.params["head"], np.float64)
    logits = head @ x[0]
    token = int(np.argmax(logits))
    rows = np.delete(head[token] - head, token, axis=0)
    gaps = rows @ x[0]
    exact = {
        "cube": 2 * (gaps / np.abs(rows).sum(axis=1)).min(),
        "ball": 2 * (gaps / np.linalg.norm(rows, axis=1)).min(),
    }
    metrics, arrays = certify(cones, x, 1)
    assert metrics["confirmed"]
    assert metrics["n"] == 1
    norm = math.sqrt(np.mean(x.astype(np.float64) ** 2) + cones.model.norm_eps)
    margin = np.sort(logits)[-1] - np.sort(logits)[-2]
    np.testing.assert_allclose(metrics["least_margin"], margin / norm, rtol=1e-4)
    np.testing.assert_allclose(arrays["margins"], [margin / norm], rtol=1e-4)
    for name, eps in exact.items():
        refuted = metrics[f"eps_{name}_refuted"]
        assert refuted >= eps * (1 - 1e-4), name  # no point inside the cell ever fails
        assert metrics[f"eps_{name}_directed"] <= refuted
        assert refuted <= 3 * eps, name  # and the points look in the right direction
        witness = arrays[f"witness_{name}"]
        order = np.inf if name == "cube" else 2
        distance = np.linalg.norm((witness - x).ravel().astype(np.float64), order)
        np.testing.assert_allclose(2 * distance, refuted, rtol=1e-5)
        assert np.argmax(head @ witness[0]) != token
    assert metrics["eps_cube_refuted"] <= metrics["eps_ball_refuted"]
    assert metrics["decodes_agree"] == metrics["decoded"] == 2 * CONFIG.decodes + 2


def test_first_order_is_exact_where_the_margin_is_linear(cones):
    """A prompt so close to its border that the cell is a half space: the estimate is exact."""
    head = np.asarray(cones.params["head"], np.float64)
    x = np.random.default_rng(1).normal(size=5)
    logits = head @ x
    first, second = np.argsort(logits)[::-1][:2]
    across = head[first] - head[second]
    x = (x - (1 - 1e-3) * (across @ x) / (across @ across) * across)[None].astype(np.float32)
    metrics, _ = certify(cones, x, 1)
    gap = across @ x[0] / math.sqrt(across @ across)
    np.testing.assert_allclose(metrics["eps_ball_first_order"], 2 * gap, rtol=2e-2)
    assert 1 / STEP <= metrics["eps_ball_directed"] / (2 * gap) <= STEP
    assert 1 <= metrics["eps_ball_refuted"] / (2 * gap) <= STEP**2


def test_a_gridded_plane(plane):
    """d = 2, three tokens through a real layer: the plane around the prompt, point by point.

    The brute force is the float64 loop of `tests/models/reference.py`, which shares nothing.
    """
    x = np.array([[0.9, 0.5]], np.float32)
    target = emitted(plane, x, 3)
    config = dataclasses.replace(CONFIG, samples=256)
    metrics, _ = certify(plane, x, 3, config)
    embedding = np.asarray(plane.params["embedding"], np.float64)

    def reaches(point):
        given = [plane.prefix_D, point, *embedding[target[:-1]]]
        logits = reference.logits(plane.params, FLAT, np.stack(given))[1:]
        return bool((np.argmax(logits, axis=-1) == target).all())

    assert reaches(x[0])
    held, refuted = metrics["eps_cube_random"], metrics["eps_cube_refuted"]
    assert 0 < refuted < 10
    # Rings of the cube around x, each as wide as the last times 1.1: the first that has a failure.
    edge = np.linspace(-1, 1, 25)
    ones = np.ones_like(edge)
    ring = np.stack([[edge, ones], [edge, -ones], [ones, edge], [-ones, edge]])
    ring = ring.transpose(0, 2, 1).reshape(-1, 2)
    radius = refuted / 2 / 1.1**12
    while all(reaches(x[0] + radius * step) for step in ring):
        radius *= 1.1
    brute = 2 * radius
    assert refuted >= brute / 1.1 * 0.99  # what random points refute lies outside the brute cell
    assert brute / 1.4 <= refuted <= brute * 1.4
    assert brute / 1.1 / STEP * 0.99 <= held <= 2 * brute
    assert metrics["eps_cube_directed"] <= refuted


def test_teacher_forcing_is_the_greedy_decode(setup):
    """Right at every target token if and only if the decode emits the target: on many points."""
    of = subject(MODEL, setup.frozen.params, 2, 8, np.asarray(setup.frozen.prefix_D))
    rng = np.random.default_rng(2)
    x = rng.normal(scale=0.5, size=(2, MODEL.width)).astype(np.float32)
    target = emitted(of, x, 6)
    case = neighbourhood.Case(
        of.params,
        jnp.asarray(of.prefix_D),
        jnp.asarray(x),
        jnp.int32(2),
        jnp.asarray(np.pad(target, (0, 2))),
        jnp.int32(6),
    )
    holds = jax.jit(neighbourhood.holds, static_argnums=0)
    forced, decoded = [], []
    for size in np.geomspace(1e-3, 3, 60):
        point = (x + size * rng.normal(size=x.shape)).astype(np.float32)
        forced.append(bool(holds(MODEL, case, jnp.asarray(point))))
        decoded.append(emitted(of, point, 6).tolist() == target.tolist())
    assert forced == decoded
    assert 10 < sum(forced) < 50  # or this test has looked at one kind only


def test_padding_and_batches_change_nothing(setup):
    x = np.random.default_rng(4).normal(scale=0.3, size=(1, MODEL.width)).astype(np.float32)
    prefix = np.asarray(setup.frozen.prefix_D)
    seen = []
    for slots, bucket, batch in [(1, 8, 48), (2, 8, 1000)]:
        of = subject(MODEL, setup.frozen.params, slots, bucket, prefix)
        seen.append(certify(of, x, 3, dataclasses.replace(CONFIG, batch=batch))[0])
    assert seen[0].keys() == seen[1].keys()
    for name in seen[0]:  # no eps is moved by a rounding error across a step of its grid
        np.testing.assert_allclose(seen[0][name], seen[1][name], rtol=1e-3, err_msg=name)


def test_ties_are_named_and_leave_no_ball(cones):
    """Two equal rows of the unembedding tie everywhere: the lower id wins, by the rule alone."""
    head = np.asarray(cones.params["head"]).copy()
    x = np.random.default_rng(0).normal(size=(1, 5)).astype(np.float32)
    token = int(np.argmax(head @ x[0]))
    twin = (token + 1) % len(head)
    head[twin] = head[token]
    tied = dataclasses.replace(cones, params={**cones.params, "head": jnp.asarray(head)})
    low, high = sorted((token, twin))
    metrics, _ = certify(tied, x, 1)
    assert emitted(tied, x, 1).tolist() == [low]
    assert metrics["tied"]
    assert metrics["least_margin"] == 0
    wrong, arrays = certificate.certify(
        tied, CONFIG, x, np.array([high], np.int32), 1, jax.random.key(0)
    )
    assert wrong == {"claimed": 1, "n": 0, "confirmed": False}
    assert arrays == {}


def test_rounding(cones):
    """A prompt on the float16 grid keeps its text; one past float16's range loses it."""
    x = np.array([[0.5, -1.25, 2.0, 0.75, -0.5]], np.float32)
    metrics, _ = certify(cones, x, 1)
    assert (metrics["kept_float16"], metrics["kept_bfloat16"]) == (1, 1)
    far, _ = certify(cones, 1e5 * x, 1)
    assert (far["n"], far["kept_float16"], far["kept_bfloat16"]) == (1, 0, 1)
    # Between two cells, nearer than bfloat16 can tell: rounding is seen to change the text.
    head = np.asarray(cones.params["head"], np.float64)
    changed = 0
    for seed in range(20):
        y = np.random.default_rng(seed).normal(size=5)
        first, second = np.argsort(head @ y)[::-1][:2]
        across = head[first] - head[second]
        y = (y - (1 - 1e-4) * (across @ y) / (across @ across) * across)[None].astype(np.float32)
        rounded = y.astype(jnp.bfloat16).astype(np.float64)
        if np.argmax(head @ y[0]) != first:
            continue
        keeps = int(np.argmax(head @ rounded[0]) == first)
        changed += 1 - keeps
        if seed < 3:
            assert certify(cones, y, 1)[0]["kept_bfloat16"] == keeps
    assert changed > 3


def test_place_and_bits(setup):
    params = setup.frozen.params
    embedding = np.asarray(params["embedding"], np.float64)
    of = subject(MODEL, params, 2, 8, np.asarray(setup.frozen.prefix_D))
    np.testing.assert_allclose(of.inputs.scale, embedding.std(), rtol=1e-6)
    x = np.stack(
        [2 * embedding[np.linalg.norm(embedding, axis=1).argmax()], embedding.mean(axis=0)]
    )
    metrics, _ = certify(of, x.astype(np.float32), 6)
    np.testing.assert_allclose(metrics["r_2_over_inputs"], 2, rtol=1e-6)
    assert metrics["r_2_quantile"] == 1
    assert 0.5 <= metrics["inside_box"] < 1  # the mean lies inside, its neighbour in part
    np.testing.assert_allclose(metrics["bits_used"], 6 * math.log2(40) / (2 * 16))
    assert metrics["bits_stored"] == 32
    eps = metrics["eps_cube"]
    assert 0 < eps == min(metrics["eps_cube_random"], metrics["eps_cube_directed"])
    np.testing.assert_allclose(
        metrics["bits_at_eps"], np.log2(1 + 2 * np.abs(x).max() / eps), rtol=1e-6
    )
    # The worked numbers of the README of Cramming: 1568 tokens of Llama-3.1 in one vector.
    total = certificate.bits_per_coordinate(1568, 128256, 1, 4096) * 4096
    np.testing.assert_allclose(total, 26607, rtol=1e-4)


@pytest.mark.parametrize(
    ("field", "value"),
    [("samples", 0), ("directed", 0), ("decodes", 65), ("low", 5), ("per_octave", 0), ("batch", 0)],
)
def test_settings_that_make_no_sense(field, value):
    with pytest.raises(ValueError, match=f"^{field} = {value}: expected"):
        dataclasses.replace(CONFIG, **{field: value})


def test_shapes_that_do_not_fit(cones):
    x, target = np.ones((1, 5), np.float32), np.zeros(3, np.int32)
    for prompt, claimed, field in [
        (np.ones((2, 5), np.float32), 1, "prompt_MD"),
        (np.ones((1, 4), np.float32), 1, "prompt_MD"),
        (x, 4, "claimed"),
    ]:
        with pytest.raises(ValueError, match=f"^{field} = "):
            certificate.certify(cones, CONFIG, prompt, target, claimed, jax.random.key(0))
    with pytest.raises(ValueError, match=r"^tokens = 10: expected 1"):
        certificate.measure_inputs(cones.model, cones.params, 10)


def test_a_mamba_is_certified_too():
    model = tiny.MAMBA
    params = kinds.init(model, jax.random.key(2))
    of = subject(model, params, 1, 4)
    x = np.random.default_rng(0).normal(size=(1, model.width)).astype(np.float32)
    metrics, _ = certify(of, x, 2)
    assert metrics["confirmed"]
    assert 0 < metrics["eps_cube_directed"] < metrics["eps_cube_refuted"]
    assert metrics["decodes_agree"] == metrics["decoded"]
