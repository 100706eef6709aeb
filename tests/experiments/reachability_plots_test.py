"""The figures of a page get the published curves of their model, and only those they can use."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from reach_jax.analysis import summary
from reach_jax.bounds.bound import first_bounds
from reach_jax.experiments import published_curves, reachability_plots, zoo
from sweep_jax import drawing

BOUNDS = first_bounds(-np.ones(4), np.ones(4), 50, np.float32, "prompts")


@pytest.fixture
def draw(monkeypatch, tmp_path):
    """The figures by name, not written."""
    kept = {}

    def save(figure, stem):
        kept[stem.name] = figure
        return stem, stem

    monkeypatch.setattr(drawing, "save", save)

    def call(name, sources):
        frame = pd.DataFrame(
            [
                {"prompt_length": m, "source": source, "threshold": 15 * m + k, "status": "ok"}
                for source in sources
                for m in (1, 2)
                for k in range(4)
            ]
        )
        known = zoo.Known(name, Path("."), 50, {"source": name})
        found = published_curves.find(known, 640)
        n50s, lines = summary.n50_frame(frame), summary.line_frame(frame, 0)
        reachability_plots.draw(known, found, frame, n50s, lines, BOUNDS, tmp_path)
        return kept

    return call


def labels(ax):
    return [text.get_text() for text in ax.get_legend().texts]


def test_the_published_curve_stands_beside_its_own_model(draw):
    made = draw("gemma3-270m", ("text", "words"))
    assert set(made) == {"success", "line"}  # no random targets, no share of all outputs
    curves = published_curves.load()["google/gemma-3-270m"]
    for ax in made["success"].axes:
        source = ax.get_title(loc="left").split()[0]
        assert "published" in labels(ax)
        drawn = [np.stack(line.get_data(), axis=1) for line in ax.lines]
        for m in (1, 2):
            wanted = np.stack(curves[source][m], axis=1)
            assert any(d.shape == wanted.shape and np.allclose(d, wanted) for d in drawn)


def test_no_curve_of_another_model_or_source(draw):
    made = draw("smollm2-135m", ("text", "random"))
    assert set(made) == {"success", "line", "fraction"}
    assert all("published" not in labels(ax) for ax in made["success"].axes)
    made = draw("gemma3-270m", ("random",))
    assert all("published" not in labels(ax) for ax in made["success"].axes)
