"""A decoder's description refuses what cannot be a decoder, and says which field it was."""

import dataclasses
import re

import jax
import pytest

from reach_jax.models import decoder
from tests.models.tiny import CONFIG


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("vocab_size", 0),
        ("layers", 0),
        ("width", 0),
        ("heads", 0),
        ("kv_heads", 0),
        ("kv_heads", 4),  # does not divide 6 heads
        ("kv_heads", 12),
        ("head_width", 0),
        ("head_width", 5),
        ("mlp_width", -1),
        ("rope_base", 0.0),
        ("rope_base", float("nan")),
        ("norm_eps", 0.0),
        ("dtype", "float64"),
    ],
)
def test_a_bad_field_is_named(field, value):
    with pytest.raises(ValueError, match=f"^{field} = {re.escape(repr(value))}: expected "):
        dataclasses.replace(CONFIG, **{field: value})


def test_a_good_config_stands_and_is_frozen():
    wide = dataclasses.replace(CONFIG, head_width=10, kv_heads=6)  # H x N need not be the width
    assert wide.kv_heads == 6
    with pytest.raises(dataclasses.FrozenInstanceError):
        wide.layers = 3


@pytest.mark.parametrize("kv_heads", [1, 2, 6])
def test_flops_are_twice_the_weights_of_the_layers(kv_heads):
    config = dataclasses.replace(CONFIG, kv_heads=kv_heads, layers=3)
    layers = jax.eval_shape(lambda: decoder.init(config, jax.random.key(0)))["layers"]
    matrices = [*layers["attention"].values(), layers["gate"], layers["up"], layers["down"]]
    assert config.flops_per_token == 2 * sum(x.size for x in matrices)
