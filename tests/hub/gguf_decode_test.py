"""MOD-15: every block format, exactly, through a real file; and files that are not sound."""

import ml_dtypes
import numpy as np
import pytest
from gguf import GGMLQuantizationType, GGUFReader, quants

from reach_jax.hub import gguf_decode, gguf_header
from tests.hub import block_formats, tiny_gguf

KINDS = list(block_formats.FORMATS)


@pytest.fixture(scope="module")
def mixed(tmp_path_factory):
    """One file with a tensor of every type, and what was put into it."""
    rows = {kind: block_formats.random_rows(kind, seed) for seed, kind in enumerate(KINDS)}
    tensors = {k: (rows[k], GGMLQuantizationType[k]) for k in KINDS}
    tensors["F32"] = tiny_gguf.normal(50, 3, 5)
    tensors["F16"] = tiny_gguf.normal(51, 3, 5).astype(np.float16)
    halves = np.array([[1.0, -2.5, 3.140625, np.inf]], ml_dtypes.bfloat16)
    tensors["BF16"] = (halves.view(np.uint8), GGMLQuantizationType.BF16)
    path = tmp_path_factory.mktemp("mixed") / "mixed.gguf"
    fields = {"a.float": 1e-6, "a.int": 7, "a.flag": True, "a.text": "é", "a.list": ["x", "▁y"]}
    tiny_gguf.write(path, "llama", fields, tensors)
    return path, tensors | {"BF16": halves}, rows


@pytest.mark.parametrize("kind", KINDS)
def test_blocks_decode_as_their_definition_says(mixed, kind):
    path, _, rows = mixed
    tensor = gguf_header.read(path).tensors[kind]
    assert tensor.shape == (2, 512)
    got = gguf_decode.read(path, kind, tensor)
    assert got.dtype == np.float32
    want = block_formats.decoded(kind, rows[kind])
    assert np.isfinite(want).all()
    assert np.count_nonzero(want) > 500
    np.testing.assert_array_equal(got, want)
    theirs = quants.dequantize(rows[kind], GGMLQuantizationType[kind])
    np.testing.assert_array_equal(got, theirs)


def test_every_named_type_is_tested_and_no_other_is_taken():
    assert set(gguf_decode.BLOCKS) == set(KINDS)
    assert set(gguf_decode.FLOATS) == {"F32", "F16", "BF16"}


def test_many_rows_are_decoded_in_pieces_alike(monkeypatch):
    rows = block_formats.random_rows("Q4_K", 9, rows=7)
    whole = gguf_decode.decode(rows.reshape(-1), GGMLQuantizationType.Q4_K, (7, 512))
    monkeypatch.setattr(gguf_decode, "_ROWS", 3)
    pieces = gguf_decode.decode(rows.reshape(-1), GGMLQuantizationType.Q4_K, (7, 512))
    np.testing.assert_array_equal(whole, pieces)
    np.testing.assert_array_equal(whole, block_formats.decoded("Q4_K", rows))


@pytest.mark.parametrize("kind", ["F32", "F16", "BF16"])
def test_floats_keep_their_dtype_and_bits(mixed, kind):
    path, tensors, _ = mixed
    got = gguf_decode.read(path, kind, gguf_header.read(path).tensors[kind])
    assert got.dtype == tensors[kind].dtype
    np.testing.assert_array_equal(got.view(np.uint8), tensors[kind].view(np.uint8))


def test_the_header_is_what_gguf_py_reads(mixed):
    path, _, _ = mixed
    ours, theirs = gguf_header.read(path), GGUFReader(path)
    assert list(ours.tensors) == [t.name for t in theirs.tensors]
    for tensor in theirs.tensors:
        mine = ours.tensors[tensor.name]
        assert mine.kind == tensor.tensor_type
        assert mine.shape == tuple(reversed(tensor.shape.tolist()))
        assert (mine.offset, mine.size) == (tensor.data_offset, tensor.n_bytes)
    assert ours.metadata["a.float"] == 1e-6  # not 9.999999974752427e-07
    for key in ("a.int", "a.flag", "a.text", "a.list", "general.architecture"):
        assert ours.metadata[key] == theirs.fields[key].contents()


def refused(path, *words):
    with pytest.raises(ValueError, match="expected") as error:
        gguf_header.read(path)
    for word in words:
        assert word in str(error.value)


@pytest.mark.parametrize(
    ("kind", "dims"), [("Q4_K", (288, 2)), ("Q6_K", (128, 2)), ("Q8_0", (48, 2)), ("Q4_0", (31,))]
)
def test_a_row_that_is_not_whole_blocks_is_refused(tmp_path, kind, dims):
    number = GGMLQuantizationType[kind].value
    path = tiny_gguf.raw(tmp_path / "a.gguf", [("blk.0.w", dims, number, 0)], bytes(4096))
    refused(path, "blk.0.w", kind, "multiple of")


def test_an_unknown_type_number_names_the_tensor(tmp_path):
    refused(tiny_gguf.raw(tmp_path / "a.gguf", [("blk.0.w", (32,), 99, 0)], bytes(64)), "blk.0.w")


def test_a_known_type_that_is_not_decoded_here_is_refused_by_name(tmp_path):
    number = GGMLQuantizationType.Q2_K.value
    path = tiny_gguf.raw(tmp_path / "a.gguf", [("blk.0.w", (256,), number, 0)], bytes(128))
    tensor = gguf_header.read(path).tensors["blk.0.w"]
    with pytest.raises(ValueError, match=r"blk\.0\.w.*'Q2_K'.*Q4_K"):
        gguf_decode.read(path, "blk.0.w", tensor)


def test_truncation_anywhere_is_refused(mixed, tmp_path):
    data = mixed[0].read_bytes()
    path = tmp_path / "cut.gguf"
    for size in (*range(0, 700, 13), len(data) - 40):
        path.write_bytes(data[:size])
        refused(path, str(path))


def test_other_files_versions_and_repeated_names_are_refused(tmp_path):
    path = tmp_path / "a.gguf"
    refused(path, "missing")
    refused(tiny_gguf.raw(path, [], magic=b"GGML"), "b'GGML'")
    refused(tiny_gguf.raw(path, [], version=1), "version")
    refused(tiny_gguf.raw(path, [], version=3 << 24), "little-endian")
    twice = [("w", (2,), 0, 0), ("w", (2,), 0, 0)]
    refused(tiny_gguf.raw(path, twice, bytes(64)), "'w'", "each name once")
    refused(tiny_gguf.raw(path, [], fields=[("k", 7, b"\1")] * 2), "'k'", "each key once")
    refused(tiny_gguf.raw(path, [], fields=[("k", 77, b"\1")]), "value type")
    alignment = ("general.alignment", 4, b"\3\0\0\0")
    refused(tiny_gguf.raw(path, [], fields=[alignment]), "power of two")
