# SPDX-License-Identifier: Apache-2.0
"""Compares mxdnn-llm with llama.cpp (the package llama-cpp-python) on a GGUF file, and prints tables.

    python compare_llama.py mxdnn-llm model.gguf [--parts gpt-oss,text,perplexity,speed] [--threads N]

gpt-oss: a tiny model as a GGUF file of MXFP4, written with the package gguf. In f32 both agree within rounding; with the
weights as they are, llama.cpp rounds activations to 8 bits.
text: with weights that are dequantised to f32 both compute in f32, so that logits agree within rounding and the likeliest
tokens are the same; these are checked. With the weights as they are, llama.cpp rounds activations to 8 bits.
perplexity: of opticks.txt (the beginning of Isaac Newton's Opticks, fourth edition, 1730), in windows of 512 tokens.
speed: in turns, medians of several rounds; decoding begins after the prompt in both. --cpu-time counts the time that
threads compute, not the time that passes: for one thread on a machine that others use.
gpt-oss-20b: speed of made-up weights in the shapes of gpt-oss-20b, --layers of its 24 and as large a part of its
vocabulary, so that a step does this part of the whole model's work. 6 layers: a file of 3.5 GB in TMPDIR, and 8 GB of
memory.
"""
import argparse
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import time

import gguf
import llama_cpp
import numpy as np

TEXT = pathlib.Path(__file__).parent / "opticks.txt"
TESTS = pathlib.Path(__file__).parents[1] / "tests"
sys.path.insert(0, str(TESTS))
import to_gguf  # noqa: E402

FORMATS = ["mxfp8", "mxfp6", "mxfp4", "nvfp4", "int4"]
QUESTIONS = ["Why is the sky blue?", "What is a prime number?", "Are dogs real?", "Say hello.",
             "Write a haiku about compilers."]
# f32 on both sides, in another order of additions: of the largest logit of a row.
BOUND = 1e-3
WINDOW = 512


