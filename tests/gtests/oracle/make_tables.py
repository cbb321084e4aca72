# SPDX-License-Identifier: Apache-2.0
"""Writes decode_tables.inc, encode_tables.inc and scale_tables.inc: what codes mean, what f32 values
become, and which e8m0 scale follows from a block's largest magnitude. The library is not involved.

    python3 -m venv venv && venv/bin/pip install ml_dtypes numpy && venv/bin/python make_tables.py
"""
import numpy as np

from oracle_common import (FLOATS, INTS, ROUNDINGS, TARGETS, ascending, bits_of, code_bits, crc, decode, encode,
                           float_of, header, hex_string, nearest, random_bits, scale_byte, write)

NAMES = ["f32", *FLOATS, *INTS, "e8m0"]
SPECIALS = [0, 1, 2, 0x3FFFFF, 0x400000, 0x400001, 0x5FFFFF, 0x600000, 0x600001, 0x7FFFFF, 0x800000, 0x800001,
            0xFFFFFF, 0x1000000, 0x7EFFFFFF, 0x7F000000, 0x7F7FFFFE, 0x7F7FFFFF, 0x7F800000, 0x7F800001,
            0x7FA00000, 0x7FBFFFFF, 0x7FC00000, 0x7FC00001, 0x7FFFFFFF]
CHUNK, CHUNKS = 4096, 64


def decode_tables():
    out = [header("make_tables.py", "f32 bits of every code; NaN is 7fc00000.")]
    out.append("static const decode_oracle_t decode_oracles[] = {\n")
    for name in NAMES:
        bits = code_bits(name)
        if bits <= 8:
            out.append(f'    {{"{name}",\n{hex_string(bits_of(decode(name, np.arange(1 << bits))), 8)}}},\n')
    out.append("};\n// CRC-32 of the little-endian f32 bits of 256 codes at a time.\n")
    out.append("static const decode_crc_oracle_t decode_crc_oracles[] = {\n")
    for name in NAMES:
        if code_bits(name) == 16:
            values = bits_of(decode(name, np.arange(1 << 16))).reshape(256, 256)
            out.append(f'    {{"{name}",\n{hex_string([crc(row) for row in values], 8)}}},\n')
    out.append("};\n")
    write("decode_tables.inc", "".join(out))


def around(values):
    """f32 patterns of values (all of them f32) and of both neighbours, with both signs."""
    values = values[values < 2.0**128]
    u = bits_of(values).astype(np.int64)
    assert np.array_equal(float_of(u.astype(np.uint32)).astype(np.float64), values)
    u = np.concatenate([u - 1, u, u + 1])
    u = u[(u >= 0) & (u <= 0x7F800000)]
    return np.concatenate([u, u | 0x80000000])


def interesting(name):
    """All values and midpoints with neighbours; of the 16-bit types a sample of the exponents."""
    if name == "f32":
        points = np.array([1.0])
    elif name == "e8m0":
        powers = 2.0 ** np.arange(-127, 128)
        points = np.concatenate([powers, powers[:-1] * 1.5])
    elif name in INTS:
        _, _, step, lo, hi = INTS[name]
        points = np.arange(0, max(-lo, hi) + 3, 0.5) * step
    else:
        v = ascending(name, False)  # with the power of two beyond the largest
        both = np.stack([v[:-1], (v[:-1] + v[1:]) / 2])
        if code_bits(name) == 16:
            rng = np.random.default_rng(len(v))
            keep = np.zeros(both.shape[1], bool)
            keep[:80], keep[-40:] = True, True
            keep[rng.integers(0, both.shape[1], 160)] = True
            both = both[:, keep]
        points = np.append(both.ravel(), v[-1])
    u = np.concatenate([around(points), SPECIALS, np.array(SPECIALS) | 0x80000000])
    return np.unique(u).astype(np.uint32)


def check_against_ml_dtypes(name, u, codes):
    """Where there is nothing to saturate, the two conversions that the oracle rests on agree."""
    if name in FLOATS:
        x = float_of(u)
        inside = u & 0x7FFFFFFF <= int(bits_of(ascending(name, True)[-1]))
        bits, dtype, _ = FLOATS[name]
        theirs = x[inside].astype(dtype).view(np.uint16 if bits == 16 else np.uint8)
        assert np.array_equal(theirs, codes[inside]), name


