"""GPT-2: (in, out) matrices though all are square here, learned positions, the tanh GELU."""

import jax.numpy as jnp
import numpy as np
import pytest

from reach_jax.hub import loader
from reach_jax.hub.families import gpt2
from reach_jax.models import decoder
from tests.hub.families import compare
from tests.hub.families.rewrite import GOLDENS, hf_config, rewritten

GPT2_SMALL = {
    "activation_function": "gelu_new",
    "architectures": ["GPT2LMHeadModel"],
    "attn_pdrop": 0.1,
    "bos_token_id": 50256,
    "embd_pdrop": 0.1,
    "eos_token_id": 50256,
    "initializer_range": 0.02,
    "layer_norm_epsilon": 1e-05,
    "model_type": "gpt2",
    "n_ctx": 1024,
    "n_embd": 768,
    "n_head": 12,
    "n_layer": 12,
    "n_positions": 1024,
    "resid_pdrop": 0.1,
    "summary_activation": None,
    "summary_first_dropout": 0.1,
    "summary_proj_to_labels": True,
    "summary_type": "cls_index",
    "summary_use_proj": True,
    "task_specific_params": {"text-generation": {"do_sample": True, "max_length": 50}},
    "vocab_size": 50257,
}
TOKENS = np.array([3, 17, 0, 25, 9])


def test_gpt2_reads_as_published():
    config = gpt2.config(GPT2_SMALL)
    assert (config.mlp_width, config.head_width, config.context) == (3072, 64, 1024)
    assert (config.tied, config.turning, config.activation) == (True, 0, "gelu_tanh")


@pytest.mark.parametrize("tensor", ["attn.c_proj", "mlp.c_fc", "mlp.c_proj"])
def test_a_transposed_square_matrix_would_show(tensor, tmp_path):
    name = f"transformer.h.0.{tensor}.weight"

    def turned(arrays):
        assert arrays[name].shape == (24, 24)
        return {**arrays, name: arrays[name].T}

    path = rewritten("gpt2", tmp_path, turned)
    one_TV = compare.logits(loader.load(GOLDENS / "gpt2", "float32"), TOKENS)
    other_TV = compare.logits(loader.load(path, "float32"), TOKENS)
    assert np.abs(one_TV - other_TV).max() > 1e-2


def test_the_activation_is_the_one_of_the_config(tmp_path):
    path = rewritten("gpt2", tmp_path, activation_function="gelu")
    one_TV = compare.logits(loader.load(GOLDENS / "gpt2", "float32"), TOKENS)
    assert np.abs(compare.logits(loader.load(path, "float32"), TOKENS) - one_TV).max() > 1e-4


def test_a_length_beyond_the_table_is_refused_before_any_compute():
    loaded = loader.load(GOLDENS / "gpt2", "float32")
    compare.logits(loaded, np.zeros(16, np.int32))
    with pytest.raises(ValueError, match="length = 17: expected at most the 16 learned positions"):
        compare.logits(loaded, np.zeros(17, np.int32))
    cache = decoder.empty_cache(loaded.config, 17)
    with pytest.raises(ValueError, match="length = 17"):
        compare.call(loaded, "step", jnp.zeros(24), jnp.int32(0), cache)


def test_a_position_beyond_the_table_is_nan_and_never_the_last_row():
    loaded = loader.load(GOLDENS / "gpt2", "float32")
    inputs_TD, valid_T = jnp.zeros((2, 24)), jnp.ones(2, bool)
    inside_TD = compare.call(loaded, "hidden", inputs_TD, jnp.array([14, 15]), valid_T)
    outside_TD = compare.call(loaded, "hidden", inputs_TD, jnp.array([15, 16]), valid_T)
    assert np.isfinite(inside_TD).all()
    assert np.isnan(outside_TD[1]).all()


def test_scores_may_be_left_unscaled():
    assert gpt2.config(hf_config("gpt2", scale_attn_weights=False)).score_scale == 1.0
    assert gpt2.config(hf_config("gpt2")).score_scale is None
