# SPDX-License-Identifier: Apache-2.0
"""The operators `torch.ops.mxdnn.*`: shapes for fake tensors, gradients, and functions to call them by."""

import torch

from . import _library
from .blob import describe
from .formats import TORCH_TYPES, Format

_library.load()

_FAKE_GATED = ("silu", "swiglu_oai", "geglu_erf", "geglu_tanh")


def is_gated(activation: str) -> bool:
    """Whether an activation makes one column of two."""
    return activation.split(":")[0] in _FAKE_GATED


def packed_blob(
    shape: "tuple[int, ...] | list[int]",
    format: Format,
    target: str = "cpu",
    original_dtype: torch.dtype = torch.bfloat16,
    recipe: str = "",
) -> str:
    """The blob of weights [.., N, K] in a format, packed for a target: "cpu", "cuda" or one of the library's names."""
    word = next((w for w, d in TORCH_TYPES.items() if d == original_dtype), "none")
    return torch.ops.mxdnn.packed_blob(
        list(shape),
        format.element,
        format.scale,
        format.block,
        format.zero_point,
        "f32" if format.global_scale else "none",
        target,
        word,
        recipe,
    )


# ---- Shapes ----


def _packed_bytes(like: torch.Tensor, blob: str) -> torch.Tensor:
    return like.new_empty((describe(blob).size,), dtype=torch.uint8)


@torch.library.register_fake("mxdnn::quantize_pack")
def _(weight, blob, rounding, global_scale=None):
    return _packed_bytes(weight, blob)


@torch.library.register_fake("mxdnn::pack_codes")
def _(codes, scales, zero_points, global_scale, blob, swizzled=False, dense=False):
    return _packed_bytes(codes, blob)


@torch.library.register_fake("mxdnn::unpack")
def _(packed, blob, dtype):
    return packed.new_empty(describe(blob).shape, dtype=dtype)


@torch.library.register_fake("mxdnn::unpack_codes")
def _(packed, blob, swizzled=False, dense=False):
    d = describe(blob)
    f, (*batch, n, k) = d.format, d.shape
    columns = f.scale_columns(k)
    scale_shape = (*batch, n, columns)
    if swizzled:
        scale_shape = (*batch, -(-n // 128) * 128 * -(-columns // 4) * 4)
    absent = packed.new_empty((0,))

    def tensor(shape, word):
        dtype = TORCH_TYPES[word]
        return packed.new_empty(shape, dtype=dtype if dtype.itemsize > 1 else torch.uint8)

    return (
        packed.new_empty((*batch, n, f.row_bytes(k, dense)), dtype=torch.uint8),
        tensor(scale_shape, f.scale),
        tensor((*batch, n, columns), f.zero_point) if f.zero_point != "none" else absent,
        packed.new_empty((d.experts,), dtype=torch.float32) if f.global_scale else packed.new_empty((0,)),
    )


@torch.library.register_fake("mxdnn::linear")
def _(x, packed, blob, bias=None, activation="none"):
    d = describe(blob)
    torch._check(x.dim() > 0 and x.shape[-1] == d.shape[-1], lambda: f"x has shape {list(x.shape)}")
    columns = d.shape[-2] // 2 if is_gated(activation) else d.shape[-2]
    return x.new_empty((*x.shape[:-1], columns))


# ---- Gradients ----


def _linear_context(ctx, inputs, output):
    x, packed, blob, bias, activation = inputs
    ctx.blob, ctx.activation, ctx.has_bias = blob, activation, bias is not None
    saved = (packed,) if activation == "none" else (packed, x, *([bias] if ctx.has_bias else []))
    ctx.save_for_backward(*saved)


def _linear_backward(ctx, grad):
    packed, *rest = ctx.saved_tensors
    if ctx.activation != "none":
        raise NotImplementedError("linear with an activation has no gradient")
    weight = torch.ops.mxdnn.unpack(packed, ctx.blob, grad.dtype)
    grad_x = grad @ weight if ctx.needs_input_grad[0] else None
    grad_bias = grad.flatten(0, -2).sum(0) if ctx.has_bias and ctx.needs_input_grad[3] else None
    return grad_x, None, None, grad_bias, None


torch.library.register_autograd("mxdnn::linear", _linear_backward, setup_context=_linear_context)


# ---- Calls ----

_below_autograd = torch._C._AutoDispatchBelowAutograd


def linear(
    x: torch.Tensor,
    packed: torch.Tensor,
    blob: str,
    bias: "torch.Tensor | None" = None,
    activation: str = "none",
) -> torch.Tensor:
    """`activation(x @ weight.T + bias)` for packed weights [N, K] and x [.., K]."""
    return torch.ops.mxdnn.linear(x, packed, blob, bias, activation)
