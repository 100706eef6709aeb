"""Tiny random reference models of every family, by `transformers`: nothing at its initial value.

Needs torch and transformers, so only the generator of the goldens and tests/parity import it.
"""

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers

SMALL = {
    "vocab_size": 40,
    "hidden_size": 24,
    "intermediate_size": 28,
    "num_hidden_layers": 2,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "rms_norm_eps": 1e-3,
    "bos_token_id": 0,
    "eos_token_id": 1,
    "pad_token_id": 2,
}
LLAMA3 = {
    "rope_type": "llama3",
    "rope_theta": 10_000.0,
    "factor": 32.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,
}
NEOX = {
    **{k: v for k, v in SMALL.items() if k not in ("num_key_value_heads", "rms_norm_eps")},
    "num_attention_heads": 3,
    "layer_norm_eps": 1e-3,
    "hidden_act": "gelu",
    "rotary_pct": 0.25,
}
GPT2 = {
    "vocab_size": 40,
    "n_positions": 16,
    "n_embd": 24,
    "n_inner": 24,
    "n_layer": 2,
    "n_head": 3,
    "layer_norm_epsilon": 1e-3,
    "bos_token_id": 0,
    "eos_token_id": 1,
}
GEMMA3 = {
    **SMALL,
    "hidden_size": 48,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 20,
    "query_pre_attn_scalar": 7,
    "num_hidden_layers": 3,
    "layer_types": ["sliding_attention", "full_attention", "sliding_attention"],
    "sliding_window": 4,
}
MAMBA = {
    "vocab_size": 40,
    "hidden_size": 24,
    "intermediate_size": 28,
    "state_size": 5,
    "num_hidden_layers": 2,
    "conv_kernel": 4,
    "time_step_rank": 3,
    "layer_norm_epsilon": 1e-3,
}


@dataclasses.dataclass(frozen=True)
class Case:
    """A configuration of a `transformers` class."""

    family: str
    classes: str  # <classes>Config and <model class>
    model: str
    values: dict[str, Any]

    def config(self) -> Any:
        return getattr(transformers, self.classes)(**self.values)


def llama(**changes: Any) -> Case:
    return Case("llama", "LlamaConfig", "LlamaForCausalLM", {**SMALL, **changes})


def qwen2(**changes: Any) -> Case:
    return Case("qwen2", "Qwen2Config", "Qwen2ForCausalLM", {**SMALL, **changes})


def neox(**changes: Any) -> Case:
    return Case("gpt_neox", "GPTNeoXConfig", "GPTNeoXForCausalLM", {**NEOX, **changes})


def gpt2(**changes: Any) -> Case:
    return Case("gpt2", "GPT2Config", "GPT2LMHeadModel", {**GPT2, **changes})


def gemma3(**changes: Any) -> Case:
    return Case("gemma3", "Gemma3TextConfig", "Gemma3ForCausalLM", {**GEMMA3, **changes})


def mamba(**changes: Any) -> Case:
    return Case("mamba", "MambaConfig", "MambaForCausalLM", {**MAMBA, **changes})


GOLDENS = {
    "llama": llama(attention_bias=True, mlp_bias=True, rope_parameters=LLAMA3),
    "qwen2": qwen2(tie_word_embeddings=True, rope_parameters={"rope_theta": 1e6}),
    "gpt_neox": neox(),
    "gpt_neox_sequential": neox(use_parallel_residual=False, attention_bias=False),
    "gpt2": gpt2(),
    "gemma3": gemma3(),
    "mamba": mamba(use_bias=True),
}


def build(case: Case, seed: int) -> Any:
    """The reference model with every parameter ~ N(0, 1), matrices over sqrt(fan in).

    Numbers are bfloat16 ones, so that a file of half the size holds them exactly.
    """
    config = case.config()
    how = {} if case.family == "mamba" else {"attn_implementation": "eager"}
    model = getattr(transformers, case.model)._from_config(config, **how)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            noise = torch.randn(parameter.shape, generator=generator)
            if parameter.ndim == 2 and "emb" not in name and "wte" not in name:
                noise = noise * parameter.shape[-1] ** -0.5
            parameter.copy_(noise.bfloat16())
    return model.eval().float()


def save(model: Any, directory: Path, dtype: torch.dtype = torch.float32) -> None:
    """config.json and model.safetensors; leaves the model in float32."""
    model.to(dtype).save_pretrained(directory)
    model.float()
    generation = directory / "generation_config.json"
    generation.unlink(missing_ok=True)
    config = json.loads((directory / "config.json").read_text())
    (directory / "config.json").write_text(json.dumps(config, indent=1, sort_keys=True) + "\n")


def expected(model: Any, seed: int, length: int = 11, prompt: int = 3) -> dict[str, np.ndarray]:
    """What the reference says: of tokens alone, and of a soft prompt before them.

    Returns:
      tokens (T,), logits (T, V), states (L+1, T, D), soft (3, D), the mean `nll` of the tokens
      after the prompt, in nats, and `grad` (3, D), its gradient.
    """
    rng = np.random.default_rng(seed)
    tokens_T = torch.tensor(rng.integers(0, model.config.vocab_size, length))
    with torch.no_grad():
        out = model(tokens_T[None], output_hidden_states=True)
        embedded_TD = model.get_input_embeddings()(tokens_T)
    spread = float(embedded_TD.std())
    soft_MD = torch.tensor(rng.standard_normal((prompt, embedded_TD.shape[1])), dtype=torch.float32)
    soft_MD = (spread * soft_MD).requires_grad_()
    inputs = torch.cat([soft_MD, embedded_TD])[None]
    logits_TV = model(inputs_embeds=inputs).logits[0, prompt - 1 : -1]
    nll = torch.nn.functional.cross_entropy(logits_TV, tokens_T)
    nll.backward()
    states = list(out.hidden_states)
    if model.config.model_type == "mamba":  # says what comes out of each layer, not what goes in
        states = [embedded_TD[None], *states[:-2], states[-1]]
    return {
        "tokens": tokens_T.numpy().astype(np.int32),
        "logits": out.logits[0].numpy(),
        "states": np.stack([x[0].numpy() for x in states]),
        "soft": soft_MD.detach().numpy(),
        "nll": nll.detach().numpy(),
        "grad": soft_MD.grad.numpy(),
    }


def far(model: Any, seed: int, length: int) -> dict[str, np.ndarray]:
    """The last two logits of a long sequence, where rotary scaling shows."""
    tokens_T = np.random.default_rng(seed).integers(0, model.config.vocab_size, length)
    with torch.no_grad():
        logits_TV = model(torch.tensor(tokens_T)[None]).logits[0, -2:]
    return {"far_tokens": tokens_T.astype(np.uint8), "far_logits": logits_TV.numpy()}


def logits(model: Any, tokens_T: np.ndarray) -> np.ndarray:
    """Logits (T, V) in float32, whatever the model computes in."""
    with torch.no_grad():
        return model(torch.tensor(tokens_T)[None]).logits[0].float().numpy()
