"""Small GGUF files: by gguf-py's writer where they are sound, byte by byte where they are not."""

import struct

import gguf
import numpy as np


def write(path, architecture, fields, tensors):
    """A file with `fields` (full keys) and `tensors`: float arrays, or (uint8 rows, type)."""
    writer = gguf.GGUFWriter(path, architecture)
    add = {bool: writer.add_bool, int: writer.add_uint32, float: writer.add_float32}
    add |= {str: writer.add_string, list: writer.add_array}
    for key, value in fields.items():
        add[type(value)](key, value)
    for name, value in tensors.items():
        if isinstance(value, tuple):
            writer.add_tensor(name, value[0], raw_dtype=value[1])
        else:
            writer.add_tensor(name, value)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def raw(path, tensors, data=b"", magic=b"GGUF", version=3, fields=()):
    """A file of `tensors` (name, dims fastest first, type number, offset), sound or not."""

    def text(value):
        return struct.pack("<Q", len(value)) + value.encode()

    out = magic + struct.pack("<IQQ", version, len(tensors), len(fields))
    for key, kind, value in fields:
        out += text(key) + struct.pack("<I", kind) + value
    for name, dims, kind, offset in tensors:
        out += text(name) + struct.pack(f"<I{len(dims)}QIQ", len(dims), *dims, kind, offset)
    path.write_bytes(out + b"\0" * (-len(out) % 32) + data)
    return path


def normal(seed, *shape):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def llama(prefix="llama", **changes):
    """Metadata of a model of 2 layers, 6 query and 2 key/value heads of width 4, width 24."""
    fields = {
        "context_length": 64,
        "embedding_length": 24,
        "block_count": 2,
        "feed_forward_length": 40,
        "attention.head_count": 6,
        "attention.head_count_kv": 2,
        "attention.layer_norm_rms_epsilon": 1e-5,
        "rope.freq_base": 10000.0,
    }
    fields |= changes
    return {f"{prefix}.{key}": value for key, value in fields.items()}


def layers(head_dim=4, vocab=32, width=24, mlp=40, heads=6, kv=2, biases=False, extra=()):
    """The Hugging Face tensors of that model, random; norms away from 0 and 1."""
    shapes = {"model.embed_tokens.weight": (vocab, width), "model.norm.weight": (width,)}
    for i in range(2):
        at = f"model.layers.{i}."
        for norm in ("input_layernorm", "post_attention_layernorm", *extra):
            size = head_dim if norm.startswith("self_attn") else width
            shapes[f"{at}{norm}.weight"] = (size,)
        rows = {"q": heads * head_dim, "k": kv * head_dim, "v": kv * head_dim}
        for name, count in rows.items():
            shapes[f"{at}self_attn.{name}_proj.weight"] = (count, width)
            if biases:
                shapes[f"{at}self_attn.{name}_proj.bias"] = (count,)
        shapes[f"{at}self_attn.o_proj.weight"] = (width, heads * head_dim)
        for name in ("gate", "up"):
            shapes[f"{at}mlp.{name}_proj.weight"] = (mlp, width)
        shapes[f"{at}mlp.down_proj.weight"] = (width, mlp)
    return {name: normal(i, *shape) for i, (name, shape) in enumerate(shapes.items())}


# Written out, not derived from the code under test.
NAMES = {
    "model.embed_tokens.weight": "token_embd.weight",
    "model.norm.weight": "output_norm.weight",
    "lm_head.weight": "output.weight",
    "input_layernorm": "attn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}
LLAMA_NORMS = {"post_attention_layernorm": "ffn_norm"}
GEMMA_NORMS = {
    "post_attention_layernorm": "post_attention_norm",
    "pre_feedforward_layernorm": "ffn_norm",
    "post_feedforward_layernorm": "post_ffw_norm",
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
}


def renamed(tensors, norms):
    """Hugging Face names -> GGUF names."""
    table = NAMES | norms
    out = {}
    for name, array in tensors.items():
        if name in table:
            out[table[name]] = array
            continue
        _, _, layer, rest = name.split(".", 3)
        module, suffix = rest.rsplit(".", 1)
        out[f"blk.{layer}.{table[module]}.{suffix}"] = array
    return out


def interleaved(rows, heads):
    """llama.cpp's order of the rows of q or k: row 2j + s of a head is row s * half + j."""
    width = rows.shape[0] // heads
    order = [
        h * width + s * (width // 2) + j
        for h in range(heads)
        for j in range(width // 2)
        for s in (0, 1)
    ]
    return rows[np.array(order)]
