"""What a result was made with. No host, user or path: a result can be published as it is."""

import importlib.metadata
import platform
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

_PACKAGES = ("jax", "jaxlib", "flax", "optax", "orbax-checkpoint", "numpy")


def collect() -> dict[str, Any]:
    """Versions, devices, precision, git revision and UTC time; starts the JAX backend."""
    import jax

    devices = jax.devices()
    return {
        "versions": {"python": platform.python_version()}
        | {name: importlib.metadata.version(name) for name in _PACKAGES},
        "platform": devices[0].platform,
        "device_kind": devices[0].device_kind,
        "device_count": len(devices),
        "matmul_precision": str(
            getattr(jax.config, "jax_default_matmul_precision", None) or "default"
        ),
        "git": _git(),
        "utc": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def _git() -> dict[str, Any] | None:
    """Revision of the checkout this file is in, or None outside one or without git."""

    def git(*arguments: str) -> str:
        command = ["git", "-C", str(Path(__file__).parent), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    try:
        # An installed copy may lie inside someone else's checkout.
        git("ls-files", "--error-unmatch", Path(__file__).name)
        return {"revision": git("rev-parse", "HEAD"), "dirty": bool(git("status", "--porcelain"))}
    except (OSError, subprocess.CalledProcessError):
        return None
