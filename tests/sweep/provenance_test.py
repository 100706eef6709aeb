"""Provenance: enough to repeat a result, and nothing about who made it where."""

import getpass
import json
import socket
import subprocess
from pathlib import Path

import jax
import pytest

from sweep_jax import provenance


def test_it_is_complete_and_impersonal():
    collected = provenance.collect()
    assert collected["versions"]["jax"] == jax.__version__
    assert {"python", "jaxlib", "flax", "optax", "orbax-checkpoint", "numpy"} < set(
        collected["versions"]
    )
    assert (collected["platform"], collected["device_count"]) == ("cpu", jax.device_count())
    assert collected["matmul_precision"] == "default"
    assert collected["utc"].endswith("+00:00")
    text = json.dumps(collected)
    for private in (socket.gethostname(), getpass.getuser(), str(Path(__file__).parents[2])):
        assert private not in text
    with jax.default_matmul_precision("highest"):
        assert provenance.collect()["matmul_precision"] == "highest"


@pytest.mark.parametrize(
    "error", [FileNotFoundError("git"), subprocess.CalledProcessError(128, "git")]
)
def test_without_git(monkeypatch, error):
    def fail(*args, **kwargs):
        raise error

    monkeypatch.setattr(subprocess, "run", fail)
    assert provenance.collect()["git"] is None
