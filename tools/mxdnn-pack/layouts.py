# SPDX-License-Identifier: Apache-2.0
"""Writes small checkpoints in every layout that mxdnn-pack reads, and what their weights are worth.

The formulas are those of the layouts' documentation, in plain Python: nothing of mxdnn is used. In every block of codes
are the smallest and the largest magnitude, so that equal values mean equal codes and scales.
"""

import json
import random
import struct

R = random.Random(21)

Tensor = tuple[str, list[int], bytes]


def write(path: str, tensors: dict[str, Tensor], metadata: dict[str, str] | None = None) -> None:
    """Writes a safetensors file."""
    header: dict = {"__metadata__": metadata} if metadata else {}
    at = 0
    for name, (dtype, shape, raw) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + len(raw)]}
        at += len(raw)
    text = json.dumps(header).encode()
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + b"".join(raw for _, _, raw in tensors.values()))


def read(path: str) -> tuple[dict[str, Tensor], dict[str, str]]:
    """The tensors of a file, and its metadata."""
    raw = open(path, "rb").read()
    n = 8 + struct.unpack("<Q", raw[:8])[0]
    header = json.loads(raw[8:n])
    metadata = header.pop("__metadata__", {})
    return {
        k: (v["dtype"], v["shape"], raw[n + v["data_offsets"][0] : n + v["data_offsets"][1]]) for k, v in header.items()
    }, metadata


def f32(x: float) -> float:
    """Rounded to f32."""
    return struct.unpack("<f", struct.pack("<f", x))[0]


def small_float(code: int, exponent: int, mantissa: int, bias: int) -> float:
    """A float of few bits without infinities, by its fields."""
    sign = -1.0 if code >> (exponent + mantissa) & 1 else 1.0
    field, m = code >> mantissa & ((1 << exponent) - 1), code & ((1 << mantissa) - 1)
    return sign * (m * 2.0 ** (1 - bias - mantissa) if field == 0 else (1 + m / 2**mantissa) * 2.0 ** (field - bias))


FLOATS = {"f4": (2, 1, 1), "f6": (2, 3, 1), "f6_e3m2": (3, 2, 3), "e4m3": (4, 3, 7), "e5m2": (5, 2, 15)}
LARGEST = {"f4": 7, "f6": 31, "f6_e3m2": 31, "e4m3": 0x7E, "e5m2": 0x7B}


def worth(kind: str, code: int) -> float:
    """What a code of a small float is worth."""
    return small_float(code, *FLOATS[kind])


def draw_codes(kind: str, count: int, block: int) -> list[int]:
    """Codes of a row, which has `count` of them."""
    e, m, _ = FLOATS[kind]
    half = 1 << (e + m)
    codes = [R.randrange(LARGEST[kind] + 1) + half * R.randrange(2) for _ in range(count)]
    for b in range(0, count, block):
        codes[b] = LARGEST[kind]
        if b + 1 < count:
            codes[b + 1] = 1 + half
    return codes


def nibbles(codes: list[int]) -> bytes:
    """Two codes to a byte, the even one in the low half."""
    return bytes(a | b << 4 for a, b in zip(codes[::2], codes[1::2]))


def words(codes: list[int]) -> bytes:
    """Eight codes to a little-endian word, the first in the lowest bits; the last word is filled up with zeros."""
    codes = codes + [0] * (-len(codes) % 8)
    return b"".join(
        struct.pack("<I", sum(c << 4 * i for i, c in enumerate(codes[at : at + 8]))) for at in range(0, len(codes), 8)
    )


def numbers(dtype: str, values: list[float]) -> bytes:
    """Values that the type holds exactly."""
    if dtype == "BF16":
        return b"".join(struct.pack("<f", v)[2:] for v in values)
    return struct.pack(f"<{len(values)}{ {'F32': 'f', 'F16': 'e'}[dtype] }", *values)


def draw_scale(dtype: str) -> float:
    """A positive number that the type holds exactly."""
    if dtype == "F32":
        return f32(R.uniform(0.001, 0.1))
    return (128 + R.randrange(128)) * 2.0 ** -R.randrange(10, 16)


def float_rows(kind: str, rows: int, cols: int, block: int) -> list[list[int]]:
    return [draw_codes(kind, cols, block) for _ in range(rows)]


