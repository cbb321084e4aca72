# SPDX-License-Identifier: Apache-2.0
"""What both oracle scripts share: the types as ml_dtypes and NumPy know them, a search that converts by
looking for the nearest value, reproducible inputs, and the writing of C++ include files.

Nothing here reads the library. Needs: pip install ml_dtypes numpy
"""
import pathlib
import zlib
from fractions import Fraction

import ml_dtypes
import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
F32_NAN = 0x7FC00000

# name -> bits of a code, ml_dtypes or NumPy type, does conversion saturate
FLOATS = {
    "bf16": (16, ml_dtypes.bfloat16, False),
    "f16": (16, np.float16, False),
    "f8_e4m3": (8, ml_dtypes.float8_e4m3fn, True),
    "f8_e5m2": (8, ml_dtypes.float8_e5m2, True),
    "f6_e2m3": (6, ml_dtypes.float6_e2m3fn, True),
    "f6_e3m2": (6, ml_dtypes.float6_e3m2fn, True),
    "f4_e2m1": (4, ml_dtypes.float4_e2m1fn, True),
}
# name -> bits of a code, signed, value of one step, least and greatest integer that conversion makes
INTS = {
    "s8": (8, True, 1 / 64, -127, 127),
    "u8": (8, False, 1.0, 0, 255),
    "s4": (4, True, 1.0, -8, 7),
    "u4": (4, False, 1.0, 0, 15),
}


def bits_of(x):
    return np.asarray(x, np.float32).view(np.uint32)


def float_of(u):
    return np.asarray(u, np.uint32).view(np.float32)


def code_bits(name):
    if name == "e8m0":
        return 8
    if name == "f32":
        return 32
    return (FLOATS.get(name) or INTS[name])[0]


def decode(name, codes):
    """f32 values of codes; a NaN has one fixed pattern."""
    codes = np.asarray(codes)
    if name == "f32":
        x = float_of(codes)
    elif name == "e8m0":
        x = codes.astype(np.uint8).view(ml_dtypes.float8_e8m0fnu).astype(np.float32)
    elif name in INTS:
        bits, signed, step, _, _ = INTS[name]
        v = codes.astype(np.int64)
        x = (np.where(signed & (v >= 1 << (bits - 1)), v - (1 << bits), v) * step).astype(np.float32)
    else:
        bits, dtype, _ = FLOATS[name]
        with np.errstate(invalid="ignore"):  # signalling NaN
            x = codes.astype(np.uint16 if bits == 16 else np.uint8).view(dtype).astype(np.float32)
    return np.where(np.isnan(x), float_of(F32_NAN), x)


def ascending(name, saturating):
    """Values of the codes 0, 1, 2, ... up to the largest; then, if conversion overflows to Inf, the power
    of two that would follow and whose code is Inf's."""
    bits = code_bits(name)
    v = decode(name, np.arange(1 << (bits - 1))).astype(np.float64)
    v = v[np.isfinite(v)]
    assert np.all(np.diff(v) > 0)
    return v if saturating else np.append(v, 2.0 ** (np.floor(np.log2(v[-1])) + 1))


def nearest(x, values):
    """Index of the value nearest to x >= 0, ties to the even index. Midpoints are exact in f64."""
    middle = (values[:-1] + values[1:]) / 2
    i = np.searchsorted(middle, x, side="left")
    at = np.minimum(i, len(middle) - 1)
    return i + ((i < len(middle)) & (middle[at] == x) & (i % 2 == 1))


def encode(name, x, saturating=None):
    """Codes of f32 values. saturating: None for the type's own conversion, True for that of scales."""
    x = np.asarray(x, np.float32)
    nan = np.isnan(x)
    wide = np.where(nan, np.float32(0), x).astype(np.float64)
    if name == "f32":
        code = bits_of(x).astype(np.int64)
        if saturating:
            code = np.where(np.isinf(x), code - 1, code)
        return np.where(nan, F32_NAN, code)
    if name == "e8m0":
        code = nearest(np.where(x > 0, np.where(np.isinf(x), 0, wide), 0), 2.0 ** np.arange(-127, 128))
        return np.where(nan | np.isinf(x) | (x < 0), 255, code)
    if name in INTS:
        bits, _, step, lo, hi = INTS[name]
        v = np.clip(np.rint(wide / step), lo, hi)
        return v.astype(np.int64) & ((1 << bits) - 1)
    bits, dtype, own = FLOATS[name]
    values = ascending(name, saturating or own)
    code = nearest(np.abs(wide), values)
    code = code + (np.signbit(x).astype(np.int64) << (bits - 1))
    # NaN: the canonical one where there is one, else the largest value.
    no_nan = not np.isnan(decode(name, np.arange(1 << bits))).any()
    canonical = {"bf16": 0x7FC0, "f16": 0x7E00}.get(name, (1 << (bits - 1)) - 1)
    assert no_nan or np.isnan(decode(name, [canonical]))[0]
    return np.where(nan, canonical, code)


