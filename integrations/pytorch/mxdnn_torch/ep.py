# SPDX-License-Identifier: Apache-2.0
"""Expert parallelism over torch.distributed: rows travel to the ranks of their experts and back, with gradients.

    rows --a2a_dispatch--> permute --grouped_mm--> unpermute --a2a_combine--> rows

`MoE` is the whole layer.

Rows that leave a rank towards the experts are MXFP8: activations in the forward pass of `a2a_dispatch`, gradients in
the backward pass of `a2a_combine`. Rows that come back keep their type, since they are going to be summed. The
functions have the arguments and results of `torchao.prototype.moe_training.ep`, whose long names work, too.
"""

from collections.abc import Sequence

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torchao.prototype.mx_formats.config import ScaleCalculationMode
from torchao.prototype.mx_formats.mx_tensor import MXTensor

from .gradients import times_weights, weights_gradient
from .packed_tensor import PackedTensor

Tensor = torch.Tensor
Group = dist.ProcessGroup | str | None

BLOCK = 32
RCEIL = ScaleCalculationMode.RCEIL


# ---- MX tensors ----


def quantize(x: Tensor, scaling_mode: ScaleCalculationMode = RCEIL, block_size: int = BLOCK) -> MXTensor:
    """Rows [R, D] in MXFP8, in blocks of 32 along D."""
    _expect_blocks(x, block_size)
    codes = PackedTensor.from_float(x, "mxfp8", rounding=scaling_mode.value.lower()).to_codes()
    return _mx(codes.codes, codes.scales, x.dtype)


def _mx(codes: Tensor, scales: Tensor, dtype: torch.dtype) -> MXTensor:
    """Codes and scales, as bytes or in their types, as a tensor of this dtype."""
    return MXTensor(
        codes.view(torch.float8_e4m3fn),
        scales.view(torch.float8_e8m0fnu),
        elem_dtype=torch.float8_e4m3fn,
        block_size=BLOCK,
        orig_dtype=dtype,
        kernel_preference=None,
        act_quant_kwargs=None,
        is_swizzled_scales=False,
    )


def _each(move, x: Tensor) -> Tensor:
    """`move` of a plain tensor, or of the codes and of the scales of an MX tensor, as bytes."""
    if not isinstance(x, MXTensor):
        return move(x)
    return _mx(move(x.qdata.view(torch.uint8)), move(x.scale.view(torch.uint8)), x.orig_dtype)


def dequantize(x: Tensor) -> Tensor:
    """The values of an MX tensor; a plain tensor as it is. Without a gradient: for functions that have their own."""
    return x.dequantize() if isinstance(x, MXTensor) else x


# ---- What is refused ----


def _expect_rows(x: Tensor, name: str) -> None:
    if x.dim() != 2:
        raise ValueError(f"{name} has shape {list(x.shape)}; it must be [rows, columns]")
    if not x.is_floating_point():
        raise ValueError(f"{name} has dtype {x.dtype}; it must be a floating-point type")
    if isinstance(x, MXTensor) and (x.elem_dtype != torch.float8_e4m3fn or x.is_swizzled_scales):
        raise ValueError(f"{name} must be MXFP8 (float8_e4m3fn) with plain scales, not {x.elem_dtype} or swizzled")


def _expect_blocks(x: Tensor, block_size: int) -> None:
    if block_size != BLOCK:
        raise ValueError(f"block_size is {block_size}; MXFP8 has blocks of {BLOCK}")
    if x.dtype not in (torch.bfloat16, torch.float32):
        raise ValueError(f"input has dtype {x.dtype}; bfloat16 and float32 can be quantised")
    if x.shape[1] % BLOCK:
        raise ValueError(f"input has {x.shape[1]} columns; rows in MXFP8 need a multiple of {BLOCK}")


