# SPDX-License-Identifier: Apache-2.0
"""Processes that check mxdnn_torch.ep in groups of 1, 2 and 4 ranks; test_ep.py starts it. Each prints the number of
its checks.

    python ep_ranks.py FILE [cuda]    FILE is new; the ranks meet there

Four ranks over gloo, or with "cuda" as many as there are devices, up to four, over NCCL.
"""

import datetime
import os
import sys

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torchao.prototype.mx_formats.mx_tensor import MXTensor

from mxdnn_torch import ep

EXPERTS, TOPK, TOKENS, COLUMNS, ALIGNMENT = 8, 2, 13, 96, 16
CASES = "random", "same expert twice", "a rank without tokens", "one expert for all", "no tokens"


def expert_ids(case, rank, ranks):
    """The experts of each token, [tokens, TOPK]."""
    generator = torch.Generator().manual_seed(100 * ranks + rank)
    ids = torch.randint(EXPERTS, (TOKENS + rank, TOPK), generator=generator, device="cpu")
    if case == "same expert twice":
        ids[:, 1] = ids[:, 0]
    elif case == "one expert for all":
        ids[:] = EXPERTS - 1
    elif case == "no tokens" or (case == "a rank without tokens" and rank == ranks - 1):
        ids = ids[:0]
    return ids


