# SPDX-License-Identifier: Apache-2.0
"""Writes quantize_cases.inc: blocks of f32 and what every quantised format makes of them (scale, zero point,
codes, and a checksum of the decoded values), from doc/reference/formats.md in NumPy's f32 arithmetic. The library is
not involved.

    python3 -m venv venv && venv/bin/pip install ml_dtypes numpy && venv/bin/python make_quantize.py
"""
import itertools

import numpy as np

from oracle_common import (F32_NAN, FLOATS, ROUNDINGS, TARGETS, bits_of, code_bits, crc, decode, encode, float_of,
                           header, hex_string, random_bits, scale_byte, write)

f32 = np.float32
np.seterr(all="ignore")
rng = np.random.default_rng(20260)
FLT_MAX, TINIEST = float_of(0x7F7FFFFF), float_of(1)


def canonical(x):
    x = np.asarray(x, f32)
    return np.where(np.isnan(x), float_of(F32_NAN), x)


# ---- the rules, whole blocks at a time; each returns scale code, zero-point code, element codes ----


def exp2(e):
    return f32(2.0**e)


def mx_codes(element, byte, x):
    if byte == 255:
        return np.full(len(x), 0x7F if element in ("f8_e4m3", "f8_e5m2") else 0)
    return encode(element, x * exp2(127 - byte))


def mx(element, rounding, x):
    byte = scale_byte(element, rounding, (bits_of(x) & 0x7FFFFFFF).max())
    return byte, 0, mx_codes(element, byte, x)


def mx_decode(element, byte, codes):
    return canonical(decode(element, codes) * decode("e8m0", [byte])[0])


def nvfp4_global(x):
    finite = np.abs(x[np.isfinite(x)])
    return (finite.max() if len(finite) else f32(0)) / f32(448 * 6)


def nvfp4_codes(scale, x, g):
    s = decode("f8_e4m3", [scale])[0]
    if np.isnan(s):
        return np.zeros(len(x), int)
    factor, divisor = (f32(1) / s, s) if g is None else (f32(1) / g / s, g * s)
    if np.isfinite(factor):
        return encode("f4_e2m1", np.clip(x * factor, -6, 6))
    if divisor == 0:
        return np.signbit(x) * 8
    return encode("f4_e2m1", np.clip(x / divisor, -6, 6))


def nvfp4(x, g):
    if not np.isfinite(x).all():
        return 0x7F, 0, np.zeros(len(x), int)
    s = np.abs(x).max() / f32(6)
    if g is not None:
        s = s / g if g != 0 else f32(0)
    scale = int(encode("f8_e4m3", [np.clip(s, f32(2**-6), f32(448))])[0])
    return scale, 0, nvfp4_codes(scale, x, g)


def nvfp4_decode(scale, codes, g):
    s = decode("f8_e4m3", [scale])[0]
    return canonical(decode("f4_e2m1", codes) * (s if g is None else g * s))


def affine_codes(element, scale, zp, x):
    lo, hi, mask = {"s4": (-8, 7, 15), "u4": (0, 15, 15), "s8": (-127, 127, 255)}[element]
    steps = np.rint(x / scale)
    steps = np.where(np.isnan(steps), 0, steps)
    return np.clip(steps + zp, lo, hi).astype(int) & mask


NAN_SCALE = {"bf16": 0x7FC0, "f16": 0x7E00, "f32": F32_NAN}


def affine(element, scale_type, x):
    """s4 and s8 symmetric, u4 asymmetric with a zero point of type u8."""
    zp = 8 if element == "u4" else 0
    nan = NAN_SCALE[scale_type]
    if not np.isfinite(x).all():
        return nan, zp, np.full(len(x), zp)
    lo, hi = min(f32(0), x.min()), max(f32(0), x.max())
    wanted = (hi - lo) / f32(15) if element == "u4" else np.abs(x).max() / f32(7.5 if element == "s4" else 127)
    scale = int(encode(scale_type, [wanted], saturating=True)[0])
    stored = decode(scale_type, [scale])[0]
    if stored == 0:
        return int(encode(scale_type, [1.0])[0]), zp, np.full(len(x), zp)
    if element == "u4":
        zp = int(np.clip(np.rint(-lo / stored), 0, 15))
    return scale, zp, affine_codes(element, stored, zp, x)


