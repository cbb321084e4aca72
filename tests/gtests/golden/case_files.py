# SPDX-License-Identifier: Apache-2.0
"""What the make_golden.py beside this folder share: cases.txt and cases.bin, random numbers that do not depend on
NumPy's version, and the types of rows and parameters.

    cases.txt    lines that describe, and a line per array: name, type, shape, offset into cases.bin, bytes
    cases.bin    the arrays, little-endian
"""
import sys

import numpy as np


class CaseFiles:
    def __init__(self):
        self.lines, self.blob = [], bytearray()

    def describe(self, line):
        self.lines.append(line)

    def put(self, what, a):
        names = {"|u1": "u8", "<u2": "u16", "<f2": "u16", "<f4": "f32", "<i4": "s32"}
        a = np.ascontiguousarray(a)
        self.blob.extend(bytes(-len(self.blob) % 4))
        shape = "x".join(str(d) for d in a.shape)
        self.lines.append(f"array {what} {names[a.dtype.str]} {shape} {len(self.blob)} {a.nbytes}")
        self.blob.extend(a.tobytes())

    def finish(self, folder):
        """Writes the files, or with --check compares them; the exit status. Sums and exponentials may differ in their
        last bit of f64 from machine to machine, and so in rare cases in f32."""
        files = {"cases.txt": ("\n".join(self.lines) + "\n").encode(), "cases.bin": bytes(self.blob)}
        if "--check" in sys.argv[1:]:
            same = all((folder / name).read_bytes() == content for name, content in files.items())
            print("the files are what they would be" if same else "the files differ from what they would be")
            return 0 if same else 1
        for name, content in files.items():
            (folder / name).write_bytes(content)
        print(f"{len(self.lines)} lines, {len(self.blob)} bytes")
        return 0


class Random:
    """A 64-bit linear congruential generator; the high half of its state."""

    def __init__(self, seed):
        self.state = seed

    def ints(self, below, count):
        out = np.empty(count, np.int64)
        for i in range(count):
            self.state = (self.state * 6364136223846793005 + 1442695040888963407) % 2**64
            out[i] = (self.state >> 33) % below
        return out

    def shuffled(self, count):
        order = np.arange(count)
        for i in range(count - 1, 0, -1):
            j = int(self.ints(i + 1, 1)[0])
            order[i], order[j] = order[j], order[i]
        return order


def bf16_bits(values):
    """Nearest, ties to even; a NaN stays one."""
    u = np.asarray(values, np.float32).view(np.uint32).astype(np.uint64)
    rounded = (u + 0x7FFF + (u >> 16 & 1)) >> 16
    return np.where((u & 0x7FFFFFFF) > 0x7F800000, (u >> 16) | 0x40, rounded).astype("<u2")


def bf16_values(bits):
    return (bits.astype(np.uint32) << 16).view(np.float32)


def stored(dt, values):
    """Bits that values have in their type, and the f32 values of those bits."""
    if dt == "bf16":
        bits = bf16_bits(values)
        return bits, bf16_values(bits)
    bits = np.asarray(values, np.float32).astype({"f16": "<f2", "f32": "<f4"}[dt])
    return bits, bits.astype(np.float32)
