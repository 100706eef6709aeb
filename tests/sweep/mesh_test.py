import jax
import numpy as np
from jax.sharding import AxisType

from sweep_jax import mesh


def test_rows_are_split_over_all_devices_and_parameters_copied():
    row = mesh.row()
    assert row.size == jax.device_count() == 8
    assert row.axis_types == (AxisType.Auto,)
    x = np.arange(48).reshape(16, 3)
    parts = jax.device_put(x, mesh.split(row)).addressable_shards
    assert [part.data.shape for part in parts] == [(2, 3)] * 8
    np.testing.assert_array_equal(np.concatenate([part.data for part in parts]), x)
    for part in jax.device_put(x, mesh.copied(row)).addressable_shards:
        np.testing.assert_array_equal(part.data, x)
