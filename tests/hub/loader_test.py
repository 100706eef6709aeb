"""The loader leaves nothing out, sets nothing twice, and says by name what it refuses."""

import re
import tracemalloc

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from reach_jax.hub import families, loader
from reach_jax.models import kinds
from tests.hub.families import compare
from tests.hub.families.rewrite import GOLDENS, hf_config, rewritten

TOKENS = np.array([3, 17, 0, 25, 9])
EMBEDDING = "model.embed_tokens.weight"
NAMES = sorted(p.name for p in GOLDENS.iterdir())


def without(*names):
    return lambda arrays: {n: a for n, a in arrays.items() if n not in names}


def plus(**extra):
    return lambda arrays: {**arrays, **extra}


@pytest.mark.parametrize("name", NAMES)
def test_every_parameter_is_there_in_its_shape_and_none_is_as_init_left_it(name):
    loaded = loader.load(GOLDENS / name, "float32")
    shapes = jax.eval_shape(lambda: kinds.init(loaded.config, jax.random.key(0)))
    chex.assert_trees_all_equal_shapes_and_dtypes(loaded.params, shapes)
    for leaf in jax.tree.leaves(loaded.params):
        assert np.std(leaf) > 0.05
    sizes = [x.size for x in jax.tree.leaves(loaded.params)]
    assert loaded.report.parameters == sum(sizes)
    assert loaded.report.bytes == 4 * sum(sizes)
    assert loaded.report.file_dtypes == ("bfloat16",)


@pytest.mark.parametrize("name", NAMES)
def test_any_tensor_left_out_is_named(name, tmp_path):
    for tensor in loader.Tensors(GOLDENS / name).names():
        path = rewritten(name, tmp_path, without(tensor))
        with pytest.raises(ValueError, match=f"^{re.escape(tensor)} = 'absent'"):
            loader.load(path)


@pytest.mark.parametrize("name", NAMES)
def test_any_tensor_of_another_shape_is_named(name, tmp_path):
    for tensor in loader.Tensors(GOLDENS / name).names():
        path = rewritten(name, tmp_path, lambda a, t=tensor: {**a, t: a[t][:-1]})
        with pytest.raises(ValueError, match=f"^shape of {re.escape(tensor)} = "):
            loader.load(path)


@pytest.mark.parametrize("tensor", ["0.self_attn.q_norm.weight", "2.input_layernorm.weight"])
def test_a_tensor_without_a_place_is_named(tensor, tmp_path):
    name = f"model.layers.{tensor}"
    path = rewritten("llama", tmp_path, plus(**{name: np.ones(24, np.float32)}))
    with pytest.raises(ValueError, match=f"^{re.escape(name)} = "):
        loader.load(path)


@pytest.mark.parametrize(
    ("name", "tensor"),
    [
        ("llama", "model.layers.1.self_attn.rotary_emb.inv_freq"),
        ("gpt_neox", "gpt_neox.layers.0.attention.bias"),
        ("gpt_neox", "gpt_neox.layers.0.attention.masked_bias"),
        ("gpt_neox", "gpt_neox.layers.1.attention.rotary_emb.inv_freq"),
        ("gpt2", "transformer.h.0.attn.bias"),
    ],
)
def test_what_holds_no_parameter_is_ignored_by_name(name, tensor, tmp_path):
    path = rewritten(name, tmp_path, plus(**{tensor: np.ones(3, np.float32)}))
    loaded = loader.load(path)
    assert loaded.report.ignored == (tensor,)
    chex.assert_trees_all_equal(loaded.params, loader.load(GOLDENS / name).params)


@pytest.mark.parametrize("name", NAMES)
def test_any_unknown_attribute_is_named(name):
    hf = hf_config(name, made_up_option=3)
    with pytest.raises(ValueError, match=r"^config\.made_up_option = 3: "):
        families.find(hf["model_type"]).config(hf)


@pytest.mark.parametrize(
    ("name", "field", "value"),
    [
        ("llama", "hidden_act", "relu"),
        ("llama", "quantization_config", {"bits": 4}),
        ("llama", "is_encoder_decoder", True),
        ("llama", "architectures", ["LlamaForSequenceClassification"]),
        ("llama", "num_hidden_layers", None),
        ("llama", "attention_bias", "yes"),
        ("qwen2", "use_mrope", True),
        ("qwen2", "layer_types", ["chunked_attention"] * 2),
        ("gpt2", "scale_attn_by_inverse_layer_idx", True),
        ("gpt2", "add_cross_attention", True),
        ("gemma3", "attn_logit_softcapping", 50.0),
        ("gemma3", "final_logit_softcapping", 30.0),
        ("gemma3", "use_bidirectional_attention", True),
        ("mamba", "hidden_act", "gelu"),
        ("mamba", "rms_norm", False),
        ("mamba", "ssm_cfg", {"layer": "Mamba2"}),
        ("mamba", "d_inner", 48),
        ("mamba", "time_step_rank", "half"),
        ("mamba", "architectures", ["FalconMambaForCausalLM"]),
    ],
)
def test_a_value_that_is_not_implemented_is_named(name, field, value):
    hf = hf_config(name, **{field: value})
    with pytest.raises(ValueError, match=rf"^config\.{field}"):
        families.find(hf["model_type"]).config(hf)