def rows_of(case, rank, ranks):
    """The rows that a rank sends, the gradients of their results, and the expert of each, sorted by expert."""
    ids = expert_ids(case, rank, ranks)
    generator = torch.Generator().manual_seed(7 + 100 * ranks + rank)
    device = torch.get_default_device()
    tokens, grads = (
        torch.randn(n, COLUMNS, generator=generator, device="cpu").to(device, torch.bfloat16)
        for n in (len(ids), ids.numel())
    )
    experts, order = ids.to(device).flatten().sort(stable=True)
    return tokens[order // TOPK], grads, experts


class Problem:
    """What plain PyTorch expects of every stage on this rank."""

    def __init__(self, case, rank, ranks):
        sent = [rows_of(case, r, ranks) for r in range(ranks)]
        counts = torch.stack([torch.bincount(experts, minlength=EXPERTS) for *_, experts in sent])
        self.local = EXPERTS // ranks
        first = rank * self.local
        self.rows, self.grads, self.experts = sent[rank]
        self.input_splits = counts[rank].view(ranks, -1).sum(1).tolist()
        self.counts = counts[:, first : first + self.local]
        self.output_splits = self.counts.sum(1).tolist()

        def here(experts):
            return (experts >= first) & (experts < first + self.local)

        self.arrived = torch.cat([rows[here(experts)] for rows, _, experts in sent])
        self.arrived_grads = torch.cat([grads[here(experts)] for _, grads, experts in sent])
        self.arrived_experts = torch.cat([experts[here(experts)] for *_, experts in sent])
        size = [max(-(-n // ALIGNMENT), 1) * ALIGNMENT for n in self.counts.sum(0).tolist()]
        self.ends = torch.tensor(size).cumsum(0).int()

    def grouped(self, rows, length):
        """Rows of arrival in the order of experts, with zeros as padding."""
        result, begin = rows.new_zeros(length, *rows.shape[1:]), 0
        for e, end in enumerate(self.ends.tolist()):
            mine = rows[self.arrived_experts % self.local == e]
            result[begin : begin + len(mine)] = mine
            begin = end
        return result


def factor_of(experts):
    """What an expert multiplies by: a power of two, so that nothing is rounded."""
    return torch.pow(2.0, experts % 5).to(torch.bfloat16)[:, None]


class Experts(torch.autograd.Function):
    """Each row times the factor of its expert. Rows that belong to none are NaN, in both directions."""

    @staticmethod
    def forward(ctx, x, factors, seen):
        ctx.factors, ctx.seen = factors, seen
        seen.append(x)
        return ep.dequantize(x) * factors

    @staticmethod
    def backward(ctx, grad):
        ctx.seen.append(grad)
        return ep.dequantize(grad) * ctx.factors, None, None


def same_bits(a, b, what):
    if isinstance(b, MXTensor):
        assert isinstance(a, MXTensor), f"{what}: {type(a).__name__} is no MXTensor"
        same_bits(a.qdata.view(torch.uint8), b.qdata.view(torch.uint8), f"codes of {what}")
        same_bits(a.scale.view(torch.uint8), b.scale.view(torch.uint8), f"scales of {what}")
        return
    assert not isinstance(a, MXTensor), f"{what}: an MXTensor"
    assert a.dtype == b.dtype and a.shape == b.shape, f"{what}: {a.dtype} {a.shape}, expected {b.dtype} {b.shape}"
    assert torch.equal(a, b), f"{what}: {int((a != b).sum())} of {a.numel()} elements differ"


def sqnr(x, y):
    """Signal to noise in decibel, of y as x."""
    x, y = x.double(), y.double()
    return float(20 * torch.log10(x.norm() / (x - y).norm()))


def at_least(decibel, x, y, what):
    if x.any():
        assert sqnr(x, y) >= decibel, f"{what}: {sqnr(x, y):.1f} dB, expected {decibel}"


def check(case, group, mxfp8):
    rank, ranks = dist.get_rank(group), dist.get_world_size(group)
    p = Problem(case, rank, ranks)
    sends = ep.quantize if mxfp8 else (lambda x: x)
    x = p.rows.clone().requires_grad_()

    arrived = ep.a2a_dispatch(x, p.output_splits, p.input_splits, group, mxfp8_fwd=mxfp8)
    same_bits(arrived.detach(), sends(p.arrived), "dispatch")
    at_least(30, p.arrived, ep.dequantize(arrived.detach()), "dispatch")

    shape, grouped, indices, sizes, ends = ep.permute(arrived, p.counts, ranks, p.local, ALIGNMENT)
    length = len(grouped)
    assert shape == (len(p.arrived) + 1, COLUMNS) and length % ALIGNMENT == 0
    same_bits(ends, p.ends, "ends")
    same_bits(sizes, torch.diff(p.ends, prepend=torch.zeros(1, dtype=torch.int32)), "sizes")
    numbers = torch.arange(1, len(p.arrived) + 1, dtype=torch.int32)
    same_bits(indices, p.grouped(numbers, length) - 1, "indices")
    expected = p.grouped(p.arrived, length)
    at_least(30, expected, ep.dequantize(grouped.detach()), "permute")

    seen = []
    factors = p.grouped(factor_of(p.arrived_experts), length)
    factors[factors == 0] = torch.nan
    results = Experts.apply(grouped, factors, seen)
    same_bits(seen[0].detach(), sends(expected), "permute")

    y = ep.a2a_combine(
        ep.unpermute(results, indices, shape), p.input_splits, p.output_splits, group, mxfp8_bwd=mxfp8
    )
    factor = factor_of(p.experts)
    same_bits(y.detach(), ep.dequantize(sends(p.rows)) * factor, "combine")
    at_least(28, p.rows * factor, y.detach(), "combine")

    y.backward(p.grads)
    expected = p.grouped(p.arrived_grads, length)
    same_bits(seen[1], sends(expected), "gradients of unpermute")
    at_least(28, expected, ep.dequantize(seen[1]), "gradients of unpermute")
    same_bits(x.grad, ep.dequantize(sends(p.grads)) * factor, "gradients of dispatch")
    at_least(28, p.grads * factor, x.grad, "gradients of dispatch")


def plain_moe(x, router, gate_up, down, shared):
    """All experts for every token; those that were not chosen have weight 0."""
    values, ids = (x @ router.t()).topk(TOPK)
    weights = x.new_zeros(len(x), EXPERTS).scatter(1, ids, values.softmax(1))
    gate, up = torch.einsum("tk,enk->ten", x, gate_up).chunk(2, dim=-1)
    results = torch.einsum("ten,ekn->tek", torch.nn.functional.silu(gate) * up, down)
    return torch.einsum("te,tek->tk", weights, results) + x @ shared.t()


def check_moe(group, mxfp8):
    """The layer against the plain computation of all ranks' tokens, forward and backward."""
    rank, ranks = dist.get_rank(group), dist.get_world_size(group)
    torch.manual_seed(5)
    inter, first, local = 64, rank * EXPERTS // ranks, EXPERTS // ranks
    shapes = (EXPERTS, COLUMNS), (EXPERTS, 2 * inter, COLUMNS), (EXPERTS, COLUMNS, inter), (COLUMNS, COLUMNS)
    parameters = [(torch.randn(s) * s[-1] ** -0.5).requires_grad_() for s in shapes]
    tokens = [TOKENS + r for r in range(ranks)]
    tokens[-1] *= ranks != 2  # none on one rank
    inputs = [torch.randn(n, COLUMNS, requires_grad=True) for n in tokens]
    grads = [torch.randn_like(x) for x in inputs]
    expected = [plain_moe(x, *parameters) for x in inputs]
    for y, grad in zip(expected, grads):
        y.backward(grad)

    router, gate_up, down, shared = parameters
    layer = ep.MoE(
        COLUMNS, inter, EXPERTS, TOPK, group, mxfp8=mxfp8, shared=torch.nn.Linear(COLUMNS, COLUMNS, bias=False)
    )
    with torch.no_grad():
        layer.router.weight.copy_(router)
        layer.gate_up.copy_(gate_up[first : first + local])
        layer.down.copy_(down[first : first + local])
        layer.shared.weight.copy_(shared)
    x = inputs[rank].detach()[None].requires_grad_()
    y = layer(x)
    y.backward(grads[rank][None])
    if mxfp8:
        at_least(23, expected[rank], y.detach()[0], "layer")
        return
    router_grad = layer.router.weight.grad
    dist.all_reduce(router_grad, group=group)
    for computed, wanted in [
        (y[0], expected[rank]),
        (x.grad[0], inputs[rank].grad),
        (layer.gate_up.grad, gate_up.grad[first : first + local]),
        (layer.down.grad, down.grad[first : first + local]),
        (router_grad, router.grad),
    ]:
        torch.testing.assert_close(computed, wanted, rtol=1e-4, atol=1e-4)


def rank_main(rank, world, file, cuda):
    torch.set_num_threads(1)
    if cuda:
        torch.set_default_device(f"cuda:{rank}")
        torch.cuda.set_device(rank)
    dist.init_process_group(
        "nccl" if cuda else "gloo", init_method=f"file://{file}", rank=rank, world_size=world,
        timeout=datetime.timedelta(seconds=60),
    )  # fmt: skip
    checked = 0
    for ranks in (n for n in (1, 2, 4) if n <= world):
        members = list(range(ranks))
        group = dist.new_group(members)
        if rank in members:
            for mxfp8 in False, True:
                for case in CASES:
                    try:
                        check(case, group, mxfp8)
                        checked += 1
                    except Exception as error:
                        raise AssertionError(f"rank {rank} of {ranks}, {case}, mxfp8={mxfp8}") from error
                check_moe(group, mxfp8)
                checked += 1
    dist.barrier()
    dist.destroy_process_group()
    os.write(1, f"{checked}\n".encode())  # at once, so that lines of ranks do not mix


if __name__ == "__main__":
    # Forked, so that torch is imported once; nothing has started threads before. Importing torchao starts CUDA.
    cuda = sys.argv[2:] == ["cuda"]
    world = min(torch.cuda.device_count(), 4) if cuda else 4
    mp.start_processes(rank_main, args=(world, sys.argv[1], cuda), nprocs=world,
                       start_method="spawn" if cuda else "fork")  # fmt: skip
