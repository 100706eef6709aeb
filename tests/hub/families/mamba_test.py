"""Mamba: published attributes, the order of fused tensors, biases, padding of the vocabulary."""

import dataclasses

import jax.numpy as jnp
import numpy as np
import pytest

from reach_jax.hub import families, loader
from reach_jax.hub.families import mamba
from tests.hub.families import compare
from tests.hub.families.rewrite import GOLDENS, hf_config, rewritten

MAMBA_130M = {
    "_name_or_path": "state-spaces/mamba-130m-hf",
    "architectures": ["MambaForCausalLM"],
    "bos_token_id": 0,
    "conv_kernel": 4,
    "d_inner": 1536,
    "d_model": 768,
    "eos_token_id": 0,
    "expand": 2,
    "fused_add_norm": True,
    "hidden_act": "silu",
    "hidden_size": 768,
    "initializer_range": 0.1,
    "intermediate_size": 1536,
    "layer_norm_epsilon": 1e-05,
    "model_type": "mamba",
    "n_layer": 24,
    "num_hidden_layers": 24,
    "pad_token_id": 0,
    "pad_vocab_size_multiple": 8,
    "rescale_prenorm_residual": False,
    "residual_in_fp32": True,
    "rms_norm": True,
    "ssm_cfg": {},
    "state_size": 16,
    "time_step_floor": 0.0001,
    "time_step_init_scheme": "random",
    "time_step_max": 0.1,
    "time_step_min": 0.001,
    "time_step_rank": 48,
    "time_step_scale": 1.0,
    "torch_dtype": "float32",
    "transformers_version": "4.39.0.dev0",
    "use_bias": False,
    "use_cache": True,
    "use_conv_bias": True,
    "vocab_size": 50280,
}
TOKENS = np.arange(11) * 3 % 40


def without(hf, *names):
    return {name: value for name, value in hf.items() if name not in names}


def test_mamba_130m_reads_as_published():
    config = mamba.config(MAMBA_130M)
    assert (config.vocab_size, config.layers, config.width, config.inner) == (50280, 24, 768, 1536)
    assert (config.state_size, config.conv_width, config.step_rank) == (16, 4, 48)
    assert (config.tied, config.dtype, config.norm_eps) == (True, "float32", 1e-5)
    assert (config.conv_bias, config.projection_bias, config.float32_residual) == (
        True, False, True)  # fmt: skip
    assert families.find("mamba") is mamba
    # A multiply-add a weight, twice; of its 129 M parameters 39 M are the token table.
    assert 2 * 85e6 < config.flops_per_token < 2 * 91e6


def test_what_a_file_leaves_out_is_what_the_class_says():
    found = mamba.config(without(MAMBA_130M, "d_inner", "expand", "intermediate_size",
                                 "time_step_rank", "state_size", "conv_kernel", "use_bias",
                                 "use_conv_bias", "residual_in_fp32"))  # fmt: skip
    assert found == mamba.config(MAMBA_130M)


def test_sizes_that_follow_from_others():
    plain = without(MAMBA_130M, "d_inner", "intermediate_size")
    assert mamba.config({**plain, "expand": 1.5}).inner == 1152
    assert mamba.config({**plain, "expand": 3, "intermediate_size": 1000}).inner == 1000
    narrow = {**plain, "hidden_size": 40, "d_model": 40, "time_step_rank": "auto"}
    assert mamba.config(narrow).step_rank == 3  # rounded up


@pytest.mark.parametrize(
    ("field", "value"),
    [("d_model", 512), ("n_layer", 12), ("time_step_rank", True), ("use_bias", 1)],
)
def test_attributes_that_contradict_are_refused_by_name(field, value):
    with pytest.raises(ValueError, match=rf"^config\.{field} = "):
        mamba.config({**MAMBA_130M, field: value})


def test_other_models_of_the_name_are_refused():
    for other in ("mamba2", "falcon_mamba"):
        with pytest.raises(ValueError, match=f"model_type = '{other}'"):
            families.find(other)


def tensor(name):
    return np.asarray(
        loader.Tensors(GOLDENS / "mamba").read(f"backbone.layers.1.mixer.{name}"), "f"
    )


