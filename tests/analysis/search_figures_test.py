"""Figures of the search: what is drawn is what was given."""

from types import SimpleNamespace

import matplotlib
import numpy as np
import pandas as pd
import pytest

from reach_jax.analysis import search_figures
from sweep_jax import drawing


def lines(ax):
    return [np.stack(line.get_data(), axis=1).astype(float) for line in ax.lines]


def holds(ax, x, y):
    wanted = np.stack([x, y], axis=1).astype(float)
    return any(d.shape == wanted.shape and np.allclose(d, wanted) for d in lines(ax))


def words(fig):
    return "\n".join(t.get_text() for t in fig.findobj(matplotlib.text.Text))


def test_shares_at_the_lengths_tried_and_the_published_ones():
    curves = {
        "text": {2: {"greedy": ([10, 20], [1, 0.4]), "teacher forced": ([10, 20], [1, 0.6])}},
        "words": {1: {"greedy": ([5, 9], [0.5, 0])}},
    }
    published = {"text": {2: ([8, 30], [1, 0])}}
    fig = search_figures.shares_at_lengths(curves, published)
    left, right = fig.axes
    for n, share in (*curves["text"][2].values(), published["text"][2]):
        assert holds(left, n, share)
    assert holds(right, *curves["words"][1]["greedy"])
    assert "m=2 published, teacher forced" in words(fig)
    assert len(right.lines) == 1
    with pytest.raises(ValueError, match="curves"):
        search_figures.shares_at_lengths({})


def test_ways_add_up_their_components():
    shares = [np.array([0.7, 0.2, 0.1]), np.array([0.9, 0.1])]
    found = [
        search_figures.Way("text", 1, 12, 3, shares[0]),
        search_figures.Way("random", 2, 5, 2, shares[1]),
    ]
    left, right = search_figures.ways(found, 0.99).axes
    assert holds(left, [1, 2, 3], [0.7, 0.9, 1.0])
    assert holds(left, [1, 2], [0.9, 1.0])
    assert holds(left, [0, 1], [0.99, 0.99])
    assert holds(right, [12], [3])
    assert holds(right, [5], [2])
    with pytest.raises(ValueError, match="found"):
        search_figures.ways([], 0.99)


def test_bits_below_what_is_available(tmp_path):
    cells = pd.DataFrame(
        {
            "source": ["random"] * 3 + ["text"] * 3,
            "prompt_length": [1, 1, 2, 1, 1, 1],
            "bits": [0.2, 0.4, 0.3, 0.0, 0.0, 0.5],
        }
    )
    bounds = [SimpleNamespace(name="float grid", slope=31.0, rigorous=True)]
    fig = search_figures.bits_per_coordinate(cells, bounds)
    (ax,) = fig.axes
    drawn = np.concatenate([d[:, 1] for d in lines(ax) if len(d)])
    for value in (0.2, 0.4, 0.3, 0.5, 31.0):  # 0.3 is both a target and a median
        assert np.isclose(drawn, value).any()
    assert not np.isclose(drawn, 0.0).any()  # no place on a log axis; the median of text is 0
    assert "available: float grid (rigorous), 31" in words(fig)
    assert "text" in words(fig)
    drawing.save(fig, tmp_path / "bits")
    with pytest.raises(ValueError, match="one value above 0"):
        search_figures.bits_per_coordinate(cells.assign(bits=0.0), bounds)
