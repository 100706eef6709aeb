"""The numbers of a page's parts on the search: bits of texts, what is available, the ways."""

import dataclasses
import math

import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest

from reach_jax.bounds.bound import first_bounds
from reach_jax.bounds.floats import count_floats
from reach_jax.cramming import outcome
from reach_jax.cramming.state import Frozen
from reach_jax.experiments import search_report
from sweep_jax.cells import Cell, hash_name
from sweep_jax.store import Result, Store, table
from tests.cramming.conftest import MODEL, PROTOCOL


def test_bits_of_random_tokens_are_those_of_the_vocabulary():
    """1568 tokens of 128256 are 26607 bits (CRM-07); a prompt vector of 4096 float16 has 65536."""
    best = pd.DataFrame(
        {
            "source": ["random", "random", "text", "text"],
            "prompt_length": [1, 2, 1, 2],
            "threshold": [1568, 11, 7, 0],
            "text_bits": [99.0, 99.0, 8192.0, np.nan],
        }
    )
    made = search_report.worths(best, 4096, 128_256, given=0)
    assert made["source"].tolist() == ["random", "random", "text"]  # the unknown one is left out
    bits = made["bits"] * made["prompt_length"] * 4096
    assert bits[0] == pytest.approx(26607, abs=1)
    assert bits[1] == pytest.approx(11 * math.log2(128_256))
    assert made["bits"][2] == pytest.approx(2.0)
    given = search_report.worths(best, 4096, 128_256, given=1)
    assert given["bits"][1] == pytest.approx(10 * math.log2(128_256) / 8192)
    old = search_report.worths(best.drop(columns="text_bits"), 4096, 128_256, given=0)
    assert old["source"].tolist() == ["random", "random"]


def test_available_bits_are_counts_of_floats():
    lo_D, hi_D = np.array([-1.0, -2.0, 0.5]), np.array([1.0, 3.0, 0.75])
    bounds = first_bounds(lo_D, hi_D, 300, np.float32, "prompts")
    found = {b.name: b for b in search_report.offers(bounds, 3, 300)}
    assert found["trivial bits"].slope == pytest.approx(32)
    counts = np.asarray(count_floats(lo_D, hi_D, np.float32), np.float64)
    assert found["float grid"].slope == pytest.approx(np.log2(counts).mean())
    assert found["float grid"].rigorous
    assert found["ball, eps = r/2^11"].slope > 0


@pytest.mark.parametrize(("prefix", "first", "count", "wanted"), [
    ("begin", "predicted", 3, 3 + 4 + 5),
    ("none", "predicted", 3, math.log2(40) + 4 + 5),  # nothing stands before the first token
    ("none", "given", 3, 4 + 5),
    ("begin", "given", 1, 0),
    ("none", "predicted", 0, 0),
])  # fmt: skip
def test_bits_of_a_text_are_what_the_model_alone_needs(prefix, first, count, wanted):
    config = dataclasses.replace(PROTOCOL, prefix=prefix, first_token=first)
    before_D = jnp.zeros(4) if prefix == "begin" else None
    frozen = Frozen({}, before_D, jnp.float32(1))
    task = outcome.Finished(MODEL, config, frozen, 1, 4, np.zeros(4, np.int32), 4)
    start = max(task.given, int(frozen.prefix_D is None))
    alone_N = np.array([3, 4, 5, 6]) * math.log(2)
    assert outcome.text_bits(task, alone_N, count, start) == pytest.approx(wanted)


@pytest.fixture
def stored(tmp_path):
    """Two text targets, one of two lengths, and a random one that reached nothing."""
    store, cells = Store(tmp_path), []
    rows = [("text", 0, 3, 2), ("text", 0, 5, 4), ("text", 1, 4, 3), ("random", 0, 0, 0)]
    for source, target, threshold, components in rows:
        about = {"prompt_length": 2, "source": source, "target": target, "length": 9 + threshold}
        plain = {"cell": about}
        cell = Cell(hash_name(plain), plain, {f"cell.{k}": v for k, v in about.items()})
        metrics = {
            "threshold": threshold,
            "least_margin": 0.5 if threshold else float("nan"),
            "text_bits": 2.0 * threshold,
            "path_snapshots": 6,
            "path_stride": 2,
            "path_length": 10.0 * threshold,
            "path_straight": 1.0,
            "path_components": components or float("nan"),
        }
        prompt = np.random.default_rng(threshold).normal(size=(2, 4)).astype(np.float32)
        arrays = {"prompt": prompt, "path_shares": np.full(5, 0.2)}
        store.write(cell, Result("ok", metrics, 0.0, 0.0), {}, arrays)
        cells.append(cell)
    return store, cells


def test_sections_take_the_longest_of_a_target_and_what_is_stored(stored, tmp_path):
    store, cells = stored
    frame = table(store, cells)
    bounds = first_bounds(-np.ones(4), np.ones(4), 16, np.float32, "prompts")
    how = (store, cells, 16, 0, bounds, tmp_path / "figures")
    made, shown = search_report.sections(frame, *how)
    assert [s.title for s in made] == ["Margins", "Bits", "The way of the search"]
    (_, bits), (_, ways) = shown
    text = bits[bits["source"] == "text"].iloc[0]
    assert (text["targets"], text["used"], text["most"]) == (2, 9 / 8, 10 / 8)
    assert bits[bits["source"] == "random"].iloc[0]["used"] == 0
    (way,) = ways.to_dict("records")
    assert (way["source"], way["targets"], way["components"], way["most"]) == ("text", 2, 3.5, 4)
    assert (way["length"], way["steps between"]) == (45, 2)
    for name in ("margin", "bits", "path"):
        assert (tmp_path / "figures" / f"{name}.svg").stat().st_size > 2000
    old = frame.drop(columns=[c for c in frame if c.startswith("path_") or c == "text_bits"])
    made, shown = search_report.sections(old, *how)
    assert [s.title for s in made] == ["Margins"]  # no random target reached a token
    assert shown == []
