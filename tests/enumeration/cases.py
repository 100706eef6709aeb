"""Small decoders whose every prompt the tests enumerate; parameters are made once a process."""

import dataclasses
import functools

import jax

from reach_jax.enumeration import weights
from reach_jax.enumeration.blocks import Enumeration
from reach_jax.enumeration.decode import Layout
from reach_jax.enumeration.grid import Grid
from reach_jax.models.config import DecoderConfig

BASE = DecoderConfig(
    vocab_size=4,
    layers=2,
    width=2,
    heads=2,
    kv_heads=1,
    head_width=2,
    mlp_width=5,
    rope_base=100.0,
    norm_eps=1e-5,
    tied=False,
    dtype="float32",
)


def spec(attention="causal", end="vector", vectors=2, bits=2, length=6, **changes):
    config = dataclasses.replace(BASE, **changes)
    grid = Grid(config.width, vectors, bits, 1.5)
    return Enumeration(config, Layout(attention, end), grid, length)


@functools.cache
def params(config, seed=0):
    return weights.draw(config, weights.RandomWeights(2.0, True), jax.random.key(seed))