def e8m0(rows: int, blocks: int) -> list[list[int]]:
    return [[R.randrange(110, 135) for _ in range(blocks)] for _ in range(rows)]


def flat(rows: list[list]) -> list:
    return [x for row in rows for x in row]


def mx_values(kind: str, codes: list[list[int]], scales: list[list[int]]) -> list[float]:
    return [worth(kind, c) * 2.0 ** (s[i // 32] - 127) for row, s in zip(codes, scales) for i, c in enumerate(row)]


def e4m3_scales(rows: int, blocks: int) -> list[list[int]]:
    return [[R.randrange(8, 0x7F) for _ in range(blocks)] for _ in range(rows)]


def nvfp4_values(codes: list[list[int]], scales: list[list[int]], global_scale: list[float]) -> list[float]:
    """`global_scale` of each row."""
    return [
        f32(worth("f4", c) * f32(g * worth("e4m3", s[i // 16])))
        for row, s, g in zip(codes, scales, global_scale)
        for i, c in enumerate(row)
    ]


def int4_rows(rows: int, cols: int) -> list[list[int]]:
    """Codes 0 to 15."""
    return [[R.randrange(16) for _ in range(cols)] for _ in range(rows)]


def int4_values(codes: list[list[int]], scales: list[list[float]], zeros: list[list[int]], group: int) -> list[float]:
    return [
        f32((c - z[i // group]) * s[i // group]) for row, s, z in zip(codes, scales, zeros) for i, c in enumerate(row)
    ]


def transposed(rows: list[list]) -> list[list]:
    return [list(column) for column in zip(*rows)]


def swizzled(rows: list[list[int]]) -> bytes:
    """The 128x4 order of scales: tiles of 128 rows and 4 columns, filled up with zeros."""
    cols = len(rows[0])
    tiles_down, tiles_right = -(-len(rows) // 128), -(-cols // 4)
    out = bytearray(tiles_down * tiles_right * 512)
    for r, row in enumerate(rows):
        for c, s in enumerate(row):
            tile = r // 128 * tiles_right + c // 4
            out[tile * 512 + r % 32 * 16 + r % 128 // 32 * 4 + c % 4] = s
    return bytes(out)


class Case:
    """A checkpoint: its tensors, and the values of its weights by the name of the result."""

    def __init__(self, name: str, loss: bool = False, options: list[str] | None = None):
        self.name, self.loss, self.options = name, loss, options or []
        self.tensors: dict[str, Tensor] = {}
        self.metadata: dict[str, str] = {}
        self.config: dict | None = None
        self.expected: dict[str, tuple[list[int], list[float]]] = {}

    def add(self, name: str, dtype: str, shape: list[int], raw: bytes) -> None:
        self.tensors[name] = (dtype, shape, raw)

    def expect(self, name: str, shape: list[int], values: list[float]) -> None:
        self.expected[name] = (shape, values)


def mx_cases() -> list[Case]:
    cases = []
    c = Case("gpt-oss")
    codes, scales = float_rows("f4", 2 * 70, 96, 32), e8m0(2 * 70, 3)
    c.add("mlp.experts.down_proj_blocks", "U8", [2, 70, 3, 16], nibbles(flat(codes)))
    c.add("mlp.experts.down_proj_scales", "U8", [2, 70, 3], bytes(flat(scales)))
    c.expect("mlp.experts.down_proj", [2, 70, 96], mx_values("f4", codes, scales))
    cases.append(c)
    for name, kind, dtype, weight, scale in (
        ("compressed-tensors mxfp4", "f4", "U8", ".weight_packed", "U8"),
        ("compressed-tensors mxfp6", "f6", "U8", ".weight_packed", "U8"),
        ("compressed-tensors mxfp8", "e4m3", "F8_E4M3", ".weight", "U8"),
        ("ModelOpt mxfp4", "f4", "U8", ".weight", "U8"),
        ("ModelOpt mxfp8 e8m0", "e4m3", "F8_E4M3", ".weight", "F8_E8M0"),
        ("mxfp8 e5m2", "e5m2", "F8_E5M2", ".weight", "U8"),
    ):
        c = Case(name)
        codes, scales = float_rows(kind, 150, 192, 32), e8m0(150, 6)
        if kind == "f4":
            raw, cols = nibbles(flat(codes)), 96
        elif kind == "f6":
            raw, cols = b"", 144
            every = flat(codes)
            for i in range(0, len(every), 4):
                raw += sum(x << 6 * j for j, x in enumerate(every[i : i + 4])).to_bytes(3, "little")
        else:
            raw, cols = bytes(flat(codes)), 192
        c.add("a.b" + weight, dtype, [150, cols], raw)
        c.add("a.b.weight_scale", scale, [150, 6], bytes(flat(scales)))
        c.expect("a.b.weight", [150, 192], mx_values(kind, codes, scales))
        cases.append(c)
    # Powers of two for blocks of 128 x 128 are MXFP8 whose scales repeat.
    c = Case("fp8 blocks of e8m0")
    codes = [draw_codes("e4m3", 200, 32) for _ in range(150)]
    scales = e8m0(2, 2)
    c.add("w.weight", "F8_E4M3", [150, 200], bytes(flat(codes)))
    c.add("w.weight_scale_inv", "F8_E8M0", [2, 2], bytes(flat(scales)))
    c.expect(
        "w.weight",
        [150, 200],
        [
            worth("e4m3", x) * 2.0 ** (scales[r // 128][i // 128] - 127)
            for r, row in enumerate(codes)
            for i, x in enumerate(row)
        ],
    )
    cases.append(c)
    return cases


def nvfp4_cases() -> list[Case]:
    cases = []
    for name, scale_name, direct in (
        ("compressed-tensors nvfp4", ".weight_global_scale", False),
        ("ModelOpt nvfp4", ".weight_scale_2", True),
        ("nvfp4 without global scale", None, True),
    ):
        c = Case(name)
        codes, scales = float_rows("f4", 150, 96, 16), e4m3_scales(150, 6)
        stored = f32(0.00123 if direct else 2711.5)
        c.add("l.weight" + ("" if direct else "_packed"), "U8", [150, 48], nibbles(flat(codes)))
        c.add("l.weight_scale", "F8_E4M3", [150, 6], bytes(flat(scales)))
        if scale_name:
            c.add("l" + scale_name, "F32", [] if direct else [1], numbers("F32", [stored]))
            c.add("l.input_scale", "F32", [], numbers("F32", [1.0]))
        g = 1.0 if not scale_name else stored if direct else f32(1 / stored)
        c.expect("l.weight", [150, 96], nvfp4_values(codes, scales, [g] * 150))
        cases.append(c)
    c = Case("ModelOpt nvfp4 experts")
    codes, scales, g = float_rows("f4", 3 * 70, 64, 16), e4m3_scales(210, 4), [f32(0.01), f32(0.3), f32(7.7)]
    c.add("e.weight", "U8", [3, 70, 32], nibbles(flat(codes)))
    c.add("e.weight_scale", "F8_E4M3", [3, 70, 4], bytes(flat(scales)))
    c.add("e.weight_scale_2", "F32", [3], numbers("F32", g))
    c.expect("e.weight", [3, 70, 64], nvfp4_values(codes, scales, [g[r // 70] for r in range(210)]))
    cases.append(c)
    return cases


def pack_quantized_cases() -> list[Case]:
    cases = []
    for name, out, cols, group, dtype, asymmetric in (
        ("symmetric", 150, 96, 32, "BF16", False),
        ("zero points", 150, 256, 128, "F16", True),
        ("f32 scales", 70, 128, 64, "F32", True),
        ("per channel", 150, 100, 100, "BF16", False),
        ("per channel, zero points", 77, 300, 300, "F16", True),
        ("groups of 512", 66, 1024, 512, "BF16", False),
        ("groups of 96", 66, 192, 96, "BF16", True),
    ):
        c = Case("pack-quantized, " + name)
        groups = -(-cols // group)
        codes = int4_rows(out, cols)
        scales = [[draw_scale(dtype) for _ in range(groups)] for _ in range(out)]
        zeros = [[R.randrange(16) if asymmetric else 8 for _ in range(groups)] for _ in range(out)]
        c.add("l.weight_packed", "I32", [out, -(-cols // 8)], b"".join(words(row) for row in codes))
        c.add("l.weight_scale", dtype, [out, groups], numbers(dtype, flat(scales)))
        c.add("l.weight_shape", "I64", [2], struct.pack("<2q", out, cols))
        if asymmetric:  # words along out
            columns = [words(column) for column in transposed(zeros)]
            n = -(-out // 8)
            c.add(
                "l.weight_zero_point",
                "I32",
                [n, groups],
                b"".join(column[4 * w : 4 * w + 4] for w in range(n) for column in columns),
            )
        c.expect("l.weight", [out, cols], int4_values(codes, scales, zeros, group))
        cases.append(c)
    return cases


AWQ_ORDER = [0, 2, 4, 6, 1, 3, 5, 7]


def awq_words(row: list[int]) -> bytes:
    return words([row[at + i] for at in range(0, len(row), 8) for i in AWQ_ORDER])


def gptq_case(
    name: str,
    out: int,
    cols: int,
    group: int,
    dtype: str,
    stored_less: int,
    zero: int | None,
    options: list[str] | None = None,
    config: dict | None = None,
    g_idx: bool = True,
) -> Case:
    c = Case("GPTQ, " + name, options=options)
    c.config = config
    groups = cols // group
    codes = int4_rows(out, cols)
    scales = [[draw_scale(dtype) for _ in range(groups)] for _ in range(out)]
    zeros = [[zero if zero is not None else R.randrange(1, 16) for _ in range(groups)] for _ in range(out)]
    per_row = [words(row) for row in codes]
    c.add(
        "m.q_proj.qweight",
        "I32",
        [cols // 8, out],
        b"".join(w[4 * k : 4 * k + 4] for k in range(cols // 8) for w in per_row),
    )
    c.add(
        "m.q_proj.qzeros",
        "I32",
        [groups, out // 8],
        b"".join(words([z - stored_less for z in row]) for row in transposed(zeros)),
    )
    c.add("m.q_proj.scales", dtype, [groups, out], numbers(dtype, flat(transposed(scales))))
    if g_idx:
        c.add("m.q_proj.g_idx", "I32", [cols], struct.pack(f"<{cols}i", *(k // group for k in range(cols))))
    c.expect("m.q_proj.weight", [out, cols], int4_values(codes, scales, zeros, group))
    return c


def int4_word_cases() -> list[Case]:
    v2 = {"quantization_config": {"quant_method": "gptq", "checkpoint_format": "gptq_v2"}}
    cases = [
        gptq_case("symmetric", 136, 256, 128, "F16", 1, 8),
        gptq_case("zero points", 136, 192, 64, "F16", 1, None),
        gptq_case("v2", 72, 128, 32, "BF16", 0, None, config=v2),
        gptq_case("v2, symmetric", 72, 128, 32, "F16", 0, 8, config=v2),
        gptq_case("one group", 72, 160, 160, "F16", 1, None, g_idx=False),
        gptq_case("zeros by option", 72, 128, 32, "F16", 0, 8, options=["--gptq-zeros", "plain"]),
    ]
    for name, symmetric in (("AWQ", False), ("AWQ, symmetric", True)):
        c = Case(name)
        out, cols, group = 136, 128, 64
        codes = int4_rows(out, cols)
        scales = [[draw_scale("F16") for _ in range(2)] for _ in range(out)]
        zeros = [[8 if symmetric else R.randrange(16) for _ in range(2)] for _ in range(out)]
        c.add("m.up.qweight", "I32", [cols, out // 8], b"".join(awq_words(row) for row in transposed(codes)))
        c.add("m.up.qzeros", "I32", [2, out // 8], b"".join(awq_words(row) for row in transposed(zeros)))
        c.add("m.up.scales", "F16", [2, out], numbers("F16", flat(transposed(scales))))
        c.expect("m.up.weight", [out, cols], int4_values(codes, scales, zeros, group))
        cases.append(c)
    return cases


def torchao_case(
    name: str,
    kind: str,
    attributes: dict,
    parts: dict[str, Tensor],
    shape: list[int],
    values: list[float],
    loss: bool = False,
) -> Case:
    c = Case("torchao, " + name, loss=loss)
    for part, t in parts.items():
        c.add("net.0._weight_" + part, *t)
    c.add("net.0.bias", "F32", [2], bytes(8))
    c.metadata = {
        "net.0.weight": json.dumps({"_type": kind, "_data": attributes, "_tensor_data_names": list(parts)}),
        "net.0.bias": json.dumps({"_type": "Tensor"}),
        "tensor_names": json.dumps(["net.0.weight", "net.0.bias"]),
    }
    c.expect("net.0.weight", shape, values)
    return c


def torchao_cases() -> list[Case]:
    cases = []
    dtype = lambda name: {"_type": "torch.dtype", "_data": name}
    for name, kind, stored, elem in (
        ("mxfp4", "f4", "U8", dtype("float4_e2m1fn_x2")),
        ("mxfp8", "e4m3", "F8_E4M3", dtype("float8_e4m3fn")),
        ("mxfp8 e5m2", "e5m2", "F8_E5M2", dtype("float8_e5m2")),
        ("mxfp6", "f6", "U8", "fp6_e2m3"),
        ("mxfp6 e3m2", "f6_e3m2", "U8", "fp6_e3m2"),
    ):
        for swizzle in (False, True):
            codes, scales = float_rows(kind, 150, 160, 32), e8m0(150, 5)
            raw = nibbles(flat(codes)) if kind == "f4" else bytes(flat(codes))
            scale = ("F8_E8M0", [256, 8], swizzled(scales)) if swizzle else ("F8_E8M0", [150, 5], bytes(flat(scales)))
            cases.append(
                torchao_case(
                    name + (", swizzled" if swizzle else ""),
                    "MXTensor",
                    {
                        "elem_dtype": elem,
                        "block_size": 32,
                        "orig_dtype": dtype("bfloat16"),
                        "is_swizzled_scales": swizzle,
                    },
                    {"qdata": (stored, [150, 80 if kind == "f4" else 160], raw), "scale": scale},
                    [150, 160],
                    mx_values(kind, codes, scales),
                )
            )
    for name, experts, swizzle, has_global in (
        ("nvfp4", 0, False, True),
        ("nvfp4, swizzled", 0, True, True),
        ("nvfp4, no global scale", 0, False, False),
        ("nvfp4 experts, swizzled", 3, True, True),
    ):
        rows = 70 * max(experts, 1)
        codes, scales = float_rows("f4", rows, 96, 16), e4m3_scales(rows, 6)
        g = [f32(0.02 * (e + 1)) for e in range(max(experts, 1))]
        lead = [experts] if experts else []
        parts = {
            "qdata": ("U8", lead + [70, 48], nibbles(flat(codes))),
            "scale": (
                ("F8_E4M3", [-(-rows // 128) * 128 * 8], swizzled(scales))
                if swizzle
                else ("F8_E4M3", lead + [70, 6], bytes(flat(scales)))
            ),
        }
        if has_global:
            parts["per_tensor_scale"] = ("F32", [experts, 1, 1] if experts else [], numbers("F32", g))
        cases.append(
            torchao_case(
                name,
                "NVFP4Tensor",
                {"block_size": 16, "orig_dtype": dtype("bfloat16"), "is_swizzled_scales": swizzle},
                parts,
                lead + [70, 96],
                nvfp4_values(codes, scales, [g[r // 70] if has_global else 1.0 for r in range(rows)]),
            )
        )
    for name, experts, has_zeros in (("int4", 0, True), ("int4, no zero points", 0, False), ("int4 experts", 2, True)):
        rows, group = 70 * max(experts, 1), 64
        codes = int4_rows(rows, 128)  # plus 8
        scales = [[draw_scale("BF16") for _ in range(2)] for _ in range(rows)]
        zeros = [[draw_scale("BF16") if has_zeros else 0.0 for _ in range(2)] for _ in range(rows)]
        lead = [experts] if experts else []
        by_group = lambda table: numbers(
            "BF16", flat([flat(transposed(table[at : at + 70])) for at in range(0, rows, 70)])
        )
        parts = {
            "qdata": ("I8", lead + [70, 64], nibbles([x ^ 8 for x in flat(codes)])),
            "scale": ("BF16", lead + [2, 70], by_group(scales)),
            "zero_point": ("BF16", lead + [2, 70], by_group(zeros)),
        }
        cases.append(
            torchao_case(
                name,
                "Int4Tensor",
                {"block_size": [1] * (len(lead) + 1) + [group], "shape": lead + [70, 128]},
                parts,
                lead + [70, 128],
                [
                    f32(f32((x - 8) * s[i // group]) + z[i // group])
                    for row, s, z in zip(codes, scales, zeros)
                    for i, x in enumerate(row)
                ],
            )
        )
    codes = float_rows("e4m3", 70, 96, 32)
    scales = [draw_scale("F32") for _ in range(70)]
    cases.append(
        torchao_case(
            "float8 per row",
            "Float8Tensor",
            {"block_size": [1, 96]},
            {"qdata": ("F8_E4M3", [70, 96], bytes(flat(codes))), "scale": ("F32", [70, 1], numbers("F32", scales))},
            [70, 96],
            [f32(worth("e4m3", x) * s) for row, s in zip(codes, scales) for x in row],
            loss=True,
        )
    )
    ints = [[R.randrange(-128, 128) for _ in range(96)] for _ in range(70)]
    cases.append(
        torchao_case(
            "int8 per row",
            "Int8Tensor",
            {"block_size": [1, 96]},
            {
                "qdata": ("I8", [70, 96], struct.pack("<6720b", *flat(ints))),
                "scale": ("F32", [70, 1], numbers("F32", scales)),
            },
            [70, 96],
            [f32(x * s) for row, s in zip(ints, scales) for x in row],
            loss=True,
        )
    )
    return cases


def fp8_cases() -> list[Case]:
    cases = []
    for name, experts, shape, companion in (
        ("one scale", 0, [], "weight_scale"),
        ("a scale per row", 0, [150, 1], "weight_scale"),
        ("blocks of 128 x 128", 0, [2, 2], "weight_scale_inv"),
        ("experts, blocks", 2, [2, 2, 2], "weight_scale_inv"),
        ("experts, one scale each", 2, [2], "weight_scale"),
    ):
        c = Case("FP8, " + name, loss=True)
        rows = 150 * max(experts, 1)
        codes = [draw_codes("e4m3", 200, 32) for _ in range(rows)]
        count = 1
        for d in shape:
            count *= d
        scales = [draw_scale("F32") for _ in range(count)]

        def scale(r: int, k: int) -> float:
            if name == "one scale":
                return scales[0]
            if name == "a scale per row":
                return scales[r]
            if name == "experts, one scale each":
                return scales[r // 150]
            return scales[r // 150 * 4 + r % 150 // 128 * 2 + k // 128]

        lead = [experts] if experts else []
        c.add("l.weight", "F8_E4M3", lead + [150, 200], bytes(flat(codes)))
        c.add("l." + companion, "F32", shape, numbers("F32", scales))
        c.expect(
            "l.weight",
            lead + [150, 200],
            [f32(worth("e4m3", x) * scale(r, k)) for r, row in enumerate(codes) for k, x in enumerate(row)],
        )
        cases.append(c)
    return cases


def hqq_cases() -> list[Case]:
    cases = []
    for axis in (0, 1):
        for bits in (4, 8):
            c = Case(f"HQQ, {bits} bits, axis {axis}", loss=True)
            out, cols, group = 72, 128, 64
            every = [R.randrange(1 << bits) for _ in range(out * cols)]
            groups = out * cols // group
            scales = [draw_scale("F16") for _ in range(groups)]
            zeros = [R.randrange(1, 64) / 8 for _ in range(groups)]
            rows, columns = (groups, group) if axis == 1 else (group, groups)
            half = rows // 2 * columns
            raw = bytes(every) if bits == 8 else bytes(every[i] << 4 | every[i + half] for i in range(half))
            c.add("h.W_q", "U8", [rows if bits == 8 else rows // 2, columns], raw)
            c.add("h.scale", "F16", [groups, 1] if axis == 1 else [1, groups], numbers("F16", scales))
            c.add("h.zero", "F16", [groups, 1] if axis == 1 else [1, groups], numbers("F16", zeros))
            c.add("h.shape", "I64", [2], struct.pack("<2q", out, cols))
            for key, value in (("nbits", bits), ("axis", axis), ("group_size", group)):
                c.add("h." + key, "I32", [], struct.pack("<i", value))
            c.add("h.packing", "U8", [11], b"4bit_u8_pad")
            in_group = (lambda i: i // columns) if axis == 1 else (lambda i: i % columns)
            c.expect(
                "h.weight",
                [out, cols],
                [f32(f32(x - zeros[in_group(i)]) * scales[in_group(i)]) for i, x in enumerate(every)],
            )
            cases.append(c)
    return cases


def all_cases() -> list[Case]:
    """Every layout that is read."""
    return (
        mx_cases()
        + nvfp4_cases()
        + pack_quantized_cases()
        + int4_word_cases()
        + torchao_cases()
        + fp8_cases()
        + hqq_cases()
    )
