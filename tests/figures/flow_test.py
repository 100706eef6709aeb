"""What the flow figure shows: a cell a known token, an arrow a key, what matters in full colour."""

import matplotlib.colors
import numpy as np
import pytest
from matplotlib.patches import FancyArrowPatch, Rectangle

from infoflow_jax.figures import flow
from sweep_jax import drawing

KNOWN = np.zeros((2, 4, 4), bool)  # three tokens and c0, one layer, c0 looks at the second
KNOWN[:, :3, :3] = np.eye(3)
KNOWN[1, 3, 1] = True
MOVES = [(1, 0, 3, 1, "z"), (1, 1, 0, 2, "w")]


def drawn(readers):
    ax = flow.flow(KNOWN, MOVES, readers).axes[0]
    cells = [patch for patch in ax.patches if isinstance(patch, Rectangle)]
    arrows = [patch for patch in ax.patches if isinstance(patch, FancyArrowPatch)]
    return ax, cells, arrows


def test_filled_cells_are_the_known_tokens():
    _, cells, _ = drawn([3])
    assert len(cells) == 2 * 4 * 3
    white = matplotlib.colors.to_rgb("white")
    filled = [c for c in cells if c.get_facecolor()[:3] != white]
    assert len(filled) == KNOWN[:, :, :3].sum()


def test_only_what_reaches_a_reader_is_in_full_colour():
    for readers, strong in [([3], [0]), ([0], [1]), ([0, 3], [0, 1]), ([2], [])]:
        _, _, arrows = drawn(readers)
        assert [i for i, arrow in enumerate(arrows) if arrow.get_alpha() == 1.0] == strong


def test_a_head_has_one_colour_and_a_name():
    fig = flow.flow(KNOWN, MOVES, [3])
    names = [text.get_text() for text in fig.legends[0].get_texts()]
    assert names == ["head 1", "head 2"]
    _, _, arrows = drawn([3])
    colours = [matplotlib.colors.to_hex(a.get_facecolor()).upper() for a in arrows]
    assert colours == [flow.HEADS[0], flow.HEADS[1]]


def test_frontier_marks_what_was_asked(tmp_path):
    fig = flow.frontier([((3, 3), 9), ((1, 1, 1, 1), 8)], (2, 3), feasible=False)
    ax = fig.axes[0]
    assert sorted(tuple(line.get_xydata()[0]) for line in ax.lines) == [(4, 4), (5, 2), (6, 2)]
    assert [t.get_text() for t in ax.texts][-1] == "(2, 3) does not"
    png, svg = drawing.save(fig, tmp_path / "frontier")
    assert png.stat().st_size > 1000
    assert svg.stat().st_size > 1000


def test_bad_input():
    with pytest.raises(ValueError, match="known_LPP"):
        flow.flow(np.zeros((2, 3)), [], [0])
    with pytest.raises(ValueError, match="points"):
        flow.frontier([], None, True)
