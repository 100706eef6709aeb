"""Figures: what is drawn is what was given, files repeat byte for byte, no global state."""

from types import SimpleNamespace

import matplotlib
import numpy as np
import pandas as pd
import pytest

from reach_jax.analysis import figures, line_figure
from reach_jax.analysis.summary import line_frame, n50_frame
from reach_jax.analysis.thresholds import success_curve
from sweep_jax import drawing

RNG = np.random.default_rng(0)
CELLS = pd.DataFrame(
    [
        {"prompt_length": m, "source": source, "threshold": int(t), "status": "ok"}
        for source, rate in (("text", 90), ("random", 44))
        for m in (1, 2, 3)
        for t in RNG.normal(rate * m, 9, 16)
    ]
)
BOUNDS = [
    SimpleNamespace(name="ball", slope=835.5, rigorous=False),
    SimpleNamespace(name="float grid", slope=756.8, rigorous=True),
]


def curves(source, n_max=330):
    groups = CELLS[CELLS["source"] == source].groupby("prompt_length")["threshold"]
    return {m: success_curve(t, np.zeros(len(t), bool), n_max) for m, t in groups}


def drawn(ax):
    return [np.stack(line.get_data(), axis=1) for line in ax.lines]


def holds(ax, x, y):
    """Whether some line of the axes has exactly these points."""
    points = np.stack([x, y], axis=1).astype(float)
    return any(d.shape == points.shape and np.allclose(d, points) for d in drawn(ax))


def texts(fig):
    return "\n".join(t.get_text() for t in fig.findobj(matplotlib.text.Text))


def test_success_curves_draw_each_curve_and_the_published_one():
    published = {"text": {2: ([100, 180, 250], [1.0, 0.5, 0.0])}}
    by_source = {"text": curves("text"), "random": curves("random")}
    fig = figures.success_curves(by_source, published)
    for ax, by_m in zip(fig.axes, by_source.values(), strict=True):
        for curve in by_m.values():
            assert holds(ax, curve.n, curve.share)
        assert len(ax.collections) == 3
    assert holds(fig.axes[0], *published["text"][2])
    assert "published" in [t.get_text() for t in fig.axes[0].get_legend().texts]
    assert "published" not in [t.get_text() for t in fig.axes[1].get_legend().texts]
    with pytest.raises(ValueError, match="curves"):
        figures.success_curves({})


def test_what_a_budget_cut_short_is_marked_and_never_taken_for_reached():
    """4 targets, one cut short at 6: the share is known to 6, sure beyond, a tick at 6."""
    curve = success_curve([3, 6, 8, 10], [False, True, False, False], 12)
    (ax,) = figures.success_curves({"text": {1: curve}}).axes
    assert np.isnan(curve.share[7])
    sure = [0.75, 0.5, 0.5, 0.25, 0.25, 0, 0]  # 6..12: what ended or was cut short is out
    assert holds(ax, range(6, 13), sure)
    assert holds(ax, [6], [0.75])
    assert "at least; censored" in [t.get_text() for t in ax.get_legend().texts]
    assert ax.get_xlim()[1] > 6
    plain = success_curve([3, 6], [False, False], 12)
    (ax,) = figures.success_curves({"text": {1: plain}}).axes
    assert "at least; censored" not in [t.get_text() for t in ax.get_legend().texts]


def test_line_beside_bounds_draws_points_lines_and_labelled_bounds():
    n50s, lines = n50_frame(CELLS), line_frame(CELLS, 0)
    fig = line_figure.line_beside_bounds(n50s, lines, BOUNDS)
    left, right = fig.axes
    for source in ("text", "random"):
        group = n50s[n50s["source"] == source].iloc[::-1]
        for ax in (left, right):
            assert holds(ax, group["prompt_length"], group["n50"])
        row = lines.query("source == @source and fit == 'intercept'").iloc[0]
        at = np.geomspace(1, 3, 200)
        assert holds(left, at, row["intercept"] + row["slope"] * at)
    for bound in BOUNDS:
        assert holds(right, [1, 3], bound.slope * np.array([1, 3]))
    assert "ball (heuristic)" in texts(fig)
    assert "float grid (rigorous)" in texts(fig)
    assert (right.get_yscale(), left.get_yscale()) == ("log", "linear")


def test_line_stops_where_censoring_starts_and_open_ends_are_shown(tmp_path):
    cells = CELLS.copy()
    at = (cells["source"] == "text") & (cells["prompt_length"] == 3)
    cells.loc[at, ["threshold", "status"]] = [250, "censored"]
    cells.loc[cells["source"] == "random", "threshold"] = 0
    fig = line_figure.line_beside_bounds(n50_frame(cells), line_frame(cells, 0), [])
    longest = max((d for d in drawn(fig.axes[0]) if len(d) == 200), key=lambda d: d[-1, 1])
    assert longest[-1, 0] == 2
    assert texts(fig).count("▲") == 2
    drawing.save(fig, tmp_path / "zeros on a log axis")


def test_reachable_fraction_is_flat_to_c_m_and_falls_log10_v_a_token():
    fig = figures.reachable_fraction(curves("random"), BOUNDS[1], 50304)
    top, bottom = fig.axes
    for m, curve in curves("random").items():
        assert holds(top, curve.n, curve.share)
        knee = 756.8 * m
        (line,) = [d for d in drawn(bottom) if len(d) > 1 and np.isclose(d[1, 0], knee)]
        np.testing.assert_array_equal(line[:2, 1], 0)
        np.testing.assert_allclose(line[1:, 1], (knee - line[1:, 0]) * np.log10(50304))
    assert "float grid (rigorous)" in bottom.get_title(loc="left")


def test_files_repeat_byte_for_byte_and_nothing_global_changes(tmp_path):
    before = dict(matplotlib.rcParams)
    written = []
    for name in ("one", "two"):
        fig = line_figure.line_beside_bounds(n50_frame(CELLS), line_frame(CELLS, 0), BOUNDS)
        png, svg = drawing.save(fig, tmp_path / name / "figure.v1")
        assert (png.name, svg.name) == ("figure.v1.png", "figure.v1.svg")
        written.append((png.read_bytes(), svg.read_bytes()))
    assert written[0] == written[1]
    assert written[0][0].startswith(b"\x89PNG")
    assert b"<dc:date>" not in written[0][1]
    assert dict(matplotlib.rcParams) == before


def test_labels_stand_apart_and_move_least():
    moved = line_figure._apart(np.array([0.1, 0.5, 0.51, 0.9]), 0.06)
    assert (np.diff(moved) > 0.06 - 1e-12).all()
    np.testing.assert_allclose(moved, [0.1, 0.475, 0.535, 0.9])