def _expect_splits(splits: Sequence[int], ranks: int, name: str, rows: int | None = None) -> list[int]:
    splits = [int(n) for n in splits]
    if len(splits) != ranks:
        raise ValueError(f"{name} has {len(splits)} numbers; the group has {ranks} ranks")
    if min(splits) < 0:
        raise ValueError(f"{name} is {splits}; numbers of rows are not negative")
    if rows is not None and sum(splits) != rows:
        raise ValueError(f"{name} is {splits}, {sum(splits)} rows in all; input has {rows}")
    return splits


def _expect_indices(permuted_indices: Tensor, rows: int, padded_shape: Sequence[int]) -> None:
    if permuted_indices.shape != (rows,):
        raise ValueError(f"permuted_indices has shape {list(permuted_indices.shape)}; input has {rows} rows")
    if len(padded_shape) != 2 or padded_shape[0] < 1:
        raise ValueError(f"padded_shape is {list(padded_shape)}; it must be [rows + 1, columns], as permute gave it")


# ---- Dispatch and combine ----


def _resolve(group: Group) -> dist.ProcessGroup:
    if not dist.is_initialized():
        raise RuntimeError("there is no process group; call torch.distributed.init_process_group first")
    if isinstance(group, str):
        return dist.distributed_c10d._resolve_process_group(group)
    return dist.group.WORLD if group is None else group


def _exchange(x: Tensor, output_splits: list[int], input_splits: list[int], group: dist.ProcessGroup) -> Tensor:
    """Rows to all ranks and from them. Codes and scales are two messages that travel at the same time."""
    works = []

    def send(rows: Tensor) -> Tensor:
        received = rows.new_empty((sum(output_splits), rows.shape[1]))
        work = dist.all_to_all_single(
            received, rows.contiguous(), output_splits, input_splits, group=group, async_op=True
        )
        works.append(work)
        return received

    received = _each(send, x)
    for work in works:
        work.wait()
    return received


class _Dispatch(torch.autograd.Function):
    @staticmethod
    def forward(ctx, input, output_splits, input_splits, group, quantized):
        ctx.way = output_splits, input_splits, group
        rows = input if quantized is None else quantize(input, *quantized)
        return _exchange(rows, output_splits, input_splits, group)

    @staticmethod
    def backward(ctx, grad):
        output_splits, input_splits, group = ctx.way
        return _exchange(dequantize(grad), input_splits, output_splits, group), None, None, None, None


class _Combine(torch.autograd.Function):
    @staticmethod
    def forward(ctx, input, output_splits, input_splits, group, quantized):
        ctx.way, ctx.quantized = (output_splits, input_splits, group), quantized
        return _exchange(input, output_splits, input_splits, group)

    @staticmethod
    def backward(ctx, grad):
        output_splits, input_splits, group = ctx.way
        rows = grad if ctx.quantized is None else quantize(grad, *ctx.quantized)
        return _exchange(rows, input_splits, output_splits, group), None, None, None, None


def _travel(function, input, output_splits, input_splits, group_name, scaling_mode, block_size, mxfp8):
    _expect_rows(input, "input")
    if isinstance(input, MXTensor):
        raise ValueError("input is an MXTensor; pass the rows that it was made of")
    group = _resolve(group_name)
    ranks = dist.get_world_size(group)
    input_splits = _expect_splits(input_splits, ranks, "input_splits", input.shape[0])
    output_splits = _expect_splits(output_splits, ranks, "output_splits")
    if mxfp8:
        _expect_blocks(input, block_size)
    quantized = (scaling_mode, block_size) if mxfp8 else None
    return function.apply(input, output_splits, input_splits, group, quantized)


def a2a_dispatch(
    input: Tensor,
    output_splits: Sequence[int],
    input_splits: Sequence[int],
    group_name: Group = None,
    scaling_mode: ScaleCalculationMode = RCEIL,
    block_size: int = BLOCK,
    mxfp8_fwd: bool = True,
) -> Tensor:
    """Rows [R, D] to the ranks of their experts. Gradients come back as they are.

    `input_splits` are the rows for each rank, `output_splits` those from each rank. `group_name` is a group or its
    name; None is the whole world. The result is an MXTensor, or plain without `mxfp8_fwd`. All ranks call it."""
    return _travel(
        _Dispatch, input, output_splits, input_splits, group_name, scaling_mode, block_size, mxfp8_fwd
    )


