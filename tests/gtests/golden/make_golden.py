# SPDX-License-Identifier: Apache-2.0
"""Writes what packed bytes and blobs have to be, from doc/reference/layouts.md and doc/reference/blob.md alone:

    blobs.txt    descriptors and their blobs
    packed.txt   for every format and a few shapes: size, checksum and some bytes of the packed tensor
    packed/      the bytes themselves, for the smallest shape

The library is not involved: where it computes positions, this script lays down streams of bytes. Run it
only to add formats or layouts; a line that changes is a layout that needs a new version.

    python3 -m venv venv && venv/bin/pip install numpy && venv/bin/python make_golden.py [--check]

With --check nothing is written, and the exit status says whether the files are what they would be.
"""
import pathlib
import struct
import sys

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
MASK = (1 << 64) - 1

# mxdnn_data_type_t, and the bits of a code
TYPES = {"undef": 0, "f16": 1, "bf16": 2, "f32": 3, "s32": 4, "s8": 5, "u8": 6, "f8_e5m2": 9, "f8_e4m3": 10,
         "s4": 11, "u4": 12, "e8m0": 13, "f4_e2m1": 14, "f6_e2m3": 0x100, "f6_e3m2": 0x101, "u64": 0x110}
BITS = {"s8": 8, "f8_e5m2": 8, "f8_e4m3": 8, "s4": 4, "u4": 4, "f4_e2m1": 4, "f6_e2m3": 6, "f6_e3m2": 6}
BYTES = {"undef": 0, "e8m0": 1, "f8_e4m3": 1, "u8": 1, "bf16": 2, "f16": 2, "f32": 4}
LAYOUT_OF_BITS = {4: 1, 6: 2, 8: 3}  # n16_b4, n16_b6, n16_b8 and n64_b4, n64_b6, n64_b8; all of version 1
LAYOUT_OF_INTEGERS = 4  # n64_i4: for CUDA, s4 and u4
LAYOUT_FOR_FP8 = 5  # n64_f4: for CUDA, f4_e2m1 where it is asked for
ZERO_POINTS = ["none", "u8", "float_zero", "minimum"]  # the last one needs format version 2
RUNTIME = 1 << 63


# ---- XXH64, from its specification ----


def xxh64(data, seed=0):
    p1, p2, p3 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9
    p4, p5 = 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5

    def rotl(x, r):
        return ((x << r) | (x >> (64 - r))) & MASK

    def rnd(acc, lane):
        return rotl((acc + lane * p2) & MASK, 31) * p1 & MASK

    n, at = len(data), 0
    if n >= 32:
        acc = [(seed + p1 + p2) & MASK, (seed + p2) & MASK, seed, (seed - p1) & MASK]
        whole = n // 32
        for lanes in struct.iter_unpack("<4Q", data[: whole * 32]):
            acc = [rnd(a, lane) for a, lane in zip(acc, lanes)]
        at = whole * 32
        h = sum(rotl(a, r) for a, r in zip(acc, (1, 7, 12, 18))) & MASK
        for a in acc:
            h = ((h ^ rnd(0, a)) * p1 + p4) & MASK
    else:
        h = (seed + p5) & MASK
    h = (h + n) & MASK
    while n - at >= 8:
        (lane,) = struct.unpack_from("<Q", data, at)
        h = (rotl(h ^ rnd(0, lane), 27) * p1 + p4) & MASK
        at += 8
    if n - at >= 4:
        (lane,) = struct.unpack_from("<I", data, at)
        h = (rotl(h ^ (lane * p1 & MASK), 23) * p2 + p3) & MASK
        at += 4
    for byte in data[at:]:
        h = rotl(h ^ (byte * p5 & MASK), 11) * p1 & MASK
    h = (h ^ h >> 33) * p2 & MASK
    h = (h ^ h >> 29) * p3 & MASK
    return h ^ h >> 32


# ---- What the tensors hold: reproducible noise, the same in the test ----


def noise(tag, e, k, n):
    x = tag * 0x9E3779B1 + e * 0x85EBCA77 + k * 0xC2B2AE3D + n * 0x27D4EB2F
    x = x.astype(np.uint64) & 0xFFFFFFFF
    for shift, factor in ((15, 0x2C1B3C6D), (12, 0x297A2D39)):
        x ^= x >> shift
        x = x * factor & 0xFFFFFFFF
    return x ^ x >> 15


def grid(tag, e, rows, columns):
    k, n = np.meshgrid(np.arange(rows, dtype=np.uint64), np.arange(columns, dtype=np.uint64), indexing="ij")
    return noise(tag, e, k, n)