def integers(element, codes):
    """s8 under a floating-point scale is the code, not a number of 64ths."""
    return decode(element, codes) * f32(64 if element == "s8" else 1)


def affine_decode(element, scale, zp, codes):
    return canonical((integers(element, codes) - f32(zp)) * scale)


CODE_OF_ZERO = {"float_zero": 8, "minimum": 0}


def added_zero_codes(kind, scale, zero, x):
    return affine_codes("u4", scale, CODE_OF_ZERO[kind], x - zero)


def added_zero_decode(kind, scale, zero, codes):
    return canonical((decode("u4", codes) - f32(CODE_OF_ZERO[kind])) * scale + zero)


def from_minimum(scale_type, zero_type, x):
    """u4 counted from the minimum."""
    if not np.isfinite(x).all():
        return NAN_SCALE[scale_type], 0, np.zeros(len(x), int)
    lo, hi = x.min() + f32(0), x.max()
    scale = int(encode(scale_type, [(hi - lo) / f32(15)], saturating=True)[0])
    if decode(scale_type, [scale])[0] == 0:
        scale = int(encode(scale_type, [1.0])[0])
    zero = int(encode(zero_type, [lo], saturating=True)[0])
    value, zero_value = decode(scale_type, [scale])[0], decode(zero_type, [zero])[0]
    return scale, zero, added_zero_codes("minimum", value, zero_value, x)


# ---- inputs ----

inputs = {}  # name -> f32 array


def add(name, values):
    inputs[name] = np.asarray(values, f32)
    return name


def normal(n, scale=1.0):
    return (rng.standard_normal(n) * scale).astype(f32)


def put(x, **at):
    x = x.copy()
    for i, v in at.items():
        x[int(i[1:])] = v
    return x


def grid_ties(element, exponent):
    """Midpoints between neighbouring values, the largest value first so that the scale is a power of two."""
    bits = code_bits(element)
    v = decode(element, np.arange(1 << (bits - 1)))
    v = v[np.isfinite(v)].astype(np.float64)
    middle = ((v[:-1] + v[1:]) / 2)[rng.permutation(len(v) - 1)[:31]]
    signs = rng.choice([-1.0, 1.0], len(middle) + 1)
    return np.concatenate([[v[-1]], middle]) * signs * 2.0**exponent


def mx_inputs():
    names = [
        add("normal", normal(32)),
        add("normal_small", normal(32, 0.02)),
        add("bf16_values", normal(32).astype(FLOATS["bf16"][1])),
        add("spread", normal(32) * 2.0 ** rng.integers(-30, 30, 32)),
        add("spike", put(normal(32, 1e-3), _7=-117.25)),
        add("zeros", np.zeros(32)),
        add("negative_zeros", put(np.full(32, -0.0), _3=0.0)),
        add("nan", put(normal(32), _0=np.nan)),
        add("nan_last", put(normal(32), _31=np.nan)),
        add("inf", put(normal(32), _5=np.inf)),
        add("minus_inf", put(normal(32), _31=-np.inf)),
        add("inf_in_zeros", put(np.zeros(32), _1=np.inf, _2=-0.0)),
        add("huge", put(normal(32, 1e38), _9=FLT_MAX, _10=-FLT_MAX)),
        add("huge_even_carry", put(normal(32, 1e37), _0=float_of(0x7F780000))),
        add("tiny", normal(32, 1e-37)),
        add("tinier", normal(32, 3e-38)),
        add("subnormal", normal(32, 2e-39)),
        add("subnormal_small", normal(32, 1e-43)),
        add("least", put(np.zeros(32), _4=TINIEST, _6=-TINIEST)),
        add("half_of_least_scale", put(normal(32, 1e-39), _0=float_of(0x400000))),
        add("above_half_of_least_scale", put(normal(32, 1e-39), _0=float_of(0x400001))),
        add("powers", 2.0 ** np.arange(-16, 16)),
        add("constant", np.full(32, -1.7)),
        add("one", normal(1)),
        add("two", normal(2)),
        add("odd", normal(31)),
        add("partial_nan", put(normal(7), _6=np.nan)),
        add("partial_zero", np.zeros(5)),
        add("random_bits", float_of(random_bits(32, 11, 100, 150) | 1)),
    ]
    names += [add(f"ties_{e}_{k}", grid_ties(e, k)) for e, k in
              (("f8_e4m3", 0), ("f8_e5m2", -20), ("f6_e2m3", 3), ("f6_e3m2", -4), ("f4_e2m1", 0), ("s8", 9),
               ("f8_e4m3", -130), ("f4_e2m1", -126), ("f6_e2m3", 124))]
    # Largest magnitudes just below, at and above the points where the roundings differ.
    names += [add(f"edge_{u:08x}", np.concatenate([[float_of(u)], normal(15, float(float_of(u)) / 4)]))
              for u in (0x3F800000, 0x3F800001, 0x3FC00000, 0x3FC00001, 0x3FDFFFFF, 0x3FE00000, 0x3FE00001,
                        0x3FEFFFFF, 0x3FF00000, 0x3FF7FFFF, 0x3FF80000, 0x3FFE0001, 0x3FFFFFFF)]
    return names