def a2a_combine(
    input: Tensor,
    output_splits: Sequence[int],
    input_splits: Sequence[int],
    group_name: Group = None,
    scaling_mode: ScaleCalculationMode = RCEIL,
    block_size: int = BLOCK,
    mxfp8_bwd: bool = True,
) -> Tensor:
    """Results back to the ranks that sent the rows, as they are. Gradients travel in MXFP8 with `mxfp8_bwd`: that of
    `input` is an MXTensor then. Arguments are those of a2a_dispatch, with the splits swapped."""
    return _travel(
        _Combine, input, output_splits, input_splits, group_name, scaling_mode, block_size, mxfp8_bwd
    )


# ---- Permute and unpermute ----


def _gather(x: Tensor, indices: Tensor) -> Tensor:
    """Row i of the result is row indices[i], or zeros for -1."""
    return torch.cat((x, x.new_zeros((1, x.shape[1]))))[indices]


def _scatter(x: Tensor, indices: Tensor, rows: int) -> Tensor:
    """Row i becomes row indices[i] of the result; -1 is left out. Other rows are zeros."""
    result = x.new_zeros((rows + 1, x.shape[1]))
    result[indices] = x  # -1 is the row behind the others
    return result[:rows]


class _Permute(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, counts, alignment, dst_rows):
        # The operator copies rows of 16-bit numbers, whatever they mean.
        rows = x.qdata if isinstance(x, MXTensor) else x
        moved, ends, indices = torch.ops.mxdnn.moe_permute(
            rows.contiguous().view(torch.bfloat16), counts, alignment, dst_rows
        )
        moved = moved.view(rows.dtype)
        if isinstance(x, MXTensor):
            moved = _mx(moved, _gather(x.scale.view(torch.uint8), indices), x.orig_dtype)
        ctx.save_for_backward(indices)
        ctx.rows = x.shape[0]
        ctx.mark_non_differentiable(indices, ends)
        return moved, indices, ends

    @staticmethod
    def backward(ctx, grad, *_):
        (indices,) = ctx.saved_tensors
        return _scatter(dequantize(grad), indices, ctx.rows), None, None, None


