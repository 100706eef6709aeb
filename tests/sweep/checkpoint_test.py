"""Checkpoints: only whole ones are restored, a step can be retried, trees come back equal."""

import shutil

import flax.struct
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from absl import logging
from jax.sharding import NamedSharding, PartitionSpec

from sweep_jax.checkpoint import Checkpoints


@flax.struct.dataclass
class State:
    params: dict
    step: jax.Array


@pytest.fixture
def warnings_logged(monkeypatch):
    lines = []
    monkeypatch.setattr(logging, "warning", lambda text, *args: lines.append(text % args))
    return lines


def make_tree(scale=1.0):
    params = {"w": scale * jnp.arange(600.0).reshape(20, 30), "b/c": jnp.ones(7, jnp.bfloat16)}
    return {
        "state": State(params, jnp.int32(4)),
        "optimizer": optax.chain(optax.clip(1.0), optax.adam(0.1)).init(params),
        "key": jax.random.key(3),
        "keys": jax.random.split(jax.random.key(1, impl="rbg"), 5),
        "flag_B": jnp.array([True, False]),
        "none": None,
        "empty": jnp.zeros((0, 4)),
        "numpy": np.arange(3, dtype=np.uint8),
        "scalar": np.float32(2.5),
        "number": 7,
        "boolean": True,
        "real": 0.1,
    }


def assert_equal(tree, other):
    assert jax.tree.structure(tree) == jax.tree.structure(other)
    for one, two in zip(jax.tree.leaves(tree), jax.tree.leaves(other), strict=True):
        assert type(one) is type(two)
        if not hasattr(one, "dtype"):
            assert one == two
            continue
        assert one.dtype == two.dtype
        if jax.dtypes.issubdtype(one.dtype, jax.dtypes.prng_key):
            one, two = jax.random.key_data(one), jax.random.key_data(two)
        np.testing.assert_array_equal(np.asarray(one), np.asarray(two))


def test_everything_survives(tmp_path):
    checkpoints = Checkpoints(tmp_path)
    assert checkpoints.restore(make_tree()) is None
    tree = make_tree(0.1)
    checkpoints.save(3, tree)
    step, restored = checkpoints.restore(make_tree())
    assert step == 3
    assert_equal(restored, tree)
    jax.random.normal(restored["key"])  # a key that was not used yet


def test_into_an_abstract_tree(tmp_path):
    tree = {"w": jnp.arange(3.0), "key": jax.random.key(0)}
    Checkpoints(tmp_path).save(0, tree)
    abstract = jax.eval_shape(lambda: {"w": jnp.zeros(3), "key": jax.random.key(5)})
    assert_equal(Checkpoints(tmp_path).restore(abstract)[1], tree)


def test_device_count_may_change(tmp_path):
    def place(count, key, array):
        mesh = jax.make_mesh(
            (count,), ("B",), (jax.sharding.AxisType.Auto,), devices=jax.devices()[:count]
        )
        return jax.device_put((key, array), NamedSharding(mesh, PartitionSpec("B")))

    array = jnp.arange(16.0).reshape(8, 2)
    keys = jax.random.split(jax.random.key(0), 8)
    Checkpoints(tmp_path).save(1, place(4, keys, array))
    for count in (1, 2, 8):
        target = place(count, keys, jnp.zeros((8, 2)))
        restored_keys, restored = Checkpoints(tmp_path).restore(target)[1]
        assert len(restored.sharding.device_set) == count
        assert restored.sharding == target[1].sharding
        assert len(restored_keys.sharding.device_set) == count
        np.testing.assert_array_equal(restored, array)


