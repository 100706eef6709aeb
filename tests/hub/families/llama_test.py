"""Llama: published configurations, rope scaling in every spelling, biases, grouped heads."""

import numpy as np
import pytest

from reach_jax.hub import loader
from reach_jax.hub.families import llama
from reach_jax.models import decoder
from reach_jax.models.config import RopeScaling
from tests.hub.families import compare
from tests.hub.families.rewrite import GOLDENS, hf_config, rewritten

LLAMA_32_1B = {
    "architectures": ["LlamaForCausalLM"],
    "attention_bias": False,
    "attention_dropout": 0.0,
    "bos_token_id": 128000,
    "eos_token_id": 128001,
    "head_dim": 64,
    "hidden_act": "silu",
    "hidden_size": 2048,
    "initializer_range": 0.02,
    "intermediate_size": 8192,
    "max_position_embeddings": 131072,
    "mlp_bias": False,
    "model_type": "llama",
    "num_attention_heads": 32,
    "num_hidden_layers": 16,
    "num_key_value_heads": 8,
    "pretraining_tp": 1,
    "rms_norm_eps": 1e-05,
    "rope_scaling": {
        "factor": 32.0,
        "high_freq_factor": 4.0,
        "low_freq_factor": 1.0,
        "original_max_position_embeddings": 8192,
        "rope_type": "llama3",
    },
    "rope_theta": 500000.0,
    "tie_word_embeddings": True,
    "torch_dtype": "bfloat16",
    "transformers_version": "4.45.0.dev0",
    "use_cache": True,
    "vocab_size": 128256,
}
SMOLLM2 = {
    **LLAMA_32_1B,
    "is_llama_config": True,
    "rope_interleaved": False,
    "rope_scaling": None,
    "rope_theta": 100000,
    "transformers.js_config": {"kv_cache_dtype": {"q4f16": "float16"}},
}
TOKENS = np.array([3, 17, 0, 25, 9])


def test_llama_32_reads_as_published():
    config = llama.config(LLAMA_32_1B)
    assert config.rope_scaling == RopeScaling("llama3", 32.0, 1.0, 4.0, 8192)
    assert (config.rope_base, config.tied, config.dtype) == (5e5, True, "bfloat16")
    ratio_P = decoder.frequencies(config) / 5e5 ** -(np.arange(0, 64, 2) / 64)
    np.testing.assert_allclose(ratio_P[:15], 1, rtol=1e-6)
    np.testing.assert_allclose(ratio_P[15:18], [0.605573, 0.303743, 0.103448], atol=2e-6)
    np.testing.assert_allclose(ratio_P[18:], 1 / 32, rtol=1e-6)


def test_smollm2_reads_as_published():
    config = llama.config(SMOLLM2)
    assert (config.rope_base, config.rope_scaling) == (1e5, None)


def test_old_and_new_spelling_of_scaling_say_the_same():
    new = {k: v for k, v in LLAMA_32_1B.items() if k not in ("rope_scaling", "rope_theta")}
    new["rope_parameters"] = {**LLAMA_32_1B["rope_scaling"], "rope_theta": 5e5}
    assert llama.config(new) == llama.config(LLAMA_32_1B)
    oldest = {**SMOLLM2, "rope_scaling": {"type": "linear", "factor": 2.0}}
    assert llama.config(oldest).rope_scaling.kind == "linear"


@pytest.mark.parametrize(
    ("scaling", "word"),
    [
        ({"rope_type": "yarn", "factor": 4.0}, "rope_type"),
        ({"rope_type": "dynamic", "factor": 4.0}, "rope_type"),
        ({"type": "llama4", "factor": 4.0}, "rope_type"),
        ({"factor": 4.0}, "rope_type"),
        ({"rope_type": "linear", "type": "llama3", "factor": 4.0}, "type"),
        ({"rope_type": "linear"}, "factor"),
        ({"rope_type": "linear", "factor": 0}, "factor"),
        ({"rope_type": "linear", "factor": 2.0, "attention_factor": 1.0}, "attention_factor"),
        ({"rope_type": "llama3", "factor": 2.0, "low_freq_factor": 1.0}, "high_freq_factor"),
    ],
)
def test_scaling_that_is_not_understood_is_refused(scaling, word):
    with pytest.raises(ValueError, match=rf"^config\.rope_scaling\.{word} = "):
        llama.config({**LLAMA_32_1B, "rope_scaling": scaling})


def test_both_spellings_at_once_are_refused():
    both = {"rope_parameters": {"rope_theta": 1e4, "rope_type": "default"}}
    with pytest.raises(ValueError, match=r"^config\.rope_scaling = "):
        llama.config({**LLAMA_32_1B, **both})


def test_heads_that_do_not_divide_are_refused():
    with pytest.raises(ValueError, match="kv_heads = 5"):
        llama.config({**LLAMA_32_1B, "num_key_value_heads": 5})


def test_an_explicit_head_width_is_believed():
    assert llama.config(hf_config("llama", head_dim=10)).head_width == 10
    assert llama.config(hf_config("llama", head_dim=None)).head_width == 4


def test_dropped_scaling_shows_far_from_the_start(tmp_path):
    """What the golden's 3000 tokens are for: a short sequence would hardly tell."""
    with np.load(GOLDENS / "llama" / "expected.npz") as arrays:
        tokens_T, want_TV = arrays["far_tokens"], arrays["far_logits"]
    plain = {"rope_theta": 10_000.0, "rope_type": "default"}
    dropped = loader.load(rewritten("llama", tmp_path, rope_parameters=plain), "float32")
    assert np.abs(compare.logits(dropped, tokens_T)[-2:] - want_TV).max() > 0.01


@pytest.mark.parametrize("name", ["self_attn.q", "self_attn.k", "self_attn.v", "self_attn.o",
                                  "mlp.gate", "mlp.up", "mlp.down"])  # fmt: skip
def test_no_bias_is_dropped(name, tmp_path):
    tensor = f"model.layers.1.{name}_proj.bias"
    path = rewritten("llama", tmp_path, lambda a: {**a, tensor: -3 * a[tensor]})
    one = compare.logits(loader.load(GOLDENS / "llama", "float32"), TOKENS)
    other = compare.logits(loader.load(path, "float32"), TOKENS)
    assert np.abs(one - other).max() > 1e-3


def test_repeated_and_tiled_key_heads_differ(tmp_path):
    """Query heads in the order in which tiling would pair them: the golden could not pass so."""
    kernel, bias = (f"model.layers.0.self_attn.q_proj.{k}" for k in ("weight", "bias"))

    def tiled(arrays):
        order = [0, 2, 4, 1, 3, 5]
        return {
            **arrays,
            kernel: arrays[kernel].reshape(6, 4, 24)[order].reshape(24, 24),
            bias: arrays[bias].reshape(6, 4)[order].reshape(24),
        }

    path = rewritten("llama", tmp_path, tiled)
    one = compare.logits(loader.load(GOLDENS / "llama", "float32"), TOKENS)
    assert np.abs(compare.logits(loader.load(path, "float32"), TOKENS) - one).max() > 1e-2