# ---- The layouts of doc/reference/layouts.md, as streams ----


def stream_b4(codes):
    """[rows, 16] with rows a multiple of 32, to bytes."""
    eight = codes.reshape(-1, 8, 16).astype(np.uint32)
    lanes = np.zeros((len(eight), 16), np.uint32)
    for nibble, row in enumerate([0, 2, 4, 6, 1, 3, 5, 7]):
        lanes |= eight[:, row, :] << (4 * nibble)
    return lanes.astype("<u4").tobytes()


def vectors_b8(codes):
    """[rows, 16] to [rows / 4, 64]: four lanes of four columns, rows 0 1 of each, then rows 2 3 of each."""
    v = codes.reshape(-1, 2, 2, 4, 4)  # vector, row pair, row of the pair, lane, column of the lane
    return v.transpose(0, 3, 1, 4, 2).reshape(-1, 64)


def stream_b8(codes):
    return vectors_b8(codes).astype(np.uint8).tobytes()


def stream_b6(codes):
    v = vectors_b8(codes).reshape(-1, 4, 64)
    out = np.empty((len(v), 3, 64), np.uint8)
    for i in range(3):
        out[:, i] = v[:, i] | ((v[:, 3] >> np.uint64(2 * i)) & np.uint64(3)) << np.uint64(6)
    return out.tobytes()


STREAMS = {4: stream_b4, 6: stream_b6, 8: stream_b8}


def padded(a, rows, columns):
    out = np.zeros((rows, columns), a.dtype)
    out[: a.shape[0], : a.shape[1]] = a
    return out


def low_bytes(a, width):
    return a.astype("<u8").view(np.uint8).reshape(-1, 8)[:, :width].tobytes()