def test_an_unknown_family_and_a_bad_file_are_named(tmp_path):
    path = rewritten("llama", tmp_path, model_type="mixtral")
    with pytest.raises(ValueError, match=r"config\.model_type = 'mixtral'"):
        loader.load(path)
    bad = rewritten("llama", tmp_path, hidden_act="relu")
    with pytest.raises(ValueError, match=re.escape(str(bad / "config.json"))):
        loader.load(bad)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_the_dtype_is_the_asked_one_and_norms_stay_float32(dtype):
    loaded = loader.load(GOLDENS / "llama", dtype)
    assert loaded.config.dtype == dtype
    assert loaded.params["layers"]["attention"]["q"].dtype == jnp.dtype(dtype)
    assert loaded.params["final_norm"]["weight"].dtype == jnp.float32
    hidden_TD = compare.plain(loaded, compare.call(loaded, "embed", jnp.asarray(TOKENS)))
    assert hidden_TD.dtype == jnp.dtype(dtype)
    exact_TV = compare.logits(loader.load(GOLDENS / "llama", "float32"), TOKENS)
    error = np.abs(compare.logits(loaded, TOKENS) - exact_TV).max()
    assert error <= {"float32": 0, "bfloat16": 0.15, "float16": 0.02}[dtype]


def test_the_files_dtype_is_kept_when_none_is_asked():
    assert loader.load(GOLDENS / "qwen2").config.dtype == "bfloat16"


def test_a_number_too_great_for_float16_is_named(tmp_path):
    path = rewritten("llama", tmp_path, lambda a: {**a, EMBEDDING: 1e6 * a[EMBEDDING]})
    with pytest.raises(ValueError, match=re.escape(EMBEDDING)):
        loader.load(path, "float16")
    loader.load(path, "float32")


def head_logits(loaded, head_VD):
    """hidden @ head.T by numpy: which matrix came to be the head is then no guess."""
    hidden_TD = compare.plain(loaded, compare.call(loaded, "embed", jnp.asarray(TOKENS)))
    return np.asarray(hidden_TD) @ head_VD.T


@pytest.mark.parametrize("name", ["llama", "qwen2", "gpt2", "gpt_neox", "gemma3", "mamba"])
@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("present", [True, False])
def test_tied_and_untied_heads(name, tied, present, tmp_path):
    family, found = families.find(hf_config(name)["model_type"]), {}

    def change(arrays):
        found["embedding"] = arrays[family.EMBEDDING]
        head = {family.HEAD: found["embedding"] + 1} if present else {}
        return {**without(family.HEAD)(arrays), **head}

    path = rewritten(name, tmp_path, change, tie_word_embeddings=tied)
    if not tied and not present:
        with pytest.raises(ValueError, match=f"^{re.escape(family.HEAD)} = 'absent'"):
            loader.load(path, "float32")
        return
    if tied and present:
        with pytest.warns(UserWarning, match=f"{family.HEAD} differs from {family.EMBEDDING}"):
            loaded = loader.load(path, "float32")
    else:
        loaded = loader.load(path, "float32")
    embedding_VD = found["embedding"]
    right, wrong = (embedding_VD, embedding_VD + 1)[:: 1 if tied else -1]
    want_TV, got_TV = head_logits(loaded, right), compare.logits(loaded, TOKENS)
    np.testing.assert_allclose(got_TV, want_TV, atol=1e-5 * np.abs(want_TV).max())
    assert np.abs(head_logits(loaded, wrong) - got_TV).max() > 0.1


def test_a_tied_head_that_equals_the_embedding_is_left_out_quietly(tmp_path):
    path = rewritten("qwen2", tmp_path, lambda a: {**a, "lm_head.weight": a[EMBEDDING]})
    assert "lm_head.weight left out" in loader.load(path).report.notes[0]


@pytest.mark.parametrize("tied", [True, False])
def test_a_file_with_a_head_and_no_embedding(tied, tmp_path):
    def change(arrays):
        return {**without(EMBEDDING)(arrays), "lm_head.weight": arrays[EMBEDDING]}

    path = rewritten("qwen2", tmp_path, change, tie_word_embeddings=tied)
    if not tied:
        with pytest.raises(ValueError, match=f"^{re.escape(EMBEDDING)} = 'absent'"):
            loader.load(path)
        return
    loaded = loader.load(path, "float32")
    chex.assert_trees_all_equal(loaded.params, loader.load(GOLDENS / "qwen2", "float32").params)
    assert loaded.report.notes


@pytest.mark.parametrize(
    ("name", "tied"), [("gpt2", True), ("gemma3", True), ("mamba", True), ("qwen2", False)]
)
def test_an_absent_tying_flag_is_the_default_of_the_class(name, tied):
    hf = hf_config(name)
    hf.pop("tie_word_embeddings")
    assert families.find(hf["model_type"]).config(hf).tied == tied


@pytest.mark.parametrize("name", ["gpt2", "qwen2", "gemma3", "mamba"])
def test_names_of_a_bare_model_load_as_well(name, tmp_path):
    prefix = families.find(hf_config(name)["model_type"]).PREFIX

    def bare(arrays):
        return {n.removeprefix(prefix): a for n, a in arrays.items()}

    loaded = loader.load(rewritten(name, tmp_path, bare), "float32")
    chex.assert_trees_all_equal(loaded.params, loader.load(GOLDENS / name, "float32").params)


def test_memory_stays_near_the_parameters(tmp_path):
    """Arrays that numpy allocates: never finished parameters and the whole file beside them."""
    table = {EMBEDDING: np.ones((2**15, 48), np.float32)}
    path = rewritten("gemma3", tmp_path, plus(**table), vocab_size=2**15)
    loader.load(path, "float32")  # imports and traces
    tracemalloc.start()
    loaded = loader.load(path, "float32")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1.3 * loaded.report.bytes
