# SPDX-License-Identifier: Apache-2.0
"""Writes what unpacking, decoding and mx_matmul have to give, from the rules of formats.md and mx_matmul.md in
doc/reference alone.
The library is not involved, so that a fault in what its reference, packers and kernels share shows up here.

    cases.txt    what there is: one line per format, one line per array (name, type, shape, offset into cases.bin)
    cases.bin    the arrays, little-endian

    python3 -m venv venv && venv/bin/pip install numpy && venv/bin/python make_golden.py [--check]

With --check nothing is written, and the exit status says whether the files are what they would be. All random
numbers come from a generator defined here, so that NumPy's version does not matter.

Per format, with K rows and N columns of weights:
    codes_kn, codes_nk      the codes as plain tensors, [K, N] and [N, K] row by row; 4-bit rows start on a byte
    dense_kn, dense_nk      6-bit codes once more, four in three bytes
    scales_kn, scales_nk    [groups, N] and [N, groups]; zeros_kn, zeros_nk, and the global scale likewise
    decoded                 f32 values of the columns 0, 3, 6, ... [K, ceil(N / 3)]
    size                    [M, N] sum over k of |x| times what the weight is made of (code and zero point apart),
                            which error bounds are proportional to; rounded up
    none, bias              [M, N] x * weights, and with the bias
    swiglu_oai, bias_swiglu_oai     [M, N / 2] gated_swiglu_oai, alpha 1.702, limit 7, gate and up interleaved
    silu, bias_silu         [M, N / 2] gated_silu, gate and up in halves
Results are computed in f64 and stored in f32. x and the bias come first; values of x are exact in bf16 and in f16.
"""
import pathlib
import sys

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE.parent / "golden"))
from case_files import CaseFiles, Random, stored  # noqa: E402

M, K, N = 13, 97, 34


# ---- numbers ----

# name: bits, exponent bits, mantissa bits, bias, codes that are no finite numbers
SMALL_FLOATS = {
    "f8_e4m3": (8, 4, 3, 7, {0x7F, 0xFF}),
    "f8_e5m2": (8, 5, 2, 15, {s | c for s in (0, 0x80) for c in range(0x7C, 0x80)}),
    "f6_e2m3": (6, 2, 3, 1, set()),
    "f6_e3m2": (6, 3, 2, 3, set()),
    "f4_e2m1": (4, 2, 1, 1, set()),
}
BITS = {"s8": 8, "s4": 4, "u4": 4, **{name: t[0] for name, t in SMALL_FLOATS.items()}}


def small_float(name, code):
    bits, exponent_bits, mantissa_bits, bias, no_numbers = SMALL_FLOATS[name]
    if code in no_numbers:
        return np.nan
    sign = -1.0 if code >> (bits - 1) else 1.0
    field = code >> mantissa_bits & (1 << exponent_bits) - 1
    mantissa = code & (1 << mantissa_bits) - 1
    if field == 0:
        return sign * mantissa * 2.0 ** (1 - bias - mantissa_bits)
    return sign * (1 + mantissa / (1 << mantissa_bits)) * 2.0 ** (field - bias)


def value_table(name):
    """What each code stands for, before any scale; NaN where it is no finite number."""
    if name == "s8":
        return np.array([(c - 256 if c > 127 else c) * 2.0**-6 for c in range(256)])
    if name == "s4":
        return np.array([c - 16.0 if c > 7 else float(c) for c in range(16)])
    if name == "u4":
        return np.arange(16.0)
    return np.array([small_float(name, c) for c in range(1 << BITS[name])])


# ---- bytes of plain tensors ----