def f32_copy(path, to):
    """The same model with every tensor dequantised."""
    reader = gguf.GGUFReader(path)
    writer = gguf.GGUFWriter(to, reader.get_field("general.architecture").contents())
    for name, field in reader.fields.items():
        if name.startswith("GGUF.") or name in ("general.architecture", "general.file_type"):
            continue
        kind = field.types[0]
        element = field.types[-1] if kind == gguf.GGUFValueType.ARRAY else None
        writer.add_key_value(name, field.contents(), kind, element)
    for t in reader.tensors:
        writer.add_tensor(t.name, gguf.quants.dequantize(t.data, t.tensor_type).astype(np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def llama(path, args, **options):
    return llama_cpp.Llama(str(path), **{
        "n_ctx": 1024, "n_batch": WINDOW, "n_ubatch": WINDOW, "n_threads": args.threads,
        "n_threads_batch": args.threads, "verbose": False, "type_k": 0, "type_v": 0, **options})


def mxdnn(args, command, *options):
    threads = [] if command == "tokenize" else ["--threads", str(args.threads)]
    r = subprocess.run([args.program, command, *map(str, options), *threads], capture_output=True)
    if r.returncode:
        sys.exit(f"mxdnn-llm {command} failed: {r.stderr.decode()}")
    return r.stdout.decode()


def prompt(model, question):
    """Tokens of a conversation, by the template in the file."""
    formatter = llama_cpp.llama_chat_format.Jinja2ChatFormatter(
        template=model.metadata["tokenizer.chat_template"], bos_token="", eos_token="")
    text = formatter(messages=[{"role": "user", "content": question}]).prompt
    return model.tokenize(text.encode(), add_bos=False, special=True)


def logits_of(model, ids):
    model.reset()
    model.eval(ids)
    return np.array(model.scores[:len(ids)], dtype=np.float32)


def greedy(model, ids, count):
    """The likeliest tokens as text, up to one that ends it."""
    model.reset()
    out, given = [], ids
    for _ in range(count):
        model.eval(given)
        token = int(np.argmax(model.scores[model.n_tokens - 1]))
        if token == model.token_eos():
            break
        out.append(token)
        given = [token]
    return model.detokenize(out).decode(errors="replace")


def error(a, b):
    """The largest difference of logits, relative to the largest logit of its row."""
    return float((np.abs(a - b).max(1) / np.abs(b).max(1)).max())


def mean_error(a, b):
    return float(np.linalg.norm(a - b) / np.linalg.norm(b))


def write_with_package(path, keys, tensors):
    writer = gguf.GGUFWriter(path, "gpt-oss")
    for key, (kind, value) in keys.items():
        if key != "general.architecture":
            writer.add_key_value(key, value, gguf.GGUFValueType(kind))
    for t in tensors:
        element = gguf.GGMLQuantizationType[t.element]
        block, size = gguf.GGML_QUANT_SIZES[element]
        row = [*t.dims[:-1], t.dims[-1] // block * size]
        data = np.frombuffer(t.data, np.float32 if t.element == "F32" else np.uint8)
        writer.add_tensor(t.name, data.reshape(t.dims if t.element == "F32" else row), raw_dtype=element)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def compare_gpt_oss(args, folder):
    """The frequencies of this file are those of a ramp from pair 0 to pair 2: llama.cpp rounds the ends."""
    golden = TESTS / "golden" / "gpt-oss"
    keys = to_gguf.keys(json.loads((golden / "config.json").read_text()))
    ramp = {"gpt-oss.rope.scaling.original_context_length": (to_gguf.U32, 64),
            "gpt-oss.rope.freq_base": (to_gguf.F32, (64 / (2 * np.pi)) ** 2 * 1.00001)}
    stored, f32 = folder / "gpt-oss.gguf", folder / "gpt-oss-f32.gguf"
    tensors = list(to_gguf.tensors(to_gguf.read_tensors(golden / "model.safetensors")))
    write_with_package(stored, {**keys, **ramp}, tensors)
    f32_copy(stored, f32)
    sequences = json.loads((golden / "ids.json").read_text())
    failures = 0
    print("\n| weights of a tiny gpt-oss | largest error of logits | mean error | at most |\n|---|---|---|---|")
    for name, path, compute, most in (("f32", f32, "f32", BOUND), ("MXFP4", stored, "stored", 3e-2)):
        model = llama(path, args, logits_all=True)
        for ids in sequences:
            mxdnn(args, "logits", path, "--ids", ",".join(map(str, ids)), "--encoding", compute, "--output", folder / "l")
            ours, theirs = np.fromfile(folder / "l", np.float32).reshape(len(ids), -1), logits_of(model, ids)
            failures += not error(ours, theirs) <= most
            print(f"| {name}, {len(ids)} tokens | {error(ours, theirs):.1e} | {mean_error(ours, theirs):.1e} | {most:g} |")
    return failures


def compare_text(args, folder):
    f32 = folder / "f32.gguf"
    f32_copy(args.model, f32)
    exact, quantised = llama(f32, args, logits_all=True), llama(args.model, args, logits_all=True)
    failures = 0
    print("\n| question | tokens equal | text equal in f32 | largest error of logits in f32 | text equal as stored "
          "| mean error as stored |\n|---|---|---|---|---|---|")
    for question in QUESTIONS:
        ids = prompt(exact, question)
        logits = {}
        for name, path in ("f32", f32), ("stored", args.model):
            mxdnn(args, "logits", path, "--ids", ",".join(map(str, ids)), "--encoding", name, "--output", folder / "l")
            logits[name] = np.fromfile(folder / "l", np.float32).reshape(len(ids), -1)
        texts = {name: mxdnn(args, "generate", path, question, "--tokens", args.tokens, "--encoding", name)[:-1]
                 for name, path in (("f32", f32), ("stored", args.model))}
        wanted = greedy(exact, ids, args.tokens)
        same_ids = mxdnn(args, "tokenize", args.model, question).strip() == ",".join(map(str, ids))
        e = error(logits["f32"], logits_of(exact, ids))
        failures += not (same_ids and texts["f32"] == wanted and e <= BOUND)
        print(f"| {question} | {same_ids} | {texts['f32'] == wanted} | {e:.1e} "
              f"| {texts['stored'] == greedy(quantised, ids, args.tokens)} "
              f"| {mean_error(logits['stored'], logits_of(quantised, ids)):.1e} |", flush=True)
    return failures


def perplexity(model):
    ids = model.tokenize(TEXT.read_bytes(), add_bos=False, special=True)
    total, count = 0.0, 0
    for begin in range(0, len(ids), WINDOW):
        window = ids[begin:begin + WINDOW]
        logits = logits_of(model, window)[:-1].astype(np.float64)
        top = logits.max(1, keepdims=True)
        log_sum = np.log(np.exp(logits - top).sum(1)) + top[:, 0]
        total += (log_sum - logits[np.arange(len(window) - 1), window[1:]]).sum()
        count += len(window) - 1
    return np.exp(total / count), count


def compare_perplexity(args, _):
    reference, count = perplexity(llama(args.model, args, logits_all=True))
    print(f"\nPerplexity of {count} tokens in windows of {WINDOW}.\n\n| weights | perplexity |\n|---|---|")
    print(f"| as stored, llama.cpp | {reference:.3f} |", flush=True)
    failures = 0
    for name in ["stored", *FORMATS]:
        said = mxdnn(args, "perplexity", args.model, TEXT, "--context", WINDOW, "--encoding", name, "--dense", name)
        value, tokens = re.match(r"perplexity ([\d.]+) of (\d+) tokens", said).groups()
        failures += int(tokens) != count
        print(f"| {'as stored' if name == 'stored' else name}, mxdnn-llm | {float(value):.3f} |", flush=True)
    return failures


def compare_speed(args, _):
    measure_speed(args, args.model, ["stored", *args.encodings.split(",")])
    return 0


def write_20b(path, layers):
    """Layers are equal, as their values do not matter."""
    config = {"vocab_size": 201088 * layers // 24 // 32 * 32, "num_hidden_layers": layers,
              "max_position_embeddings": 131072, "hidden_size": 2880, "intermediate_size": 2880,
              "num_attention_heads": 64, "num_key_value_heads": 8, "head_dim": 64, "sliding_window": 128,
              "rms_norm_eps": 1e-5, "num_local_experts": 32, "num_experts_per_tok": 4,
              "rope_parameters": {"rope_theta": 150000.0, "factor": 32.0, "original_max_position_embeddings": 4096}}
    rng = np.random.default_rng(1)
    writer = gguf.GGUFWriter(path, "gpt-oss")
    for key, (kind, value) in to_gguf.keys(config).items():
        if key != "general.architecture":
            writer.add_key_value(key, value, gguf.GGUFValueType(kind))

    def matrix(out, n):  # bf16, rows of about length 1
        values = rng.uniform(-1.7, 1.7, (out, n)).astype(np.float32) / np.float32(n**0.5)
        return (values.view(np.uint32) >> 16).astype(np.uint16).view(np.uint8)

    def vector(*shape):
        return rng.uniform(-0.1, 0.1, shape).astype(np.float32)

    size, heads, experts, bf16 = 2880, 64 * 64, 32, gguf.GGMLQuantizationType.BF16
    blocks = rng.integers(0, 256, (experts, size, size // 32, 17), np.uint8)
    blocks[..., 0] = 127 - 7  # the scale
    blocks = blocks.reshape(experts, size, -1)
    layer = {"attn_norm.weight": 1 + vector(size), "post_attention_norm.weight": 1 + vector(size),
             "attn_sinks.weight": vector(64), "ffn_gate_inp.weight": vector(experts, size),
             "ffn_gate_inp.bias": vector(experts)}
    for name, out, n in ("q", heads, size), ("k", 512, size), ("v", 512, size), ("output", size, heads):
        layer[f"attn_{name}.weight"], layer[f"attn_{name}.bias"] = matrix(out, n), vector(out)
    for name in "gate", "up", "down":
        layer[f"ffn_{name}_exps.weight"], layer[f"ffn_{name}_exps.bias"] = blocks, vector(experts, size)
    table = matrix(config["vocab_size"], size)
    tensors = {"token_embd.weight": table, "output.weight": table, "output_norm.weight": 1 + vector(size)}
    tensors |= {f"blk.{i}.{name}": t for i in range(layers) for name, t in layer.items()}
    for name, t in tensors.items():
        kind = bf16 if t.dtype == np.uint8 and t is not blocks else gguf.GGMLQuantizationType.MXFP4
        writer.add_tensor(name, t, raw_dtype=kind if t.dtype == np.uint8 else None)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def compare_20b(args, folder):
    path = folder / "gpt-oss-20b.gguf"
    write_20b(path, args.layers)
    print(f"\nShapes of gpt-oss-20b, {args.layers} of 24 layers and of 24 parts of the vocabulary.")
    measure_speed(args, path, ["stored"])
    return 0


def measure_speed(args, path, encodings):
    model = llama(path, args, type_k=1, type_v=1)  # as it is by default
    clock = time.process_time if args.cpu_time else time.perf_counter

    def of_llama():
        model.reset()
        begin = clock()
        model.eval([100 + i % 1000 for i in range(WINDOW)])
        middle = clock()
        for i in range(args.tokens):
            model.eval([100 + i])
        return WINDOW / (middle - begin), args.tokens / (clock() - middle), np.nan

    def of_mxdnn(encoding):
        said = mxdnn(args, "bench", path, "--prompt", WINDOW, "--tokens", args.tokens, "--context",
                     WINDOW + args.tokens, "--repeat", 1, "--encoding", encoding, "--dense", encoding,
                     *["--cpu-time"] * args.cpu_time)
        rates = (float(re.search(rf"{part} of .*? ([\d.]+) tokens/s", said)[1]) for part in ("prefill", "decode"))
        return *rates, float(re.search(r"\((\d+)% of", said.split("decode of")[1])[1])

    of_llama()  # the first time also makes what is made once
    rounds = np.array([(of_llama(), *(of_mxdnn(n) for n in encodings)) for _ in range(args.rounds)])
    median = np.median(rounds, 0)
    print(f"\nTokens/s with {args.threads} threads{' by their CPU time' if args.cpu_time else ''}, medians of "
          f"{args.rounds} rounds; decoding after {WINDOW} tokens.\n\n"
          "| weights | prefill of 512 | decode | prefill, of llama.cpp's | decode, of llama.cpp's "
          "| decode, of the read bandwidth |\n|---|---|---|---|---|---|")
    rows = ["as stored, llama.cpp", *(f"{n}, mxdnn-llm" for n in encodings)]
    for name, (prefill, decode, share) in zip(rows, median):
        print(f"| {name} | {prefill:.1f} | {decode:.1f} | {prefill / median[0][0]:.2f}x "
              f"| {decode / median[0][1]:.2f}x | {'' if np.isnan(share) else f'{share:.0f} %'} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("model")
    parser.add_argument("--parts", default="gpt-oss,text,perplexity,speed")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--tokens", type=int, default=32)
    parser.add_argument("--layers", type=int, default=6, help="of gpt-oss-20b")
    parser.add_argument("--rounds", type=int, default=5, help="of speed")
    parser.add_argument("--cpu-time", action="store_true", help="of speed: for one thread")
    parser.add_argument("--encodings", default="mxfp4", help="of speed, besides the weights as they are")
    args = parser.parse_args()
    print(f"llama-cpp-python {llama_cpp.__version__}")
    parts = {"gpt-oss": compare_gpt_oss, "text": compare_text, "perplexity": compare_perplexity, "speed": compare_speed,
             "gpt-oss-20b": compare_20b}
    with tempfile.TemporaryDirectory() as folder:
        failures = sum(parts[p](args, pathlib.Path(folder)) for p in args.parts.split(","))
    if failures:
        sys.exit(f"{failures} comparisons failed")


if __name__ == "__main__":
    main()
