"""A GGUF file converted, once, into a directory in the Hugging Face layout.

Float tensors keep their dtype and quantised ones are decoded to float32, bit for bit what their
blocks say. Not a cache (directory.py) and not a loader: the result is read like any checkpoint.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from reach_jax.hub import (
    gguf_configs,
    gguf_decode,
    gguf_header,
    gguf_models,
    gguf_tokenizer,
    safetensors_file,
    tensors,
)
from sweep_jax import atomic
from sweep_jax.checks import BadInput, require

CONVERSION = 1  # raise it when the same file would be converted otherwise
ROPE_FACTORS = "rope_freqs.weight"


def convert(path: Path, directory: Path) -> None:
    """Writes config.json, model.safetensors, tokenizer files and source.json into `directory`.

    Args:
      path: a GGUF file of an architecture in gguf_models.MODELS.
      directory: exists; files in it are replaced.

    Raises:
      ValueError: a damaged file; an architecture, metadata field, tensor, tensor type or tokenizer
        that is not known here. The error names it.
    """
    header = gguf_header.read(path)
    metadata = header.metadata
    parts = metadata.get("split.count", 1)
    require(parts <= 1, f"{path}: split.count", parts, "a file that is not one of several parts")
    architecture = metadata.get("general.architecture")
    model = gguf_models.find(architecture)
    config = _config(header, path)
    names = {name: model.name(name) for name in header.tensors if name != ROPE_FACTORS}
    _write_json(directory / "config.json", config)
    _write_json(directory / "source.json", _source(path, header))
    gguf_tokenizer.write(metadata, directory, label=path.name)
    plan = {new: _planned(header.tensors[old], old, model) for old, new in names.items()}
    arrays = _arrays(path, header, model, list(names), config)
    about = {"format": "pt", "source": path.name}
    safetensors_file.write(directory / tensors.SINGLE, plan, arrays, about)
    atomic.sync(directory)


def _config(header: gguf_header.Header, path: Path) -> dict[str, Any]:
    metadata = header.metadata
    architecture = str(metadata["general.architecture"])
    fields = gguf_configs.Fields(metadata, architecture)
    config = gguf_models.find(architecture).config(fields, header.tensors)
    embedding = header.tensors.get("token_embd.weight")
    if embedding is None:
        raise BadInput(f"{path}: expected a tensor token_embd.weight")
    vocab = fields.take("vocab_size", embedding.shape[0])
    expected = f"{embedding.shape[0]}, the rows of token_embd.weight"
    require(vocab == embedding.shape[0], f"{path}: vocab_size", vocab, expected)
    fields.finish()
    if ROPE_FACTORS in header.tensors:
        tensor = header.tensors[ROPE_FACTORS]
        factors = gguf_decode.read(path, ROPE_FACTORS, tensor)
        rotary = "rope_theta" in config
        require(rotary, f"{path}: tensor", ROPE_FACTORS, "none: this model has no rotary heads")
        config["rope_scaling"] = _llama3(np.asarray(factors, np.float64), config)
    # What the file does not store, the model computes in: float32 but for files of one float dtype.
    kinds = {tensor.kind.name for tensor in header.tensors.values() if len(tensor.shape) > 1}
    dtype = {"F16": "float16", "BF16": "bfloat16"}.get(min(kinds)) if len(kinds) == 1 else None
    return {
        **config,
        "vocab_size": vocab,
        "tie_word_embeddings": "output.weight" not in header.tensors,
        "bos_token_id": metadata.get("tokenizer.ggml.bos_token_id"),
        "eos_token_id": metadata.get("tokenizer.ggml.eos_token_id"),
        "torch_dtype": dtype or "float32",
    }


def _llama3(factors: np.ndarray, config: dict[str, Any]) -> dict[str, Any] | None:
    """The rope_scaling of which llama.cpp keeps the divisors only, shape (head_dim / 2,)."""
    if np.all(factors == 1.0):
        return config["rope_scaling"]
    require(config["rope_scaling"] is None, ROPE_FACTORS, "present", "no other rope scaling")
    factor = round(float(factors.max()), 3)
    low, high, context = 1.0, 4.0, 8192  # of every llama3 release
    frequencies = config["rope_theta"] ** (-np.arange(len(factors)) / len(factors))
    turns = context * frequencies / (2 * np.pi)
    smooth = np.clip((turns - low) / (high - low), 0.0, 1.0)
    expected = 1.0 / ((1.0 - smooth) / factor + smooth)
    ok = len(factors) * 2 == config["head_dim"] and np.allclose(factors, expected, rtol=1e-5)
    described = f"the llama3 divisors for factor {factor} (low 1, high 4, context 8192)"
    require(ok, ROPE_FACTORS, factors.tolist(), described)
    return {
        "rope_type": "llama3",
        "factor": factor,
        "low_freq_factor": low,
        "high_freq_factor": high,
        "original_max_position_embeddings": context,
    }


def _source(path: Path, header: gguf_header.Header) -> dict[str, Any]:
    """Where the weights come from, so that every table can say that they are quantised."""
    kinds = Counter(tensor.kind.name for tensor in header.tensors.values())
    with open(path, "rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return {
        "file": path.name,
        "bytes": path.stat().st_size,
        "sha256": digest,
        "conversion": CONVERSION,
        "name": header.metadata.get("general.name"),
        "license": header.metadata.get("general.license"),
        "quantised": any(kind in gguf_decode.BLOCKS for kind in kinds),
        "tensor_types": dict(sorted(kinds.items())),
    }


def _planned(
    tensor: gguf_header.Tensor, name: str, model: gguf_models.Model
) -> tuple[tuple[int, ...], np.dtype]:
    gguf_decode.check(name, tensor)
    shifted = model.norms_plus_one and name.endswith("norm.weight")
    kept = not shifted and tensor.kind.name in gguf_decode.FLOATS
    dtype = gguf_decode.FLOATS[tensor.kind.name] if kept else np.dtype(np.float32)
    transposed = name.split(".", 2)[-1] in model.transposed
    return (tensor.shape[::-1] if transposed else tensor.shape), dtype


def _arrays(
    path: Path,
    header: gguf_header.Header,
    model: gguf_models.Model,
    names: list[str],
    config: dict[str, Any],
) -> Iterator[np.ndarray]:
    for name in tqdm(names, desc=f"converting {path.name}", unit="tensor", leave=False):
        tensor = header.tensors[name]
        array = gguf_decode.read(path, name, tensor)
        short = name.split(".", 2)[-1]
        if short in model.permuted:
            key = "num_attention_heads" if short.startswith("attn_q") else "num_key_value_heads"
            array = gguf_decode.unpermuted(array, config[key])
        if short in model.transposed:
            array = array.T
        if model.norms_plus_one and name.endswith("norm.weight"):
            array = array.astype(np.float32) - np.float32(1.0)
        yield array


def _write_json(path: Path, values: dict[str, Any]) -> None:
    atomic.write_text(path, json.dumps(values, indent=2) + "\n")
