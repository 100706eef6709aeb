"""Every module imports by itself, without a warning, without starting a JAX backend."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("configs", "infoflow_jax", "reach_jax", "sweep_jax")

PROGRAM = """
import importlib, sys, warnings
warnings.simplefilter("error")
for name in sys.argv[1:]:
    importlib.import_module(name)
from jax._src import xla_bridge
assert not xla_bridge._backends, "importing started a backend"
"""


def test_every_module_imports_and_starts_nothing():
    names = []
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            parts = path.relative_to(ROOT).with_suffix("").parts
            names.append(".".join(p for p in parts if p != "__init__"))
    assert "reach_jax.experiments.reachability" in names
    command = [sys.executable, "-c", PROGRAM, *names]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


def test_the_planning_half_needs_no_jax():
    program = """
import sys
from sweep_jax import cells, checks, commandline, overrides, progress, stop, store
assert "jax" not in sys.modules
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
