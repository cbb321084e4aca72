#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# mxdnn-pack as a user drives it: pack, list, unpack, what it refuses. Needs python3 to make checkpoints.
set -euo pipefail
pack=$1
command -v python3 >/dev/null || { echo "python3 is not here"; exit 77; }
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

fail() { echo "FAILED: $*"; exit 1; }
refuses() { # words of the message, then the command
    local words=$1
    shift
    if "$@" > out.txt 2>&1; then fail "not refused: $*"; fi
    grep -q -- "$words" out.txt || { cat out.txt; fail "'$words' is not in the message of: $*"; }
}

# Checkpoints: one of f32 and f16 weights, one of gpt-oss's blocks and scales. 200 = 6.25 blocks, 37 rows.
python3 - <<'PY'
import json, random, struct
def write(path, tensors, metadata={}):
    header, data = {"__metadata__": metadata} if metadata else {}, b""
    for name, dtype, shape, raw in tensors:
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    h = json.dumps(header).encode()
    h += b" " * (-len(h) % 8)
    open(path, "wb").write(struct.pack("<Q", len(h)) + h + data)
r = random.Random(20)
values = lambda n: [r.choice([0, .5, 1, 1.5, 2, 3, 4, 6, -.5, -1, -6]) for _ in range(n)]
# A block that holds 6 or -6 has the scale 1 under every rounding, and then MXFP4 keeps these values.
def rows(n, k):
    out = []
    for _ in range(n):
        row = values(k)
        for b in range(0, k, 32): row[b] = 6
        out += row
    return out
write("plain.safetensors", [
    ("wide.weight", "F32", [150, 96], struct.pack("<%df" % (150 * 96), *rows(150, 96))),
    ("layer.weight", "F32", [37, 200], struct.pack("<%df" % (37 * 200), *rows(37, 200))),
    ("experts.weight", "F16", [3, 16, 64], struct.pack("<%de" % (3 * 16 * 64), *rows(48, 64))),
    ("layer.bias", "F32", [37], struct.pack("<37f", *values(37)))], {"made_by": "a test"})
table = [0, .5, 1, 1.5, 2, 3, 4, 6, 0, -.5, -1, -1.5, -2, -3, -4, -6]
codes = [r.choice([c for c in range(16) if c != 8]) for _ in range(2 * 24 * 96)]
scales = [r.randrange(120, 134) for _ in range(2 * 24 * 3)]
write("oss.safetensors", [
    ("mlp.experts.gate_up_proj_blocks", "U8", [2, 24, 3, 16], bytes(codes[i] | codes[i + 1] << 4 for i in range(0, len(codes), 2))),
    ("mlp.experts.gate_up_proj_scales", "U8", [2, 24, 3], bytes(scales)),
    ("mlp.router.weight", "BF16", [2, 96], bytes(2 * 2 * 96))])