def damage(directory, how):
    files = sorted(path for path in directory.rglob("*") if path.is_file())
    data = max(files, key=lambda path: path.stat().st_size)
    if how == "manifest":
        (directory / "manifest.json").unlink()
    elif how == "manifest truncated":
        text = (directory / "manifest.json").read_text()
        (directory / "manifest.json").write_text(text[: len(text) // 2])
    elif how == "metadata":
        (directory / "_METADATA").unlink()
    elif how == "bit":
        content = bytearray(data.read_bytes())
        content[len(content) // 2] ^= 1
        data.write_bytes(content)
    elif how == "empty":
        shutil.rmtree(directory)
        directory.mkdir()
    else:
        data.write_bytes(data.read_bytes()[:how])


@pytest.mark.parametrize(
    "how", ["manifest", "manifest truncated", "metadata", "bit", "empty", 0, 1, 1000, -1]
)
def test_damaged_checkpoints_are_skipped_and_retried(tmp_path, warnings_logged, how):
    checkpoints = Checkpoints(tmp_path, keep=2)
    checkpoints.save(10, make_tree(10))
    checkpoints.save(20, make_tree(20))
    damage(tmp_path / "20", how)
    leftover = tmp_path / "30.orbax-checkpoint-tmp-0"
    leftover.mkdir()
    (leftover / "half").write_text("half")

    resumed = Checkpoints(tmp_path, keep=2)
    step, tree = resumed.restore(make_tree())
    assert step == 10
    assert_equal(tree, make_tree(10))
    assert any("step 20" in line for line in warnings_logged)
    assert any(leftover.name in line for line in warnings_logged)
    resumed.save(20, make_tree(21))
    resumed.save(30, make_tree(31))
    step, tree = Checkpoints(tmp_path).restore(make_tree())
    assert step == 30
    assert_equal(tree, make_tree(31))
    damage(tmp_path / "30", how)
    assert_equal(Checkpoints(tmp_path).restore(make_tree())[1], make_tree(21))


def test_leftovers_do_not_block_a_save(tmp_path):
    for name in ("5", "5.partial", "5.partial.orbax-checkpoint-tmp"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "half").write_text("half")
    checkpoints = Checkpoints(tmp_path)
    checkpoints.save(5, make_tree())
    assert checkpoints.restore(make_tree())[0] == 5
    assert [path.name for path in tmp_path.iterdir()] == ["5"]


def test_steps_are_numbers_and_the_newest_stay(tmp_path):
    checkpoints = Checkpoints(tmp_path, keep=2)
    for step in (9, 10, 100):
        checkpoints.save(step, {"x": jnp.float32(step)})
    assert sorted(path.name for path in tmp_path.iterdir()) == ["10", "100"]
    assert checkpoints.restore({"x": jnp.float32(0)})[0] == 100


@pytest.mark.parametrize("keep", [1, 2])
def test_the_only_good_one_is_never_deleted(tmp_path, warnings_logged, keep):
    checkpoints = Checkpoints(tmp_path, keep=keep)
    checkpoints.save(10, {"x": 1.5})
    shutil.copytree(tmp_path / "10", tmp_path / "20")
    damage(tmp_path / "20", "manifest")
    checkpoints.save(15, {"x": 2.5})  # without a restore first: 20 counts as newer
    assert checkpoints.restore({"x": 0.0}) == (15, {"x": 2.5})


def test_all_damaged_is_none(tmp_path, warnings_logged):
    checkpoints = Checkpoints(tmp_path)
    checkpoints.save(1, {"x": 1.5})
    damage(tmp_path / "1", "manifest")
    assert checkpoints.restore({"x": 0.0}) is None
    assert len(warnings_logged) == 1
    assert checkpoints.restore({"x": 0.0}) is None
    assert len(warnings_logged) == 1


def test_another_tree_is_refused_and_kept(tmp_path):
    checkpoints = Checkpoints(tmp_path)
    tree = {"same": jnp.ones(2), "shape": jnp.ones(3), "dtype": jnp.ones(2), "gone": 1}
    checkpoints.save(4, tree)
    other = {"same": jnp.ones(2), "shape": jnp.ones(4), "dtype": jnp.ones(2, jnp.bfloat16)}
    other["key"] = jax.random.key(0)
    with pytest.raises(ValueError, match="checkpoint of step 4") as error:
        checkpoints.restore(other)
    message = str(error.value)
    assert "['shape']: stored ((3,), 'float32'), expected ((4,), 'float32')" in message
    assert "['dtype']: stored ((2,), 'float32'), expected ((2,), 'bfloat16')" in message
    assert "['gone'] int" in message
    assert "['key'] key<fry>: stored nothing" in message
    assert "same" not in message
    assert checkpoints.restore(tree)[0] == 4


def test_clear(tmp_path):
    checkpoints = Checkpoints(tmp_path / "here")
    checkpoints.clear()
    checkpoints.save(1, {"x": 1})
    checkpoints.clear()
    assert checkpoints.restore({"x": 1}) is None
    checkpoints.save(1, {"x": 2})
    assert checkpoints.restore({"x": 1}) == (1, {"x": 2})


def test_bad_input_is_named(tmp_path):
    with pytest.raises(ValueError, match="keep = 0"):
        Checkpoints(tmp_path, keep=0)
    with pytest.raises(ValueError, match="step = -1"):
        Checkpoints(tmp_path).save(-1, {})
    with pytest.raises(ValueError, match=r"\['x'\] = 'text'"):
        Checkpoints(tmp_path).save(1, {"x": "text"})
