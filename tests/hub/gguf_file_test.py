"""MOD-13: every tensor of a GGUF file comes back exactly as in the Hugging Face checkpoint."""

import hashlib
import json

import ml_dtypes
import numpy as np
import pytest
from gguf import GGMLQuantizationType

from reach_jax.hub import gguf_configs, gguf_file
from reach_jax.hub.tensors import Tensors
from tests.hub import block_formats, tiny_gguf
from tests.hub.tiny_gguf import GEMMA_NORMS, LLAMA_NORMS, interleaved, renamed


def converted(tmp_path, architecture, fields, tensors):
    """The config and the tensors of the directory that a file of these is converted to."""
    path = tiny_gguf.write(tmp_path / "tiny.gguf", architecture, fields, tensors)
    out = tmp_path / "out"
    out.mkdir(exist_ok=True)
    gguf_file.convert(path, out)
    return json.loads((out / "config.json").read_text()), Tensors(out)


def equal(tensors, expected):
    assert tensors.names() == sorted(expected)
    for name, array in expected.items():
        assert tensors.dtype(name) == array.dtype, name
        np.testing.assert_array_equal(tensors.read(name), array, err_msg=name)


def as_llama(hf):
    """llama.cpp's tensors of a Llama model with 6 query and 2 key/value heads."""
    tensors = renamed(hf, LLAMA_NORMS)
    for name, array in tensors.items():
        if ".attn_q." in name or ".attn_k." in name:
            tensors[name] = interleaved(array, 6 if ".attn_q." in name else 2)
    return tensors


def test_llama_rows_are_put_back_with_their_own_head_counts(tmp_path):
    hf = tiny_gguf.layers(head_dim=12, width=72)
    rows = hf["model.layers.0.self_attn.k_proj.weight"]
    for wrong in (interleaved(rows, 6), rows):  # the query heads' order, no order at all
        assert not np.array_equal(interleaved(rows, 2), wrong)
    fields = tiny_gguf.llama(embedding_length=72)
    config, tensors = converted(tmp_path, "llama", fields, as_llama(hf))
    equal(tensors, hf)
    assert tensors.shape("model.layers.0.mlp.down_proj.weight") == (72, 40)  # (out, in)
    assert config == {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": 72,
        "intermediate_size": 40,
        "num_hidden_layers": 2,
        "num_attention_heads": 6,
        "num_key_value_heads": 2,
        "head_dim": 12,
        "max_position_embeddings": 64,
        "rms_norm_eps": 1e-5,
        "rope_theta": 10000.0,
        "rope_scaling": None,
        "hidden_act": "silu",
        "attention_bias": False,
        "mlp_bias": False,
        "vocab_size": 32,
        "tie_word_embeddings": True,
        "bos_token_id": None,
        "eos_token_id": None,
        "torch_dtype": "float32",
    }


def test_llama_biases_are_put_back_like_their_rows(tmp_path):
    hf = tiny_gguf.layers(head_dim=12, width=72, biases=True)
    for i in range(2):
        hf[f"model.layers.{i}.self_attn.o_proj.bias"] = tiny_gguf.normal(70 + i, 72)
    fields = tiny_gguf.llama(embedding_length=72)
    config, tensors = converted(tmp_path, "llama", fields, as_llama(hf))
    equal(tensors, hf)
    assert config["attention_bias"] is True


def test_qwen2_rows_and_biases_stay_and_the_head_is_its_own(tmp_path):
    hf = tiny_gguf.layers(biases=True) | {"lm_head.weight": tiny_gguf.normal(99, 32, 24)}
    fields = tiny_gguf.llama("qwen2")
    config, tensors = converted(tmp_path, "qwen2", fields, renamed(hf, LLAMA_NORMS))
    equal(tensors, hf)
    assert config["architectures"] == ["Qwen2ForCausalLM"]
    assert config["tie_word_embeddings"] is False
    assert "head_dim" not in config


def gemma(tmp_path, **changes):
    hf = tiny_gguf.layers(head_dim=8, extra=tuple(GEMMA_NORMS)[1:])
    plus = {n: a + 1 if n.endswith("norm.weight") else a for n, a in hf.items()}
    more = {"attention.key_length": 8, "attention.value_length": 8, "attention.sliding_window": 16}
    fields = tiny_gguf.llama("gemma3", **{**more, **changes})
    stored = renamed(plus, GEMMA_NORMS)
    return hf, stored, *converted(tmp_path, "gemma3", fields, stored)


def test_gemma_rows_stay_and_its_norms_lose_the_one(tmp_path):
    hf, stored, config, tensors = gemma(tmp_path)
    norms = [name for name in hf if name.endswith("norm.weight")]
    assert len(norms) == 13
    equal(tensors, {n: a if n not in norms else (a + 1) - 1 for n, a in hf.items()})
    for name in norms:  # the model computes with 1 + weight, which is what the file says
        again = tensors.read(name) + np.float32(1)
        assert any(np.array_equal(again, array) for array in stored.values()), name
    assert config["layer_types"] == ["sliding_attention"] * 2
    assert config["head_dim"] == config["query_pre_attn_scalar"] == 8
    assert (config["sliding_window"], config["rope_local_base_freq"]) == (16, 10000.0)
    assert config["model_type"] == "gemma3_text"