# ---- e8m0 scales, on exact rationals ----

# element -> exponent of the largest value, mantissa bits, largest value
TARGETS = {
    "f8_e4m3": (8, 3, Fraction(448)),
    "f8_e5m2": (15, 2, Fraction(57344)),
    "f6_e2m3": (2, 3, Fraction(15, 2)),
    "f6_e3m2": (4, 2, Fraction(28)),
    "f4_e2m1": (2, 1, Fraction(6)),
    "s8": (0, None, Fraction(127, 64)),
}


def f32_round(q):
    """A positive rational rounded to f32, as bits: through integers, not through the FPU."""
    e = -149
    while q / Fraction(2) ** e >= 1 << 24:
        e += 1
    steps = q / Fraction(2) ** e
    whole = steps.numerator // steps.denominator
    rest = steps - whole
    if rest > Fraction(1, 2) or (rest == Fraction(1, 2) and whole % 2):
        whole += 1
    return int(bits_of(np.float32(whole * 2.0**e)))


ROUNDINGS = {e: ("floor", "ceil", "even", "rceil") if e != "s8" else ("floor", "ceil", "rceil") for e in TARGETS}
INVERSES = {}


def scale_byte(element, rounding, u):
    emax, mantissa_bits, largest = TARGETS[element]
    u = int(u)
    if u >= 0x7F800000:
        return 255
    field, mantissa = u >> 23, u & 0x7FFFFF
    exponent = field - 127
    if rounding == "rceil":
        if element not in INVERSES:
            INVERSES[element] = Fraction(float(float_of(f32_round(1 / largest))))
        # The product of two f32 is exact in f64; NumPy rounds it to f32.
        d = int(bits_of(np.float32(float(float_of(u)) * float(INVERSES[element]))))
        if d >> 23 == 0:
            return 1 if d > 0x400000 else 0
        return min((d >> 23) + (1 if d & 0x7FFFFF else 0), 254)
    if rounding == "ceil":
        exponent += 1 if mantissa else 0
    if rounding == "even":
        kept = 1 << (23 - mantissa_bits)
        exponent = ((u + kept // 2) // kept * kept >> 23) - 127
    return max(-127, min(127, exponent - emax)) + 127


def random_bits(n, seed, lo, hi):
    """f32 patterns that the tests make again from the same numbers: even ones are anything, odd ones have
    an exponent field within [lo, hi]."""

    def mix(i, seed):
        with np.errstate(over="ignore"):
            h = i * np.uint32(0x9E3779B1) + np.uint32(seed)
            h = (h ^ (h >> np.uint32(15))) * np.uint32(0x2C1B3C6D)
            h = (h ^ (h >> np.uint32(12))) * np.uint32(0x297A2D39)
            return h ^ (h >> np.uint32(15))

    i = np.arange(n, dtype=np.uint32)
    h, field = mix(i, seed), np.uint32(lo) + mix(i, seed + 1) % np.uint32(hi - lo + 1)
    return np.where(i % 2 == 0, h, (h & np.uint32(0x807FFFFF)) | (field << np.uint32(23))).astype(np.uint32)


def crc(array):
    return zlib.crc32(np.ascontiguousarray(array, dtype="<u4").tobytes())


def hex_string(values, digits, per_line=None):
    """Adjacent C string literals of hexadecimal numbers of fixed width."""
    per_line = per_line or max(1, 100 // digits)
    text = [f"{int(v):0{digits}x}" for v in values]
    lines = ["".join(text[i:i + per_line]) for i in range(0, len(text), per_line)]
    return "\n".join(f'        "{line}"' for line in lines) or '        ""'


def header(script, what):
    return (f"// SPDX-License-Identifier: Apache-2.0\n// {what}\n// Written by {script} with NumPy "
            f"{np.__version__} and ml_dtypes {ml_dtypes.__version__}; do not edit.\n// clang-format off\n")


def write(name, text):
    (HERE / name).write_text(text)
    print(f"{name}: {len(text)} bytes")
