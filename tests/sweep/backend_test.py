"""The precision of matrix products is asked for, applied and recorded (MOD-17)."""

import os
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sweep_jax import backend, provenance

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def restored(monkeypatch):
    """Environment and JAX settings as they were."""
    monkeypatch.setattr(os, "environ", os.environ.copy())
    names = (
        "jax_default_matmul_precision",
        "jax_compilation_cache_dir",
        "jax_persistent_cache_min_compile_time_secs",
    )
    before = {name: getattr(jax.config, name) for name in names}
    yield
    for name, value in before.items():
        jax.config.update(name, value)


def test_highest_is_true_float32_and_recorded(restored, tmp_path):
    """On a GPU the default would be TF32, whose 10 bits make 1024 of 1024.5."""
    backend.configure("highest", tmp_path)
    assert provenance.collect()["matmul_precision"] == "highest"
    product = jnp.full((1, 1), 1024.5) @ jnp.ones((1, 1))
    assert product[0, 0] == 1024.5
    a, b = np.random.default_rng(0).standard_normal((2, 16, 2048)).astype(np.float32)
    exact = a.astype(np.float64) @ b.T.astype(np.float64)
    error = np.abs(np.asarray(jnp.asarray(a) @ jnp.asarray(b).T) - exact).max()
    assert error / np.abs(exact).max() < 1e-6


def test_unknown_precision_is_refused(restored):
    with pytest.raises(ValueError, match=r"--config\.precision = 'tf32': expected one of"):
        backend.prepare("run", None, "tf32")


@pytest.mark.parametrize("fraction", [0.0, 1.5])
def test_a_share_of_memory_is_a_share(restored, fraction):
    with pytest.raises(ValueError, match=r"--gpu_memory_fraction = .*expected a share"):
        backend.prepare("run", fraction, "highest")


def test_only_a_run_takes_the_device(restored):
    os.environ.pop("JAX_PLATFORMS", None)
    backend.prepare("run", None, "highest")
    assert "JAX_PLATFORMS" not in os.environ
    backend.prepare("plan", None, "highest")
    assert os.environ["JAX_PLATFORMS"] == "cpu"


def test_the_cpu_is_split_into_devices(restored):
    """In a process of its own: jax counts its devices once. A flag given twice: the last counts."""
    os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
    backend.prepare("run", None, "highest", 1)
    words = [sys.executable, "-c", "import jax; print(jax.device_count())"]
    done = subprocess.run(words, env=os.environ, capture_output=True, text=True, check=True)
    assert done.stdout == "1\n"


def test_compilations_are_kept(tmp_path):
    """In a process of its own: jax opens its cache once, at the first compilation."""
    script = (
        "import sys, pathlib, jax; from sweep_jax import backend;"
        "backend.configure('highest', pathlib.Path(sys.argv[1]));"
        "jax.jit(lambda x: x * 3 + 1)(1.0)"
    )
    subprocess.run([sys.executable, "-c", script, str(tmp_path)], check=True, cwd=ROOT)
    assert any(tmp_path.iterdir())
