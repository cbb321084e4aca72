#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains a small mixture-of-experts language model of bytes twice, from the same seed: with experts and exchange of rows
in bf16, and in MXFP8. Prints the losses, and draws their curves.

    train_moe.py [--steps 300] [--ranks 2] [--threads 1] [--seed 1] [--svg FILE]

The text is the pages of this project's documentation; every tenth piece of 4096 bytes is kept for the end. Ranks are
processes that gloo connects. Each has its part of the experts and of every batch. Parameters and the optimizer are f32;
products, activations and gradients of activations are bf16 unless they are MXFP8.

Printed are the mean loss of the last 20 steps and the loss on the text that was kept, in nats per byte, and how far
MXFP8 is off."""

import argparse
import html
import math
import os
import pathlib
import statistics
import tempfile
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn.functional as F
from torch import nn

from mxdnn_torch import ep

HIDDEN, INTER, EXPERTS, TOPK, LAYERS, HEADS = 128, 128, 8, 2, 3, 4
BATCH, LENGTH, RATE, WARMUP, LAST = 16, 64, 3e-3, 20, 20
DOCS, FOLDERS, PIECE = pathlib.Path(__file__).resolve().parents[3] / "doc", ("start", "reference", "concepts"), 4096
MODES = "bf16", "mxfp8"


# ---- Text ----


def read_text() -> tuple[torch.Tensor, torch.Tensor]:
    """Bytes to learn from, and others."""
    pages = [page for folder in FOLDERS for page in sorted((DOCS / folder).glob("*.md"))]
    pieces = torch.tensor(list(b"".join(page.read_bytes() for page in pages))).split(PIECE)
    return torch.cat([p for i, p in enumerate(pieces) if i % 10 != 9]), torch.cat(pieces[9::10])


# ---- Model ----


class Layer(nn.Module):
    """Causal attention, then experts."""

    def __init__(self, mxfp8: bool):
        super().__init__()
        self.norms = nn.ModuleList(nn.RMSNorm(HIDDEN) for _ in range(2))
        self.qkv = nn.Linear(HIDDEN, 3 * HIDDEN, bias=False)
        self.out = nn.Linear(HIDDEN, HIDDEN, bias=False)
        self.experts = ep.MoE(HIDDEN, INTER, EXPERTS, TOPK, mxfp8=mxfp8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, _ = x.shape
        heads = self.qkv(self.norms[0](x)).view(batch, length, 3, HEADS, HIDDEN // HEADS).permute(2, 0, 3, 1, 4)
        seen = F.scaled_dot_product_attention(*heads, is_causal=True)
        x = x + self.out(seen.transpose(1, 2).reshape(x.shape))
        return x + self.experts(self.norms[1](x))


class Model(nn.Module):
    """Logits of the next byte."""

    def __init__(self, mxfp8: bool):
        super().__init__()
        self.bytes, self.places = nn.Embedding(256, HIDDEN), nn.Embedding(LENGTH, HIDDEN)
        self.layers = nn.ModuleList(Layer(mxfp8) for _ in range(LAYERS))
        self.norm, self.head = nn.RMSNorm(HIDDEN), nn.Linear(HIDDEN, 256, bias=False)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = self.bytes(ids) + self.places.weight[: ids.shape[1]]
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x))


def is_local(name: str) -> bool:
    """Whether a parameter belongs to the experts of one rank."""
    return name.endswith((".gate_up", ".down"))


def loss_of(model: nn.Module, text: torch.Tensor, starts: torch.Tensor) -> torch.Tensor:
    """The mean loss of this rank's part of a batch. The gradient goes through bf16 copies to the f32 parameters."""
    mine = starts.view(dist.get_world_size(), -1)[dist.get_rank()]
    ids = text[mine[:, None] + torch.arange(LENGTH + 1)]
    copies = {name: p.bfloat16() for name, p in model.named_parameters()}
    logits = torch.func.functional_call(model, copies, (ids[:, :-1],))
    return F.cross_entropy(logits.float().flatten(0, 1), ids[:, 1:].flatten())


def mean_of_ranks(x: torch.Tensor) -> torch.Tensor:
    dist.all_reduce(x)
    return x.div_(dist.get_world_size())


# ---- Training ----


