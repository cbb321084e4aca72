# SPDX-License-Identifier: Apache-2.0
"""Says which weights of a GGUF file lose most in MXFP4, and what another choice of scales would give.

    python perplexity_by_tensor.py mxdnn-llm model.gguf [--text FILE] [--only REGEX] [--threads N]

Weights are quantised here, by the rules of doc/reference/formats.md, and computed with in f32: a row of the table is a
file of f32 values. The error is the norm of what quantising changes, relative to that of the weights.
"""
import argparse
import pathlib
import re
import subprocess
import sys
import tempfile

import gguf
import numpy as np

TEXT = pathlib.Path(__file__).parent / "opticks.txt"
# Magnitudes of E2M1, and where one rounds to the next: ties go to the even code.
E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6], np.float32)
ENDS = np.array([0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5], np.float32)
TIES_UP = np.array([False, True, False, True, False, True, False])


def e2m1(x):
    magnitude = np.abs(x)
    code = np.searchsorted(ENDS, magnitude, side="left")
    tie = (code < 7) & (magnitude == ENDS[np.minimum(code, 6)])
    return np.copysign(E2M1[code + (tie & TIES_UP[np.minimum(code, 6)])], x)


def blocks_of(x, size):
    blocks = x.reshape(-1, size)
    return blocks, np.maximum(np.abs(blocks).max(1, keepdims=True), np.float32(2.0**-100))


def mx(x, exponent, size=32):
    """With the exponent of a block as a function of its largest magnitude."""
    blocks, largest = blocks_of(x, size)
    scale = np.exp2(exponent(largest)).astype(np.float32)
    return (e2m1(blocks / scale) * scale).reshape(x.shape)


def floor(largest):
    return np.floor(np.log2(largest)) - 2


def rceil(largest):
    return np.ceil(np.log2(largest / 6))


def even(largest):
    bits = np.ascontiguousarray(largest, np.float32).view(np.uint32)
    return floor(((bits + np.uint32(1 << 21)) & ~np.uint32((1 << 22) - 1)).view(np.float32))


def nearest(x):
    """Of both exponents that with the smaller squared error, block by block."""
    blocks, _ = blocks_of(x, 32)
    a, b = (mx(x, e).reshape(blocks.shape) for e in (lambda m: rceil(m), lambda m: rceil(m) - 1))
    is_a = ((a - blocks)**2).sum(1, keepdims=True) <= ((b - blocks)**2).sum(1, keepdims=True)
    return np.where(is_a, a, b).reshape(x.shape)


def any_scale(x, size):
    """The same elements, with scales that are no powers of two."""
    blocks, largest = blocks_of(x, size)
    scale = largest / 6
    return (e2m1(blocks / scale) * scale).reshape(x.shape)


def int4(x):
    blocks, largest = blocks_of(x, 32)
    scale = largest / 7
    return (np.clip(np.rint(blocks / scale), -8, 7) * scale).reshape(x.shape)


def mxfp4(x):
    return mx(x, rceil)


ATTENTION, MLP, HEAD = r"attn_(q|k|v|output)\.weight$", r"ffn_(gate|up|down)\.weight$", r"^output\.weight$"
ALL = f"{ATTENTION}|{MLP}|{HEAD}"
VARIANTS = {
    "as stored": ("^$", None),
    "all in MXFP4": (ALL, mxfp4),
    "all but the head": (f"{ATTENTION}|{MLP}", mxfp4),
    "head only": (HEAD, mxfp4),
    "attention only": (ATTENTION, mxfp4),
    "MLPs only": (MLP, mxfp4),
    "gate and up only": (r"ffn_(gate|up)\.weight$", mxfp4),
    "down only": (r"ffn_down\.weight$", mxfp4),
    "all, scales by floor": (ALL, lambda x: mx(x, floor)),
    "all, scales by even": (ALL, lambda x: mx(x, even)),
    "all but the head, scales by even": (f"{ATTENTION}|{MLP}", lambda x: mx(x, even)),
    "all, the nearer of two scales": (ALL, nearest),
    "all, blocks of 16": (ALL, lambda x: mx(x, rceil, 16)),
    "all, scales of any value": (ALL, lambda x: any_scale(x, 32)),
    "all, scales of any value, blocks of 16": (ALL, lambda x: any_scale(x, 16)),
    "all, int4 with scales of any value": (ALL, int4),
}


def write(model, path, pattern, quantise):
    """A file of f32 with what quantising makes of some tensors; gives the relative error of these."""
    reader = gguf.GGUFReader(model)
    writer = gguf.GGUFWriter(path, reader.get_field("general.architecture").contents())
    for name, field in reader.fields.items():
        if name.startswith("GGUF.") or name in ("general.architecture", "general.file_type"):
            continue
        kind = field.types[0]
        element = field.types[-1] if kind == gguf.GGUFValueType.ARRAY else None
        writer.add_key_value(name, field.contents(), kind, element)
    tensors = {t.name: t for t in reader.tensors}
    tensors.setdefault("output.weight", tensors["token_embd.weight"])  # where one is both
    lost = whole = 0.0
    for name, t in tensors.items():
        values = gguf.quants.dequantize(t.data, t.tensor_type).astype(np.float32)
        if re.search(pattern, name):
            changed = quantise(values)
            lost += float(((changed - values).astype(np.float64)**2).sum())
            whole += float((values.astype(np.float64)**2).sum())
            values = changed
        writer.add_tensor(name, values)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return (lost / whole)**0.5 if whole else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("model")
    parser.add_argument("--text", default=TEXT)
    parser.add_argument("--only", default="", help="rows with this regular expression in their name")
    parser.add_argument("--threads", default="0")
    args = parser.parse_args()
    print("| weights | error | perplexity |\n|---|---|---|")
    for name, (pattern, quantise) in VARIANTS.items():
        if not re.search(args.only, name):
            continue
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "model.gguf"
            error = write(args.model, path, pattern, quantise)
            said = subprocess.run([args.program, "perplexity", path, args.text, "--encoding", "f32", "--threads",
                                   args.threads], capture_output=True, text=True)
        if said.returncode:
            sys.exit(said.stderr)
        print(f"| {name} | {error:.3f} | {re.search(r'[0-9.]+', said.stdout)[0]} |", flush=True)


if __name__ == "__main__":
    main()
