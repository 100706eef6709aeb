"""MOD-07: every shard present and whole, every tensor in its place; bfloat16 bit for bit."""

import json
import struct

import ml_dtypes
import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import save_file

from reach_jax.hub import safetensors_file
from reach_jax.hub.tensors import INDEX, SINGLE, Tensors

ARRAYS = {name: np.arange(6, dtype=np.float32).reshape(2, 3) + i for i, name in enumerate("abcdef")}
SHARDS = [f"model-0000{i}-of-00003.safetensors" for i in (1, 2, 3)]
PLACES = {name: SHARDS[i // 2] for i, name in enumerate("abcdef")}


def sharded(directory, places=PLACES, extra=None):
    """A checkpoint whose index is `places`; `extra` adds shard -> tensors that it does not list."""
    for shard in set(places.values()):
        save_file({n: ARRAYS[n] for n, s in places.items() if s == shard}, directory / shard)
    for shard, arrays in (extra or {}).items():
        save_file(arrays, directory / shard)
    (directory / INDEX).write_text(json.dumps({"metadata": {}, "weight_map": places}))
    return directory


def refused(directory, *words):
    with pytest.raises(ValueError, match=r"expected|is in both") as error:
        Tensors(directory)
    for word in words:
        assert word in str(error.value)


@pytest.mark.parametrize("odd", [False, True], ids=["usual", "odd names"])
def test_all_tensors_of_all_shards(tmp_path, odd):
    places = PLACES
    if odd:
        new = {s: f"model.safetensors-0000{i}-of-00003.safetensors" for i, s in enumerate(SHARDS)}
        places = {name: new[shard] for name, shard in PLACES.items()}
    tensors = Tensors(sharded(tmp_path, places))
    assert tensors.names() == sorted(ARRAYS)
    for name, array in ARRAYS.items():
        assert tensors.shape(name) == (2, 3)
        assert tensors.dtype(name) == np.float32
        np.testing.assert_array_equal(tensors.read(name), array)


def test_a_missing_shard_is_named(tmp_path):
    sharded(tmp_path)
    (tmp_path / SHARDS[1]).unlink()
    refused(tmp_path, SHARDS[1], "missing")


def test_an_index_entry_for_a_shard_elsewhere_is_refused(tmp_path):
    sharded(tmp_path)
    (tmp_path / INDEX).write_text(json.dumps({"weight_map": {"a": f"../{SHARDS[0]}"}}))
    refused(tmp_path, INDEX, SHARDS[0])


@pytest.mark.parametrize("keep", [-10, 0, 5, 30], ids=["10 less", "empty", "5 bytes", "no header"])
def test_a_truncated_shard_is_named(tmp_path, keep):
    sharded(tmp_path)
    path = tmp_path / SHARDS[1]
    data = path.read_bytes()
    path.write_bytes(data[:keep])
    refused(tmp_path, SHARDS[1], "truncated")


def test_trailing_bytes_are_refused(tmp_path):
    sharded(tmp_path)
    path = tmp_path / SHARDS[1]
    path.write_bytes(path.read_bytes() + b"12")
    refused(tmp_path, SHARDS[1], "bytes of no tensor")


def test_a_header_that_contradicts_itself_is_refused(tmp_path):
    header = {"a": {"dtype": "F32", "shape": [3], "data_offsets": [0, 8]}}
    text = json.dumps(header).encode()
    (tmp_path / SINGLE).write_bytes(struct.pack("<Q", len(text)) + text + bytes(8))
    refused(tmp_path, SINGLE, "expected a valid safetensors file")


@pytest.mark.parametrize("text", [b"[]", b'{"a": 1}', b"{nonsense"])
def test_a_file_that_is_no_safetensors_is_named(tmp_path, text):
    (tmp_path / SINGLE).write_bytes(struct.pack("<Q", len(text)) + text)
    refused(tmp_path, SINGLE, "header")


def test_an_extra_unlisted_shard_is_named(tmp_path):
    sharded(tmp_path, extra={"more.safetensors": {"z": ARRAYS["a"]}})
    refused(tmp_path, "more.safetensors")
    (tmp_path / INDEX).unlink()
    refused(tmp_path, "no safetensors", SINGLE)


def test_an_extra_file_beside_a_single_one_is_named(tmp_path):
    save_file(ARRAYS, tmp_path / SINGLE)
    save_file(ARRAYS, tmp_path / "adapter_model.safetensors")
    refused(tmp_path, "adapter_model.safetensors")


def test_a_tensor_in_two_shards_is_named(tmp_path):
    arrays = {"e": ARRAYS["e"], "f": ARRAYS["f"], "a": ARRAYS["a"]}
    sharded(tmp_path, extra={SHARDS[2]: arrays})
    refused(tmp_path, "'a'", SHARDS[0], SHARDS[2])


def test_a_tensor_of_a_shard_that_the_index_does_not_list_is_named(tmp_path):
    arrays = {"e": ARRAYS["e"], "f": ARRAYS["f"], "g": ARRAYS["a"]}
    sharded(tmp_path, extra={SHARDS[2]: arrays})
    refused(tmp_path, "['g']", SHARDS[2], INDEX)


def test_a_tensor_that_is_in_another_shard_than_the_index_says_is_named(tmp_path):
    sharded(tmp_path)
    swapped = PLACES | {"a": SHARDS[1]}
    (tmp_path / INDEX).write_text(json.dumps({"weight_map": swapped}))
    refused(tmp_path, "a in", SHARDS[0], SHARDS[1])


def test_a_tensor_of_the_index_that_no_shard_has_is_named(tmp_path):
    sharded(tmp_path)
    (tmp_path / INDEX).write_text(json.dumps({"weight_map": {**PLACES, "ghost": SHARDS[1]}}))
    refused(tmp_path, "ghost", SHARDS[1])


@pytest.mark.parametrize(
    "text", ["[]", "{}", "{", '{"weight_map": 3}', '{"weight_map": {"a": [1]}}']
)
def test_a_damaged_index_is_named(tmp_path, text):
    (tmp_path / INDEX).write_text(text)
    refused(tmp_path, INDEX)


def test_a_pickle_is_never_opened(tmp_path):
    (tmp_path / "pytorch_model.bin").write_bytes(b"cos\nsystem\n(S'false'\ntR.")
    refused(tmp_path, SINGLE, "pytorch_model.bin", "pickles are never opened")


def test_bfloat16_bits(tmp_path):
    values = np.array([1.0, -2.5, 3.140625, np.inf], ml_dtypes.bfloat16)
    save_file({"x": values, "y": ARRAYS["a"]}, tmp_path / SINGLE)
    tensors = Tensors(tmp_path)
    read = tensors.read("x")
    assert read.dtype == tensors.dtype("x") == ml_dtypes.bfloat16
    wide = (read.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
    np.testing.assert_array_equal(wide, np.array([1.0, -2.5, 3.140625, np.inf], np.float32))
    np.testing.assert_array_equal(read.astype(np.float32), wide)


def test_reads_are_views_of_the_file_and_cannot_be_written(tmp_path):
    save_file(ARRAYS, tmp_path / SINGLE)
    array = Tensors(tmp_path).read("a")
    assert not array.flags.owndata
    with pytest.raises(ValueError, match="read-only"):
        array[0, 0] = 1.0


def test_what_numpy_lacks_and_what_is_not_there_is_named(tmp_path):
    save_file({"x": np.zeros(3, ml_dtypes.float8_e4m3fn)}, tmp_path / SINGLE)
    tensors = Tensors(tmp_path)
    with pytest.raises(ValueError, match=r"'x'.*F8_E4M3"):
        tensors.read("x")
    with pytest.raises(ValueError, match="'nothing'"):
        tensors.shape("nothing")


def test_odd_alignment_scalars_and_empty_tensors(tmp_path):
    header = {
        "byte": {"dtype": "U8", "shape": [1], "data_offsets": [0, 1]},
        "odd": {"dtype": "F32", "shape": [], "data_offsets": [1, 5]},
        "none": {"dtype": "F16", "shape": [0, 4], "data_offsets": [5, 5]},
    }
    text = json.dumps(header).encode()
    data = struct.pack("<Bf", 7, 1.5)
    (tmp_path / SINGLE).write_bytes(struct.pack("<Q", len(text)) + text + data)
    tensors = Tensors(tmp_path)
    assert tensors.read("byte").tolist() == [7]
    assert tensors.read("odd").shape == ()
    assert float(tensors.read("odd")) == 1.5
    assert tensors.read("none").shape == (0, 4)


def test_the_writer_is_read_back_by_safetensors_and_here(tmp_path):
    arrays = {
        "b": np.array([[1, 2], [3, 4], [5, 6]], ml_dtypes.bfloat16),
        "t": np.asfortranarray(ARRAYS["a"]),
        "h": np.float16([0.5]),
        "s": np.float32(3.0).reshape(()),
        "z": np.zeros((0, 2), np.float32),
    }
    plan = {name: (a.shape, a.dtype) for name, a in arrays.items()}
    safetensors_file.write(tmp_path / SINGLE, plan, arrays.values(), {"format": "pt"})
    ours = Tensors(tmp_path)
    with safe_open(tmp_path / SINGLE, framework="numpy") as theirs:
        assert theirs.metadata() == {"format": "pt"}
        for name, array in arrays.items():
            np.testing.assert_array_equal(ours.read(name), array)
            np.testing.assert_array_equal(theirs.get_tensor(name), array)
            assert ours.dtype(name) == array.dtype


def test_the_writer_refuses_what_was_not_planned(tmp_path):
    plan = {"a": ((2, 3), np.dtype(np.float32))}
    for arrays in ([np.zeros((3, 2), np.float32)], [np.zeros((2, 3))], [], [ARRAYS["a"]] * 2):
        with pytest.raises(ValueError, match=r"a = |argument"):
            safetensors_file.write(tmp_path / SINGLE, plan, arrays, {})
