"""GPT-NeoX: q, k, v fused head by head, partial rotary, both forms of residual."""

import numpy as np
import pytest

from reach_jax.hub import loader
from reach_jax.hub.families import gpt_neox
from tests.hub.families import compare
from tests.hub.families.rewrite import GOLDENS, rewritten

PYTHIA_70M = {
    "architectures": ["GPTNeoXForCausalLM"],
    "bos_token_id": 0,
    "eos_token_id": 0,
    "hidden_act": "gelu",
    "hidden_size": 512,
    "initializer_range": 0.02,
    "intermediate_size": 2048,
    "layer_norm_eps": 1e-05,
    "max_position_embeddings": 2048,
    "model_type": "gpt_neox",
    "num_attention_heads": 8,
    "num_hidden_layers": 6,
    "rotary_emb_base": 10000,
    "rotary_pct": 0.25,
    "tie_word_embeddings": False,
    "torch_dtype": "float16",
    "transformers_version": "4.24.0",
    "use_cache": True,
    "use_parallel_residual": True,
    "vocab_size": 50304,
}
TOKENS = np.array([3, 17, 0, 25, 9])


def test_pythia_reads_as_published():
    config = gpt_neox.config(PYTHIA_70M)
    assert (config.rotary_width, config.head_width, config.rope_base) == (16, 64, 1e4)
    assert (config.activation, config.gated, config.parallel) == ("gelu", False, True)
    assert (config.qkv_bias, config.o_bias, config.mlp_bias) == (True, True, True)
    assert (config.tied, config.dtype, config.vocab_size) == (False, "float16", 50304)


def test_the_fused_tensor_is_split_head_by_head():
    loaded = loader.load(GOLDENS / "gpt_neox", "float32")
    tensors = loader.Tensors(GOLDENS / "gpt_neox")
    attention = loaded.params["layers"]["attention"]
    for layer, head, i in np.ndindex(2, 3, 3):
        fused = f"gpt_neox.layers.{layer}.attention.query_key_value."
        weight, bias = (np.asarray(tensors.read(fused + k), "f") for k in ("weight", "bias"))
        rows, name = slice(24 * head + 8 * i, 24 * head + 8 * i + 8), "qkv"[i]
        np.testing.assert_array_equal(attention[name][layer, :, head], weight[rows].T)
        np.testing.assert_array_equal(attention[name + "_bias"][layer, head], bias[rows])


@pytest.mark.parametrize(
    ("changes", "least"),
    [
        ({"use_parallel_residual": False}, 1e-2),
        ({"hidden_act": "gelu_new"}, 2e-5),  # the two activations are 5e-4 apart at most
        ({"rope_parameters": {"rope_type": "default", "partial_rotary_factor": 1.0}}, 1e-2),
    ],
)
def test_another_form_gives_other_logits(changes, least, tmp_path):
    one_TV = compare.logits(loader.load(GOLDENS / "gpt_neox", "float32"), TOKENS)
    path = rewritten("gpt_neox", tmp_path, **changes)
    other_TV = compare.logits(loader.load(path, "float32"), TOKENS)
    assert np.abs(one_TV - other_TV).max() > least


def test_an_odd_rotary_width_is_refused():
    with pytest.raises(ValueError, match="rotary_width = 3"):
        gpt_neox.config({**PYTHIA_70M, "rotary_pct": 3 / 64})


def test_two_rotary_shares_that_differ_are_refused():
    with pytest.raises(ValueError, match=r"partial_rotary_factor = 0\.5"):
        gpt_neox.config({**PYTHIA_70M, "partial_rotary_factor": 0.5})
