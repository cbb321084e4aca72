# SPDX-License-Identifier: Apache-2.0
"""Writes what grouped_matmul has to give, from the rules of grouped_matmul.md and formats.md in doc/reference
alone. The library is not involved. Numbers and weights are made as golden_matmul's script makes them.

    cases.txt    one line per format, per case (its options as name=value) and per array (name, type, shape, offset)
    cases.bin    the arrays, little-endian

    python3 -m venv venv && venv/bin/pip install numpy && venv/bin/python make_golden.py [--check]

With --check nothing is written, and the exit status says whether the files are what they would be.

Arrays of a case are the arguments that it passes, named after them, and of its results
    written     [rows of dst] 1 where a row is written; others keep what they held
    want        [rows of dst, columns] f64 results stored in f32, and in
    bound       what an implementation may be off by before it stores the result (doc/concepts/accuracy.md)
    rounded     bound of kernels that round int4 weights (or an int4 source) to bf16
or, where dst is quantised, codes, scales (with the bytes of them that are written) and dst_global: sums of those cases
are exact in f32, so that every bit is known.
"""
import math
import pathlib
import sys

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "golden_matmul"))
import make_golden as numbers  # noqa: E402
from case_files import CaseFiles, Random, bf16_bits, stored  # noqa: E402

E, K, N = 5, 72, 34
U = 2.0**-24
f32 = np.float32
FORMATS = {f[0]: f for f in numbers.FORMATS}


class Weights:
    def __init__(self, name, seed):
        self.fmt = FORMATS[name]
        has_global = self.fmt[5]
        self.globals = np.array([0.0123, 0.5, 1.0, 0.0471, 3.25], f32) if has_global else None
        parts = []
        for e in range(E):
            g = self.globals[e] if has_global else numbers.GLOBAL
            parts.append(numbers.weights_of(self.fmt, Random(seed + e), K, N, g))
        self.codes, self.scales, self.zeros, self.values, self.sizes = zip(*parts)
        self.values = [v.astype(np.float64) for v in self.values]

    def arrays(self):
        bits = numbers.BITS[self.fmt[1]]
        yield "codes", np.stack([numbers.plain_rows(c, bits) for c in self.codes])
        yield "scales", np.stack(self.scales)
        if self.zeros[0] is not None:
            yield "zeros", np.stack(self.zeros)
        if self.globals is not None:
            yield "global", self.globals


# ---- sources: the arguments, and the f64 values of every row ----

QUANTISED = {  # elements, scales, block; nvfp4 has a global scale by option
    "mxfp8": ("f8_e4m3", "e8m0", 32),
    "mxfp8_e5m2": ("f8_e5m2", "e8m0", 32),
    "mxfp6": ("f6_e2m3", "e8m0", 32),
    "mxfp4": ("f4_e2m1", "e8m0", 32),
    "mxint8": ("s8", "e8m0", 32),
    "nvfp4": ("f4_e2m1", "f8_e4m3", 16),
    "int4": ("s4", "bf16", 32),
}