def e4m3(s):
    return decode("f8_e4m3", encode("f8_e4m3", np.clip(s, f32(2**-6), f32(448))))


def near(middle):
    """The f32 values closest to each of these, a few on either side."""
    u = bits_of(np.asarray(middle, f32)).astype(np.int64)
    return float_of((u[:, None] + np.arange(-6, 7)).ravel().astype(np.uint32))


def pick(candidates, rule, others, n):
    """Of these f32 values n each for which another order of operations would give another code."""
    right = rule(candidates)
    found = [candidates[np.flatnonzero(other(candidates) != right)][:n] for other in others]
    assert all(len(f) == n for f in found), [len(f) for f in found]
    return np.concatenate(found)


def order_of_divisions(amax):
    """A matrix whose codes tell (amax/6)/global and x*((1/global)/s) from their algebraic equals, with a
    global scale (its first value is the largest) and without one (amax is None). Not every global scale has
    values for every variant; the asserts say so."""
    g = f32(1) if amax is None else f32(amax) / f32(2688)
    values = decode("f8_e4m3", np.arange(0x10, 0x70)).astype(np.float64)
    ties = (values[:-1] + values[1:]) / 2
    six, one = f32(6), f32(1)
    scale_others = [lambda b: e4m3(b * (one / six) / g)]
    if amax is not None:
        scale_others += [lambda b: e4m3(b / (six * g)), lambda b: e4m3(b / six * (one / g)), lambda b: e4m3(b / g / six)]
    maxima = pick(near(ties * 6 * float(g)), lambda b: e4m3(b / six / g), scale_others, 3)
    rows = [put(normal(16, float(b) / 8), _0=b) for b in maxima]

    fp4 = lambda x: encode("f4_e2m1", np.clip(x, -6, 6))
    middles = np.array([0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0])
    candidates, scales = [], []
    for code in range(0x28, 0x60):
        s = decode("f8_e4m3", [code])[0]
        candidates.append(near(middles * float(s) * float(g)))
        scales.append(np.full(len(candidates[-1]), s))
    x, s = np.concatenate(candidates), np.concatenate(scales)
    right = fp4(x * (one / g / s))
    others = [fp4(x / (g * s)), fp4(x / g / s)] if amax is None else [
        fp4(x / (g * s)), fp4(x / g / s), fp4(x * (one / (g * s))), fp4(x * (one / s / g)), fp4(x * (one / s) / g)]
    for other in others:
        at = np.flatnonzero(other != right)[:: 7][:3]
        assert len(at) == 3
        rows += [put(normal(16, float(s[i] * g) * 0.5).clip(-s[i] * g, s[i] * g), _0=f32(6) * s[i] * g, _9=x[i]) for i in at]
    rows = np.concatenate(rows)
    return rows if amax is None else np.concatenate([[f32(amax)], np.zeros(15, f32), rows])