def plain_rows(codes, bits):
    """Rows of codes as bytes: 4-bit codes two to a byte, the first in the low half; else one per byte."""
    if bits != 4:
        return codes.astype(np.uint8)
    even = np.zeros((codes.shape[0], (codes.shape[1] + 1) // 2 * 2), np.uint8)
    even[:, : codes.shape[1]] = codes
    return even[:, 0::2] | even[:, 1::2] << 4


def dense_rows(codes):
    """Rows of 6-bit codes: code i is bits 6i to 6i + 5 of its row."""
    bit = (codes[:, :, None] >> np.arange(6)) & 1
    return np.packbits(bit.reshape(codes.shape[0], -1).astype(np.uint8), axis=1, bitorder="little")


# ---- results ----


def sigmoid(t):
    return 1 / (1 + np.exp(-t))


def gated_swiglu_oai(v, alpha, limit):
    g, u = np.minimum(v[:, 0::2], limit), np.clip(v[:, 1::2], -limit, limit)
    return g * sigmoid(alpha * g) * (u + 1)


def gated_silu(v):
    g, u = v[:, : v.shape[1] // 2], v[:, v.shape[1] // 2 :]
    return g * sigmoid(g) * u


# ---- formats: name, elements, scales, block, zero points, whether there is a global scale ----

FORMATS = [
    ("mxfp8", "f8_e4m3", "e8m0", 32, "none", False),
    ("mxfp8_e5m2", "f8_e5m2", "e8m0", 32, "none", False),
    ("mxfp6", "f6_e2m3", "e8m0", 32, "none", False),
    ("mxfp6_e3m2", "f6_e3m2", "e8m0", 32, "none", False),
    ("mxfp4", "f4_e2m1", "e8m0", 32, "none", False),
    ("mxint8", "s8", "e8m0", 32, "none", False),
    ("nvfp4", "f4_e2m1", "f8_e4m3", 16, "none", False),
    ("nvfp4_global", "f4_e2m1", "f8_e4m3", 16, "none", True),
    ("s4_bf16", "s4", "bf16", 32, "none", False),
    ("u4_f32", "u4", "f32", 64, "none", False),
    ("u4_u8_bf16", "u4", "bf16", 32, "u8", False),
    ("u4_u8_f16", "u4", "f16", 64, "u8", False),
    ("u4_float_bf16", "u4", "bf16", 32, "bf16", False),
    ("u4_float_f32", "u4", "f32", 128, "f32", False),
]
GLOBAL = np.float32(0.0123)


def weights_of(fmt, rnd, K=K, N=N, global_scale=GLOBAL):
    """Codes, stored scales, stored zero points, f32 values of the weights, and the sizes of their parts."""
    _, elem, scale_dt, block, zp, has_global = fmt
    groups = -(-K // block)
    table = value_table(elem)
    usable = np.flatnonzero(np.isfinite(table))
    codes = usable[rnd.ints(len(usable), K * N)].reshape(K, N)
    # Every code occurs: the first ones are all of them, in order down the columns.
    every = np.resize(usable, K * (-(-len(usable) // K))).reshape(-1, K).T
    codes[:, : every.shape[1]] = every
    spread = np.sqrt(np.mean(table[usable] ** 2))
    element = table[codes]
    size = np.abs(element)

    if scale_dt == "e8m0":
        centre = 127 + int(np.round(np.log2(0.2 / spread)))
        scale_bits = (centre - 3 + rnd.ints(6, groups * N)).reshape(groups, N).astype(np.uint8)
        scale = np.exp2(scale_bits.astype(np.float64) - 127).astype(np.float32)
    elif scale_dt == "f8_e4m3":
        any_number = 1 + rnd.ints(0x50, groups * N)
        usual = (0x38 if has_global else 0x10) + rnd.ints(0x18, groups * N)
        scale_bits = np.where(rnd.ints(8, groups * N) == 0, any_number, usual).reshape(groups, N).astype(np.uint8)
        scale = value_table("f8_e4m3")[scale_bits].astype(np.float32)
    else:
        scale_bits, scale = stored(scale_dt, (0.01 + rnd.ints(4096, groups * N) / 65536.0).reshape(groups, N))

    group = np.arange(K) // block
    zeros = None
    f32 = np.float32
    if has_global:
        scale = global_scale * scale  # an f32 product, rounded
    if zp == "none":
        values = element.astype(f32) * scale[group]
        size = size * np.abs(scale[group].astype(np.float64))
    elif zp == "u8":
        zeros = rnd.ints(16, groups * N).reshape(groups, N).astype(np.uint8)
        zeros[0, 0:7:3] = 0, 200, 255  # more than a code can be
        values = (element - zeros[group]).astype(f32) * scale[group]
        size = (size + zeros[group]) * scale[group].astype(np.float64)
    else:
        zeros, zero = stored(zp, ((rnd.ints(2048, groups * N) - 1024) / 8192.0).reshape(groups, N))
        values = (element - 8).astype(f32) * scale[group] + zero[group]
        size = np.abs(element - 8) * scale[group].astype(np.float64) + np.abs(zero[group])
    assert values.dtype == f32 and np.isfinite(values).all()
    return codes, scale_bits, zeros, values, size


def inputs():
    rnd = Random(2026)
    x = (rnd.ints(511, M * K) - 255).reshape(M, K) / 64.0  # eight significant bits
    # Rows that single out one weight, so that a small weight is not lost in a large sum.
    for row, k in ((1, K - 1), (4, 0), (5, 13), (7, 38), (9, 64), (11, 95)):
        x[row] = 0
        x[row, k] = 1
    bias = (rnd.ints(4001, N) - 2000) / 777.0
    return x.astype("<f4"), bias.astype("<f4")


def main():
    files = CaseFiles()
    x, bias = inputs()
    files.describe(f"problem {M} {K} {N}")
    files.put("all.x", x)
    files.put("all.bias", bias)
    for i, fmt in enumerate(FORMATS):
        name, elem, scale_dt, block, zp, has_global = fmt
        codes, scales, zeros, values, size = weights_of(fmt, Random(1000 + i))
        files.describe(f"format {name} {elem} {scale_dt} {block} {zp} {int(has_global)}")
        for order, turn in (("kn", lambda a: a), ("nk", lambda a: a.T)):
            files.put(f"{name}.codes_{order}", plain_rows(turn(codes), BITS[elem]))
            if BITS[elem] == 6:
                files.put(f"{name}.dense_{order}", dense_rows(turn(codes)))
            files.put(f"{name}.scales_{order}", turn(scales))
            if zeros is not None:
                files.put(f"{name}.zeros_{order}", turn(zeros))
        if has_global:
            files.put(f"{name}.global", np.array([GLOBAL], "<f4"))
        files.put(f"{name}.decoded", values[:, ::3].astype("<f4"))
        x64, w64 = x.astype(np.float64), values.astype(np.float64)
        sums = np.abs(x64) @ size
        files.put(f"{name}.size", np.nextafter(sums.astype("<f4"), np.float32(np.inf)).astype("<f4"))
        for prefix, v in (("", x64 @ w64), ("bias_", x64 @ w64 + bias.astype(np.float64))):
            files.put(name + (".bias" if prefix else ".none"), v.astype("<f4"))
            files.put(f"{name}.{prefix}swiglu_oai", gated_swiglu_oai(v, 1.702, 7.0).astype("<f4"))
            files.put(f"{name}.{prefix}silu", gated_silu(v).astype("<f4"))

    return files.finish(HERE)


if __name__ == "__main__":
    sys.exit(main())
