"""The ratio panels draw what they are given: marks where the numbers are, and none for NaN."""

import numpy as np
import pandas as pd
import pytest

from reach_jax.analysis.ratio_figure import ratio_panels

RATIOS = pd.DataFrame(
    {
        "row": ["ball", "ball", "box"],
        "model": ["A", "B", "A"],
        "published": [9.0, 14.0, 8.0],
        "recomputed": [9.1, 14.1, np.nan],
        "corrected": [7.0, 11.0, 8.2],
    }
)
CEILINGS = {"A": (8.5, 8.0), "B": (12.0, 12.5)}


def test_marks_and_bars_stand_where_the_numbers_are():
    fig = ratio_panels(RATIOS, CEILINGS, "trivial")
    ball, box = fig.axes
    assert [ax.get_title(loc="left") for ax in fig.axes] == ["ball", "box"]
    marks = {line.get_label(): line for line in ball.get_lines()}
    assert marks["published"].get_xdata().tolist() == [9.0, 14.0]
    assert marks["corrected"].get_ydata().tolist() == [1, 0]  # the first model on top
    bars = [
        line for line in ball.get_lines() if len(line.get_xdata()) == 2 and line.get_ls() == "-"
    ]
    assert sorted(set(np.concatenate([b.get_xdata() for b in bars]))) == [8.0, 8.5, 12.0, 12.5]
    lower = next(b for b in bars if b.get_xdata()[0] == 8.5)
    assert lower.get_ydata()[1] < lower.get_ydata()[0]
    drawn = {line.get_label(): line.get_xdata() for line in box.get_lines()}
    assert np.isnan(drawn["recomputed"]).all()
    assert [t.get_text() for t in ball.get_yticklabels()] == ["A", "B"]
    assert ball.get_xlim()[1] > 14
    fig.canvas.draw()


def test_no_row_is_refused():
    with pytest.raises(ValueError, match="ratios = 0"):
        ratio_panels(RATIOS[:0], CEILINGS, "trivial")
