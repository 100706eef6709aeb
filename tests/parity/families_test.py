"""Every family against a reference model made now, with weights that no golden has.

Needs torch and transformers (the parity extra); `make test` goes without and uses the goldens.
"""

import warnings

import numpy as np
import pytest

from reach_jax.hub import loader
from tests.hub.families import compare

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    torch = pytest.importorskip("torch", reason="parity needs torch")
    pytest.importorskip("transformers", reason="parity needs transformers")
    from tests.hub.families import cases

PLAIN = {"rope_theta": 10_000.0, "rope_type": "default"}
CASES = {
    "llama": cases.llama(),
    "llama_tied": cases.llama(tie_word_embeddings=True),
    "llama_biases": cases.llama(attention_bias=True, mlp_bias=True),
    "llama_llama3": cases.llama(rope_parameters=cases.LLAMA3),
    "llama_linear": cases.llama(
        rope_parameters={**PLAIN, "rope_type": "linear", "factor": 4.0}, hidden_act="gelu"
    ),
    "llama_head_width": cases.llama(head_dim=10, num_key_value_heads=1),
    "qwen2": cases.qwen2(),
    "qwen2_tied": cases.qwen2(tie_word_embeddings=True),
    "qwen2_window": cases.qwen2(use_sliding_window=True, sliding_window=4, max_window_layers=1),
    "gpt_neox": cases.neox(),
    "gpt_neox_no_bias": cases.neox(attention_bias=False),
    "gpt_neox_sequential": cases.neox(use_parallel_residual=False),
    "gpt_neox_sequential_no_bias": cases.neox(use_parallel_residual=False, attention_bias=False),
    "gpt_neox_tanh": cases.neox(hidden_act="gelu_new", rotary_pct=1.0),
    "gpt2": cases.gpt2(),
    "gpt2_unscaled": cases.gpt2(scale_attn_weights=False, n_inner=None),
    "gpt2_exact": cases.gpt2(activation_function="gelu"),
    "gemma3": cases.gemma3(),
    "gemma3_scaled": cases.gemma3(
        rope_parameters={
            "full_attention": {"rope_type": "linear", "factor": 8.0, "rope_theta": 1e6},
            "sliding_attention": PLAIN,
        }
    ),
    "mamba": cases.mamba(),
    "mamba_biases_untied": cases.mamba(use_bias=True, tie_word_embeddings=False),
    "mamba_no_conv_bias": cases.mamba(use_conv_bias=False, residual_in_fp32=False),
    "mamba_sizes": cases.mamba(conv_kernel=2, state_size=1, time_step_rank="auto", expand=3),
    "gemma3_untied_bias": cases.gemma3(tie_word_embeddings=False, attention_bias=True),
}


@pytest.mark.parametrize("seed", [101, 202])
@pytest.mark.parametrize("name", CASES)
def test_logits_states_loss_and_prompt_gradient(name, seed, tmp_path):
    model = cases.build(CASES[name], seed)
    want = cases.expected(model, seed)
    cases.save(model, tmp_path)
    found = compare.errors(loader.load(tmp_path, "float32"), want)
    print(name, {k: f"{v:.1e}" for k, v in found.items()})
    assert max(found.values()) <= 1e-4, found


@pytest.mark.parametrize("length", [12, 3000])
def test_llama3_scaling_near_and_far(length, tmp_path):
    model = cases.build(CASES["llama_llama3"], 7)
    want = cases.far(model, 7, length)
    cases.save(model, tmp_path)
    got_TV = compare.logits(loader.load(tmp_path, "float32"), want["far_tokens"])[-2:]
    np.testing.assert_allclose(got_TV, want["far_logits"], atol=1e-4, rtol=0)


@pytest.mark.parametrize("name", ["llama", "qwen2", "gpt_neox", "gpt2", "gemma3", "mamba"])
def test_bfloat16_is_as_near_to_float32_as_the_reference_is(name, tmp_path):
    """Two roundings of the same float32 model; neither may be much worse."""
    model = cases.build(CASES[name], 303)
    tokens_T = np.random.default_rng(303).integers(0, 40, 11)
    exact_TV = cases.logits(model, tokens_T)
    cases.save(model, tmp_path)
    half_TV = compare.logits(loader.load(tmp_path, "bfloat16"), tokens_T)
    theirs_TV = cases.logits(model.bfloat16(), tokens_T)
    ours, theirs = (np.sqrt(np.mean((x - exact_TV) ** 2)) for x in (half_TV, theirs_TV))
    print(name, f"rms error ours {ours:.1e} theirs {theirs:.1e}")
    assert 0 < ours < 2 * theirs
