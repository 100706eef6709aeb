"""A converted GGUF file is what the loader takes: every field known, every tensor used once."""

import jax
import numpy as np
import pytest

from reach_jax.hub import gguf_file, loader
from tests.hub import tiny_gguf
from tests.hub.tiny_gguf import GEMMA_NORMS, LLAMA_NORMS, interleaved, renamed

GEMMA_FIELDS = {"attention.key_length": 4, "attention.value_length": 4}
GEMMA_FIELDS |= {"attention.sliding_window": 8, "rope.freq_base": 1e6}


def loaded(tmp_path, architecture, fields, tensors):
    path = tiny_gguf.write(tmp_path / "tiny.gguf", architecture, fields, tensors)
    out = tmp_path / "out"
    out.mkdir()
    gguf_file.convert(path, out)
    return loader.load(out)


def heads_of(matrix, width):
    """(H*N, D) -> (D, H, N), slowly."""
    count = matrix.shape[0] // width
    return np.stack([matrix[h * width : (h + 1) * width].T for h in range(count)], axis=1)


def test_llama(tmp_path):
    hf = tiny_gguf.layers()
    tensors = renamed(hf, LLAMA_NORMS)
    for i in range(2):
        for name, heads in (("attn_q", 6), ("attn_k", 2)):
            key = f"blk.{i}.{name}.weight"
            tensors[key] = interleaved(tensors[key], heads)
    model = loaded(tmp_path, "llama", tiny_gguf.llama(), tensors)
    assert (model.report.family, model.report.ignored) == ("llama", ())
    assert model.report.parameters == sum(array.size for array in hf.values())
    assert (model.config.heads, model.config.kv_heads, model.config.tied) == (6, 2, True)
    for name in "qk":
        for i in range(2):
            want = heads_of(hf[f"model.layers.{i}.self_attn.{name}_proj.weight"], 4)
            got = model.params["layers"]["attention"][name][i]
            np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("tied", [True, False])
def test_qwen2(tmp_path, tied):
    hf = tiny_gguf.layers(biases=True)
    if not tied:
        hf["lm_head.weight"] = tiny_gguf.normal(99, 32, 24)
    fields = tiny_gguf.llama("qwen2")
    model = loaded(tmp_path, "qwen2", fields, renamed(hf, LLAMA_NORMS))
    assert (model.report.family, model.config.tied) == ("qwen2", tied)
    assert model.report.parameters == sum(array.size for array in hf.values())
    bias = model.params["layers"]["attention"]["k_bias"][1]
    want = hf["model.layers.1.self_attn.k_proj.bias"]
    np.testing.assert_array_equal(bias.reshape(-1), want)


def test_gemma3(tmp_path):
    hf = tiny_gguf.layers(extra=[name for name in GEMMA_NORMS if name not in LLAMA_NORMS])
    stored = {k: v + np.float32(1) if k.endswith("norm.weight") else v for k, v in hf.items()}
    fields = tiny_gguf.llama("gemma3", **GEMMA_FIELDS)
    model = loaded(tmp_path, "gemma3", fields, renamed(stored, GEMMA_NORMS))
    assert (model.report.family, model.config.norm) == ("gemma3", "rms_offset")
    assert model.report.parameters == sum(array.size for array in hf.values())
    assert (model.config.window, model.config.local_rope_base) == (8, 10_000.0)
    want = (hf["model.norm.weight"] + np.float32(1)) - np.float32(1)
    np.testing.assert_array_equal(model.params["final_norm"]["weight"], want)
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(model.params))