def nvfp4_inputs():
    """Matrices whose rows are flat here; blocks of 16, the last one possibly partial."""
    ties = np.concatenate([np.concatenate([[6.0], [0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0, -0.25, -0.75, -1.25, -1.75,
                                                    -2.5, -3.5, -5.0, -0.0]]) * s for s in (1.0, 0.75, 2.0)])
    scale_ties = np.concatenate([put(normal(16, 0.1), _0=6 * (1 + (2 * i + 1) / 16)) for i in range(8)])
    return [
        add("m_normal", normal(16 * 6)),
        add("m_small", normal(16 * 3 + 5, 0.02)),
        add("m_ties", ties),
        add("m_scale_ties", scale_ties),
        add("m_scale_ties_global", put(scale_ties, _1=448 * 6)),
        add("m_zero", put(np.zeros(40), _3=-0.0)),
        add("m_zero_block", np.concatenate([normal(16), np.zeros(16), normal(16, 1e-4), normal(3)])),
        add("m_spread", normal(16 * 6) * np.repeat(2.0 ** np.arange(-12, 12, 4), 16)),
        add("m_nan", put(normal(48), _20=np.nan, _21=99.0, _22=-1.0)),
        add("m_inf", put(normal(48), _3=-np.inf, _40=np.inf, _41=1000.0)),
        add("m_only_nan", np.full(20, np.nan)),
        add("m_nan_and_zeros", put(np.zeros(40), _17=np.nan)),
        add("m_huge", put(normal(40, 1e37), _1=FLT_MAX, _17=-FLT_MAX)),
        add("m_tiny", normal(40, 1e-37)),
        add("m_global_subnormal", normal(40, 1e-36)),
        add("m_factor_overflows", np.concatenate([normal(16, 2e-38), normal(16, 1e-42), normal(16, 3e-40)])),
        add("m_least_global", put(normal(40, 1e-43), _0=float_of(0x00000A80))),
        add("m_global_underflows", put(np.zeros(40), _2=float_of(300), _20=-float_of(7))),
        add("m_subnormal", normal(40, 2e-39)),
        add("m_order_one_level", order_of_divisions(None)),
        add("m_order_two_level", order_of_divisions(123.456)),
        add("m_order_two_level_small", order_of_divisions(0.051)),
        add("m_one", [-3.0]),
        add("m_partial_nan", put(normal(21), _20=np.nan)),
    ]


def affine_inputs():
    ties = (np.arange(-15, 16) / 2) * 0.5  # amax = 3.75: s4's scale is 0.5 and half of the codes are ties
    return [
        add("a_normal", normal(300)),
        add("a_small", normal(128, 0.02)),
        add("a_positive", np.abs(normal(64)) + f32(3)),
        add("a_negative", -np.abs(normal(64)) - f32(3)),
        add("a_shifted", normal(96, 0.5) + f32(1)),
        add("a_ties", ties),
        add("a_symmetric_ties", np.concatenate([normal(31), [7.5]]) * f32(0.3)),
        add("a_zeros", put(np.zeros(40), _39=-0.0)),
        add("a_nan", put(normal(70), _40=np.nan)),
        add("a_inf", put(normal(70), _1=np.inf, _69=-np.inf)),
        add("a_huge", put(normal(64, 1e38), _3=FLT_MAX)),
        add("a_span_overflows", put(normal(40, 1e38), _3=FLT_MAX, _4=-FLT_MAX)),
        add("a_over_f16", normal(40, 1e6)),
        add("a_under_f16", normal(40, 1e-8)),
        add("a_subnormal_f16", normal(40, 3e-6)),
        add("a_tiny", normal(40, 1e-38)),
        add("a_subnormal", normal(40, 1e-40)),
        add("a_least", put(np.zeros(33), _5=TINIEST, _32=-TINIEST)),
        add("a_one", [2.5]),
    ]


# ---- the file ----

ORDER = []


def record(name, offset, n, g, scale, zp, codes, decoded, digits):
    text = "".join(f"{int(c):0{digits}x}" for c in codes)
    return (f"{ORDER.index(name)} {offset} {n} {0 if g is None else int(bits_of(g)):x} {int(scale):x} {int(zp):x} "
            f"{text} {crc(bits_of(decoded)):x}")


def group(elem, scale_dt, block, zp, zp_dt, global_kind, rounding, computed, records):
    body = "\n".join(f'        "{r}\\n"' for r in records)
    return (f"    {{mxdnn_{elem}, {{mxdnn_{scale_dt}, {block}, zero_point_kind_t::{zp}, mxdnn_{zp_dt}, "
            f"global_scale_kind_t::{global_kind}}},\n        mxdnn_scale_rounding_{rounding}, "
            f"{'true' if computed else 'false'},\n{body}}},\n")


