"""What JAX is told before an experiment starts: memory, platform, precision, compile cache."""

import os
from pathlib import Path

from sweep_jax.checks import require

PRECISIONS = ("default", "high", "highest")  # of matrix products; default is TF32 on recent GPUs


def prepare(
    mode: str, memory_fraction: float | None, precision: str, cpu_devices: int | None = None
) -> None:
    """Sets what JAX reads when it is imported, hence to be called before that.

    Args:
      mode: of `launch.py`; every one but run leaves the device to those who compute.
      memory_fraction: share of a GPU's memory to reserve, or None.
      precision: checked only; `configure` sets it.
      cpu_devices: how many devices the CPU is to look like, lanes being spread over them; None
        leaves it as it is.

    Raises:
      ValueError: a share outside (0, 1], an unknown precision, or fewer than one device.
    """
    require(precision in PRECISIONS, "--config.precision", precision, f"one of {PRECISIONS}")
    if memory_fraction is not None:
        ok = 0 < memory_fraction <= 1
        require(ok, "--gpu_memory_fraction", memory_fraction, "a share in (0, 1]")
        os.environ["XLA_PYTHON_CLIENT_MEM_FRACTION"] = str(memory_fraction)
    if cpu_devices is not None:
        cores = os.cpu_count() or 1
        ok = 1 <= cpu_devices <= cores
        require(ok, "--cpu_devices", cpu_devices, f"an integer in [1, {cores}], the cores here")
        flag = f"--xla_force_host_platform_device_count={cpu_devices}"
        os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {flag}".strip()
    if mode != "run":
        os.environ.setdefault("JAX_PLATFORMS", "cpu")


def configure(precision: str, compile_cache: Path) -> None:
    """Imports JAX and sets the precision of matrix products and where programs are kept."""
    import jax

    jax.config.update("jax_default_matmul_precision", precision)
    jax.config.update("jax_compilation_cache_dir", str(compile_cache))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
