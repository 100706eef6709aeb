"""The plane end to end: pixels against NumPy, a stop that leaves nothing half done, bad input."""

import shutil

import numpy as np
import pytest

from reach_jax.experiments import zoo
from sweep_jax.cells import load_config
from sweep_jax.stop import Stop
from tests.experiments.conftest import GOLDENS, QUICK

SIZES = (*QUICK, "--config.plane.pixels=24", "--config.plane.named=3")


def test_end_to_end(launched, crammed, tmp_path):
    shutil.copytree(crammed / "models", tmp_path / "run" / "models")
    run = launched("plane", *SIZES)
    assert run.code == 0
    metrics, kept = run.stored()
    states_3D = kept["states"].astype(float)
    centre_D = states_3D.mean(axis=0)
    config = load_config(run.workdir / "config.json").to_dict()
    model = zoo.load(zoo.choice(config), run.workdir, Stop())
    head_VD = np.asarray(model.params["embedding"], float)  # tied
    left, right, bottom, top = metrics["extent"]
    # An affine map of the plane's own coordinates, fitted to the three states, is exact on it.
    system_33 = np.column_stack([kept["points"], np.ones(3)])
    lift_3D = np.linalg.solve(system_33, states_3D)
    middle = (np.arange(24) + 0.5) / 24
    x_YX, y_YX = np.meshgrid(left + middle * (right - left), bottom + middle * (top - bottom))
    points_YXD = np.stack([x_YX, y_YX, np.ones((24, 24))], axis=-1) @ lift_3D
    logits_YXV = points_YXD @ head_VD.T
    gap_YX = (
        logits_YXV.max(-1) - np.take_along_axis(logits_YXV, kept["tokens"][..., None], -1)[..., 0]
    )
    assert gap_YX.max() < 1e-3 * np.abs(logits_YXV).max()
    assert (logits_YXV.argmax(-1) == kept["tokens"]).mean() > 0.98
    np.testing.assert_allclose(kept["points"].mean(axis=0), 0, atol=1e-5)
    distance = np.linalg.norm(states_3D - centre_D, axis=1)
    np.testing.assert_allclose(np.linalg.norm(kept["points"], axis=1), distance, rtol=1e-5)
    ids, counts = np.unique(kept["tokens"], return_counts=True)
    assert metrics["cells"] == len(ids)
    assert metrics["shares"][0] == pytest.approx(counts.max() / 24**2)

    before = run.cells()
    (run.workdir / "report.html").unlink()
    assert launched("plane", *SIZES).cells() == before  # a second run computes nothing
    assert launched("plane", *SIZES, "--mode=report").code == 0
    assert (run.workdir / "report.html").stat().st_size > 5000
    assert (run.workdir / "figures" / "plane.png").read_bytes()[:4] == b"\x89PNG"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ("--config.plane.prompts=one,two",),
            "config.plane.prompts = ('one', 'two'): expected three",
        ),
        (("--config.plane.pixels=0",), "config.plane.pixels = 0: expected an integer in [1, 4000]"),
        (("--config.plane.margin=-1.0",), "config.plane.margin = -1.0: expected a number >= 0"),
        (("--config.plane.named=19",), "config.plane.named = 19: expected an integer in [1, 18]"),
        ((f"--config.source.path={GOLDENS / 'gpt2'}",), "a tokenizer.json in it, for config.plane"),
    ],
)
def test_bad_input_is_named(launched, words, message):
    run = launched("plane", *words)
    assert run.code == 2
    assert run.err.startswith("error: ")
    assert message in run.err
    assert not run.workdir.exists()
