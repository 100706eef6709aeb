"""Gemma-3: embedding scale in the working dtype, the scale of scores, windows, no float16."""

import dataclasses
import math

import jax.numpy as jnp
import numpy as np
import pytest

from reach_jax.hub import loader
from reach_jax.hub.families import gemma3
from reach_jax.models import decoder
from tests.hub.families import compare
from tests.hub.families.rewrite import GOLDENS, hf_config, rewritten

GEMMA3_270M = {
    "_sliding_window_pattern": 6,
    "architectures": ["Gemma3ForCausalLM"],
    "attention_bias": False,
    "attention_dropout": 0.0,
    "attn_logit_softcapping": None,
    "bos_token_id": 2,
    "cache_implementation": "hybrid",
    "eos_token_id": 1,
    "final_logit_softcapping": None,
    "head_dim": 256,
    "hidden_activation": "gelu_pytorch_tanh",
    "hidden_size": 640,
    "initializer_range": 0.02,
    "intermediate_size": 2048,
    "layer_types": (["sliding_attention"] * 5 + ["full_attention"]) * 3,
    "max_position_embeddings": 32768,
    "model_type": "gemma3_text",
    "num_attention_heads": 4,
    "num_hidden_layers": 18,
    "num_key_value_heads": 1,
    "pad_token_id": 0,
    "query_pre_attn_scalar": 256,
    "rms_norm_eps": 1e-06,
    "rope_local_base_freq": 10000.0,
    "rope_scaling": None,
    "rope_theta": 1000000.0,
    "sliding_window": 512,
    "torch_dtype": "bfloat16",
    "transformers_version": "4.55.0.dev0",
    "use_bidirectional_attention": False,
    "use_cache": True,
    "vocab_size": 262144,
}
TOKENS = np.arange(11) * 3 % 40


def test_gemma3_reads_as_published():
    config = gemma3.config(GEMMA3_270M)
    assert (config.head_width, config.score_scale, config.tied) == (256, 1 / 16, True)
    assert config.local_layers == ((True,) * 5 + (False,)) * 3
    assert (config.window, config.rope_base, config.local_rope_base) == (512, 1e6, 1e4)
    by_pattern = {k: v for k, v in GEMMA3_270M.items() if k != "layer_types"}
    assert gemma3.config(by_pattern) == config


def test_only_global_layers_are_slowed():
    """The 4B model's scaling."""
    scaled = gemma3.config({**GEMMA3_270M, "rope_scaling": {"rope_type": "linear", "factor": 8.0}})
    plain = gemma3.config(GEMMA3_270M)
    np.testing.assert_allclose(8 * decoder.frequencies(scaled), decoder.frequencies(plain))
    local_P = decoder.frequencies(scaled, local=True)
    np.testing.assert_array_equal(local_P, decoder.frequencies(plain, local=True))
    assert local_P[1] > decoder.frequencies(plain)[1]


@pytest.mark.parametrize(
    ("width", "half", "full"),
    [
        (640, 25.25, 25.298221),
        (1152, 34.0, 33.941125),
        (2560, 50.5, 50.596443),
        (3840, 62.0, 61.967734),
    ],
)
def test_the_embedding_scale_is_rounded_to_the_working_dtype(width, half, full):
    config = gemma3.config(hf_config("gemma3", hidden_size=width))
    assert config.embedding_scale == math.sqrt(width)
    for dtype, want in (("bfloat16", half), ("float32", full)):
        params = {"embedding": jnp.full((40, width), 2.0, dtype)}  # a power of two: exact
        module = decoder.Decoder(dataclasses.replace(config, dtype=dtype))
        embedded_TD = module.apply({"params": params}, jnp.array([3]), method="embed")
        assert embedded_TD.dtype == jnp.dtype(dtype)
        np.testing.assert_allclose(np.asarray(embedded_TD, float) / 2, want, atol=2e-6)


def test_float16_is_refused_by_the_familys_name():
    with pytest.raises(ValueError, match=r"dtype = 'float16': expected .* safe for gemma3"):
        loader.load(GOLDENS / "gemma3", "float16")


def test_bfloat16_stays_near_float32():
    exact_TV = compare.logits(loader.load(GOLDENS / "gemma3", "float32"), TOKENS)
    half_TV = compare.logits(loader.load(GOLDENS / "gemma3", "bfloat16"), TOKENS)
    assert 1e-4 < np.abs(half_TV - exact_TV).max() < 0.1 * np.abs(exact_TV).max()


@pytest.mark.parametrize(
    "changes",
    [
        {"query_pre_attn_scalar": 20},  # the head width, which it is not
        {"sliding_window": 5},
        {"sliding_window": 3},
        {"layer_types": ["sliding_attention"] * 3},
        {"rope_parameters": {"sliding_attention": {"rope_type": "default", "rope_theta": 1e6}}},
    ],
)
def test_another_setting_gives_other_logits(changes, tmp_path):
    one_TV = compare.logits(loader.load(GOLDENS / "gemma3", "float32"), TOKENS)
    path = rewritten("gemma3", tmp_path, **changes)
    other_TV = compare.logits(loader.load(path, "float32"), TOKENS)
    assert np.abs(one_TV - other_TV).max() > 1e-2


@pytest.mark.parametrize("name", ["input", "post_attention", "pre_feedforward", "post_feedforward"])
def test_every_one_of_the_four_norms_matters(name, tmp_path):
    tensor = f"model.layers.1.{name}_layernorm.weight"
    path = rewritten("gemma3", tmp_path, lambda a: {**a, tensor: np.roll(a[tensor], 1)})
    one_TV = compare.logits(loader.load(GOLDENS / "gemma3", "float32"), TOKENS)
    other_TV = compare.logits(loader.load(path, "float32"), TOKENS)
    assert np.abs(one_TV - other_TV).max() > 1e-2


def test_a_window_hides_what_is_further_back():
    """Three layers of window 4 reach back 9 positions and no further."""
    loaded = loader.load(GOLDENS / "gemma3", "float32")
    config = dataclasses.replace(loaded.config, local_layers=(True,) * 3)
    local = dataclasses.replace(loaded, config=config)
    inputs_TD = compare.call(local, "embed", jnp.asarray(TOKENS))
    before_TD = compare.plain(local, inputs_TD)
    after_TD = compare.plain(local, inputs_TD.at[0].multiply(-3.0))
    np.testing.assert_array_equal(before_TD[10], after_TD[10])
    assert np.abs(before_TD[9] - after_TD[9]).max() > 1e-6
