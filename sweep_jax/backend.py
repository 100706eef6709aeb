"""What JAX is told before an experiment starts: memory, platform, precision, compile cache."""

import os
from pathlib import Path

from sweep_jax.checks import require

PRECISIONS = ("default", "high", "highest")  # of matrix products; default is TF32 on recent GPUs


def prepare(mode: str, memory_fraction: float | None, precision: str) -> None:
    """Sets what JAX reads when it is imported, hence to be called before that.

    Args:
      mode: of `launch.py`; every one but run leaves the device to those who compute.
      memory_fraction: share of a GPU's memory to reserve, or None.
      precision: checked only; `configure` sets it.

    Raises:
      ValueError: a share outside (0, 1], or an unknown precision.
    """
    require(precision in PRECISIONS, "--config.precision", precision, f"one of {PRECISIONS}")
    if memory_fraction is not None:
        ok = 0 < memory_fraction <= 1
        require(ok, "--gpu_memory_fraction", memory_fraction, "a share in (0, 1]")
        os.environ["XLA_PYTHON_CLIENT_MEM_FRACTION"] = str(memory_fraction)
    if mode != "run":
        os.environ.setdefault("JAX_PLATFORMS", "cpu")


def configure(precision: str, compile_cache: Path) -> None:
    """Imports JAX and sets the precision of matrix products and where programs are kept."""
    import jax

    jax.config.update("jax_default_matmul_precision", precision)
    jax.config.update("jax_compilation_cache_dir", str(compile_cache))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
