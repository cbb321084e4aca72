# SPDX-License-Identifier: Apache-2.0
"""A checkpoint of gpt-oss as the contents of a GGUF file, with the keys and names that llama.cpp's converter writes."""

import json
import struct
from dataclasses import dataclass
from typing import Any, Iterator

# Numbers of types in files: of metadata, and of elements.
U32, F32, BOOL, STRING, ARRAY = 4, 6, 7, 8, 9
ELEMENTS = {"F32": 0, "BF16": 30, "MXFP4": 39}
ALIGNMENT = 32


@dataclass
class Tensor:
    name: str
    element: str
    dims: list[int]  # outermost first
    data: bytes


Tensors = dict[str, tuple[str, list[int], bytes]]  # of safetensors: type, shape, bytes

NAMES = {
    "model.embed_tokens.weight": "token_embd.weight",
    "model.norm.weight": "output_norm.weight",
    "lm_head.weight": "output.weight",
    "input_layernorm.weight": "attn_norm.weight",
    "post_attention_layernorm.weight": "post_attention_norm.weight",
    "self_attn.sinks": "attn_sinks.weight",
    **{f"self_attn.{of}_proj.{kind}": f"attn_{to}.{kind}"
       for of, to in (("q", "q"), ("k", "k"), ("v", "v"), ("o", "output")) for kind in ("weight", "bias")},
    "mlp.router.weight": "ffn_gate_inp.weight",
    "mlp.router.bias": "ffn_gate_inp.bias",
}
# Those that are matrices of bf16; everything else is f32.
STAY = ("token_embd.weight", "output.weight", "attn_q.weight", "attn_k.weight", "attn_v.weight", "attn_output.weight")


def keys(config: dict[str, Any]) -> dict[str, tuple[int, Any]]:
    """Metadata: the type and the value of each key."""
    rope = config["rope_parameters"]
    a = "gpt-oss."
    return {
        "general.architecture": (STRING, "gpt-oss"),
        a + "vocab_size": (U32, config["vocab_size"]),
        a + "block_count": (U32, config["num_hidden_layers"]),
        a + "context_length": (U32, config["max_position_embeddings"]),
        a + "embedding_length": (U32, config["hidden_size"]),
        a + "feed_forward_length": (U32, config["intermediate_size"]),
        a + "expert_feed_forward_length": (U32, config["intermediate_size"]),
        a + "attention.head_count": (U32, config["num_attention_heads"]),
        a + "attention.head_count_kv": (U32, config["num_key_value_heads"]),
        a + "attention.key_length": (U32, config["head_dim"]),
        a + "attention.value_length": (U32, config["head_dim"]),
        a + "attention.sliding_window": (U32, config["sliding_window"]),
        a + "attention.layer_norm_rms_epsilon": (F32, config["rms_norm_eps"]),
        a + "expert_count": (U32, config["num_local_experts"]),
        a + "expert_used_count": (U32, config["num_experts_per_tok"]),
        a + "rope.freq_base": (F32, rope["rope_theta"]),
        a + "rope.scaling.type": (STRING, "yarn"),
        a + "rope.scaling.factor": (F32, rope["factor"]),
        a + "rope.scaling.original_context_length": (U32, rope["original_max_position_embeddings"]),
        "tokenizer.ggml.model": (STRING, "none"),
    }


def read_tensors(path: str) -> Tensors:
    """Of a safetensors file."""
    with open(path, "rb") as f:
        data = f.read()
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + size])
    header.pop("__metadata__", None)
    return {n: (e["dtype"], e["shape"], data[8 + size:][slice(*e["data_offsets"])]) for n, e in header.items()}


def wider(bf16: bytes) -> bytes:
    """bf16 as f32."""
    return b"".join(b"\0\0" + bf16[i:i + 2] for i in range(0, len(bf16), 2))


def blocks(codes: bytes, scales: bytes) -> bytes:
    """Blocks of MXFP4 whose pairs of codes are neighbours, as blocks that begin with the scale and have pairs that are
    half a block apart."""
    out = bytearray()
    for i, scale in enumerate(scales):
        block = codes[16 * i:16 * i + 16]
        nibbles = [n for b in block for n in (b & 15, b >> 4)]
        out.append(scale)
        out += bytes(nibbles[j] | nibbles[j + 16] << 4 for j in range(16))
    return bytes(out)


def every_second(data: bytes, rows: int, first: int) -> bytes:
    size = len(data) // rows
    return b"".join(data[size * r:size * (r + 1)] for r in range(first, rows, 2))


def tensors(given: Tensors) -> Iterator[Tensor]:
    for name, (dtype, shape, data) in given.items():
        layer, _, end = name.removeprefix("model.layers.").partition(".")
        at = f"blk.{layer}." if name.startswith("model.layers.") else ""
        end = end if at else name
        if end in NAMES:
            to = NAMES[end]
            if to in STAY:
                yield Tensor(at + to, "BF16", shape, data)
            else:
                yield Tensor(at + to, "F32", shape, wider(data))
            continue
        experts, rows = shape[0], shape[1]
        which = "down" if "down_proj" in end else "gate_up"
        parts = ("down",) if which == "down" else ("gate", "up")
        for first, part in enumerate(parts):
            def of(data: bytes) -> bytes:
                return data if which == "down" else every_second(data, experts * rows, first)
            if end.endswith("_bias"):
                yield Tensor(f"{at}ffn_{part}_exps.bias", "F32", [experts, rows // len(parts)], wider(of(data)))
            elif end.endswith("_blocks"):
                scales = given[name.removesuffix("_blocks") + "_scales"][2]
                dims = [experts, rows // len(parts), shape[2] * 32]
                yield Tensor(f"{at}ffn_{part}_exps.weight", "MXFP4", dims, blocks(of(data), of(scales)))


def text(value: str) -> bytes:
    return struct.pack("<Q", len(value.encode())) + value.encode()


def value(kind: int, v: Any) -> bytes:
    if kind == STRING:
        return text(v)
    if kind == ARRAY:  # of u32
        return struct.pack(f"<IQ{len(v)}I", U32, len(v), *v)
    return struct.pack({U32: "<I", F32: "<f", BOOL: "<?"}[kind], v)


def write(path: str, metadata: dict[str, tuple[int, Any]], all_tensors: list[Tensor]) -> None:
    """Without the package gguf, so that a test needs none."""
    head = b"GGUF" + struct.pack("<IQQ", 3, len(all_tensors), len(metadata))
    for key, (kind, v) in metadata.items():
        head += text(key) + struct.pack("<I", kind) + value(kind, v)
    data = b""
    for t in all_tensors:
        head += text(t.name) + struct.pack(f"<I{len(t.dims)}QIQ", len(t.dims), *reversed(t.dims), ELEMENTS[t.element],
                                           len(data))
        data += t.data + bytes(-len(t.data) % ALIGNMENT)
    with open(path, "wb") as f:
        f.write(head + bytes(-len(head) % ALIGNMENT) + data)