def test_gemma_scales_rope_only_as_the_file_says(tmp_path):
    config = gemma(tmp_path, **{"rope.scaling.type": "linear", "rope.scaling.factor": 8.0})[2]
    assert config["rope_scaling"] == {"rope_type": "linear", "factor": 8.0}
    with pytest.raises(ValueError, match=r"rope.scaling.type.*'yarn'"):
        gemma(tmp_path, **{"rope.scaling.type": "yarn"})


def test_gemma_kinds_of_layers_and_the_scale_of_its_largest_model():
    fields = {"embedding_length": 5376, "attention.head_count": 32, "attention.key_length": 128}
    fields |= {"attention.head_count_kv": 16, "attention.sliding_window": 1024}
    for layers, scalar in ((18, 128), (62, 168)):
        metadata = tiny_gguf.llama("gemma3", **fields, block_count=layers)
        config = gguf_configs.gemma3(gguf_configs.Fields(metadata, "gemma3"), ())
        assert config["query_pre_attn_scalar"] == scalar
        full = [i for i, kind in enumerate(config["layer_types"]) if kind == "full_attention"]
        assert full == list(range(5, layers, 6))


def test_gpt2_matrices_are_transposed_back_square_ones_too(tmp_path):
    width, hf, stored = 12, {}, {}
    outside = {"wte.weight": "token_embd.weight", "wpe.weight": "position_embd.weight"}
    outside |= {f"ln_f.{s}": f"output_norm.{s}" for s in ("weight", "bias")}
    shapes = {"wte.weight": (32, width), "wpe.weight": (16, width)}
    for i, (name, other) in enumerate(outside.items()):
        array = tiny_gguf.normal(i, *shapes.get(name, (width,)))
        hf[f"transformer.{name}"] = stored[other] = array
    names = {"ln_1": "attn_norm", "ln_2": "ffn_norm", "attn.c_attn": "attn_qkv"}
    names |= {"attn.c_proj": "attn_output", "mlp.c_fc": "ffn_up", "mlp.c_proj": "ffn_down"}
    outputs = {"attn.c_attn": 3 * width}
    for i, (name, other) in enumerate(names.items()):
        hf[f"transformer.h.0.{name}.bias"] = tiny_gguf.normal(20 + i, outputs.get(name, width))
        stored[f"blk.0.{other}.bias"] = hf[f"transformer.h.0.{name}.bias"]
        if name.startswith("ln"):
            weight = stored[f"blk.0.{other}.weight"] = tiny_gguf.normal(40 + i, width)
        else:
            weight = tiny_gguf.normal(40 + i, width, outputs.get(name, width))
            stored[f"blk.0.{other}.weight"] = np.ascontiguousarray(weight.T)
        hf[f"transformer.h.0.{name}.weight"] = weight
    fields = {"context_length": 16, "embedding_length": width, "block_count": 1}
    fields |= {"feed_forward_length": width, "attention.head_count": 3}
    fields["attention.layer_norm_epsilon"] = 1e-5
    fields = {f"gpt2.{key}": value for key, value in fields.items()}
    config, tensors = converted(tmp_path, "gpt2", fields, stored)
    equal(tensors, hf)
    assert (config["n_inner"], config["n_positions"], config["n_head"]) == (width, 16, 3)


def test_quantised_rows_are_decoded_then_put_back_and_the_source_says_so(tmp_path):
    hf = tiny_gguf.layers(head_dim=64, width=384, kv=2)
    stored = as_llama(hf)
    raw = block_formats.random_rows("Q4_1", 3, rows=128, numbers=384)
    stored["blk.1.attn_k.weight"] = (raw, GGMLQuantizationType.Q4_1)
    order = interleaved(np.arange(128)[:, None], 2)[:, 0]
    decoded = np.empty((128, 384), np.float32)
    decoded[order] = block_formats.decoded("Q4_1", raw)
    hf["model.layers.1.self_attn.k_proj.weight"] = decoded
    up = "model.layers.0.mlp.up_proj.weight"
    hf[up] = hf[up].astype(ml_dtypes.bfloat16)
    stored["blk.0.ffn_up.weight"] = (hf[up].view(np.uint8), GGMLQuantizationType.BF16)
    _, tensors = converted(tmp_path, "llama", tiny_gguf.llama(embedding_length=384), stored)
    equal(tensors, hf)
    source = json.loads((tmp_path / "out" / "source.json").read_text())
    data = (tmp_path / "tiny.gguf").read_bytes()
    assert source["sha256"] == hashlib.sha256(data).hexdigest()
    assert (source["file"], source["bytes"]) == ("tiny.gguf", len(data))
    assert source["quantised"] is True
    assert source["tensor_types"] == {"BF16": 1, "F32": len(hf) - 2, "Q4_1": 1}