def swizzle(scales, groups):
    """Each group's rows padded to 128, columns to 4, in the 128x4 order."""
    out = []
    columns = scales.shape[1]
    tiles = -(-columns // 4)
    for first, count in groups:
        rows = -(-count // 128) * 128
        part = np.zeros((rows * tiles * 4,), np.uint8)
        for r in range(count):
            for c in range(columns):
                at = (r // 128 * tiles + c // 4) * 512 + r % 32 * 16 + r % 128 // 32 * 4 + c % 4
                part[at] = scales[first + r, c]
        out.append(part)
    return np.concatenate(out) if out else np.zeros(0, np.uint8)


def source(kind, rows, rnd, exact, global_scale):
    """name -> array of the arguments, and values [rows, K]; values without their global scale."""
    if kind in ("f32", "bf16", "f16"):
        x = (rnd.ints(15, rows * K) - 7.0) if exact else (rnd.ints(511, rows * K) - 255) / 64.0
        x = x.reshape(rows, K)
        bits = {"f32": x.astype("<f4"), "bf16": bf16_bits(x), "f16": x.astype("<f2").view("<u2")}[kind]
        return {"src": bits}, x
    if kind.startswith("s8row"):
        codes = (rnd.ints(255, rows * K) - 127).reshape(rows, K)
        bits, scale = stored(kind.split("_")[1], ((1 + rnd.ints(200, rows)) / 4096.0).reshape(rows, 1))
        return {"src": codes.astype(np.int8).view(np.uint8), "src_scales": bits}, codes * scale.astype(np.float64)
    elem, scale_dt, block = QUANTISED[kind]
    table = numbers.value_table(elem)
    usable = np.flatnonzero(np.isfinite(table))
    codes = usable[rnd.ints(len(usable), rows * K)].reshape(rows, K)
    groups = -(-K // block)
    if scale_dt == "e8m0":
        centre = 127 - int(np.round(np.log2(np.sqrt(np.mean(table[usable] ** 2)))))
        bits = (centre - 2 + rnd.ints(4, rows * groups)).reshape(rows, groups).astype(np.uint8)
        scale = np.exp2(bits.astype(np.float64) - 127)
    elif scale_dt == "bf16":
        bits, scale = stored("bf16", ((1 + rnd.ints(500, rows * groups)) / 1024.0).reshape(rows, groups))
    else:
        bits = (0x30 + rnd.ints(0x18, rows * groups)).reshape(rows, groups).astype(np.uint8)
        scale = numbers.value_table("f8_e4m3")[bits]
    values = table[codes] * scale[:, np.arange(K) // block]
    return {"src": numbers.plain_rows(codes, numbers.BITS[elem]), "src_scales": bits}, values


# ---- activations: value and error of (v, e) ----

erfc = np.vectorize(math.erfc)


def sigmoid(t):
    return np.exp(-np.logaddexp(0, -t))


ACTIVATIONS = {
    "silu": lambda g, a: g * sigmoid(g),
    "swiglu_oai": lambda g, a: g * sigmoid(a * g),
    "geglu_erf": lambda g, a: 0.5 * g * erfc(-g / math.sqrt(2)),
    "geglu_tanh": lambda g, a: 0.5 * g * (1 + np.tanh(math.sqrt(2 / math.pi) * (g + 0.044715 * g**3))),
}


def activate(act, halves, params, v, e):
    """params: alpha, beta, limit. Clamping never enlarges an error."""
    if act == "none":
        return v, e
    if act == "relu2":
        r = np.maximum(v, 0) ** 2
        return r, 2 * (np.abs(v) + e) * e + U * (r + e)
    alpha, beta, limit = params
    half = v.shape[-1] // 2
    g, u = (v[:half], v[half:]) if halves else (v[0::2], v[1::2])
    eg, eu = (e[:half], e[half:]) if halves else (e[0::2], e[1::2])
    if limit > 0 and np.isfinite(limit):
        g, u = np.minimum(g, limit), np.clip(u, -limit, limit)
    f = ACTIVATIONS[act](g, alpha)
    h = u + beta if act == "swiglu_oai" else u
    a = alpha if act == "swiglu_oai" else 1.0
    ef = 1.13 * max(1.0, abs(a)) * eg + 32 * U * (np.abs(f) + 1.13 * eg) * (1 + np.minimum(np.abs(a * g) + eg, 104))
    eh = eu + U * (np.abs(h) + eu)
    error = np.abs(f) * eh + np.abs(h) * ef + ef * eh
    return f * h, error + 32 * U * (np.abs(f * h) + error)


# ---- quantised destinations: the rules of doc/reference/formats.md for finite values ----


def encode(name, x):
    """Nearest code, ties to even, saturating; the sign is kept."""
    bits = numbers.BITS[name]
    values = numbers.value_table(name)[: 1 << (bits - 1)]
    values = values[np.isfinite(values)]
    distance = np.abs(np.abs(x.astype(np.float64))[..., None] - values)
    best = distance.min(-1, keepdims=True)
    code = np.where(distance == best, np.where(np.arange(len(values)) % 2, 1, 0), 2).argmin(-1)
    return (code + (np.signbit(x).astype(int) << (bits - 1))).astype(np.uint8)


def given_scales(kind, rows, columns, rnd):
    """Scales that suit sums of a few hundred, some of them too small."""
    scale_dt, block = QUANTISED[kind][1:]
    shape = (rows, -(-columns // block))
    lowest = 127 - 3 if scale_dt == "e8m0" else 0x50
    return (lowest + rnd.ints(8, shape[0] * shape[1])).reshape(shape).astype(np.uint8)


def encode_row(kind, x, scales):
    """Codes of one row of f32 values under scales that are given, without a global one."""
    elem, scale_dt, block = QUANTISED[kind]
    codes = []
    for i, s in enumerate(scales):
        b = x[i * block : (i + 1) * block].astype(f32)
        factor = f32(2.0 ** (127 - int(s))) if scale_dt == "e8m0" else f32(1) / f32(numbers.value_table("f8_e4m3")[s])
        codes.append(encode(elem, b * factor))
    return np.concatenate(codes)


def quantise_row(kind, x, g):
    """Codes and scales of one row of f32 values."""
    elem, scale_dt, block = QUANTISED[kind]
    codes, scales = [], []
    for at in range(0, len(x), block):
        b = x[at : at + block].astype(f32)
        amax = np.abs(b).max()
        if scale_dt == "e8m0":  # floor
            emax = {"f8_e4m3": 8, "f4_e2m1": 2}[elem]
            byte = 0 if amax == 0 else max(-127, min(127, math.frexp(float(amax))[1] - 1 - emax)) + 127
            scales.append(byte)
            codes.append(encode(elem, b * f32(2.0 ** (127 - byte))))
        else:
            s = amax / f32(6)
            if g is not None:
                s = s / g if g != 0 else f32(0)
            scale = int(encode("f8_e4m3", np.array([np.clip(s, f32(2**-6), f32(448))]))[0])
            value = f32(numbers.value_table("f8_e4m3")[scale])
            factor = f32(1) / value if g is None else f32(1) / g / value
            scales.append(scale)
            codes.append(encode(elem, np.clip(b * factor, f32(-6), f32(6))))
    return np.concatenate(codes), np.array(scales, np.uint8)


# ---- routings ----


class Routing:
    """bounds as the grouping has them, optional ids and map, and the rows that are computed: (row, expert)."""

    def __init__(self, grouping, rows, bounds, ids=None, table=None, first=0, global_experts=0):
        self.grouping, self.rows = grouping, rows
        self.bounds = np.array(bounds, "<i4")
        self.ids, self.table = ids, table
        self.first, self.global_experts = first, global_experts
        self.pairs, self.groups, self.group_of = [], [], {}
        n = len(bounds) - (grouping == "starts")
        if grouping == "row_ids":
            self.pairs = [(r, e) for r, e in ((r, self.local(i)) for r, i in enumerate(bounds)) if e >= 0]
            return
        for g in range(n):
            if grouping == "ends":
                begin, end = (bounds[g - 1] if g else 0), bounds[g]
            elif grouping == "starts":
                begin, end = bounds[g], bounds[g + 1]
            else:
                begin, end = rows // n * g, rows // n * g + bounds[g]
            self.groups.append((begin, rows // n if grouping == "padded" else end - begin))
            e = self.local(g if ids is None else ids[g])
            if e >= 0:
                self.pairs += [(r, e) for r in range(begin, end)]

    def local(self, i):
        if i < 0:
            return -1
        e = self.table[i] if self.table is not None else i - self.first
        return e if 0 <= e < E else -1


ENDS = Routing("ends", 23, [4, 4, 13, 14, 20])  # an empty expert, and rows past the last end
TABLE = [-1, 3, 0, -1, 4, 1, 2, -1]
ROUTINGS = {
    "ends": ENDS,
    "starts": Routing("starts", 23, [2, 7, 7, 8, 19, 21]),
    "padded": Routing("padded", 25, [3, 0, 5, 1, 4]),
    "row_ids": Routing("row_ids", 14, [3, 0, -1, 4, 3, 3, 1, 0, -1, 3, 2, 4, 4, 0]),
    "ends_ids": Routing("ends", 19, [5, 9, 9, 18], ids=[4, -1, 1, 2]),
    "ends_same": Routing("ends", 19, [5, 9, 12, 18], ids=[3, 1, 3, 3]),
    "ends_map": Routing("ends", 24, [2, 3, 7, 9, 9, 14, 20, 24], table=TABLE),
    "ids_map": Routing("ends", 19, [5, 9, 11, 18], ids=[4, 0, 6, -1], table=TABLE),
    "ends_range": Routing("ends", 24, [2, 3, 7, 9, 9, 14, 20, 24], first=2, global_experts=8),
    "ids_range": Routing("starts", 19, [1, 5, 9, 11, 18], ids=[9, 6, 0, 10], first=6, global_experts=16),
    "padded_ids": Routing("padded", 18, [6, 2, 4], ids=[2, -1, 0]),
    "padded_map": Routing("padded", 24, [3, 0, 2, 1, 3, 3, 0, 2], table=TABLE),
    "row_ids_map": Routing("row_ids", 10, [1, 0, -1, 7, 6, 6, 4, 2, 5, 1], table=TABLE),
    "row_ids_range": Routing("row_ids", 10, [6, 3, -1, 15, 10, 6, 7, 0, 8, 11], first=6, global_experts=16),
    "full": Routing("ends", 20, [4, 4, 13, 14, 20]),
    "none": Routing("ends", 6, [0, 0, 0, 0, 0]),
    "many": Routing("ends", 152, [70, 70, 139, 140, 150]),  # rows enough to decode weights ahead
}

# ---- cases: an option that is not given has the default ----

DEFAULTS = dict(format="mxfp4", routing="ends", src="bf16", dst="f32", bias="none", act="none", halves=0, params="none",
                alpha=0, gather=0, scatter="none", topk="none", topk_on="output", beta=0.0, src_global="none",
                dst_global="none", swizzle_src=0, swizzle_dst=0, plain=0, pointers=0, flat=0, exact=0, nan=0,
                static=0)
ATTR_PARAMS = (1.25, 1.0, 1.5)  # of the post-op: alpha, what it adds to up, limit
CASES = {}


def case(name, **options):
    assert name not in CASES and set(options) <= set(DEFAULTS), name
    CASES[name] = {**DEFAULTS, **options}


for fmt in FORMATS:
    case(f"format_{fmt}", format=fmt, bias="f32")
for fmt in ("mxfp8", "nvfp4_global", "u4_u8_bf16"):
    case(f"plain_{fmt}", format=fmt, plain=1, act="silu")
    case(f"pointers_{fmt}", format=fmt, pointers=1)
for name in ROUTINGS:
    case(f"routing_{name}", routing=name, bias="bf16", act="swiglu_oai")
for act in ("silu", "swiglu_oai", "geglu_erf", "geglu_tanh"):
    for halves in (0, 1):
        case(f"{act}_{'halves' if halves else 'pairs'}", act=act, halves=halves, bias="bf16")
case("relu2", act="relu2", bias="f32")
case("params_shared", act="swiglu_oai", params="shared", bias="f32")
case("params_experts", act="swiglu_oai", params="experts", halves=1, bias="f32")
case("params_silu", act="silu", params="experts")
case("alpha", alpha=1, bias="f32", act="silu")
case("gather", gather=1, bias="f32")
case("gather_padded", routing="padded", gather=1, flat=1)
case("gather_row_ids", routing="row_ids", gather=1, act="silu")
case("permute", scatter="permute", bias="f32")
case("reduce", scatter="meet", topk="f32", bias="f32")
case("reduce_bf16", scatter="meet", topk="bf16", src="f32", dst="bf16")
case("reduce_unweighted", scatter="meet", routing="row_ids")
case("reduce_padded", scatter="meet", topk="f32", routing="padded")
case("topk_input", topk="f32", topk_on="input", bias="f32", act="silu")
case("topk_input_reduce", scatter="meet", topk="bf16", topk_on="input", bias="bf16")
case("topk_output", topk="f32", bias="f32", act="relu2")
case("beta", beta=0.75, bias="f32")
case("beta_bf16", beta=-1.5, dst="bf16", act="swiglu_oai")
case("beta_reduce", beta=2.0, scatter="meet", topk="f32")
case("gate_up", gather=1, bias="bf16", act="swiglu_oai", params="experts", dst="bf16")
case("down", scatter="meet", topk="f32", bias="bf16", dst="bf16", alpha=1)
case("nan", nan=1, bias="f32")
case("nan_reduce", nan=1, scatter="meet", topk="f32")
for src in ("f32", "f16", *QUANTISED, "s8row_f32", "s8row_bf16"):
    case(f"src_{src}", src=src, bias="f32", act="silu")
    case(f"src_{src}_gather", src=src, gather=1, routing="starts")
case("src_nvfp4_global", src="nvfp4", src_global="one")
case("src_nvfp4_global_experts", src="nvfp4", src_global="experts", format="nvfp4_global")
case("src_nvfp4_padded", src="nvfp4", src_global="experts", routing="padded")
case("src_swizzled", src="mxfp8", swizzle_src=1)
case("src_swizzled_starts", src="nvfp4", swizzle_src=1, routing="starts")
case("src_swizzled_gather", src="mxfp8", swizzle_src=1, gather=1)
case("src_swizzled_padded", src="mxfp4", swizzle_src=1, routing="padded")
case("src_swizzled_row_ids", src="mxfp8", swizzle_src=1, routing="row_ids")
case("dst_bf16", dst="bf16", bias="bf16")
case("dst_f16", dst="f16", src="f16")
for dst in ("mxfp8", "mxfp4", "nvfp4"):
    case(f"dst_{dst}", dst=dst, exact=1, bias="bf16")
    case(f"dst_{dst}_static", dst=dst, exact=1, static=1, bias="bf16", scatter="permute")
    case(f"dst_{dst}_static_swizzled", dst=dst, exact=1, static=1, swizzle_dst=1)
    case(f"dst_{dst}_relu2", dst=dst, exact=1, act="relu2", routing="starts")
    case(f"dst_{dst}_reduce", dst=dst, exact=1, scatter="meet", topk="f32", bias="bf16")
    case(f"dst_{dst}_padded", dst=dst, exact=1, routing="padded", alpha=1)
    case(f"dst_{dst}_swizzled", dst=dst, exact=1, swizzle_dst=1)
    case(f"dst_{dst}_swizzled_scatter", dst=dst, exact=1, swizzle_dst=1, scatter="permute")
    case(f"dst_{dst}_swizzled_both", dst=dst, src="mxfp4", exact=1, swizzle_src=1, swizzle_dst=1)
    case(f"dst_{dst}_swizzled_both_gather", dst=dst, src="mxfp4", exact=1, swizzle_src=1, swizzle_dst=1, gather=1)
    case(f"dst_{dst}_swizzled_both_scatter", dst=dst, src="mxfp4", exact=1, swizzle_src=1, swizzle_dst=1,
         scatter="permute")
case("dst_nvfp4_global", dst="nvfp4", dst_global="one", exact=1)
case("dst_nvfp4_global_experts", dst="nvfp4", dst_global="experts", exact=1)
case("dst_nvfp4_global_reduce", dst="nvfp4", dst_global="one", exact=1, scatter="meet", topk="bf16")
case("many_gate_up", routing="many", gather=1, bias="bf16", act="swiglu_oai")
case("many_reduce", routing="many", scatter="meet", topk="f32", src="mxfp8", format="mxfp8")
case("many_int4", routing="many", format="u4_u8_bf16", scatter="meet")
case("many_nvfp4", routing="many", format="nvfp4_global", src="nvfp4", src_global="experts", act="silu", halves=1, gather=1)


def make(index, o, weights):
    rnd = Random(7000 + index)
    r = ROUTINGS[o["routing"]]
    if o["swizzle_dst"]:
        r = ROUTINGS["full"] if o["routing"] == "ends" else r
    rows, pairs = r.rows, r.pairs
    arrays = {"bounds": r.bounds}
    if r.ids is not None:
        arrays["group_ids"] = np.array(r.ids, "<i4")
    if r.table is not None:
        arrays["map"] = np.array(r.table, "<i4")
    active = {row for row, _ in pairs}

    # Indices of rows that nobody computes may be anything.
    junk = lambda v: np.array([x if i in active else -99 - i for i, x in enumerate(v)], "<i4")
    src_rows = rows
    if o["gather"]:
        src_rows = 9
        gather = rnd.ints(src_rows + 1, rows) - 1
        arrays["gather"] = junk(gather)
    dst_rows = rows
    if o["scatter"] == "permute":
        dst_rows = rows + 3
        to = np.argsort(rnd.ints(1 << 20, dst_rows), kind="stable")[:rows]
        to[[row for row, _ in pairs][2]] = -1
        arrays["scatter"] = junk(to)
    elif o["scatter"] == "meet":
        dst_rows = 7
        to = rnd.ints(dst_rows - 1, rows)  # the last row is met by none
        to[[row for row, _ in pairs][1]] = -1
        arrays["scatter"] = junk(to)
    else:
        to = np.arange(rows)

    made, x = source(o["src"], src_rows, rnd, o["exact"], o["src_global"])
    src_global = np.ones(E, f32)
    if o["src_global"] == "one":
        src_global[:] = 0.37
        made["src_global"] = src_global[:1]
    elif o["src_global"] == "experts":
        src_global = np.array([0.5, 0.37, 2.0, 0.11, 1.3], f32)
        made["src_global"] = src_global
    if o["swizzle_src"]:
        by_group = not o["gather"] and r.grouping != "row_ids"
        made["src_scales"] = swizzle(made["src_scales"], r.groups if by_group else [(0, src_rows)])
    arrays.update(made)

    few = [0.5, 2.0, -1.0, 0.25, 1.0]  # exact factors
    if o["alpha"]:
        alpha = np.array(few if o["exact"] else [0.7, -1.3, 2.1, 0.01, 1.0], "<f4")
        arrays["alpha"] = alpha
    else:
        alpha = np.ones(E, f32)
    topk = np.ones(rows, f32)
    if o["topk"] != "none":
        given = (1 + rnd.ints(7, rows)) / 8.0 if o["exact"] else (1 + rnd.ints(1000, rows)) / 1001.0
        bits, topk = stored(o["topk"], given)
        arrays["topk"] = bits
    bias = np.zeros((E, N))
    if o["bias"] != "none":
        given = (rnd.ints(65, E * N) - 32.0).reshape(E, N) / (4 if o["exact"] else 37)
        bits, value = stored(o["bias"], given)
        arrays["bias"], bias = bits, value.astype(np.float64)
    params = [ATTR_PARAMS] * E
    if o["params"] == "shared":
        arrays["params"] = np.array([1.702, 1.0, 7.0], "<f4")
        params = [arrays["params"].astype(np.float64)] * E
    elif o["params"] == "experts":
        arrays["params"] = np.array([[1.702, 1, 7], [1, 0, 0], [0.5, -0.25, 2], [2, 1, np.inf], [1, 1, 0.5]], "<f4")
        params = arrays["params"].astype(np.float64)

    gated = o["act"] in ACTIVATIONS
    columns = N // 2 if gated else N
    total, error = {}, {}
    global_amax = np.zeros(E)
    expert_of = {}
    for what in ("bound", "rounded"):
        v_sum, e_sum = np.zeros((dst_rows, columns)), np.zeros((dst_rows, columns))
        met = np.zeros(dst_rows, bool)
        for row, e in pairs:
            if to[row] < 0:
                continue
            at = gather[row] if o["gather"] else row
            xs = x[at] * float(src_global[e]) if at >= 0 else np.zeros(K)
            v = xs @ weights.values[e]
            size = np.abs(xs) @ weights.sizes[e]
            n = K + 16
            err = n * U / (1 - n * U) * size + (K + 1) * 2.0**-149 + K * 2.0**-126 * (1 + np.abs(xs).max())
            if what == "rounded":
                err = err + 2.0**-8 * size
            before = float(alpha[e]) * (float(topk[row]) if o["topk_on"] == "input" else 1.0)
            v, err = v * before, err * abs(before)
            err = err + 3 * U * (np.abs(v) + err)
            if o["bias"] != "none":
                v = v + bias[e]
                err = err + U * (np.abs(v) + err)
            v, err = activate(o["act"], o["halves"], params[e], v, err)
            if o["topk_on"] == "output":
                v, err = v * float(topk[row]), err * float(topk[row])
                err = err + U * (np.abs(v) + err)
            if o["nan"] and e == 2:
                v = v.copy()
                v[5] = np.nan
            d = to[row]
            met[d] = True
            expert_of[d] = e
            v_sum[d] = v_sum[d] + v if o["scatter"] != "none" else v  # -0 is no sum
            e_sum[d] += err + U * (np.abs(v_sum[d]) + e_sum[d] + err)
        written = np.ones(dst_rows, bool) if o["scatter"] != "none" else met
        total[what], error[what] = v_sum, e_sum
    result = total["bound"]
    if o["beta"]:
        bits, old = stored(o["dst"], (rnd.ints(401, dst_rows * columns) - 200).reshape(dst_rows, -1) / 50.0)
        arrays["old"] = bits
        add = o["beta"] * old.astype(np.float64)
        result = result + add
        for what in error:
            error[what] = error[what] + 2 * U * (np.abs(result) + np.abs(add) + error[what])
    arrays["written"] = written.astype(np.uint8)

    if o["dst"] in QUANTISED:
        assert (result == result.astype(f32)).all() or o["act"] == "relu2", "sums are not exact"
        result = result.astype(f32)
        g = [None] * E
        if o["dst_global"] != "none":
            for d in range(dst_rows):
                if d in expert_of:
                    e = expert_of[d] if o["dst_global"] == "experts" else 0
                    global_amax[e] = max(global_amax[e], np.abs(result[d]).max())
            g = [f32(a) / f32(448 * 6) for a in global_amax]
            arrays["dst_global"] = np.array(g if o["dst_global"] == "experts" else g[:1], "<f4")
        elem, _, block = QUANTISED[o["dst"]]
        codes = np.zeros((dst_rows, columns), np.uint8)
        scales = np.zeros((dst_rows, -(-columns // block)), np.uint8)
        if o["static"]:
            scales = given_scales(o["dst"], dst_rows, columns, rnd)
        for d in np.flatnonzero(written):
            if o["static"]:
                codes[d] = encode_row(o["dst"], result[d], scales[d])
                continue
            e = expert_of.get(d, 0) if o["dst_global"] == "experts" else 0
            codes[d], scales[d] = quantise_row(o["dst"], result[d], g[e])
        arrays["codes"] = numbers.plain_rows(codes, numbers.BITS[elem])
        mask = np.repeat(written.astype(np.uint8)[:, None], scales.shape[1], 1)
        if o["swizzle_dst"]:
            by_group = o["scatter"] == "none" and r.grouping != "row_ids"
            groups = r.groups if by_group else [(0, dst_rows)]
            scales, mask = swizzle(scales, groups), swizzle(mask, groups)
        arrays["scales"], arrays["scales_written"] = scales, mask
        return r, arrays
    up = lambda a: np.nextafter(a.astype("<f4"), f32(np.inf)).astype("<f4")
    arrays["want"] = result.astype("<f4")
    arrays["bound"] = up(error["bound"] + U * np.nan_to_num(np.abs(result)))
    if weights.fmt[1] in ("s4", "u4") or o["src"] == "int4":
        arrays["rounded"] = up(error["rounded"] + U * np.nan_to_num(np.abs(result)))
    return r, arrays


def main():
    files = CaseFiles()
    files.describe(f"problem {E} {K} {N}")
    weights = {}
    for i, (name, fmt) in enumerate(FORMATS.items()):
        weights[name] = Weights(name, 3000 + 10 * i)
        files.describe(f"format {name} {fmt[1]} {fmt[2]} {fmt[3]} {fmt[4]} {int(fmt[5])}")
        for what, a in weights[name].arrays():
            files.put(what, a)
    for i, (name, o) in enumerate(CASES.items()):
        r, arrays = make(i, o, weights[o["format"]])
        said = {k: v for k, v in o.items() if v != DEFAULTS[k] or k == "format"}
        said.pop("routing", None)
        said["grouping"] = r.grouping
        if r.global_experts:
            said["first"], said["experts"] = r.first, r.global_experts
        files.describe(f"case {name} " + " ".join(f"{k}={v}" for k, v in sorted(said.items())))
        for what, a in arrays.items():
            files.put(what, a)

    return files.finish(HERE)


if __name__ == "__main__":
    sys.exit(main())
