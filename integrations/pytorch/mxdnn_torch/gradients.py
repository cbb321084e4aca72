# SPDX-License-Identifier: Apache-2.0
"""Gradients of the operators' inputs. They multiply by dequantised weights, in f32; weights have no gradient.

Quantising the input (a recipe of activations) counts as the identity here."""

import torch

from . import activations

Tensor = torch.Tensor
mxdnn = torch.ops.mxdnn


# ---- linear ----


def _linear_context(ctx, inputs, output):
    x, packed, ctx.blob, bias, ctx.activation = inputs
    ctx.bias_dtype = None if bias is None else bias.dtype
    keeps_x = ctx.activation != "none"
    ctx.save_for_backward(packed, x if keeps_x else None, bias if keeps_x else None)


def _linear_backward(ctx, grad):
    packed, x, bias = ctx.saved_tensors
    grad_z = grad.float()
    if ctx.activation != "none":
        z = mxdnn.linear(x.float(), packed, ctx.blob, bias)
        grad_z = activations.gradient(ctx.activation, z, grad_z)
    grad_x = grad_bias = None
    if ctx.needs_input_grad[0]:
        weight = mxdnn.unpack(packed, ctx.blob, torch.float32)
        grad_x = (grad_z @ weight).to(grad.dtype)
    if ctx.bias_dtype is not None and ctx.needs_input_grad[3]:
        grad_bias = grad_z.reshape(-1, grad_z.shape[-1]).sum(0).to(ctx.bias_dtype)
    return grad_x, None, None, grad_bias, None


torch.library.register_autograd("mxdnn::linear", _linear_backward, setup_context=_linear_context)


# ---- Experts: one operator for each gradient, whose loops over experts a compiler does not see ----


def times_weights(rows: Tensor, weight: Tensor, ends: Tensor) -> Tensor:
    """Rows of each expert times its weights [N, K]; zeros for rows of none."""
    result = rows.new_zeros(rows.shape[0], weight.shape[2])
    begin = 0
    for expert, end in enumerate(ends.tolist()):
        if end > begin:
            result[begin:end] = rows[begin:end] @ weight[expert]
        begin = end
    return result


def _has_weights_gradient(rows: Tensor) -> bool:
    """Whether mxdnn has a fast kernel for the gradient of weights: on Hopper for rows of 16 bits."""
    if rows.is_cuda:
        return rows.dtype in (torch.bfloat16, torch.float16) and torch.cuda.get_device_capability(rows.device)[0] == 9
    return rows.dtype != torch.float64


def weights_gradient(rows: Tensor, grad: Tensor, ends: Tensor) -> Tensor:
    """For each expert the sum over its rows of grad [N] times row [K]: [E, N, K]."""
    if _has_weights_gradient(rows):
        return mxdnn.grouped_weights_gradient(rows.contiguous(), grad.contiguous(), ends)
    result = rows.new_zeros(ends.shape[0], grad.shape[1], rows.shape[1])
    begin = 0
    for expert, end in enumerate(ends.tolist()):
        if end > begin:
            result[expert] = grad[begin:end].t() @ rows[begin:end]
        begin = end
    return result


@torch.library.custom_op("mxdnn::grouped_linear_backward", mutates_args=())
def grouped_linear_backward(
    grad: Tensor,
    x: Tensor,
    packed: Tensor,
    blob: str,
    group_ends: Tensor,
    bias: Tensor | None,
    activation: str,
    gather_idx: Tensor | None,
    scatter_idx: Tensor | None,
    topk_weights: Tensor | None,
) -> tuple[Tensor, Tensor]:
    """The gradients of x and of topk_weights."""
    rows = x.shape[0] if gather_idx is None else gather_idx.shape[0]
    if scatter_idx is not None:
        present = (scatter_idx >= 0)[:, None]
        grad = torch.where(present, grad[scatter_idx.clamp(min=0)], 0)
    grad = grad.float()
    if topk_weights is not None or activation != "none":
        z = mxdnn.grouped_linear(x.float(), packed, blob, group_ends, bias, "none", gather_idx)
    grad_weights = x.new_empty(0, dtype=torch.float32)
    if topk_weights is not None:
        grad_weights = (grad * activations.apply(activation, z)).sum(1).to(topk_weights.dtype)
        grad = grad * topk_weights[:, None].float()
    if activation != "none":
        grad = activations.gradient(activation, z, grad)
    # Rows behind the last expert's have no gradient; times_weights leaves zeros there.
    grad_rows = times_weights(grad, mxdnn.unpack(packed, blob, torch.float32), group_ends)
    if gather_idx is None:
        return grad_rows.to(x.dtype), grad_weights
    present = (gather_idx >= 0)[:, None]
    grad_x = grad.new_zeros(x.shape)
    grad_x.index_add_(0, gather_idx.clamp(min=0), torch.where(present, grad_rows, 0))
    assert grad_rows.shape[0] == rows
    return grad_x.to(x.dtype), grad_weights


