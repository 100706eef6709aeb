"""Qwen2: q, k, v biases and no other, windows by depth, the published configuration."""

import numpy as np
import pytest

from reach_jax.hub import loader
from reach_jax.hub.families import qwen2
from tests.hub.families import compare
from tests.hub.families.rewrite import GOLDENS, hf_config, rewritten

QWEN25_05B = {
    "architectures": ["Qwen2ForCausalLM"],
    "attention_dropout": 0.0,
    "bos_token_id": 151643,
    "eos_token_id": 151643,
    "hidden_act": "silu",
    "hidden_size": 896,
    "initializer_range": 0.02,
    "intermediate_size": 4864,
    "max_position_embeddings": 32768,
    "max_window_layers": 24,
    "model_type": "qwen2",
    "num_attention_heads": 14,
    "num_hidden_layers": 24,
    "num_key_value_heads": 2,
    "rms_norm_eps": 1e-06,
    "rope_theta": 1000000.0,
    "sliding_window": 32768,
    "tie_word_embeddings": True,
    "torch_dtype": "bfloat16",
    "transformers_version": "4.40.1",
    "use_cache": True,
    "use_mrope": False,
    "use_sliding_window": False,
    "vocab_size": 151936,
}


def test_qwen25_reads_as_published():
    config = qwen2.config(QWEN25_05B)
    assert (config.qkv_bias, config.o_bias, config.mlp_bias) == (True, False, False)
    assert (config.window, any(config.local_layers), config.head_width) == (None, False, 64)


def test_the_window_is_on_by_its_flag_and_from_a_depth():
    windowed = qwen2.config({**QWEN25_05B, "use_sliding_window": True, "max_window_layers": 20})
    assert windowed.local_layers == (False,) * 20 + (True,) * 4
    assert windowed.window == 32768


@pytest.mark.parametrize("bias", ["q_proj", "k_proj", "v_proj"])
def test_no_bias_is_dropped(bias, tmp_path):
    tokens_T = np.array([3, 17, 0, 25, 9])
    name = f"model.layers.1.self_attn.{bias}.bias"
    path = rewritten("qwen2", tmp_path, lambda a: {**a, name: -3 * a[name]})
    whole_TV = compare.logits(loader.load(GOLDENS / "qwen2", "float32"), tokens_T)
    other_TV = compare.logits(loader.load(path, "float32"), tokens_T)
    assert np.abs(other_TV - whole_TV).max() > 1e-2


def test_an_output_bias_has_no_place(tmp_path):
    name = "model.layers.0.self_attn.o_proj.bias"
    path = rewritten("qwen2", tmp_path, lambda a: {**a, name: np.ones(24, np.float32)})
    with pytest.raises(ValueError, match=r"o_proj\.bias"):
        loader.load(path)


def test_heads_that_do_not_divide_are_refused():
    with pytest.raises(ValueError, match="kv_heads = 4"):
        qwen2.config(hf_config("qwen2", num_key_value_heads=4))
