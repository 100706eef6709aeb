"""The list of bounds of one model: what it holds, how it is labelled, and that labels are true."""

import dataclasses

import jax.numpy as jnp
import numpy as np
import pytest

from reach_jax.bounds.bound import Bound, first_bounds
from reach_jax.bounds.floats import count_floats

RNG = np.random.default_rng(0)
LO, HI = -RNG.uniform(0.1, 60, 768), RNG.uniform(0.1, 60, 768)


def by_name(support_of="prompts", dtype="float16"):
    return {b.name: b for b in first_bounds(LO, HI, 50304, dtype, support_of)}


def test_pythia_160m_in_a_cube():
    side = np.full(768, 63.62)
    slopes = {
        b.name: round(b.slope, 1) for b in first_bounds(-side, side, 50304, "float16", "outputs")
    }
    assert slopes == {
        "trivial bits": 786.8,
        "float grid": 756.8,
        "ball, eps = r/2^11": 590.1,
        "box, eps = r/2^11": 590.1,
        "ball, eps = 2^-10": 835.5,
        "box, eps = 2^-10": 835.5,
    }


@pytest.mark.parametrize("dtype", ["float16", jnp.bfloat16, np.float32])
def test_inclusions_order_the_bounds(dtype):
    """A box lies in its cube, and the floats of a box are among all floats."""
    bounds = by_name(dtype=dtype)
    assert bounds["float grid"].slope < bounds["trivial bits"].slope
    for eps in ("r/2^11", "2^-10"):
        assert bounds[f"box, eps = {eps}"].slope < bounds[f"ball, eps = {eps}"].slope


def test_float_grid_is_rigorous_for_the_prompts_support_alone():
    assert by_name("prompts")["float grid"].rigorous
    assert not by_name("outputs")["float grid"].rigorous
    assert by_name("outputs")["trivial bits"].rigorous
    assert "output embeddings" in by_name("outputs")["float grid"].assumptions
    assert "every prompt lies" in by_name("prompts")["ball, eps = 2^-10"].assumptions


def test_a_rigorous_bound_is_never_below_the_number_of_prompts():
    """Why ball and box are not rigorous: at r/2^11 they are, since floats are finer near 0."""
    ln_prompts = np.log(np.asarray(count_floats(LO, HI, "float16"), float)).sum()
    bounds = by_name("prompts")
    for bound in bounds.values():
        if bound.rigorous:
            assert bound.slope * np.log(50304) >= ln_prompts * (1 - 1e-12)
    assert bounds["ball, eps = r/2^11"].slope * np.log(50304) < ln_prompts


def test_ratio_and_what_it_refuses():
    bound = Bound("ball", 900.0, False, "Corollary 4.6", "")
    assert bound.ratio(90.0) == 10
    for slope in (0.0, -1.0, np.nan, np.inf):
        with pytest.raises(ValueError, match="measured_slope"):
            bound.ratio(slope)
    with pytest.raises(dataclasses.FrozenInstanceError):
        bound.slope = 1.0


@pytest.mark.parametrize(("change", "message"), [
    ({"support_of": "inputs"}, "support_of = 'inputs'"),
    ({"hi_D": HI[:5]}, "lo_D, hi_D"),
    ({"hi_D": HI * np.inf}, "finite ends"),
    ({"hi_D": LO - 1}, "lo <= hi"),
    ({"lo_D": HI * 0, "hi_D": HI * 0}, "radius = 0.0"),
    ({"vocabulary": 1}, "vocabulary = 1"),
    ({"dtype": "float64"}, "dtype = 'float64'"),
])  # fmt: skip
def test_bad_input_is_refused(change, message):
    given = {"lo_D": LO, "hi_D": HI, "vocabulary": 50304, "dtype": "float16"}
    with pytest.raises(ValueError, match=message):
        first_bounds(**{**given, "support_of": "prompts", **change})
