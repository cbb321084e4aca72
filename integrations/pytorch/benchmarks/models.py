#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whole models: outputs against f32, tokens per second and resident memory, next to other ways to run them.

  models.py [--models minilm llama gpt_oss] [--ways f32 bf16 mxfp4 ...] [--device cpu] [--seconds 3]

llama and gpt_oss are small models with random weights, made from configurations. minilm is the model that
scripts/fetch-minilm gets. Every row is a process of its own, so that memory is that of one way alone. On the CPU
it is forked from one that has imported the packages and used none of them yet. On CUDA all of them start at once,
import the packages, and then measure one after the other.

outputs: SQNR in dB of the logits (minilm: of the embeddings) against f32, of the same weights before quantising.
prompt: tokens per second of one call with 64 tokens; decode: of one token after another with a cache. Medians.
graph (on CUDA): tokens per second of one token without a cache, replayed from a CUDA graph, so that what the host does
between kernels does not count; "-" where a model cannot be captured.
memory: growth of resident memory (on CUDA: allocated memory) from before the model is loaded to after the first call.
"""

import argparse
import concurrent.futures
import contextlib
import gc
import multiprocessing
import pathlib
import statistics
import sys
import tempfile
import time

import torch
import torch.utils.mkldnn

ROOT = pathlib.Path(__file__).resolve().parents[3]
MODELS = ("minilm", "llama", "gpt_oss")
FORMATS = ("mxfp8", "mxfp6", "mxfp4", "mxint8", "nvfp4", "int4")
PLAIN = {"f32": torch.float32, "bf16": torch.bfloat16, "onednn bf16": torch.bfloat16, "torchao int8": torch.bfloat16}
WAYS = (*PLAIN, *FORMATS)
PROMPT = 64


def make(name: str, directory: pathlib.Path) -> None:
    """A directory with the weights of a model."""
    import transformers as t

    torch.manual_seed(11)
    if name == "llama":
        config = t.LlamaConfig(vocab_size=8192, hidden_size=1024, intermediate_size=2816, num_hidden_layers=4,
                               num_attention_heads=16, num_key_value_heads=4)  # fmt: skip
    else:
        config = t.GptOssConfig(vocab_size=8192, hidden_size=1024, intermediate_size=1024, num_hidden_layers=4,
                                num_attention_heads=16, num_key_value_heads=4, head_dim=64, num_local_experts=8,
                                num_experts_per_tok=2, max_position_embeddings=4096)  # fmt: skip
    t.AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16).save_pretrained(directory)


def load(name: str, directory: pathlib.Path, way: str, device: str) -> torch.nn.Module:
    """A model with the weights of a way."""
    import transformers as t

    if name == "minilm":
        sys.path.insert(0, str(ROOT / "integrations/pytorch/aoti"))
        import export_minilm

        model = export_minilm.minilm(directory, way if way in FORMATS else None, None, device)
        model = model.to(PLAIN[way]) if way in PLAIN else model
    elif way in FORMATS:
        from mxdnn_torch.transformers import MxdnnConfig

        model = t.AutoModelForCausalLM.from_pretrained(
            directory, quantization_config=MxdnnConfig(way), dtype=torch.bfloat16, device_map=device
        )
    else:
        model = t.AutoModelForCausalLM.from_pretrained(directory, dtype=PLAIN[way], device_map=device)
    if way == "onednn bf16":
        for parent in list(model.modules()):
            for child_name, child in list(parent.named_children()):
                if isinstance(child, torch.nn.Linear):
                    setattr(parent, child_name, torch.utils.mkldnn.to_mkldnn(child, torch.bfloat16))
    if way == "torchao int8":
        from torchao.quantization import Int8WeightOnlyConfig, quantize_

        quantize_(model, Int8WeightOnlyConfig())
    return model.eval()


def resident(device: str) -> int:
    """Bytes that the process holds."""
    gc.collect()
    if device == "cuda":
        return torch.cuda.memory_allocated()
    status = pathlib.Path("/proc/self/status").read_text()
    return 1024 * int(status.split("VmRSS:")[1].split()[0])


def rate(call, tokens: int, seconds: float, device: str) -> float:
    """Tokens per second, of the median call."""
    times, begin = [], time.perf_counter()
    while len(times) < 3 or time.perf_counter() - begin < seconds:
        start = time.perf_counter()
        call()
        if device == "cuda":
            torch.cuda.synchronize()
        times.append(time.perf_counter() - start)
    return tokens / statistics.median(times)


def graph_rate(call, seconds: float) -> float | None:
    """Tokens per second of a call with one token that is captured; None where capturing fails."""
    side, graph = torch.cuda.Stream(), torch.cuda.CUDAGraph()
    with torch.cuda.stream(side):
        call()
    torch.cuda.current_stream().wait_stream(side)
    try:
        with torch.cuda.graph(graph):
            call()
    except RuntimeError as error:
        print(f"not captured: {error}", file=sys.stderr)
        return None
    return rate(graph.replay, 1, seconds, "cuda")


@torch.inference_mode()
def measure(name: str, directory: pathlib.Path, way: str, device: str, seconds: float, outputs: pathlib.Path) -> dict:
    """One row of the table."""
    import transformers  # noqa: F401  (its memory does not count)

    import mxdnn_torch  # noqa: F401

    # cuDNN makes a plan of attention for each new length of the cache, which takes longer than the rest of a token.
    torch.backends.cuda.enable_cudnn_sdp(False)
    before = resident(device)
    model = load(name, directory, way, device)
    ids = torch.arange(PROMPT, device=device)[None] * 37 % 8000 + 5
    if name == "minilm":
        call = lambda: model(ids, torch.ones_like(ids))  # noqa: E731
        result = call()
    else:
        call = lambda: model(ids, use_cache=False)  # noqa: E731
        result = call().logits
    memory = resident(device) - before
    result = result.double().cpu()
    if way == "f32":
        torch.save(result, outputs)
    exact = torch.load(outputs)
    noise = (result - exact).norm()
    row = {"sqnr": float(20 * torch.log10(exact.norm() / noise)) if noise > 0 else None, "memory": memory}
    row["prompt"] = rate(call, PROMPT, seconds, device)
    if name != "minilm":
        cache = model(ids, use_cache=True).past_key_values
        row["decode"] = rate(lambda: model(ids[:, :1], past_key_values=cache, use_cache=True), 1, seconds, device)
        if device == "cuda":  # last, since a failed capture spoils what comes after it
            row["graph"] = graph_rate(lambda: model(ids[:, :1], use_cache=False), seconds)
    return row


def import_packages() -> None:
    """What takes a new process long."""
    import transformers.models.auto  # noqa: F401

    import mxdnn_torch.transformers  # noqa: F401


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", default=list(MODELS), choices=MODELS)
    parser.add_argument("--ways", nargs="+", default=list(WAYS), choices=WAYS)
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--seconds", type=float, default=3)
    args = parser.parse_args()
    # Importing torchao starts CUDA, which a forked process cannot use.
    processes = multiprocessing.get_context("spawn" if args.device == "cuda" else "forkserver")
    processes.set_forkserver_preload(["torch", "transformers.models.auto", "mxdnn_torch.transformers"])
    print(f"torch {torch.__version__}, {torch.get_num_threads()} threads, {args.device}")
    print(f"{'model':8} {'weights':13} {'SQNR dB':>8} {'prompt/s':>9} {'decode/s':>9} {'graph/s':>9} {'memory MB':>10}")
    # f32 comes first: the others are compared with its outputs
    rows = [(name, way) for name in args.models for way in ("f32", *(w for w in args.ways if w != "f32"))]
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        started = {}
        if args.device == "cuda":
            started = {r: stack.enter_context(concurrent.futures.ProcessPoolExecutor(1, processes)) for r in rows}
            concurrent.futures.wait([process.submit(import_packages) for process in started.values()])
        for name in args.models:
            if name != "minilm":
                make(name, pathlib.Path(folder) / name)
        for name, way in rows:
            directory = ROOT / ".deps/minilm" if name == "minilm" else pathlib.Path(folder) / name
            outputs = pathlib.Path(folder) / f"{name}.pt"
            with started.get((name, way)) or concurrent.futures.ProcessPoolExecutor(1, processes) as process:
                done = process.submit(measure, name, directory, way, args.device, args.seconds, outputs)
                if error := done.exception():
                    print(f"{name:8} {way:13} not run: {error}", flush=True)
                    continue
                row = done.result()
            sqnr = "exact" if row["sqnr"] is None else f"{row['sqnr']:.2f}"
            prompt, decode, graph = (
                "-" if row.get(what) is None else f"{row[what]:,.1f}" for what in ("prompt", "decode", "graph")
            )
            print(f"{name:8} {way:13} {sqnr:>8} {prompt:>9} {decode:>9} {graph:>9} {row['memory'] / 1e6:>10,.1f}",
                  flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
