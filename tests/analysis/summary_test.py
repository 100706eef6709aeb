"""Frames of cells: groups, statuses, and ratios, against the functions called by hand."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from reach_jax.analysis.lines import slope_interval
from reach_jax.analysis.summary import line_frame, n50_frame, ratio_frame
from reach_jax.analysis.thresholds import n50

RNG = np.random.default_rng(0)
CELLS = pd.DataFrame(
    [
        {"prompt_length": m, "source": source, "threshold": int(t), "status": "ok"}
        for source, rate in (("text", 90), ("random", 44))
        for m in (4, 1, 2)
        for t in RNG.normal(rate * m, 9, 16).clip(0)
    ]
).sample(frac=1, random_state=0)


def with_status(source, m, status, count):
    cells = CELLS.copy()
    group = cells.query("source == @source and prompt_length == @m").sort_values("threshold")
    cells.loc[group.index[-count:], "status"] = status
    return cells


def test_n50_of_each_group():
    frame = n50_frame(CELLS)
    assert list(zip(frame["source"], frame["prompt_length"], strict=True)) == [
        (source, m) for source in ("random", "text") for m in (1, 2, 4)
    ]
    for row in frame.to_dict("records"):
        group = CELLS.query("source == @row['source'] and prompt_length == @row['prompt_length']")
        expected = n50(group["threshold"], np.zeros(16, bool))
        assert (row["n50"], row["low"], row["high"]) == (
            expected.value, expected.low, expected.high,
        )  # fmt: skip
        assert (row["count"], row["censored"], row["failed"]) == (16, 0, 0)
        assert not row["lower_bound_only"]


def test_censored_cells_open_the_interval_and_leave_the_line():
    cells = with_status("text", 4, "censored", 6)
    row = n50_frame(cells).query("source == 'text' and prompt_length == 4").iloc[0]
    assert (row["count"], row["censored"], row["high"]) == (16, 6, np.inf)
    assert row["lower_bound_only"]
    lines = line_frame(cells, 0).set_index(["source", "fit"])
    assert lines.loc[("text", "intercept"), "left_out"] == "4"
    assert lines.loc[("random", "intercept"), "fitted"] == "1 2 4"


def test_failed_cells_are_counted_and_say_nothing():
    cells = with_status("text", 2, "failed", 5)
    cells.loc[cells["status"] == "failed", "threshold"] = np.nan
    row = n50_frame(cells).query("source == 'text' and prompt_length == 2").iloc[0]
    kept = cells.query("source == 'text' and prompt_length == 2 and status == 'ok'")["threshold"]
    assert (row["n50"], row["count"], row["failed"]) == (kept.median(), 11, 5)
    all_failed = n50_frame(with_status("text", 2, "failed", 16))
    row = all_failed.query("source == 'text' and prompt_length == 2").iloc[0]
    assert (row["count"], row["failed"]) == (0, 16)
    assert np.isnan(row["n50"])
    lines = line_frame(with_status("text", 2, "failed", 16), 0)
    assert lines.query("source == 'text'")["fitted"].unique() == ["1 4"]


def test_lines_are_those_of_the_thresholds():
    lines = line_frame(CELLS, seed=3)
    assert list(zip(lines["source"], lines["fit"], strict=True)) == [
        (source, fit) for source in ("random", "text") for fit in ("intercept", "origin")
    ]
    groups = dict(list(CELLS.query("source == 'text'").groupby("prompt_length")["threshold"]))
    none = {m: np.zeros(16, bool) for m in groups}
    for through_origin, fit in ((False, "intercept"), (True, "origin")):
        row = lines[(lines["source"] == "text") & (lines["fit"] == fit)].iloc[0]
        expected = slope_interval(groups, none, 3, through_origin)
        assert (row["low"], row["high"]) == (expected.low, expected.high)
        for field in ("slope", "intercept", "r2_centred", "r2_uncentred", "corr2"):
            assert row[field] == getattr(expected.line, field)


def test_ratio_and_its_interval():
    lines = pd.DataFrame(
        {"source": ["a", "b", "c"], "fit": "origin", "slope": [90.0, 5.0, np.nan],
         "low": [80.0, -1.0, np.nan], "high": [100.0, np.inf, np.nan]}
    )  # fmt: skip
    bounds = (SimpleNamespace(name=f"b{s}", slope=s, rigorous=s > 700) for s in (600.0, 800.0))
    frame = ratio_frame(lines, bounds)
    assert list(frame["bound"]) == ["b600.0", "b800.0"] * 3
    assert list(frame["rigorous"]) == [False, True] * 3
    np.testing.assert_allclose(frame["ratio"], [600 / 90, 800 / 90, 120, 160, np.nan, np.nan])
    np.testing.assert_allclose(frame["low"], [6, 8, 0, 0, np.nan, np.nan])
    np.testing.assert_allclose(frame["high"], [7.5, 10, np.nan, np.nan, np.nan, np.nan])


def test_bad_cells_are_refused():
    with pytest.raises(ValueError, match="status"):
        n50_frame(CELLS.drop(columns="status"))
    with pytest.raises(ValueError, match=r"status.*lost"):
        line_frame(with_status("text", 1, "lost", 1), 0)
    with pytest.raises(ValueError, match="thresholds"):
        n50_frame(CELLS.assign(threshold=0.5))