def encode_tables():
    out = [header("make_tables.py", "Codes of f32 values: pairs of input bits and code, and CRCs of random ones.")]
    rows = []
    for name in NAMES:
        # A type that saturates anyway has one row for both conversions.
        overflows = name in ("bf16", "f16", "f32")
        for saturating in (False, True) if overflows else (True,):
            bits = code_bits(name)
            digits = -(-bits // 8) * 2
            if name in FLOATS or name == "f32":
                v = ascending(name, True) if name != "f32" else np.array([0, 2.0**-149, 2.0**127])
                lo = max(0, 127 + int(np.floor(np.log2(v[1]))) - 3)
                hi = min(255, 127 + int(np.floor(np.log2(v[-1]))) + 2)
            else:
                lo, hi = (0, 255) if name == "e8m0" else (118, 137)
            seed = 0x5EED0000 + len(rows) * 16
            u = np.concatenate([interesting(name), random_bits(250, seed + 7, lo, hi)])
            codes = encode(name, float_of(u), saturating)
            check_against_ml_dtypes(name, u, codes)
            pairs = [(int(a) << (4 * digits)) | int(b) for a, b in zip(u, codes)]
            big = random_bits(CHUNK * CHUNKS, seed, lo, hi)
            big_codes = encode(name, float_of(big), saturating)
            check_against_ml_dtypes(name, big, big_codes)
            crcs = [crc(row) for row in big_codes.reshape(CHUNKS, CHUNK)]
            kind = "both" if not overflows else "for_scales" if saturating else "own"
            rows.append(f'    {{"{name}", conversion_t::{kind}, {digits}, {hex(seed)}u, {lo}u, {hi}u,\n'
                        f"{hex_string(crcs, 8)},\n{hex_string(pairs, 8 + digits)}}},\n")
    out.append(f"static const int encode_chunk = {CHUNK}, encode_chunks = {CHUNKS};\n")
    out.append("static const encode_oracle_t encode_oracles[] = {\n" + "".join(rows) + "};\n")
    out.append("// CRC-32 of what the midpoint above each code becomes, the f32 below it and the f32 above it, for 256\n"
               "// positive codes at a time; above the largest value the step is that below it.\n"
               "static const middle_oracle_t middle_oracles[] = {\n")
    for name in ("bf16", "f16"):
        v = ascending(name, False)
        u = bits_of((v[:-1] + v[1:]) / 2).astype(np.int64)
        codes = encode(name, float_of(np.stack([u, u - 1, u + 1], axis=1).ravel().astype(np.uint32)))
        crcs = [crc(codes[i:i + 3 * 256]) for i in range(0, len(codes), 3 * 256)]
        out.append(f'    {{"{name}",\n{hex_string(crcs, 8)}}},\n')
    out.append("};\n")
    write("encode_tables.inc", "".join(out))


def scale_tables():
    mantissas = [0, 1, 2, 0x7FFFFE, 0x7FFFFF]
    for edge in (0x400000, 0x600000, 0x700000, 0x780000, 0x7E0000):
        mantissas += [edge - 1, edge, edge + 1]
    fields = [*range(0, 24), 64, 111, 119, 125, 126, 127, 128, 129, 135, 142, 200, *range(236, 255)]
    u = [f << 23 | m for f in fields for m in mantissas] + [0x7F800000, 0x7F800001, 0x7FC00000, 0x7FFFFFFF]
    u = sorted(set(u))
    out = [header("make_tables.py", "e8m0 scale bytes for largest magnitudes (f32 bits), by element and rounding.")]
    out.append(f"static const char scale_inputs[] =\n{hex_string(u, 8)};\n")
    seed, n, chunk = 0x5CA1E000, 1 << 14, 1 << 10
    random = random_bits(n, seed, 0, 254) & np.uint32(0x7FFFFFFF)
    out.append(f"static const uint32_t scale_seed = {hex(seed)}u;\nstatic const int scale_chunk = {chunk}, "
               f"scale_chunks = {n // chunk};\nstatic const scale_oracle_t scale_oracles[] = {{\n")
    for element in TARGETS:
        for rounding in ROUNDINGS[element]:
            crcs = [crc([scale_byte(element, rounding, v) for v in row]) for row in random.reshape(-1, chunk)]
            out.append(f'    {{"{element}", mxdnn_scale_rounding_{rounding},\n{hex_string(crcs, 8)},\n'
                       f"{hex_string([scale_byte(element, rounding, v) for v in u], 2)}}},\n")
    out.append("};\n")
    # What the rules say in so many words: a finite magnitude never gives 255.
    for element, u_even, byte in (("f8_e4m3", 0x7F780000, 247), ("f6_e2m3", 0x7F780000, 253),
                                  ("f4_e2m1", 0x7F600000, 253), ("f8_e5m2", 0x7F700000, 240),
                                  ("f6_e3m2", 0x7F700000, 251)):
        assert scale_byte(element, "even", u_even) == byte
    write("scale_tables.inc", "".join(out))


def bit_order_tables():
    """Sub-byte rows through NumPy's bit packing, the 128x4 order through reshapes of padded tiles."""
    rng = np.random.default_rng(6)
    out = [header("make_tables.py", "Bytes of plain rows of 4- and 6-bit codes, and the 128x4 order of scales.")]
    out.append("// Bits of a code, codes, and the bytes of the row.\nstatic const dense_row_oracle_t dense_row_oracles[] = {\n")
    for bits in (4, 6):
        for n in (*range(1, 10), 33):
            codes = rng.integers(0, 1 << bits, n)
            as_bits = (codes[:, None] >> np.arange(bits)) & 1
            row = np.packbits(as_bits.ravel().astype(np.uint8), bitorder="little")
            out.append(f'    {{{bits}, "{"".join(f"{c:02x}" for c in codes)}", "{"".join(f"{b:02x}" for b in row)}"}},\n')
    out.append("};\n// Rows, columns, padded size, CRC-32 of u32 values in swizzled order: padding is 0, the scale of (r, c)\n"
               "// is r * columns + c + 1.\nstatic const swizzle_oracle_t swizzle_oracles[] = {\n")
    for rows, cols in ((1, 1), (1, 4), (32, 5), (33, 3), (127, 4), (128, 4), (129, 5), (300, 9), (256, 90), (5, 181)):
        padded = np.zeros((-(-rows // 128) * 128, -(-cols // 4) * 4), np.uint32)
        padded[:rows, :cols] = np.arange(1, rows * cols + 1).reshape(rows, cols)
        # (row tile, quarter, row in quarter, column tile, column) -> tile after tile of 32 x (4 quarters x 4)
        tiles = padded.reshape(padded.shape[0] // 128, 4, 32, padded.shape[1] // 4, 4).transpose(0, 3, 2, 1, 4)
        out.append(f"    {{{rows}, {cols}, {padded.size}, 0x{crc(tiles.ravel()):08x}u}},\n")
    out.append("};\n")
    write("bit_order_tables.inc", "".join(out))


if __name__ == "__main__":
    assert nearest(np.array([2.5, 3.5]), np.arange(8.0)).tolist() == [2, 4]
    decode_tables()
    encode_tables()
    scale_tables()
    bit_order_tables()
