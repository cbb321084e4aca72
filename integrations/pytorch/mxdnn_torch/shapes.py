# SPDX-License-Identifier: Apache-2.0
"""A model's products as lines of mxdnn-bench, which tests and measures them."""

from collections import Counter
from collections.abc import Iterable

import torch
from torch import nn

from .blob import describe
from .formats import Format, get_format
from .packed_tensor import PackedTensor

_BENCH_TYPES = {torch.float32: "f32", torch.bfloat16: "bf16", torch.float16: "f16"}


def bench_lines(
    model: nn.Module,
    tokens: Iterable[int] = (1, 16, 512),
    *,
    format: "str | Format" = "mxfp4",
    dtype: torch.dtype = torch.bfloat16,
    topk: int = 2,
) -> list[str]:
    """Lines for the linear layers and the packed experts of a model, each distinct one once, below a comment that says
    how many layers have it. Layers that are not packed count as `format`. `topk` is how many experts a token has."""
    counts: Counter[tuple] = Counter()
    for module in model.modules():
        for name, parameter in module.named_parameters(recurse=False):
            if isinstance(parameter, PackedTensor):
                d = describe(parameter.blob)
                has_bias = parameter.dim() == 2 and getattr(module, "bias", None) is not None
                counts[tuple(d.shape), d.format, has_bias] += 1
            elif name == "weight" and isinstance(module, nn.Linear):
                counts[tuple(parameter.shape), get_format(format), module.bias is not None] += 1
    lines = []
    for (shape, f, has_bias), n in counts.items():
        lines.append(f"# {n} x [{', '.join(map(str, shape))}] {f.name}{', bias' if has_bias else ''}")
        lines += [_line(shape, f, has_bias, m, _BENCH_TYPES[dtype], topk) for m in tokens]
    return lines


def print_bench_lines(model: nn.Module, *args: object, **options: object) -> None:
    """Prints what bench_lines gives: `mxdnn-bench --batch=FILE` takes it."""
    print("\n".join(bench_lines(model, *args, **options)))


def _line(shape: tuple, f: Format, has_bias: bool, tokens: int, word: str, topk: int) -> str:
    *experts, n, k = shape
    driver = "grouped_matmul" if experts else "mx_matmul"
    knobs = [f"--dt={word}:{_type(f)}:{word}", *_scales(f)]
    if has_bias:
        knobs.append(f"--bia-dt={word}")
    if experts:
        knobs += [f"--experts={experts[0]}", f"--topk={min(topk, experts[0])}", f"--tokens={tokens}"]
    problem = f"{k}x{n}" if experts else f"{tokens}x{k}:{k}x{n}"
    return " ".join([f"--{driver}", "--reset", *knobs, problem])


def _type(f: Format) -> str:
    named = get_format(f.name, global_scale=f.global_scale)
    return f.name if named == f else f.element


def _scales(f: Format) -> list[str]:
    knobs = []
    if get_format(f.name, global_scale=f.global_scale) != f:
        knobs.append(f"--attr-scales=wei:per_ocic:{f.scale}:{f.block}x1")
        if f.zero_point != "none":
            knobs.append(f"--attr-zero-points=wei:per_ocic:{f.zero_point}")
    if f.global_scale:
        knobs.append("--attr-global-scale=wei")
    return knobs
