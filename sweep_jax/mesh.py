"""The one place where a device mesh is made: all devices in a row, for work that needs no talk.

Not for model parallelism: an array is split along its first axis, or copied to every device.
"""

import jax
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

AXIS = "rows"


def row() -> Mesh:
    """Every device of every process along one axis, `AXIS`."""
    return jax.make_mesh((jax.device_count(),), (AXIS,), axis_types=(AxisType.Auto,))


def split(mesh: Mesh) -> NamedSharding:
    """Arrays cut along their first axis, which must be a multiple of the devices."""
    return NamedSharding(mesh, PartitionSpec(AXIS))


def copied(mesh: Mesh) -> NamedSharding:
    """Arrays that every device holds whole."""
    return NamedSharding(mesh, PartitionSpec())
