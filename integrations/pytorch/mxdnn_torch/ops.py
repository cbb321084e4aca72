# SPDX-License-Identifier: Apache-2.0
"""The operators `torch.ops.mxdnn.*`: shapes for fake tensors, gradients, and functions to call them by."""

import torch
from torch.utils._python_dispatch import _disable_current_modes

from .activations import is_gated
from .blob import describe
from .formats import TORCH_TYPES, Format

def packed_blob(
    shape: "tuple[int, ...] | list[int]",
    format: Format,
    target: str = "cpu",
    original_dtype: torch.dtype = torch.bfloat16,
    recipe: str = "",
) -> str:
    """The blob of weights [.., N, K] in a format, packed for a target: "cpu", "cuda" or one of the library's names."""
    word = next((w for w, d in TORCH_TYPES.items() if d == original_dtype), "none")
    global_scale = "f32" if format.global_scale else "none"
    with _disable_current_modes():  # a blob is a constant, also where tensors are fake
        return torch.ops.mxdnn.packed_blob(
            list(shape), format.element, format.scale, format.block, format.zero_point, global_scale,
            target, word, recipe,
        )  # fmt: skip


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
        tensor((*batch, n, columns), f.zero_point_type) if f.zero_point != "none" else absent,
        packed.new_empty((d.experts,), dtype=torch.float32) if f.global_scale else packed.new_empty((0,)),
    )


@torch.library.register_fake("mxdnn::linear")
def _(x, packed, blob, bias=None, activation="none"):
    d = describe(blob)
    torch._check(x.dim() > 0 and x.shape[-1] == d.shape[-1], lambda: f"x has shape {list(x.shape)}")
    torch._check(x.device == packed.device, lambda: f"x is on {x.device}, packed is on {packed.device}")
    columns = d.shape[-2] // 2 if is_gated(activation) else d.shape[-2]
    return x.new_empty((*x.shape[:-1], columns))


@torch.library.register_fake("mxdnn::grouped_linear")
def _(
    x, packed, blob, group_ends, bias=None, activation="none",
    gather_idx=None, scatter_idx=None, topk_weights=None, dst_rows=None,
):  # fmt: skip
    n = describe(blob).shape[-2]
    rows = x.shape[0] if gather_idx is None else gather_idx.shape[0]
    return x.new_empty((rows if dst_rows is None else dst_rows, n // 2 if is_gated(activation) else n))


@torch.library.register_fake("mxdnn::grouped_weights_gradient")
def _(x, grad, group_ends):
    return x.new_empty((group_ends.shape[0], grad.shape[1], x.shape[1]))


@torch.library.register_fake("mxdnn::moe_route")
def _(
    logits, topk, scoring, renormalize=False, bias=None,
    expert_groups=1, topk_groups=1, group_max=False, scale=1.0,
):  # fmt: skip
    tokens, experts = logits.shape

    def tensor(*shape, dtype=torch.int32):
        return logits.new_empty(shape, dtype=dtype)

    rows = tokens * topk
    return (
        tensor(tokens, topk, dtype=torch.float32),
        tensor(tokens, topk),
        tensor(experts),
        tensor(rows),
        tensor(rows),
        tensor(rows, dtype=torch.float32),
        tensor(experts),
    )


@torch.library.register_fake("mxdnn::moe_layer")
def _(x, logits, gate_up, gate_up_blob, down, down_blob, *rest, **named):
    return x.new_empty((x.shape[0], describe(down_blob).shape[-2]))


@torch.library.register_fake("mxdnn::moe_permute")
def _(x, counts, alignment, dst_rows):
    return (
        x.new_empty((dst_rows, x.shape[1])),
        x.new_empty((counts.shape[1],), dtype=torch.int32),
        x.new_empty((dst_rows,), dtype=torch.int32),
    )


@torch.library.register_fake("mxdnn::moe_unpermute")
def _(x, permuted_idx, dst_rows, topk_weights=None):
    return x.new_empty((dst_rows, x.shape[1]))


from . import gradients  # noqa: E402, F401  (registers the gradients of the operators above)

# ---- Calls ----

_linear = torch.ops.mxdnn.linear.default
_below_autograd = torch._C._AutoDispatchBelowAutograd


def _linear_below_autograd(x, packed, blob, bias, activation):
    """The operator without the time that its gradient takes; NotImplemented where somebody asks for one."""
    if torch.is_inference_mode_enabled() or (
        torch.is_grad_enabled() and (x.requires_grad or (bias is not None and bias.requires_grad))
    ):
        return NotImplemented
    with _below_autograd():
        return _linear._op(x, packed, blob, bias, activation)


def _fastest_linear():
    """The call without torch's dispatcher where this build and this torch have it."""
    try:
        from . import _direct

        watchers = (
            torch._C._len_torch_dispatch_stack,
            torch._C._is_torch_function_mode_enabled,
            torch._C._is_tracing,
            torch._C._autograd._profiler_enabled,
            torch._C._functorch.peek_interpreter_stack,
        )
        if _direct.prepare(torch.Tensor, torch.nn.Parameter, watchers):
            return _direct.linear
    except (ImportError, AttributeError):
        pass
    return _linear_below_autograd


_plain_linear = _fastest_linear()


def linear(
    x: torch.Tensor,
    packed: torch.Tensor,
    blob: str,
    bias: "torch.Tensor | None" = None,
    activation: str = "none",
) -> torch.Tensor:
    """`activation(x @ weight.T + bias)` for packed weights [N, K] and x [.., K].

    The operator `torch.ops.mxdnn.linear`, in less time where nobody asks for a gradient or watches the call."""
    if not torch.compiler.is_compiling():
        y = _plain_linear(x, packed, blob, bias, activation)
        if y is not NotImplemented:
            return y
    return _linear(x, packed, blob, bias, activation)
