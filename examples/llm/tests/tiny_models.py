# SPDX-License-Identifier: Apache-2.0
"""Tiny Llama and gpt-oss models from a seed: as transformers computes them, and as checkpoints."""

import json
import os
import random
from dataclasses import dataclass, field
from typing import Any

import torch
from safetensors.torch import save_file
from transformers import GptOssConfig, GptOssForCausalLM, LlamaConfig, LlamaForCausalLM

FP4 = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6, 0, -0.5, -1, -1.5, -2, -3, -4, -6])


@dataclass
class Case:
    name: str
    family: str  # llama or gpt_oss
    config: dict[str, Any]
    lengths: list[int] = field(default_factory=lambda: [24])  # of sequences
    original: bool = False  # keys and config.json of the original release of gpt-oss
    shards: int = 1
    has_codes: bool = True  # of experts of gpt-oss: MXFP4, else bf16


def mxfp4(values: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Codes [.., blocks, 16], scale bytes [.., blocks] and what they are worth, of values [.., in]."""
    blocks = values.reshape(*values.shape[:-1], -1, 32)
    exponent = torch.floor(torch.log2(blocks.abs().amax(-1).clamp_min(1e-30))) - 2
    scale = torch.exp2(exponent)[..., None]
    codes = ((blocks / scale)[..., None] - FP4).abs().argmin(-1)
    worth = (FP4[codes] * scale).reshape(values.shape)
    codes = codes.to(torch.uint8)
    return codes[..., ::2] | codes[..., 1::2] << 4, (exponent + 127).to(torch.uint8), worth


def original_names(tensors: dict[str, torch.Tensor], layers: int) -> dict[str, torch.Tensor]:
    """Keys of Hugging Face to those of the original release."""
    ends = {
        "input_layernorm.weight": "attn.norm.scale",
        "post_attention_layernorm.weight": "mlp.norm.scale",
        "self_attn.o_proj.weight": "attn.out.weight",
        "self_attn.o_proj.bias": "attn.out.bias",
        "self_attn.sinks": "attn.sinks",
        "mlp.router.weight": "mlp.gate.weight",
        "mlp.router.bias": "mlp.gate.bias",
        "mlp.experts.gate_up_proj_blocks": "mlp.mlp1_weight.blocks",
        "mlp.experts.gate_up_proj_scales": "mlp.mlp1_weight.scales",
        "mlp.experts.gate_up_proj_bias": "mlp.mlp1_bias",
        "mlp.experts.down_proj_blocks": "mlp.mlp2_weight.blocks",
        "mlp.experts.down_proj_scales": "mlp.mlp2_weight.scales",
        "mlp.experts.down_proj_bias": "mlp.mlp2_bias",
    }
    renamed = {
        "embedding.weight": tensors["model.embed_tokens.weight"],
        "norm.scale": tensors["model.norm.weight"],
        "unembedding.weight": tensors["lm_head.weight"],
    }
    for i in range(layers):
        at = f"model.layers.{i}."
        for end, to in ends.items():
            renamed[f"block.{i}.{to}"] = tensors[at + end]
        for kind in ("weight", "bias"):
            parts = [tensors[f"{at}self_attn.{p}_proj.{kind}"] for p in "qkv"]
            renamed[f"block.{i}.attn.qkv.{kind}"] = torch.cat(parts)
    return renamed


def original_config(c: GptOssConfig) -> dict[str, Any]:
    rope = c.rope_parameters
    return {
        "num_hidden_layers": c.num_hidden_layers,
        "num_experts": c.num_local_experts,
        "experts_per_token": c.num_experts_per_tok,
        "vocab_size": c.vocab_size,
        "hidden_size": c.hidden_size,
        "intermediate_size": c.intermediate_size,
        "swiglu_limit": c.swiglu_limit,
        "head_dim": c.head_dim,
        "num_attention_heads": c.num_attention_heads,
        "num_key_value_heads": c.num_key_value_heads,
        "sliding_window": c.sliding_window,
        "initial_context_length": rope["original_max_position_embeddings"],
        "rope_theta": rope["rope_theta"],
        "rope_scaling_factor": rope["factor"],
        "rope_ntk_alpha": rope["beta_slow"],
        "rope_ntk_beta": rope["beta_fast"],
    }


def write_tensors(folder: str, tensors: dict[str, torch.Tensor], shards: int) -> None:
    tensors = {name: t.contiguous() for name, t in tensors.items()}
    if shards == 1:
        save_file(tensors, f"{folder}/model.safetensors")
        return
    names = sorted(tensors)
    files = {}
    for i in range(shards):
        file = f"model-{i + 1:05}-of-{shards:05}.safetensors"
        save_file({n: tensors[n] for n in names[i::shards]}, f"{folder}/{file}")
        files.update(dict.fromkeys(names[i::shards], file))
    with open(f"{folder}/model.safetensors.index.json", "w") as f:
        json.dump({"metadata": {}, "weight_map": files}, f)


def make(case: Case, folder: str, seed: int) -> tuple[list[list[int]], torch.Tensor]:
    """Writes a checkpoint; gives the tokens of each sequence and the logits [all tokens, vocabulary] in f32."""
    torch.manual_seed(seed)
    os.makedirs(folder, exist_ok=True)
    is_llama = case.family == "llama"
    config = (LlamaConfig if is_llama else GptOssConfig)(**case.config)
    config._attn_implementation = config._experts_implementation = "eager"
    model = (LlamaForCausalLM if is_llama else GptOssForCausalLM)(config).eval()
    tensors = {}
    with torch.no_grad():
        for name, p in model.named_parameters():
            p.normal_(1 if "norm" in name else 0, 0.1 if "embed" not in name else 1)
            if p.dim() == 3 and case.has_codes:  # experts as [experts, in, out]
                codes, scales, worth = mxfp4(p.transpose(1, 2).contiguous())
                p.copy_(worth.transpose(1, 2))
                tensors[f"{name}_blocks"], tensors[f"{name}_scales"] = codes, scales
            else:
                p.copy_(p.bfloat16().float())
                tensors[name] = p.bfloat16()
    if case.original:
        tensors = original_names(tensors, config.num_hidden_layers)
        with open(f"{folder}/config.json", "w") as f:
            json.dump(original_config(config), f)
    else:
        config.save_pretrained(folder)
    write_tensors(folder, tensors, case.shards)
    rng = random.Random(seed)
    ids = [[rng.randrange(config.vocab_size) for _ in range(n)] for n in case.lengths]
    with torch.no_grad():
        logits = torch.cat([model(torch.tensor([i])).logits[0] for i in ids])
    return ids, logits