@grouped_linear_backward.register_fake
def _(grad, x, packed, blob, group_ends, bias, activation, gather_idx, scatter_idx, topk_weights):
    weights = x.new_empty(0, dtype=torch.float32) if topk_weights is None else torch.empty_like(topk_weights)
    return torch.empty_like(x, memory_format=torch.contiguous_format), weights


def _grouped_context(ctx, inputs, output):
    x, packed, ctx.blob, ends, bias, ctx.activation, gather, scatter, topk_weights, _ = inputs
    ctx.save_for_backward(x, packed, ends, bias, gather, scatter, topk_weights)


def _grouped_backward(ctx, grad):
    x, packed, ends, bias, gather, scatter, topk_weights = ctx.saved_tensors
    if bias is not None and ctx.needs_input_grad[4]:
        raise NotImplementedError("grouped_linear has no gradient of the bias; call bias.requires_grad_(False)")
    grad_x, grad_weights = mxdnn.grouped_linear_backward(
        grad, x, packed, ctx.blob, ends, bias, ctx.activation, gather, scatter, topk_weights
    )
    wants_weights = topk_weights is not None and ctx.needs_input_grad[8]
    return grad_x, None, None, None, None, None, None, None, grad_weights if wants_weights else None, None


torch.library.register_autograd("mxdnn::grouped_linear", _grouped_backward, setup_context=_grouped_context)


# ---- moe_route: the weights of the chosen experts ----


def route_gradient(
    logits: Tensor, ids: Tensor, grad: Tensor, scoring: str, renormalize: bool, scale: float
) -> Tensor:
    """The gradient of logits, of that of topk_weights [T, k]. The choice of experts is a constant."""
    x, index, grad = logits.float(), ids.long(), grad.float() * scale
    if scoring == "topk_softmax":
        weights = torch.softmax(x.gather(1, index), 1)
        grad_chosen = weights * (grad - (grad * weights).sum(1, keepdim=True))
        return torch.zeros_like(x).scatter_add(1, index, grad_chosen).to(logits.dtype)
    scores = torch.softmax(x, 1) if scoring == "softmax_topk" else torch.sigmoid(x)
    chosen = scores.gather(1, index)
    if renormalize:
        total = chosen.sum(1, keepdim=True) + (1e-20 if scoring == "sigmoid" else 0)
        grad = grad / total - (grad * chosen).sum(1, keepdim=True) / total**2
    grad_scores = torch.zeros_like(x).scatter_add(1, index, grad)
    if scoring == "sigmoid":
        return (grad_scores * scores * (1 - scores)).to(logits.dtype)
    return (scores * (grad_scores - (grad_scores * scores).sum(1, keepdim=True))).to(logits.dtype)


def _route_context(ctx, inputs, output):
    logits, _, ctx.scoring, ctx.renormalize, _, _, _, _, ctx.scale = inputs
    _, ids, ends, gather, order, _, counts = output
    ctx.mark_non_differentiable(ids, ends, gather, order, counts)
    ctx.save_for_backward(logits, ids, order)


def _route_backward(ctx, grad_weights, grad_ids, grad_ends, grad_gather, grad_order, grad_rows, grad_counts):
    logits, ids, order = ctx.saved_tensors
    total = torch.zeros(ids.numel(), dtype=torch.float32, device=ids.device)
    if grad_weights is not None:
        total = total + grad_weights.reshape(-1)
    if grad_rows is not None:
        total = total.scatter_add(0, order.long(), grad_rows)
    grad = route_gradient(logits, ids, total.reshape(ids.shape), ctx.scoring, ctx.renormalize, ctx.scale)
    return grad, None, None, None, None, None, None, None, None


torch.library.register_autograd("mxdnn::moe_route", _route_backward, setup_context=_route_context)


# ---- moe_layer ----


