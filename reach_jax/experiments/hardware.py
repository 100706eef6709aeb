"""What a sweep would take on an accelerator that is not here: memory, lanes and hours.

An estimate from above. FLOPs are counted from the shapes, for every step there may be, in the
bucket of the longest target; the rate is `SHARE` of the published peak for the model's dtype; the
memory of a lane is what this machine's compiler says of the same program.
"""

import dataclasses
import functools
from typing import Any, NamedTuple

import jax

from reach_jax.cramming import cost
from reach_jax.cramming.settings import CrammingConfig
from reach_jax.experiments import pools
from reach_jax.models import kinds

SHARE = 0.4  # of the peak that the hot loop is assumed to reach


class Device(NamedTuple):
    """An accelerator by its data sheet."""

    name: str
    memory: float  # bytes
    half: float  # FLOP/s in bfloat16, dense
    single: float  # FLOP/s in float32 at the highest precision

    def rate(self, dtype: str) -> float:
        """FLOP/s assumed for a model of this dtype."""
        return SHARE * (self.single if dtype == "float32" else self.half)


# Single precision: the H200's vector units; on a TPU six bfloat16 passes.
DEVICES = (
    Device("H200", 141e9, 989e12, 67e12),
    Device("v5e", 16e9, 197e12, 197e12 / 6),
)


def columns(
    model: kinds.Config,
    config: CrammingConfig,
    dtype: str,
    slots: int,
    bucket: int,
    cells: int,
    tries: int,
) -> dict[str, Any]:
    """What a plan says of one cell: TFLOP at most, and for each device lanes and hours.

    Args:
      model: the model's description.
      config: the protocol.
      dtype: the model's.
      slots: padded prompt length M.
      bucket: padded target length N of the longest target.
      cells: how many there are.
      tries: searches a cell.
    """
    flops = tries * config.steps * cost.step_flops(model, slots, bucket)
    one, each, held = _memory(model, config, slots, bucket)
    found: dict[str, Any] = {
        "TFLOP_at_most": round(flops / 1e12, 3),
        "model_GB": f"{held / 1e9:.2f}",
        "lane_MB": f"{each / 1e6:.1f}",
    }
    for device in DEVICES:
        free = device.memory - held
        try:
            lanes = str(pools.fit(one, one + each, free, 1, cells, 2**20))
        except ValueError:
            lanes = "none fits"
        rate = device.rate(dtype)
        found[f"{device.name}_lanes"] = lanes
        found[f"{device.name}_hours_at_{rate / 1e12:.0f}_TFLOP/s"] = round(flops / rate / 3600, 4)
    return found


@functools.cache
def _memory(
    model: kinds.Config, config: CrammingConfig, slots: int, bucket: int
) -> tuple[int, int, int]:
    """Bytes of a step of one lane beside the parameters, of one lane more, and the parameters."""
    shapes = jax.eval_shape(lambda: kinds.init(model, jax.random.key(0)))
    held = sum(x.size * x.dtype.itemsize for x in jax.tree.leaves(shapes))
    config = dataclasses.replace(config, max_target=bucket)
    found = [cost.step_memory(model, config, shapes, slots, bucket, lanes=n) for n in (1, 2)]
    one, two = (held if memory is None else sum(memory) for memory in found)
    return one - held, max(two - one, 1), held
