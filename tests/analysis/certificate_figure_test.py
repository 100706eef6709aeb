"""Survival curves say what they are given: the share of values that is at least x."""

import numpy as np
import pytest

from reach_jax.analysis.certificate_figure import survival_panels


def test_each_step_is_the_share_at_or_above():
    values = np.array([4.0, 1.0, 2.0, 2.0])
    (ax,) = survival_panels({"text": {"m = 1": values}}, "eps", log=False).axes
    (line,) = ax.get_lines()
    x, share = line.get_xdata(), line.get_ydata()
    assert ax.get_title(loc="left") == "text"
    for at in (1.0, 1.5, 2.0, 3.0, 4.0):  # a step curve that holds its value to the left
        drawn = share[np.searchsorted(x, at)]
        assert drawn == (values >= at).mean()


def test_zero_and_infinity_count_but_have_no_place_on_a_log_axis():
    fig = survival_panels(
        {"a": {"x": [0.0, 1.0, 10.0, np.inf]}, "b": {"x": [3.0]}}, "eps", log=True
    )
    (line,) = fig.axes[0].get_lines()
    assert line.get_xdata().tolist() == [1.0, 10.0]
    assert line.get_ydata().tolist() == [0.75, 0.5]


@pytest.mark.parametrize("panels", [{}, {"a": {"x": []}}, {"a": {"x": [np.nan]}}])
def test_nothing_to_draw_is_refused(panels):
    with pytest.raises(ValueError, match="expected"):
        survival_panels(panels, "eps", log=True)
