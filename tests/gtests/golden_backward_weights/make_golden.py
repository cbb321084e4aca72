# SPDX-License-Identifier: Apache-2.0
"""Writes what grouped_matmul_backward_weights has to give, from its page and formats.md in doc/reference alone. The
library is not involved.

    cases.txt    a line per case (name, key=value ...), then a line per array (name, type, shape, offset, bytes)
    cases.bin    the arrays, little-endian

    python3 -m venv venv && venv/bin/pip install numpy && venv/bin/python make_golden.py [--check]

With --check nothing is written, and the exit status says whether the files are what they would be. Values have few bits
and are close to 1, so that f32 holds every sum exactly in any order: all bits of the results are known. Rows that do not
count are NaN.

Arrays of a case are its arguments, named after them, and
    old     [groups, K, N] the gradient before, for sum
    want    [groups, K, N] the gradient, bits of its type
"""
import pathlib
import sys

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE.parent / "golden"))
from case_files import CaseFiles, Random, stored  # noqa: E402

BLOCK = 32
# bits of mantissa, exponent bias, a NaN
F8 = {"f8_e4m3": (3, 7, 0x7F), "f8_e5m2": (2, 15, 0x7F)}


def f8_codes(dt, random, count):
    """Codes of a sign, an exponent from -1 to 1 and any mantissa."""
    mantissa, bias, _ = F8[dt]
    sign, exponent, low = random.ints(2, count), random.ints(3, count) - 1, random.ints(1 << mantissa, count)
    return (sign << 7 | (exponent + bias) << mantissa | low).astype(np.uint8)


def f8_values(dt, codes):
    mantissa, bias, _ = F8[dt]
    codes = codes.astype(np.int64)
    exponent = (codes >> mantissa & (1 << 7 - mantissa) - 1) - bias
    value = (1 + (codes & (1 << mantissa) - 1) / (1 << mantissa)) * 2.0**exponent
    return np.where(codes & 0x80, -value, value)


class Rows:
    """An operand: its arrays, and the values of the rows of each group that count."""

    def __init__(self, name, dt, columns, counts, places, rows, random):
        self.arrays, self.groups = [], []
        f8 = dt in F8
        codes = np.full((rows, columns), F8[dt][2] if f8 else np.nan, np.uint8 if f8 else np.float32)
        scales = np.full((sum(-(-p // BLOCK) for p in places), columns), 255, np.uint8)
        first = first_block = 0
        for count, place in zip(counts, places):
            n = count * columns
            if f8:
                own = f8_codes(dt, random, n).reshape(count, columns)
                blocks = -(-count // BLOCK)
                scale = (126 + random.ints(3, blocks * columns)).astype(np.uint8).reshape(blocks, columns)
                scales[first_block : first_block + blocks] = scale
                factor = 2.0 ** (scale.astype(np.int64) - 127)
                self.groups.append(f8_values(dt, own) * factor[np.arange(count) // BLOCK])
            else:
                own = ((random.ints(31, n) - 15) / 8).reshape(count, columns)
                self.groups.append(own)
            codes[first : first + count] = own
            first += place
            first_block += -(-place // BLOCK)
        self.arrays.append((name, codes if f8 else stored(dt, codes)[0]))
        if f8:
            self.arrays.append((name + "_scales", scales))


def write(files, name, counts, K, N, src="bf16", diff_dst=None, to="f32", grouping="ends", align=1, ranks=0, spare=0,
          factor=0.0):
    random = Random(len(files.lines) + 1)
    padded = grouping == "padded"
    places = [max(counts) + spare if padded else c if align == 1 else max(1, -(-c // align)) * align for c in counts]
    rows = sum(places) + (0 if padded else spare)
    diff_dst = diff_dst or src
    files.describe(f"case {name} K={K} N={N} src={src} diff_dst={diff_dst} to={to} grouping={grouping} sum={factor}")
    x = Rows("src", src, K, counts, places, rows, random)
    dy = Rows("diff_dst", diff_dst, N, counts, places, rows, random)
    for what, a in x.arrays + dy.arrays:
        files.put(what, a)
    ends = np.cumsum(places)
    if not padded:
        files.put("offsets", np.array(ends if grouping == "ends" else [0, *ends], "<i4"))
    if ranks:
        parts = np.array([[c // ranks + (r < c % ranks) for c in counts] for r in range(ranks)], "<i4")
        files.put("counts", parts)
    elif padded or align > 1:
        files.put("counts", np.array(counts, "<i4"))
    want = np.stack([a.T @ b for a, b in zip(x.groups, dy.groups)])
    if factor:
        bits, old = stored(to, (random.ints(31, want.size) - 15).reshape(want.shape) / 4)
        files.put("old", bits)
        want = want + factor * old
    # All products are multiples of 2^-10, and no partial sum has more than 24 bits.
    assert max(np.max(np.abs(a).T @ np.abs(b)) for a, b in zip(x.groups, dy.groups)) < 2.0**14
    assert np.array_equal(want, want.astype(np.float32))
    files.put("want", stored(to, want)[0])


files = CaseFiles()
counts = [5, 0, 33, 64, 1]
for dt in ("f32", "bf16", "f16", "f8_e4m3", "f8_e5m2"):
    write(files, f"{dt}_to_f32", counts, 19, 37, dt)
write(files, "bf16_to_bf16", counts, 19, 37, to="bf16")
write(files, "f8_to_bf16", counts, 37, 19, "f8_e4m3", "f8_e5m2", "bf16")
write(files, "starts_and_rows_after_the_last", counts, 17, 33, grouping="starts", spare=5)
write(files, "f8_starts_and_rows_after_the_last", counts, 17, 33, "f8_e4m3", grouping="starts", spare=5)
write(files, "padded_groups", counts, 17, 33, grouping="padded", spare=2)
write(files, "f8_padded_groups", counts, 17, 33, "f8_e5m2", grouping="padded", spare=2)
write(files, "aligned_to_32", counts, 17, 33, align=32)
write(files, "f8_aligned_to_16_by_rank", counts, 17, 33, "f8_e4m3", align=16, ranks=3)
write(files, "sum", counts, 17, 33, factor=1.0)
write(files, "f8_half_of_the_old", counts, 17, 33, "f8_e4m3", to="f32", factor=0.5)
sys.exit(files.finish(HERE))