def train(mode: str, steps: int, seed: int) -> tuple[list[float], float]:
    """The loss of every step, and that on the text that was kept."""
    torch.manual_seed(seed + dist.get_rank())
    model = Model(mode == "mxfp8")
    parameters = dict(model.named_parameters())
    for name, p in parameters.items():
        if not is_local(name):
            dist.broadcast(p.data, 0)
    optimizer = torch.optim.AdamW(model.parameters(), RATE, betas=(0.9, 0.95))
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min((step + 1) / WARMUP, 0.55 + 0.45 * math.cos(math.pi * step / steps))
    )
    text, kept = read_text()
    starts = torch.Generator().manual_seed(seed)

    losses = []
    for _ in range(steps):
        loss = loss_of(model, text, torch.randint(len(text) - LENGTH, (BATCH,), generator=starts))
        optimizer.zero_grad()
        loss.backward()
        for name, p in parameters.items():
            # Experts have seen the rows of all ranks, so their gradient is a sum already.
            p.grad.div_(dist.get_world_size()) if is_local(name) else mean_of_ranks(p.grad)
        optimizer.step()
        schedule.step()
        losses.append(mean_of_ranks(loss.detach()).item())
    with torch.no_grad():
        parts = torch.arange(0, len(kept) - LENGTH, LENGTH)
        batches = parts[: len(parts) // BATCH * BATCH].split(BATCH)
        return losses, statistics.mean(mean_of_ranks(loss_of(model, kept, b)).item() for b in batches)


def draw(curves: dict[str, list[float]], title: str) -> str:
    """An SVG of losses by step, each the mean of the last five."""
    width, height, left, right, top, bottom = 760, 400, 60, 100, 44, 46
    smooth = {
        name: [statistics.mean(losses[max(i - 4, 0) : i + 1]) for i in range(len(losses))]
        for name, losses in curves.items()
    }
    steps, highest = max(map(len, curves.values())), math.ceil(max(map(max, smooth.values())))

    def x(step):
        return left + (width - left - right) * step / max(steps - 1, 1)

    def y(loss):
        return height - bottom - (height - top - bottom) * loss / highest

    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12">',
        '<rect width="100%" height="100%" fill="white"/>',
        f'<text x="{left}" y="24" font-size="15">{html.escape(title)}</text>',
        f'<text x="{(left + width - right) / 2}" y="{height - 10}" text-anchor="middle">step</text>',
        f'<text x="{left - 6}" y="{top - 8}" text-anchor="end">loss</text>',
    ]
    for loss in range(highest + 1):
        out.append(f'<path d="M{left} {y(loss):.1f}H{width - right}" stroke="#ddd"/>')
        out.append(f'<text x="{left - 6}" y="{y(loss) + 4:.1f}" text-anchor="end">{loss}</text>')
    for step in range(0, steps + 1, max(steps // 6, 1)):
        out.append(f'<text x="{x(step):.1f}" y="{height - bottom + 18}" text-anchor="middle">{step}</text>')
    for i, (name, losses) in enumerate(smooth.items()):
        points = " ".join(f"{x(step):.1f},{y(loss):.1f}" for step, loss in enumerate(losses))
        colour, dashes = (("#1b6ca8", ""), ("#c8553d", ' stroke-dasharray="5 3"'))[i % 2]
        out.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"{dashes}/>')
        out.append(f'<text x="{width - right + 8}" y="{top + 20 * i + 4}" fill="{colour}">{name}</text>')
    return "\n".join([*out, "</svg>", ""])


def rank_main(rank: int, args: argparse.Namespace, meeting: str) -> None:
    torch.set_num_threads(args.threads)
    dist.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=args.ranks)
    curves, results = {}, {}
    for mode in MODES:
        begin = time.perf_counter()
        curves[mode], kept = train(mode, args.steps, args.seed)
        results[mode] = statistics.mean(curves[mode][-LAST:]), kept
        if rank == 0:
            print(f"{mode:6} last steps {results[mode][0]:.4f}, kept text {kept:.4f}, "
                  f"{time.perf_counter() - begin:.0f} s", flush=True)  # fmt: skip
    if rank == 0:
        for i, what in enumerate(("last steps", "kept text")):
            plain, quantised = (results[mode][i] for mode in MODES)
            print(f"mxfp8 of bf16, {what}: {100 * (quantised / plain - 1):+.2f} %", flush=True)
        if args.svg:
            title = f"{LAYERS} layers of {EXPERTS} experts, {args.ranks} ranks: nats per byte"
            args.svg.write_text(draw(curves, title))
    dist.destroy_process_group()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--ranks", type=int, default=2, choices=[1, 2, 4, 8])
    parser.add_argument("--threads", type=int, default=1, help="of each rank")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--svg", type=pathlib.Path)
    args = parser.parse_args()
    if args.steps < 1:
        parser.error(f"--steps is {args.steps}; it must be at least 1")
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    with tempfile.TemporaryDirectory() as folder:
        # Forked, so that torch is imported once; nothing has started threads before.
        mp.start_processes(rank_main, (args, os.path.join(folder, "meeting")), args.ranks, start_method="fork")


if __name__ == "__main__":
    main()