def permute(
    mx_tensor: Tensor,
    num_tokens_per_expert: Tensor,
    ep_degree: int,
    num_local_experts: int,
    group_size_multiple_of: int = BLOCK,
) -> tuple[torch.Size, Tensor, Tensor, Tensor, Tensor]:
    """Rows from the order of ranks to that of experts. Each expert's are padded with zeros to a multiple of
    `group_size_multiple_of`, at least once. An MXTensor stays one; any other rows are moved as they are.

    `num_tokens_per_expert` are the rows of each rank for each expert here, rank by rank. Returns the shape that
    unpermute needs, the rows, the source row of each (-1 for padding), and the padded sizes and the ends of the groups.
    """
    _expect_rows(mx_tensor, "mx_tensor")
    for name, number in (
        ("ep_degree", ep_degree),
        ("num_local_experts", num_local_experts),
        ("group_size_multiple_of", group_size_multiple_of),
    ):
        if number < 1:
            raise ValueError(f"{name} is {number}; it must be at least 1")
    counts = num_tokens_per_expert
    if counts.numel() != ep_degree * num_local_experts or counts.is_floating_point():
        raise ValueError(
            f"num_tokens_per_expert has shape {list(counts.shape)} and dtype {counts.dtype}; "
            f"it must be {ep_degree} x {num_local_experts} integers"
        )
    counts = counts.reshape(ep_degree, num_local_experts).to(torch.int32).contiguous()
    rows, columns = mx_tensor.shape
    groups = -(-rows // group_size_multiple_of) + num_local_experts
    permuted, indices, ends = _Permute.apply(
        mx_tensor, counts, group_size_multiple_of, groups * group_size_multiple_of
    )
    sizes = torch.diff(ends, prepend=ends.new_zeros(1))
    return torch.Size((rows + 1, columns)), permuted, indices, sizes, ends


class _Unpermute(torch.autograd.Function):
    @staticmethod
    def forward(ctx, input, indices, rows):
        ctx.save_for_backward(indices)
        return _scatter(input, indices, rows)

    @staticmethod
    def backward(ctx, grad):
        (indices,) = ctx.saved_tensors
        return _each(lambda rows: _gather(rows, indices), grad), None, None


def unpermute(input: Tensor, permuted_indices: Tensor, padded_shape: Sequence[int]) -> Tensor:
    """Results back to the order of ranks, without padding. The gradient is an MXTensor where a2a_combine gave one."""
    _expect_rows(input, "input")
    _expect_indices(permuted_indices, input.shape[0], padded_shape)
    return _Unpermute.apply(input, permuted_indices, padded_shape[0] - 1)


# ---- Experts ----


def _products(rows: Tensor, weight: Tensor, ends: Tensor, mxfp8: bool) -> Tensor:
    """Rows of each expert times its weights [K, N], quantised along K for MXFP8; zeros behind the last end."""
    if not mxfp8:
        return times_weights(rows, weight, ends)
    packed = PackedTensor.from_float(weight.transpose(1, 2).contiguous(), "mxfp8")
    return torch.ops.mxdnn.grouped_linear(rows.contiguous(), packed.packed, packed.blob, ends)


class _GroupedMM(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a, b_t, ends, mxfp8):
        rows = dequantize(a)
        ctx.save_for_backward(rows, b_t, ends)
        ctx.mxfp8 = mxfp8
        return _products(dequantize(quantize(rows)) if mxfp8 else rows, b_t, ends, mxfp8)

    @staticmethod
    def backward(ctx, grad):
        rows, b_t, ends = ctx.saved_tensors
        grad = dequantize(grad)
        grad_a = grad_b_t = None
        if ctx.needs_input_grad[0]:
            quantized = dequantize(quantize(grad)) if ctx.mxfp8 else grad
            grad_a = _products(quantized, b_t.transpose(1, 2), ends, ctx.mxfp8)
        if ctx.needs_input_grad[1]:
            grad_b_t = weights_gradient(rows, grad, ends).transpose(1, 2)
        return grad_a, grad_b_t, None, None


def grouped_mm(A: Tensor, B_t: Tensor, offs: Tensor, mxfp8: bool = True) -> Tensor:
    """Rows [R, K] of each expert times its weights: B_t is [E, K, N], and offs are the ends of the groups.

    With `mxfp8` rows and weights are quantised along the dimension of each sum, also for the gradient of A. The
    gradient of B_t comes from A and the gradient as they arrive. What arrives in MXFP8 keeps its values: quantising
    them again changes nothing."""
    _expect_rows(A, "A")
    if B_t.dim() != 3 or B_t.shape[1] != A.shape[1] or B_t.dtype != A.dtype:
        raise ValueError(
            f"B_t has shape {list(B_t.shape)} and dtype {B_t.dtype}; it must be [experts, {A.shape[1]}, N] of {A.dtype}"
        )
    if offs.shape != B_t.shape[:1] or offs.dtype != torch.int32:
        raise ValueError(
            f"offs has shape {list(offs.shape)} and dtype {offs.dtype}; it must be {B_t.shape[0]} numbers of int32"
        )
    if mxfp8 and (A.shape[1] % BLOCK or B_t.shape[2] % BLOCK):
        raise ValueError(f"B_t has shape {list(B_t.shape)}; K and N of MXFP8 must be multiples of {BLOCK}")
    return _GroupedMM.apply(A, B_t, offs, mxfp8)


def route(logits: Tensor, topk: int) -> tuple[Tensor, Tensor, Tensor]:
    """The `topk` experts of each token, weighted by the softmax of their logits [T, experts].

    Returns a row for each pair of token and expert, sorted by expert: its weight and its token; and the rows of each
    expert."""
    values, ids = logits.topk(topk, dim=-1)
    experts, order = ids.flatten().sort(stable=True)
    weights = values.softmax(-1).flatten()[order]
    return weights, order // topk, torch.bincount(experts, minlength=logits.shape[-1])


class MoE(nn.Module):
    """A mixture of experts over the ranks of a group: each has experts / ranks of them, and sees its own tokens.

    An expert is down(silu(gate(x)) * up(x)). `mxfp8` quantises the exchange and the products. `shared` is a module that
    sees every token. The router has to be the same on all ranks: the caller spreads its values and sums its gradients.
    """

    def __init__(
        self,
        hidden: int,
        inter: int,
        experts: int,
        topk: int,
        group: Group = None,
        *,
        mxfp8: bool = False,
        alignment: int = BLOCK,
        shared: nn.Module | None = None,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ):
        super().__init__()
        self.group = _resolve(group)
        self.ranks = dist.get_world_size(self.group)
        if experts % self.ranks:
            raise ValueError(f"experts is {experts}; it must be a multiple of the {self.ranks} ranks of the group")
        if not 1 <= topk <= experts:
            raise ValueError(f"topk is {topk}; it must be from 1 to the {experts} experts")
        self.local, self.topk, self.mxfp8, self.alignment = experts // self.ranks, topk, mxfp8, alignment
        options = {"device": device, "dtype": dtype}
        self.router = nn.Linear(hidden, experts, bias=False, **options)
        self.gate_up = nn.Parameter(torch.empty(self.local, 2 * inter, hidden, **options))
        self.down = nn.Parameter(torch.empty(self.local, hidden, inter, **options))
        self.shared = shared
        with torch.no_grad():
            for weight in self.gate_up, self.down:
                bound = weight.shape[-1] ** -0.5
                weight.uniform_(-bound, bound)

    def forward(self, x: Tensor) -> Tensor:
        tokens = x.reshape(-1, x.shape[-1])
        weights, token, counts = route(self.router(tokens).float(), self.topk)
        arriving = torch.empty_like(counts)
        dist.all_to_all_single(arriving, counts, group=self.group)
        # The only time that the host waits for numbers of rows.
        splits = torch.stack((counts, arriving)).view(2, self.ranks, self.local).sum(2).tolist()
        leaving, coming = splits

        rows = a2a_dispatch(tokens[token], coming, leaving, self.group, mxfp8_fwd=self.mxfp8)
        shape, rows, indices, _, ends = permute(rows, arriving, self.ranks, self.local, self.alignment)
        gate, up = grouped_mm(rows, self.gate_up.transpose(1, 2), ends, self.mxfp8).chunk(2, dim=-1)
        rows = grouped_mm(F.silu(gate) * up, self.down.transpose(1, 2), ends, self.mxfp8)
        rows = unpermute(rows, indices, shape)
        rows = a2a_combine(rows, leaving, coming, self.group, mxfp8_bwd=self.mxfp8)

        y = torch.zeros(tokens.shape, dtype=torch.float32, device=x.device)
        y = y.index_add(0, token, rows.float() * weights[:, None]).to(x.dtype)
        if self.shared is not None:
            y = y + self.shared(tokens)
        return y.reshape(x.shape)


# torchao's names
a2a_dispatch_mxfp8_fwd_hp_bwd = a2a_dispatch
permute_mxfp8_fwd_hp_bwd = permute
unpermute_hp_fwd_mxfp8_bwd = unpermute
a2a_combine_hp_fwd_mxfp8_bwd = a2a_combine
