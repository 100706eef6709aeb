"""A search with rounded products: near the exact loss, and proved by the exact model."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from reach_jax.cramming import lane
from reach_jax.cramming.freeze import rounding
from reach_jax.cramming.state import Rounded, Task
from tests.cramming.conftest import MODEL, PROTOCOL, run

ROUNDED = dataclasses.replace(PROTOCOL, products="bfloat16", lead=0.2, steps=200, patience=100)


LOOK = lane.loss_and_reach


def rounded(setup):
    frozen = setup.frozen._replace(rounded=rounding(MODEL, setup.frozen.params))
    return dataclasses.replace(setup, frozen=frozen)


def test_matrices_are_rounded_and_nothing_else(setup):
    found = rounding(MODEL, setup.frozen.params)
    leaves = jax.tree_util.tree_leaves_with_path(found.params)
    narrow = {path[-1].key for path, leaf in leaves if leaf.dtype == jnp.bfloat16}
    wide = {path[-1].key for path, leaf in leaves if leaf.dtype == jnp.float32}
    assert narrow == {"q", "k", "v", "o", "gate", "up", "down"}
    assert wide == {"embedding", "weight"}
    assert found.head_VD.dtype == jnp.bfloat16


@pytest.mark.parametrize(("format", "far"), [(jnp.bfloat16, 0.2), (jnp.float16, 0.02)])
def test_the_gradient_is_as_near_as_the_format_is_fine(setup, targets_CN, format, far):
    """In bfloat16 within a fifth, in float16, eight times finer, within a fiftieth."""
    grad_fn = jax.jit(jax.value_and_grad(LOOK, argnums=3, has_aux=True), static_argnums=(0, 1))
    params = jax.tree.map(lambda x: x / 2, setup.frozen.params)  # a smoother model
    frozen = setup.frozen._replace(params=params)
    near = rounding(MODEL, params)
    narrow = jax.tree.map(
        lambda x, y: x.astype(format) if y.dtype == jnp.bfloat16 else x, params, near.params
    )
    near = Rounded(narrow, frozen.params["embedding"].astype(format))
    task = Task(jnp.asarray(targets_CN[0]), jnp.int32(16), jnp.int32(2))
    for seed in range(3):
        prompt_MD = jax.random.normal(jax.random.key(seed), (4, MODEL.width)) * frozen.scale
        found = []
        for model in (frozen, frozen._replace(rounded=near)):
            (loss, _), grad_MD = grad_fn(MODEL, PROTOCOL, model, prompt_MD, jnp.int32(0), task)
            found.append((float(loss), np.asarray(grad_MD)))
        (loss, grad), (near_loss, near_grad) = found
        assert 0 < abs(loss - near_loss) < far * loss / 4
        assert 0 < np.linalg.norm(grad - near_grad) < far * np.linalg.norm(grad)


def test_what_the_search_believes_the_exact_model_says(setup, targets_CN):
    """With a lead that outweighs the rounding every reach is confirmed."""
    lengths = [2, 3, 4, 4, 4, 4]
    program = rounded(setup).program(lengths, targets_CN[:6], ROUNDED)
    lanes_C = run(program).lanes_C
    assert int(lanes_C.best.sum()) >= 4
    for c, m in enumerate(lengths):
        best = int(lanes_C.best[c])
        emitted, margins = setup.decode(np.asarray(lanes_C.best_MD[c])[-m:], best)
        np.testing.assert_array_equal(emitted, targets_CN[c][:best])
        assert (margins > 0.1).all()


def test_a_lead_is_asked_of_every_token(setup, targets_CN):
    task = Task(jnp.asarray(targets_CN[0]), jnp.int32(16), jnp.int32(2))
    prompt_MD = jax.random.normal(jax.random.key(0), (4, MODEL.width)) * setup.frozen.scale
    # The target is what the model says itself, so that the leads decide and nothing else.
    best, _ = setup.decode(np.asarray(prompt_MD)[-2:], 16)
    task = task._replace(target_N=jnp.asarray(best, jnp.int32))
    margins = jax.jit(lambda *x: lane.teacher_forced(MODEL, *x).margin)
    said = np.asarray(margins(setup.frozen, prompt_MD, task))
    assert (said > 0).all()
    for lead in (0.0, float(np.median(said)), 1e3):
        config = dataclasses.replace(PROTOCOL, lead=lead)
        _, got = jax.jit(LOOK, static_argnums=(0, 1))(
            MODEL, config, setup.frozen, prompt_MD, jnp.int32(0), task
        )
        assert int(got) == int(np.cumprod(said >= lead).sum())
