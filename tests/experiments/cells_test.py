"""Cells end to end: stored counts against NumPy over the points that were drawn."""

import json

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from reach_jax.geometry import cells, cells_speed
from reach_jax.hub.tensors import Tensors
from tests.experiments.conftest import GOLDENS

SIZES = (
    f"--config.source.path={GOLDENS / 'llama'}",
    "--config.source.dtype=float32",
    "--config.points=2048",
    "--config.axes.blocks=2",
    "--config.axes.regions=ball,box,states",
    "--config.support.lengths=3,",
)
HEAD_VD = np.asarray(Tensors(GOLDENS / "llama").read("lm_head.weight"), float)


@pytest.fixture(autouse=True)
def small_square(monkeypatch):
    monkeypatch.setattr(cells_speed, "SQUARE", 256)


@pytest.fixture
def drawn(monkeypatch):
    """The points of every part that was counted."""
    parts, real = [], cells.count

    def spy(batches, head, vocabulary):
        kept = [np.asarray(batch) for batch in batches]
        parts.append(np.concatenate(kept).astype(float))
        return real(kept, head, vocabulary)

    monkeypatch.setattr(cells, "count", spy)
    return parts


def winners(points_ND, rule):
    if rule == "argmax":
        return (points_ND @ HEAD_VD.T).argmax(axis=1)
    return np.square(points_ND[:, None] - HEAD_VD[None]).sum(axis=2).argmin(axis=1)


def test_end_to_end_stopped_and_gone_on_with(launched, drawn):
    first = launched("cells", *SIZES, stop_after=3)
    before = first.cells()
    assert (first.code, len(before)) == (143, 3)
    run = launched("cells", *SIZES)
    assert run.code == 0
    assert before.items() < run.cells().items()
    order = [("ball", "argmax"), ("ball", "nearest"), ("box", "argmax"), ("box", "nearest")]
    order = [(region, rule, block) for region, rule in order for block in (0, 1)]
    order += [("states", rule, 0) for rule in ("argmax", "nearest")]
    points = dict(zip(order, drawn, strict=True))  # nothing was drawn twice
    csv = pd.read_csv(run.workdir / "shares.csv").set_index(["rule", "region", "token"])
    for (region, rule, block), points_ND in points.items():
        _, kept = run.stored(region=region, rule=rule, block=block)
        won_N = winners(points_ND, rule)
        # float32 may choose the other of two logits that are as good as equal.
        assert np.abs(kept["counts"] - np.bincount(won_N, minlength=40)).sum() <= 2
        assert kept["counts"].sum() == len(points_ND) == (64 if region == "states" else 2048)
        np.testing.assert_array_equal(points_ND, points[region, "argmax", block])
        both = sum(
            run.stored(region=region, rule=rule, block=b)[1]["counts"]
            for r, u, b in order
            if (r, u) == (region, rule)
        )
        shares = csv.loc[rule, region]
        np.testing.assert_allclose(shares["share"], both / both.sum())
        hit = both.argmax()
        tail = stats.binom.sf(both[hit] - 1, both.sum(), shares["low"][hit])
        assert tail == pytest.approx(0.025, rel=1e-6)
    assert (points["ball", "argmax", 0] != points["ball", "argmax", 1]).all()

    states_ND = points["states", "argmax", 0]
    ball_ND, box_ND = (points[region, "argmax", 0] for region in ("ball", "box"))
    radius = np.linalg.norm(states_ND, axis=1).max()
    norm_N = np.linalg.norm(ball_ND, axis=1)
    assert radius * 0.99 < norm_N.max() < radius * (1 + 1e-6)
    lo_D, hi_D = states_ND.min(axis=0), states_ND.max(axis=0)
    assert ((box_ND >= lo_D - 1e-6) & (box_ND <= hi_D + 1e-6)).all()
    np.testing.assert_allclose(box_ND.max(axis=0) - box_ND.min(axis=0), hi_D - lo_D, rtol=0.02)

    speed = json.loads((run.workdir / "speed.json").read_text())
    assert speed["share"] == pytest.approx(speed["gflops"] / speed["square_gflops"])
    assert f"{100 * speed['share']:.0f} % of this machine's float32 product" in run.out
    (run.workdir / "report.html").unlink()
    again = launched("cells", *SIZES, "--mode=report")
    assert (again.code, len(drawn)) == (0, len(order))
    assert (run.workdir / "report.html").stat().st_size > 5000


def test_plan_counts_multiply_adds(launched):
    run = launched("cells", *SIZES, "--config.points=1000000", "--mode=plan")
    assert run.code == 0
    work = 8 * round(2e-9 * 1e6 * 40 * 24, 1)  # the 64 states round to nothing
    assert f"10 cells, points 8e+06, GFLOP {work:g}" in run.out.replace("8.00013e+06", "8e+06")


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("points=0", "config.points = 0: expected an integer >= 1"),
        ("confidence=1.0", "config.confidence = 1.0: expected in (0, 1)"),
        ("axes.regions=cone,", "config.cell.region = 'cone': expected one of"),
        ("axes.rules=softmax,", "config.cell.rule = 'softmax': expected one of"),
        ("axes.blocks=0", "config.axes.blocks = 0: expected at least one"),
        ("support.samples=0", "config.support.samples = 0: expected an integer >= 1"),
        ("source.path=absent/model/x", "absent/model/x"),
    ],
)
def test_bad_input_is_named(launched, word, message):
    run = launched("cells", *SIZES, f"--config.{word}")
    assert run.code == 2
    assert run.err.startswith("error: ")
    assert message in run.err
    assert not run.workdir.exists()