def test_a_float_file_is_not_quantised_and_keeps_half_precision(tmp_path):
    stored = as_llama(tiny_gguf.layers())
    stored = {n: a.astype(np.float16) if a.ndim == 2 else a for n, a in stored.items()}
    config, tensors = converted(tmp_path, "llama", tiny_gguf.llama(), stored)
    assert config["torch_dtype"] == "float16"
    assert tensors.dtype("model.embed_tokens.weight") == np.float16
    assert tensors.dtype("model.norm.weight") == np.float32
    assert json.loads((tmp_path / "out" / "source.json").read_text())["quantised"] is False


def llama3_divisors(factor, base, half):
    """The published rule, one frequency at a time: wavelengths against 8192 / 4 and 8192 / 1."""
    out = []
    for i in range(half):
        wavelength = 2 * np.pi * base ** (i / half)
        if wavelength < 8192 / 4:
            out.append(1.0)
        elif wavelength > 8192:
            out.append(factor)
        else:
            smooth = (8192 / wavelength - 1) / 3
            out.append(1 / ((1 - smooth) / factor + smooth))
    return np.float32(out)


@pytest.mark.parametrize("factor", [8.0, 32.0])
def test_llama3_divisors_become_the_rope_scaling_that_made_them(tmp_path, factor):
    stored = as_llama(tiny_gguf.layers(head_dim=64, width=384))
    divisors = llama3_divisors(factor, 500000.0, 32)
    assert np.count_nonzero((divisors > 1) & (divisors < factor)) > 1
    fields = tiny_gguf.llama(embedding_length=384, **{"rope.freq_base": 500000.0})
    config, tensors = converted(tmp_path, "llama", fields, stored | {"rope_freqs.weight": divisors})
    assert config["rope_scaling"] == {
        "rope_type": "llama3",
        "factor": factor,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 8192,
    }
    assert not any("rope" in name for name in tensors.names())
    for wrong in (divisors * np.float32(1.001), divisors[::-1].copy(), divisors[:16]):
        with pytest.raises(ValueError, match=r"rope_freqs\.weight"):
            converted(tmp_path, "llama", fields, stored | {"rope_freqs.weight": wrong})
    ones = {"rope_freqs.weight": np.ones(32, np.float32)}
    assert converted(tmp_path, "llama", fields, stored | ones)[0]["rope_scaling"] is None


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"llama.expert_count": 8}, r"llama\.expert_count"),
        ({"llama.vocab_size": 33}, r"vocab_size = 33: expected 32"),
        ({"llama.rope.dimension_count": 2}, r"rope\.dimension_count = 2"),
        ({"llama.attention.value_length": 8}, r"value_length = 8"),
        ({"llama.attention.head_count_kv": [2, 1]}, r"head_count_kv = \[2, 1\]"),
        ({"llama.rope.scaling.type": "yarn"}, r"rope\.scaling\.type"),
        ({"split.count": 2}, r"split\.count = 2"),
    ],
)
def test_metadata_that_are_not_known_are_refused_by_name(tmp_path, changes, message):
    stored = as_llama(tiny_gguf.layers())
    with pytest.raises(ValueError, match=message):
        converted(tmp_path, "llama", tiny_gguf.llama() | changes, stored)


def test_what_is_missing_or_unknown_is_named(tmp_path):
    fields, stored = tiny_gguf.llama(), as_llama(tiny_gguf.layers())
    with pytest.raises(ValueError, match=r"general\.architecture = 'mamba'"):
        converted(tmp_path, "mamba", fields, stored)
    without = {key: value for key, value in fields.items() if "block_count" not in key}
    with pytest.raises(ValueError, match=r"llama\.block_count"):
        converted(tmp_path, "llama", without, stored)
    extra = {"blk.0.ffn_gate_exps.weight": tiny_gguf.normal(1, 4, 4)}
    with pytest.raises(ValueError, match=r"blk\.0\.ffn_gate_exps\.weight"):
        converted(tmp_path, "llama", fields, stored | extra)
    extra = {"blk.0.attn_q.bias": tiny_gguf.normal(1, 24)}
    with pytest.raises(ValueError, match=r"biases of"):
        converted(tmp_path, "llama", fields, stored | extra)
    extra = {"blk.1.attn_v.weight": (np.zeros((8, 84), np.uint8), GGMLQuantizationType.Q2_K)}
    with pytest.raises(ValueError, match=r"blk\.1\.attn_v\.weight: type = 'Q2_K'"):
        converted(tmp_path, "llama", fields, stored | extra)
    del stored["token_embd.weight"]
    with pytest.raises(ValueError, match=r"token_embd\.weight"):
        converted(tmp_path, "llama", fields, stored)
