"""The published curves: their numbers, which models they are for, and that they are found."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from reach_jax.experiments import published_constants, published_curves, zoo

ROOT = Path(__file__).parents[2]


def known(name, source=""):
    return zoo.Known(name, Path("."), 10, {"source": source or name})


def test_the_area_below_a_curve_is_its_n50():
    """n50 of `published_constants` was fitted to the same figures; a fall has its area."""
    curves = published_curves.load()
    off = {}
    for model in published_constants.MODELS:
        for name in [n for n in curves if n.split("/")[1].lower() == model.name.lower()]:
            for m, n50 in enumerate(model.n50, start=1):
                lengths, shares = map(np.asarray, curves[name]["text"][m])
                if max(shares[:2]) > 0.95 and max(shares[-2:]) < 0.05:  # the whole fall is there
                    area = lengths[0] + np.trapezoid(shares, lengths)
                    off[name, m] = area / n50 - 1
    assert len(off) >= 11
    assert np.abs(list(off.values())).max() < 0.2, off
    assert np.abs(np.median(list(off.values()))) < 0.03
    for by_source in curves.values():
        assert set(by_source) == {"text", "words"}
        for lengths, shares in (pair for by_m in by_source.values() for pair in by_m.values()):
            assert len(lengths) == len(shares) > 2
            assert (np.diff(lengths) > 0).all()
            assert 0 <= min(shares) <= max(shares) <= 1


@pytest.mark.parametrize(
    ("name", "source", "width", "found"),
    [
        ("gemma-3-270m", "google/gemma-3-270m", 640, "google/gemma-3-270m"),
        ("gemma3-270m", "", 640, "google/gemma-3-270m"),
        ("gemma-3-270m-q4_k_m-0123456789ab", "", 640, "google/gemma-3-270m"),
        ("pythia-410m", "EleutherAI/pythia-410m", 1024, "EleutherAI/pythia-410m"),
        ("snapshot", "Qwen/Qwen2.5-0.5B", 896, "Qwen/Qwen2.5-0.5B"),
        ("llama-3.2-1b", "", 2048, "meta-llama/Llama-3.2-1B"),
        ("gemma-3-270m", "", 64, None),  # a name says little: the width must be the model's
        ("gemma-3-270m-it", "", 640, None),
        ("smollm2-135m", "", 576, None),
        ("quick", "quick", 64, None),
        ("random-pythia", "random:pythia", 32, None),
    ],
)
def test_a_model_is_known_by_name_and_width(name, source, width, found):
    assert published_curves.find(known(name, source), width) == found


def test_only_what_is_drawn_comes_back():
    drawn = {"text": {2, 5, 9}, "random": {1}, "words": {7}}
    made = published_curves.beside("EleutherAI/pythia-160m", drawn)
    assert {source: set(by_m) for source, by_m in made.items()} == {"text": {2, 5}}


def test_the_numbers_are_found_from_any_directory_and_are_packaged(tmp_path):
    code = "from reach_jax.experiments import published_curves as p; print(len(p.load()))"
    path = {"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin", "JAX_PLATFORMS": "cpu"}
    call = [sys.executable, "-c", code]
    found = subprocess.run(call, cwd=tmp_path, env=path, capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "8"
    text = (ROOT / "pyproject.toml").read_text()
    assert 'package-data.reach_jax = ["experiments/*.json"]' in text