def blocks(name, size):
    x = inputs[name]
    return [(i, x[i:i + size]) for i in range(0, len(x), size)]


def mx_groups(names):
    for element in TARGETS:
        digits = 1 if element == "f4_e2m1" else 2
        for rounding in ROUNDINGS[element]:
            records = []
            for name in names:
                scale, zp, codes = mx(element, rounding, inputs[name])
                records.append(record(name, 0, len(codes), None, scale, zp, codes, mx_decode(element, scale, codes),
                                      digits))
            yield group(element, "e8m0", 32, "none", "data_type_undef", "none", rounding, True, records)
        # Scales that are given: far too small and far too large ones, and NaN in the data.
        records = []
        for name, byte in (("normal", 127), ("normal", 110), ("normal", 135), ("normal", 0), ("normal", 254),
                           ("normal", 255), ("nan", 126), ("inf", 127), ("minus_inf", 3), ("subnormal", 0),
                           ("huge", 254), ("spread", 120), ("negative_zeros", 130)):
            codes = mx_codes(element, byte, inputs[name])
            records.append(record(name, 0, len(codes), None, byte, 0, codes, mx_decode(element, byte, codes), digits))
        yield group(element, "e8m0", 32, "none", "data_type_undef", "none", "floor", False, records)


def nvfp4_groups(names):
    for kind in ("none", "one"):
        records = []
        for name in names:
            choices = [None] if kind == "none" else [nvfp4_global(inputs[name]), f32(1)]
            for g in choices:
                for offset, x in blocks(name, 16):
                    scale, zp, codes = nvfp4(x, g)
                    records.append(record(name, offset, len(x), g, scale, zp, codes, nvfp4_decode(scale, codes, g), 1))
        yield group("f4_e2m1", "f8_e4m3", 16, "none", "data_type_undef", kind, "floor", True, records)
        records = []
        for scale in (0, 1, 7, 8, 0x30, 0x38, 0x41, 0x7E, 0x7F, 0x80, 0xB8):
            for g in [None] if kind == "none" else [f32(0), f32(1), f32(0.37), float_of(1), float_of(0x00012345), f32(1e30)]:
                for name in ("m_normal", "m_tiny"):
                    x = inputs[name][:16]
                    codes = nvfp4_codes(scale, x, g)
                    records.append(record(name, 0, len(x), g, scale, 0, codes, nvfp4_decode(scale, codes, g), 1))
        yield group("f4_e2m1", "f8_e4m3", 16, "none", "data_type_undef", kind, "floor", False, records)