@torch.library.custom_op("mxdnn::moe_layer_backward", mutates_args=())
def moe_layer_backward(
    grad: Tensor,
    x: Tensor,
    logits: Tensor,
    gate_up: Tensor,
    gate_up_blob: str,
    down: Tensor,
    down_blob: str,
    topk: int,
    scoring: str,
    activation: str,
    gate_up_bias: Tensor | None,
    down_bias: Tensor | None,
    renormalize: bool,
    route_bias: Tensor | None,
    expert_groups: int,
    topk_groups: int,
    group_max: bool,
    scale: float,
) -> tuple[Tensor, Tensor]:
    """The gradients of x and logits."""
    _, ids, ends, tokens, order, row_weights, _ = mxdnn.moe_route(
        logits, topk, scoring, renormalize, route_bias, expert_groups, topk_groups, group_max, scale
    )
    z = mxdnn.grouped_linear(x.float(), gate_up, gate_up_blob, ends, gate_up_bias, "none", tokens)
    hidden = activations.apply(activation, z)
    results = mxdnn.grouped_linear(hidden, down, down_blob, ends, down_bias)
    grad_rows = grad.float()[tokens]
    grad_row_weights = (grad_rows * results).sum(1)
    grad_hidden = times_weights(
        grad_rows * row_weights[:, None], mxdnn.unpack(down, down_blob, torch.float32), ends
    )
    grad_z = activations.gradient(activation, z, grad_hidden)
    grad_x = torch.zeros(x.shape, dtype=torch.float32, device=x.device)
    grad_x.index_add_(
        0, tokens, times_weights(grad_z, mxdnn.unpack(gate_up, gate_up_blob, torch.float32), ends)
    )
    grad_weights = torch.zeros_like(grad_row_weights).scatter_add_(0, order.long(), grad_row_weights)
    return grad_x.to(x.dtype), route_gradient(
        logits, ids, grad_weights.reshape(ids.shape), scoring, renormalize, scale
    )


@moe_layer_backward.register_fake
def _(grad, x, logits, *rest):
    return (
        torch.empty_like(x, memory_format=torch.contiguous_format),
        torch.empty_like(logits, memory_format=torch.contiguous_format),
    )


def _layer_context(ctx, inputs, output):
    x, logits, gate_up, gate_up_blob, down, down_blob, topk, scoring, activation = inputs[:9]
    gate_up_bias, down_bias, renormalize, route_bias, *rest = inputs[9:]
    ctx.words = (gate_up_blob, down_blob, topk, scoring, activation, renormalize, *rest)
    ctx.save_for_backward(x, logits, gate_up, down, gate_up_bias, down_bias, route_bias)


def _layer_backward(ctx, grad):
    x, logits, gate_up, down, gate_up_bias, down_bias, route_bias = ctx.saved_tensors
    gate_up_blob, down_blob, topk, scoring, activation, renormalize, *rest = ctx.words
    biases = (9, gate_up_bias), (10, down_bias), (12, route_bias)
    if any(b is not None and ctx.needs_input_grad[i] for i, b in biases):
        raise NotImplementedError("moe_layer has gradients of x and logits only; call requires_grad_(False) on biases")
    grad_x, grad_logits = mxdnn.moe_layer_backward(
        grad, x, logits, gate_up, gate_up_blob, down, down_blob, topk, scoring, activation, gate_up_bias,
        down_bias, renormalize, route_bias, *rest
    )  # fmt: skip
    return grad_x, grad_logits, *[None] * 15


torch.library.register_autograd("mxdnn::moe_layer", _layer_backward, setup_context=_layer_context)


# ---- moe_permute and moe_unpermute are each other's gradients ----


def _permute_context(ctx, inputs, output):
    ctx.rows = inputs[0].shape[0]
    _, ends, permuted_idx = output
    ctx.mark_non_differentiable(ends, permuted_idx)
    ctx.save_for_backward(permuted_idx)


def _permute_backward(ctx, grad, grad_ends, grad_idx):
    (permuted_idx,) = ctx.saved_tensors
    return mxdnn.moe_unpermute(grad.contiguous(), permuted_idx, ctx.rows), None, None, None


torch.library.register_autograd("mxdnn::moe_permute", _permute_backward, setup_context=_permute_context)


def _unpermute_context(ctx, inputs, output):
    x, permuted_idx, _, topk_weights = inputs
    ctx.save_for_backward(x, permuted_idx, topk_weights)


def _unpermute_backward(ctx, grad):
    x, permuted_idx, topk_weights = ctx.saved_tensors
    k = 1 if topk_weights is None else topk_weights.shape[1]
    present = permuted_idx >= 0
    entry = permuted_idx.clamp(min=0).long()
    grad_rows = torch.where(present[:, None], grad.float()[entry // k], 0)
    grad_weights = None
    if topk_weights is not None:
        if ctx.needs_input_grad[3]:
            products = (grad_rows * x.float()).sum(1)
            flat = torch.zeros(topk_weights.numel(), dtype=torch.float32, device=x.device)
            flat = flat.scatter_add(0, entry, torch.where(present, products, 0))
            grad_weights = flat.reshape(topk_weights.shape).to(topk_weights.dtype)
        grad_rows = grad_rows * topk_weights.float().reshape(-1)[entry][:, None]
    return grad_rows.to(x.dtype), None, None, grad_weights


torch.library.register_autograd("mxdnn::moe_unpermute", _unpermute_backward, setup_context=_unpermute_context)