def pack_matrix(fmt, e, K, N):
    elem, scale_dt, block, _, zp_dt, global_scale = fmt
    bits, up = BITS[elem], lambda a, b: -(-a // b) * b
    codes = padded(grid(1, e, K, N) >> np.uint64(32 - bits), K, up(N, 16))
    blocks = -(-K // block)
    scales = padded(grid(2, e, blocks, N), blocks, up(N, 16))
    zeros = padded(grid(3, e, blocks, N), blocks, up(N, 16))
    out = bytearray()
    if global_scale != "none":
        out += struct.pack("<f", 1.5 + e) + bytes(60)
    tile = max(128, block)
    for n in range(0, N, 16):
        for k in range(0, K, tile):
            rows = min(tile, K - k)
            of_tile = slice(k // block, -(-(k + rows) // block))
            head = low_bytes(scales[of_tile, n : n + 16], BYTES[scale_dt])
            head += low_bytes(zeros[of_tile, n : n + 16], BYTES[zp_dt])
            out += head + bytes(-len(head) % 64)
            out += STREAMS[bits](padded(codes[k : k + rows, n : n + 16], up(rows, 32), 16))
    return bytes(out)


# ---- The layouts for CUDA ----

# Where bits 3, 2, 1, 0 of a low-half code of registers 0..3 are in a word of n64_b4.
N64_B4_BITS = [[15, 8, 7, 6], [19, 12, 11, 10], [9, 2, 1, 0], [21, 14, 13, 4]]


def fragments(codes):
    """[rows, 64] to [rows / 16, thread, register, half]."""
    v = codes.reshape(-1, 2, 4, 2, 4, 2, 8)  # row / 8, row pair, half; warp, column / 8, column % 8
    return v.transpose(0, 4, 6, 2, 1, 5, 3).reshape(-1, 128, 4, 2).astype(np.uint64)


def gather_bits(values, places):
    """Sum of the bits (value bit -> place) of values, as 32-bit words."""
    out = np.zeros(values.shape, np.uint64)
    for bit, place in places:
        out |= (values >> np.uint64(bit) & np.uint64(1)) << np.uint64(place)
    return out


def step_n64_b4(frag):
    words = np.zeros((4, 128), np.uint64)
    for register in range(4):
        for half in range(2):
            places = [(3 - i, (at + 16 * half) % 32) for i, at in enumerate(N64_B4_BITS[register])]
            words |= gather_bits(frag[:, :, register, half], places)
    return words.T.astype("<u4").tobytes()


def step_n64_i4(frag):
    places = np.array([[4 * register + 16 * half for half in range(2)] for register in range(4)], np.uint64)
    return (frag << places).sum(axis=(2, 3), dtype=np.uint64).T.astype("<u4").tobytes()


def step_n64_f4(frag):
    # frag: registers and halves of threads as fragments() has them. Here a thread has rows 4 q .. 4 q + 3.
    rows = frag.reshape(4, 4, 8, 4, 2, 2, 2)  # 16 rows; warp, column % 8, q; row / 8, column / 8, row % 2
    rows = rows.transpose(0, 1, 2, 5, 4, 3, 6).reshape(4, 4, 8, 2, 16)  # ..., column / 8, row
    codes = rows.reshape(4, 4, 8, 2, 4, 4).transpose(0, 1, 2, 4, 3, 5).reshape(4, 128, 8)  # ..., q, code
    words = np.zeros((4, 128), np.uint64)
    for row in range(4):  # a byte: sign and magnitude of column c at bits 7 and 3 .. 1, of c + 8 at 0 and 6 .. 4
        for column, (magnitude, sign) in enumerate([(1, 7), (4, 0)]):
            places = [(b, 8 * row + magnitude + b) for b in range(3)] + [(3, 8 * row + sign)]
            words |= gather_bits(codes[:, :, 4 * column + row], places)
    return words.T.astype("<u4").tobytes()


def step_n64_b6(frag):
    low, top = np.zeros((4, 128), np.uint64), np.zeros((2, 128), np.uint64)
    for register, shift in enumerate([4, 0, 8, 12]):
        for half in range(2):
            code = frag[:, :, register, half]
            low |= (code & np.uint64(15)) << np.uint64(shift + 16 * half)
            for i in range(2):
                turn = 2 * (4 * i + register) + 16 * half
                top |= gather_bits(code[i::2], [(5, (15 + turn) % 32), (4, (8 + turn) % 32)])
    return low.T.astype("<u4").tobytes() + top.T.astype("<u4").tobytes()


def step_n64_b8(frag):
    # thread, 16 rows, register pair, half, register of the pair
    return frag.reshape(2, 128, 2, 2, 2).transpose(1, 0, 2, 4, 3).astype(np.uint8).tobytes()


STEPS = {4: (64, step_n64_b4), 6: (64, step_n64_b6), 8: (32, step_n64_b8)}
STEP_OF_INTEGERS = (64, step_n64_i4)
STEP_FOR_FP8 = (64, step_n64_f4)


def in_lane_order(a, blocks):
    """[row blocks, 64] of one tile, in the order in which lanes read scales."""
    return np.ascontiguousarray(padded(a, blocks, 64).reshape(blocks, 4, 2, 8).transpose(1, 3, 0, 2))


def pack_matrix_cuda(fmt, e, K, N, for_fp8=False):
    elem, scale_dt, block, _, zp_dt, global_scale = fmt
    bits, up = BITS[elem], lambda a, b: -(-a // b) * b
    codes = padded(grid(1, e, K, N) >> np.uint64(32 - bits), K, up(N, 64))
    blocks = -(-K // block)
    scales = padded(grid(2, e, blocks, N), blocks, up(N, 64))
    zeros = padded(grid(3, e, blocks, N), blocks, up(N, 64))
    out = bytearray()
    if global_scale != "none":
        out += struct.pack("<f", 1.5 + e) + bytes(60)
    tile, (step, bytes_of_step) = max(64, block), STEP_OF_INTEGERS if elem in ("s4", "u4") else STEPS[bits]
    if for_fp8:
        step, bytes_of_step = STEP_FOR_FP8
    for n in range(0, N, 64):
        for k in range(0, K, tile):
            of_tile = slice(k // block, k // block + tile // block)
            head = low_bytes(in_lane_order(scales[of_tile, n : n + 64], tile // block), BYTES[scale_dt])
            head += low_bytes(in_lane_order(zeros[of_tile, n : n + 64], tile // block), BYTES[zp_dt])
            out += head + bytes(-len(head) % 64)
            for r in range(k, min(k + tile, K), step):
                out += bytes_of_step(fragments(padded(codes[r : min(r + step, k + tile), n : n + 64], step, 64)))
    return bytes(out)


# ---- doc/reference/blob.md ----


def option(tag, value):
    return struct.pack("<HH", tag, len(value)) + value


def seal(kind, ndims, elem, body, options=b"", version=1, oldest=1):
    rest = struct.pack("<HHI", kind, ndims, TYPES[elem]) + body + options
    head = b"\x89mxdnn\r\n" + struct.pack("<HHI", max(version, oldest), oldest, 16 + len(rest) + 8)
    return head + rest + struct.pack("<Q", xxh64(head + rest))


def quads(values):
    return b"".join(struct.pack("<Q", RUNTIME if v == "*" else v) for v in values)


def blob_strided(elem, dims, strides, options=b"", version=1):
    return seal(1, len(dims), elem, quads(dims) + quads(strides), options, version)


def blob_grouped(elem, dims, groups):
    return seal(2, len(dims), elem, struct.pack("<IIQ", 0, TYPES["s32"], groups) + quads(dims))


def blob_packed(fmt, dims, stride, size, options=b"", version=1, family=1, layout=None):
    elem, scale_dt, block, zp, zp_dt, global_scale = fmt
    if not layout:
        layout = LAYOUT_OF_INTEGERS if family == 2 and elem in ("s4", "u4") else LAYOUT_OF_BITS[BITS[elem]]
    body = struct.pack("<IIIIIBBHHHI", family, layout, 1, TYPES[scale_dt], TYPES[zp_dt],
                       ZERO_POINTS.index(zp), ["none", "one", "per_expert"].index(global_scale),
                       len(dims) - 2, 0, 0, 64)
    body += struct.pack("<QQQ", block, size, stride) + quads(dims)
    return seal(3, len(dims), elem, body, options, version, 2 if zp == "minimum" else 1)


# ---- Everything there is ----


def formats():
    for elem in ("f8_e4m3", "f8_e5m2", "f6_e2m3", "f6_e3m2", "f4_e2m1", "s8"):
        yield (elem, "e8m0", 32, "none", "undef", "none")
    for global_scale in ("none", "one", "per_expert"):
        yield ("f4_e2m1", "f8_e4m3", 16, "none", "undef", global_scale)
    for scale_dt in ("bf16", "f16", "f32"):
        for block in (32, 64, 128, 256):
            yield ("s4", scale_dt, block, "none", "undef", "none")
            yield ("u4", scale_dt, block, "none", "undef", "none")
            yield ("u4", scale_dt, block, "u8", "u8", "none")
            for zp_dt in ("bf16", "f16", "f32"):
                yield ("u4", scale_dt, block, "float_zero", zp_dt, "none")
                yield ("u4", scale_dt, block, "minimum", zp_dt, "none")
            yield ("s8", scale_dt, block, "none", "undef", "none")


SHAPES = [(33, 17), (291, 37), (2880, 33), (2, 65, 18)]
WHOLE = SHAPES[0]
INTEGERS = ("s4", "bf16", 32, "none", "undef", "none")  # whose bytes are kept for CUDA, too


def words(fmt, dims):
    elem, scale_dt, block, zp, zp_dt, global_scale = fmt
    return (f"dt={elem} scale={scale_dt} block={block} zp={zp} zp_dt={zp_dt} global={global_scale} "
            f"dims={'x'.join(map(str, dims))}")


def make():
    files, packed, blobs = {}, [], []
    seen = set()
    for fmt in formats():
        for dims in SHAPES:
            matrices = dims[0] if len(dims) == 3 else 1
            parts = [pack_matrix(fmt, e, dims[-2], dims[-1]) for e in range(matrices)]
            data = b"".join(parts)
            plain = blob_packed(fmt, dims, len(parts[0]), len(data))
            samples = [at for at in range(0, len(data) - 8, len(data) // 23) if 0 not in data[at : at + 8]][:9:4]
            packed.append(f"{words(fmt, dims)} size={len(data)} stride={len(parts[0])} xxh64={xxh64(data):016x} "
                          f"checksum={xxh64(data, xxh64(plain)):016x} "
                          + " ".join(f"at={at}:{data[at : at + 8].hex()}" for at in samples))
            if dims in (WHOLE, SHAPES[-1]):
                blobs.append(f"kind=packed {words(fmt, dims)} blob={plain.hex()}")
            # Formats whose parts have equal widths have equal bytes; one of them is enough.
            elem, scale_dt, block, _, zp_dt, global_scale = fmt
            widths = (BITS[elem], BYTES[scale_dt], block, BYTES[zp_dt], global_scale != "none")
            if dims == WHOLE and widths not in seen:
                seen.add(widths)
                name = f"b{widths[0]}_s{widths[1]}x{block}_z{widths[3]}" + ("_global" if widths[4] else "")
                files[f"packed/{name}_{'x'.join(map(str, dims))}.bin"] = data

    for fmt in formats():
        for dims in SHAPES:
            matrices = dims[0] if len(dims) == 3 else 1
            parts = [pack_matrix_cuda(fmt, e, dims[-2], dims[-1]) for e in range(matrices)]
            data = b"".join(parts)
            plain = blob_packed(fmt, dims, len(parts[0]), len(data), family=2)
            packed.append(f"family=cuda {words(fmt, dims)} size={len(data)} stride={len(parts[0])} "
                          f"xxh64={xxh64(data):016x} checksum={xxh64(data, xxh64(plain)):016x}")
            if dims == WHOLE and (fmt[1] == "e8m0" or fmt == INTEGERS):
                name = f"cuda_b{BITS[fmt[0]]}_s{BYTES[fmt[1]]}x32_z0"
                files[f"packed/{name}_{'x'.join(map(str, dims))}.bin"] = data

    for fmt in formats():
        for dims in SHAPES:
            if fmt[0] != "f4_e2m1":
                continue
            matrices = dims[0] if len(dims) == 3 else 1
            parts = [pack_matrix_cuda(fmt, e, dims[-2], dims[-1], for_fp8=True) for e in range(matrices)]
            data = b"".join(parts)
            plain = blob_packed(fmt, dims, len(parts[0]), len(data), family=2, layout=LAYOUT_FOR_FP8)
            packed.append(f"family=cuda layout=n64_f4 {words(fmt, dims)} size={len(data)} stride={len(parts[0])} "
                          f"xxh64={xxh64(data):016x} checksum={xxh64(data, xxh64(plain)):016x}")
            if dims == WHOLE and fmt[1] == "e8m0":
                files[f"packed/cuda_f4_s1x32_z0_{'x'.join(map(str, dims))}.bin"] = data

    def x(dims):
        return "x".join(map(str, dims))

    plain = [("f32", (16,), (1,)), ("bf16", (16, 2880), (2880, 1)), ("f16", (5, 7, 9), (63, 1, 7)),
             ("bf16", ("*", 2880), (2880, 1)), ("bf16", (2880, "*"), ("*", 1)), ("f4_e2m1", (17, 33), (34, 1)),
             ("u4", (33, 17), (1, 34)), ("f6_e3m2", (17, 33), (33, 1)), ("e8m0", (90, 33), (33, 1)),
             ("s8", (4, 16), (0, 1)), ("u64", (128,), (1,)), ("f32", (0, 7), (7, 1)),
             ("s32", (1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 3), (96, 48, 48, 24, 24, 12, 12, 6, 6, 3, 3, 1))]
    for elem, dims, strides in plain:
        blobs.append(f"kind=strided dt={elem} dims={x(dims)} strides={x(strides)} "
                     f"blob={blob_strided(elem, dims, strides).hex()}")
    for elem, dims, groups in (("bf16", ("*", 2880), 32), ("f32", (100, 33), 1), ("f8_e4m3", (0, 64), 8)):
        blobs.append(f"kind=grouped dt={elem} dims={x(dims)} groups={groups} "
                     f"blob={blob_grouped(elem, dims, groups).hex()}")

    # Annotations, and fields of releases to come, which have to survive as they are.
    mxfp4, size = ("f4_e2m1", "e8m0", 32, "none", "undef", "none"), 2 * (64 + 512)
    kind, recipe = option(1, struct.pack("<H", TYPES["bf16"])), "mxfp8:rceil:größer"
    text = option(2, recipe.encode())
    later, much_later = option(3, b"later"), option(0x7FFF, b"")
    for note, options, version in ((f"type=bf16 recipe={recipe}", kind + text, 1), ("type=bf16", kind, 1),
                                   (f"recipe={recipe}", text, 1), ("later=1", later + much_later, 1),
                                   (f"type=bf16 recipe={recipe} later=1", kind + text + later + much_later, 1),
                                   ("later=1", b"", 2), ("type=bf16 later=1", kind + later, 7),
                                   ("later=1", option(1, struct.pack("<H", 0x7777)) + text, 1)):
        blobs.append(f"kind=packed {words(mxfp4, WHOLE)} {note} "
                     f"blob={blob_packed(mxfp4, WHOLE, size, size, options, version).hex()}")
    blobs.append(f"kind=strided dt=bf16 dims=16x2880 strides=2880x1 type=f32 recipe={recipe} "
                 f"blob={blob_strided('bf16', (16, 2880), (2880, 1), option(1, struct.pack('<H', 3)) + text).hex()}")

    files["packed.txt"] = "".join(line + "\n" for line in packed).encode()
    files["blobs.txt"] = "".join(line + "\n" for line in blobs).encode()
    return files


def main():
    check, files = "--check" in sys.argv[1:], make()
    stale = [p for p in HERE.glob("packed/*.bin") if str(p.relative_to(HERE)) not in files]
    for name, data in files.items():
        path = HERE / name
        if path.exists() and path.read_bytes() == data:
            continue
        stale.append(path)
        if not check:
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(data)
    for path in stale:
        print(f"{path}: {'not what make_golden.py makes' if check else 'written'}")
    print(f"{len(files)} files, {sum(map(len, files.values()))} bytes")
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