def affine_groups(names):
    for element, zp_kind, zp_type in (("s4", "none", "data_type_undef"), ("u4", "u8", "u8"),
                                      ("s8", "none", "data_type_undef")):
        digits = 2 if element == "s8" else 1
        for scale_type in ("bf16", "f16", "f32"):
            for block in (32, 64, 128, 256):
                records = []
                for name in names if block == 32 else ("a_normal", "a_shifted", "a_nan"):
                    for offset, x in blocks(name, block):
                        scale, zp, codes = affine(element, scale_type, x)
                        value = decode(scale_type, [scale])[0]
                        records.append(record(name, offset, len(x), None, scale, zp, codes,
                                              affine_decode(element, value, zp, codes), digits))
                yield group(element, scale_type, block, zp_kind, zp_type, "none", "floor", True, records)
    for scale_type in ("bf16", "f16", "f32"):
        for zero_type in ("bf16", "f16", "f32"):
            for block in (32, 256):
                records = []
                for name in names if block == 32 else ("a_normal", "a_shifted", "a_nan"):
                    for offset, x in blocks(name, block):
                        scale, zero, codes = from_minimum(scale_type, zero_type, x)
                        value, zero_value = decode(scale_type, [scale])[0], decode(zero_type, [zero])[0]
                        records.append(record(name, offset, len(x), None, scale, zero, codes,
                                              added_zero_decode("minimum", value, zero_value, codes), 1))
                yield group("u4", scale_type, block, "minimum", zero_type, "none", "floor", True, records)
    # Given scales and zero points. Codes without a zero point, with integer ones, with floating-point ones.
    given = [(name, scale) for name in ("a_normal", "a_shifted", "a_subnormal_f16", "a_inf")
             for scale in (0.25, 0.1, 3e-6, 1000.0)]
    for element, zp_kind, zp_type in (("s4", "none", "data_type_undef"), ("u4", "none", "data_type_undef"),
                                      ("u4", "u8", "u8"), ("s8", "none", "data_type_undef")):
        records = []
        for i, (name, wanted) in enumerate(given):
            x, zp = inputs[name][:32], (0, 8, 15, 3, 200)[i % 5] if zp_kind == "u8" else 0
            scale = int(encode("bf16", [wanted])[0])
            value = decode("bf16", [scale])[0]
            codes = affine_codes(element, value, zp, x)
            records.append(record(name, 0, 32, None, scale, zp, codes, affine_decode(element, value, zp, codes),
                                  2 if element == "s8" else 1))
        yield group(element, "bf16", 32, zp_kind, zp_type, "none", "floor", False, records)
    for kind, scale_type, zero_type in itertools.product(CODE_OF_ZERO, ("bf16", "f16", "f32"), ("bf16", "f16", "f32")):
        records = []
        for i, (name, wanted) in enumerate(given):
            x = inputs[name][:32]
            scale = int(encode(scale_type, [wanted * 1.01], True)[0])
            zero = int(encode(zero_type, [(0.0, 0.4997, -1.203, 37.0, wanted / 3)[i % 5]])[0])
            value, zero_value = decode(scale_type, [scale])[0], decode(zero_type, [zero])[0]
            codes = added_zero_codes(kind, value, zero_value, x)
            records.append(record(name, 0, 32, None, scale, zero, codes,
                                  added_zero_decode(kind, value, zero_value, codes), 1))
        yield group("u4", scale_type, 64, kind, zero_type, "none", "floor", False, records)


def main():
    mx_names, nvfp4_names, affine_names = mx_inputs(), nvfp4_inputs(), affine_inputs()
    ORDER.extend(inputs)
    out = [header("make_quantize.py", "Blocks, and what every quantised format makes of them.")]
    out.append("static const quantize_input_t quantize_inputs[] = {\n")
    out += [f'    {{"{name}",\n{hex_string(bits_of(inputs[name]), 8)}}},\n' for name in ORDER]
    out.append("};\n// The global scale of the matrix.\nstatic const nvfp4_global_t nvfp4_globals[] = {\n")
    out += [f"    {{{ORDER.index(name)}, 0x{int(bits_of(nvfp4_global(inputs[name]))):08x}u}},\n" for name in nvfp4_names]
    out.append("};\n// Every line: input, first element, elements, global scale, block scale, zero point, codes, CRC-32 of the\n"
               "// decoded values (NaN as 7fc00000); all but the first three in hexadecimal.\n"
               "static const quantize_oracle_t quantize_oracles[] = {\n")
    out += [*mx_groups(mx_names), *nvfp4_groups(nvfp4_names), *affine_groups(affine_names)]
    out.append("};\n// CRC-32 of the decoded values of all codes, for scale bytes 0 to 255.\n"
               "static const mx_decode_oracle_t mx_decode_oracles[] = {\n")
    for element in TARGETS:
        codes = np.arange(1 << code_bits(element))
        crcs = [crc(bits_of(mx_decode(element, byte, codes))) for byte in range(256)]
        out.append(f"    {{mxdnn_{element},\n{hex_string(crcs, 8)}}},\n")
    out.append("};\n// The same for NVFP4 with the global scales of the line.\n"
               "static const nvfp4_decode_oracle_t nvfp4_decode_oracles[] = {\n")
    for g in (None, f32(1), f32(0.0123), float_of(1), float_of(0x00123456), f32(3e38)):
        crcs = [crc(bits_of(nvfp4_decode(s, np.arange(16), g))) for s in range(256)]
        out.append(f"    {{{'false, 0' if g is None else f'true, 0x{int(bits_of(g)):08x}u'},\n{hex_string(crcs, 8)}}},\n")
    out.append("};\n")
    write("quantize_cases.inc", "".join(out))


if __name__ == "__main__":
    main()