def test_fused_tensors_are_split_in_their_order():
    layers = loader.load(GOLDENS / "mamba", "float32").params["layers"]
    weight, bias = tensor("in_proj.weight"), tensor("in_proj.bias")
    for place, name in enumerate(("up", "gate")):
        rows = slice(28 * place, 28 * place + 28)
        np.testing.assert_array_equal(layers[name][1], weight[rows].T)
        np.testing.assert_array_equal(layers[name + "_bias"][1], bias[rows])
    np.testing.assert_array_equal(layers["conv"][1], tensor("conv1d.weight")[:, 0].T)


def turned(name, by):
    """A change of every tensor whose name ends so."""

    def change(arrays):
        return {n: by(a) if n.endswith(name) else a for n, a in arrays.items()}

    return change


@pytest.mark.parametrize(
    "change",
    [
        turned("in_proj.weight", lambda a: np.roll(a, 28, 0)),  # gates first
        turned("x_proj.weight", lambda a: np.roll(a, 5, 0)),  # c, step, b
        turned("x_proj.weight", lambda a: np.concatenate([a[:3], a[8:], a[3:8]])),  # c before b
        turned("conv1d.weight", lambda a: a[:, :, ::-1]),  # the present first
        turned("A_log", lambda a: -a),
        turned("mixer.D", lambda a: -a),
        turned("dt_proj.bias", lambda a: 0 * a),
        turned("conv1d.bias", lambda a: 0 * a),
        turned("in_proj.bias", lambda a: 0 * a),
        turned("out_proj.bias", lambda a: 0 * a),
        turned("norm_f.weight", lambda a: 0 * a + 1),
    ],
)
def test_another_order_or_no_bias_gives_other_logits(change, tmp_path):
    one_TV = compare.logits(loader.load(GOLDENS / "mamba", "float32"), TOKENS)
    other_TV = compare.logits(loader.load(rewritten("mamba", tmp_path, change), "float32"), TOKENS)
    assert np.abs(one_TV - other_TV).max() > 1e-2


def test_what_decides_on_forgetting_stays_float32_and_the_rest_is_near():
    exact = loader.load(GOLDENS / "mamba", "float32")
    exact_TV = compare.logits(exact, TOKENS)
    for dtype, most in (("bfloat16", 0.05), ("float16", 0.005)):
        loaded = loader.load(GOLDENS / "mamba", dtype)
        layers = loaded.params["layers"]
        assert {layers[n].dtype for n in ("a_log", "d", "dt_bias", "norm")} == {
            jnp.dtype("float32")
        }
        assert {layers[n].dtype for n in ("up", "conv", "dt")} == {jnp.dtype(dtype)}
        error = np.abs(compare.logits(loaded, TOKENS) - exact_TV).max()
        assert 1e-4 < error < most * np.abs(exact_TV).max()


def test_a_residual_in_the_working_dtype_is_another_model(tmp_path):
    loaded = loader.load(GOLDENS / "mamba", "bfloat16")
    short = loader.load(rewritten("mamba", tmp_path, residual_in_fp32=False), "bfloat16")
    assert short.config == dataclasses.replace(loaded.config, float32_residual=False)
    inputs_TD = compare.call(loaded, "embed", jnp.asarray(TOKENS))
    assert compare.plain(loaded, inputs_TD, "states").dtype == jnp.float32
    assert compare.plain(short, inputs_TD, "states").dtype == jnp.bfloat16
    assert np.abs(compare.logits(loaded, TOKENS) - compare.logits(short, TOKENS)).max() > 1e-3


def test_the_padding_of_a_vocabulary_is_a_part_of_it(tmp_path):
    """Rows without a token are scored like any other, as the reference does."""
    spare = turned("embeddings.weight", lambda a: np.concatenate([a, 50 * a[:3]]))
    loaded = loader.load(rewritten("mamba", tmp_path, spare, vocab_size=43), "float32")
    logits_TV = compare.logits(loaded, TOKENS)
    np.testing.assert_allclose(logits_TV[:, 40:], 50 * logits_TV[:, :3], rtol=1e-4, atol=1e-4)
    assert hf_config("mamba")["vocab_size"] == 40