json.dump([table[c] * 2.0 ** (scales[i // 32] - 127) for i, c in enumerate(codes)], open("oss.json", "w"))
PY

"$pack" pack plain.safetensors packed.safetensors --format mxfp4 --recipe "bf16 source"
"$pack" list packed.safetensors | tee list.txt
grep -q "3 packed of 7 tensors" list.txt || fail "list"
"$pack" unpack packed.safetensors back.safetensors
"$pack" pack oss.safetensors oss-packed.safetensors --codes-only
"$pack" unpack oss-packed.safetensors oss-back.safetensors
python3 - <<'PY'
import json, struct
def read(path):
    raw = open(path, "rb").read()
    n = struct.unpack("<Q", raw[:8])[0]
    header = json.loads(raw[8:8 + n])
    return {k: (v["dtype"], v["shape"], raw[8 + n + v["data_offsets"][0]:8 + n + v["data_offsets"][1]])
            for k, v in header.items() if k != "__metadata__"}, header.get("__metadata__")
def floats(t):
    code = {"F32": "f", "F16": "e"}[t[0]]
    return list(struct.unpack("<%d%s" % (len(t[2]) // struct.calcsize(code), code), t[2]))
a, am = read("plain.safetensors")
b, bm = read("back.safetensors")
assert am == bm, (am, bm)
assert a.keys() == b.keys(), b.keys()
for name in a: assert a[name][1] == b[name][1] and floats(a[name]) == floats(b[name]), name
o, _ = read("oss-back.safetensors")
assert o["mlp.experts.gate_up_proj"][1] == [2, 24, 96], o["mlp.experts.gate_up_proj"][1]
assert floats(o["mlp.experts.gate_up_proj"]) == json.load(open("oss.json"))
assert o["mlp.router.weight"][0] == "BF16"
PY

# In the smallest parts: the same bytes, and the same values of them.
for format in mxfp4 nvfp4 int4; do
    "$pack" pack plain.safetensors whole.safetensors --format $format
    "$pack" pack plain.safetensors parts.safetensors --format $format --part-mib 0
    cmp whole.safetensors parts.safetensors || fail "$format in parts has other bytes"
    "$pack" unpack whole.safetensors whole-back.safetensors
    "$pack" unpack parts.safetensors parts-back.safetensors --part-mib 0
    cmp whole-back.safetensors parts-back.safetensors || fail "$format in parts has other values"
done
"$pack" pack oss.safetensors oss-parts.safetensors --codes-only --part-mib 0
cmp oss-packed.safetensors oss-parts.safetensors || fail "codes in parts have other bytes"

# For another machine: the same bytes as for this one.
"$pack" pack plain.safetensors amx.safetensors --target cpu:x64:avx512_core_amx --recipe "bf16 source"
cmp packed.safetensors amx.safetensors || fail "bytes depend on the target"

# What it refuses; a file that was there stays as it was.
cp packed.safetensors keep.safetensors
refuses "there is no format 'mxfp5'" "$pack" pack plain.safetensors packed.safetensors --format mxfp5
refuses "no weights to pack" "$pack" pack plain.safetensors packed.safetensors --include nothing
refuses "regular expressions" "$pack" pack plain.safetensors packed.safetensors --include '('
refuses "there is no rounding" "$pack" pack plain.safetensors packed.safetensors --rounding up
refuses "absent.safetensors" "$pack" pack absent.safetensors packed.safetensors
refuses "target" "$pack" pack plain.safetensors packed.safetensors --target cpu:mips
refuses "has no packed weights" "$pack" unpack plain.safetensors packed.safetensors
head -c 3000 packed.safetensors > cut.safetensors
refuses "cut.safetensors" "$pack" list cut.safetensors
cmp packed.safetensors keep.safetensors || fail "a refused command changed its output file"
# One byte of packed weights changed: the checksum says so.
python3 -c "
b = bytearray(open('packed.safetensors', 'rb').read()); n = 8 + int.from_bytes(b[:8], 'little')
b[n + 100] ^= 1; open('bad.safetensors', 'wb').write(b)"
refuses "damaged" "$pack" list bad.safetensors
refuses "damaged" "$pack" unpack bad.safetensors never.safetensors
[ ! -e never.safetensors ] || fail "a refused command left a file"
# What is packed already goes through another pack as it is, if it is whole.
"$pack" pack plain.safetensors some.safetensors --include layer.weight
"$pack" pack some.safetensors more.safetensors --format nvfp4
"$pack" list more.safetensors | tee list.txt
grep -q "3 packed of 7 tensors" list.txt || fail "packing in two steps"
python3 -c "
b = bytearray(open('some.safetensors', 'rb').read()); n = 8 + int.from_bytes(b[:8], 'little')
b[n + 100] ^= 1; open('bad.safetensors', 'wb').write(b)"
refuses "damaged" "$pack" pack bad.safetensors never.safetensors
[ ! -e never.safetensors ] || fail "a refused command left a file"
# Another target's layout is named, and read for that target.
"$pack" pack plain.safetensors cuda.safetensors --target cuda:sm_90
refuses "is packed for cuda, not for cpu" "$pack" list cuda.safetensors
"$pack" unpack cuda.safetensors cuda-back.safetensors --target cuda:sm_90
cmp back.safetensors cuda-back.safetensors || fail "values depend on the target"
refuses "there is no command 'repack'; possible are pack unpack list" "$pack" repack plain.safetensors
echo "mxdnn-pack: all passed"
