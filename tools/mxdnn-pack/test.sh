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
    ("experts.weight", "F16", [3, 32, 64], struct.pack("<%de" % (3 * 32 * 64), *rows(96, 64))),
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
grep -q "3 packed of 4 tensors, 4 checked" list.txt || fail "list"
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
for format in mxfp4 nvfp4 int4 int4_zp; do
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
refuses "output is required" "$pack" pack plain.safetensors
refuses "regular expression; this one has" "$pack" pack plain.safetensors packed.safetensors --include '('
refuses "there is no rounding" "$pack" pack plain.safetensors packed.safetensors --rounding up
refuses "nvfp4 has others" "$pack" pack plain.safetensors packed.safetensors --format nvfp4 --rounding floor
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
grep -q "3 packed of 4 tensors, 4 checked" list.txt || fail "packing in two steps"
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

# What is packed without options: weights of linears and experts, and nothing else of a checkpoint.
python3 - <<'PY'
import json, struct
def write(path, names):
    header, at = {}, 0
    for name, dtype, shape in names:
        size = {"BF16": 2, "U8": 1, "F32": 4}[dtype]
        for d in shape: size *= d
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + size]}
        at += size
    h = json.dumps(header).encode()
    open(path, "wb").write(struct.pack("<Q", len(h)) + h + bytes(at))
m = "model.layers.0."
write("gpt-oss.safetensors", [("model.embed_tokens.weight", "BF16", [64, 96]), ("lm_head.weight", "BF16", [64, 96]),
    (m + "self_attn.q_proj.weight", "BF16", [64, 96]), (m + "self_attn.q_proj.bias", "BF16", [64]),
    (m + "self_attn.sinks", "BF16", [64]), (m + "mlp.router.weight", "BF16", [32, 96]),
    (m + "mlp.router.bias", "BF16", [32]), (m + "mlp.experts.gate_up_proj_bias", "BF16", [32, 64]),
    (m + "mlp.experts.gate_up_proj_blocks", "U8", [32, 64, 3, 16]), (m + "mlp.experts.gate_up_proj_scales", "U8", [32, 64, 3]),
    (m + "input_layernorm.weight", "BF16", [96])])
PY
"$pack" pack gpt-oss.safetensors default.safetensors | tee out.txt
for words in "bias: 1," "embedding: 1," "output head: 1," "router: 1," "vector or scalar: 4,"; do
    grep -q "  $words" out.txt || fail "what is left does not say $words"
done
"$pack" list default.safetensors | tee out.txt
grep -q "2 packed of 10 tensors, 10 checked" out.txt || fail "the default packs something else"
grep -q "^'model.layers.0.self_attn.q_proj.weight' " out.txt || fail "q_proj is not packed"
grep -q "^'model.layers.0.mlp.experts.gate_up_proj' " out.txt || fail "codes are not packed"
"$pack" pack gpt-oss.safetensors default.safetensors --include 'router|q_proj' > out.txt
"$pack" list default.safetensors | grep -q "2 packed of 11 tensors" || fail "--include does not override the rule"
"$pack" pack gpt-oss.safetensors default.safetensors --exclude 'q_proj' > out.txt
grep -q "in --exclude: 1," out.txt || fail "--exclude"
"$pack" pack --help > out.txt
grep -q "router: " out.txt || fail "--help has no rule"

# Copied tensors have checksums, too.
python3 -c "
b = bytearray(open('packed.safetensors', 'rb').read()); n = 8 + int.from_bytes(b[:8], 'little')
import json; o = json.loads(b[8:n])['layer.bias']['data_offsets']
b[n + o[0]] ^= 1; open('bad.safetensors', 'wb').write(b)"
for command in "list bad.safetensors" "unpack bad.safetensors never" "pack bad.safetensors never --include bias"; do
    refuses "damaged\|no weights" "$pack" $command
done
refuses "tensor 'layer.bias' is damaged" "$pack" list bad.safetensors
refuses "tensor 'layer.bias' is damaged" "$pack" unpack bad.safetensors never

# Files from strangers: an answer at once and in little memory, whatever they say.
python3 - <<'PY'
import json, struct
def write(path, tensors, metadata={}, data=b""):
    h = json.dumps({**({"__metadata__": metadata} if metadata else {}), **tensors}).encode()
    open(path, "wb").write(struct.pack("<Q", len(h)) + h + data)
def at(dtype, shape, begin=0, end=0): return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}
secret = bytes(range(256)) * 64
w = {"w.weight": at("F32", [64, 64], 0, 16384)}
big = 1 << 40
write("k0.in", {**w, "x_blocks": at("U8", [2, 24, 0, 16], 16384, 16384), "x_scales": at("U8", [2, 24, 0], 16384, 16384)}, data=secret)
write("e0.in", {**w, "x_blocks": at("U8", [0, 24, 3, 16], 16384, 16384), "x_scales": at("U8", [0, 24, 3], 16384, 16384)}, data=secret)
write("many.in", {**w, "x.weight": at("F32", [big, 0, 64], 16384, 16384), "y_blocks": at("U8", [big, 64, 0], 16384, 16384),
    "y_scales": at("U8", [big, 64, 0], 16384, 16384)}, data=secret)
write("wrap.in", {"x_blocks": at("U8", [0, 1 << 33, 1 << 30], 0, 0), "x_scales": at("U8", [0, 1 << 33, 1], 0, 0)})
write("long.in", {"n" * 30000: at("F32", [64, 64], 0, 16384)}, data=secret)
write("escape.in", {"a\x1b[31m\n'.weight": at("F32", [64, 64], 0, 16384)}, data=secret)
write("pattern.in", {"a" * 4000 + "b": at("F32", [64, 64], 0, 16384)}, data=secret)
write("twice.in", {"x": at("F32", [64, 64], 0, 16384), "x_blocks": at("U8", [0, 24, 3, 16], 16384, 16384),
    "x_scales": at("U8", [0, 24, 3], 16384, 16384)}, data=secret)
write("both.in", {"w.weight.mxdnn_packed": at("U8", [0]), **w}, data=secret)
PY
# A sanitizer reserves more addresses than a limit leaves; then time alone is bounded.
most_kib=8000000
(ulimit -v $most_kib && "$pack" --help >/dev/null 2>&1) || most_kib=unlimited
bounded() { (ulimit -v $most_kib && timeout 20 "$@"); }
for file in k0 e0 many; do
    bounded "$pack" pack $file.in never > out.txt || fail "$file.in is not packed: $(cat out.txt)"
    grep -q "1 tensors packed" out.txt && grep -q "without elements" out.txt || fail "$file.in"
    bounded "$pack" list never > out.txt || fail "$file.in packed"
    bounded "$pack" unpack never back > out.txt || fail "$file.in unpacked"
done
rm never back
refuses "do not belong together\|no weights\|larger than" bounded "$pack" pack wrap.in never
refuses "has 30000 bytes; 1 to 4096 are read" bounded "$pack" pack long.in never
refuses "a tensor 'w.weight' and packed weights of that name" bounded "$pack" list both.in
refuses "there is a tensor of that name already" bounded "$pack" pack twice.in never
bounded "$pack" pack escape.in never > out.txt
"$pack" list never >> out.txt
refuses "no weights" "$pack" pack escape.in never2 --include nothing
if grep -q $'\x1b' out.txt; then fail "a name reaches the terminal as it is"; fi
rm never
refuses "no weights" bounded "$pack" pack pattern.in never --include '^(a+)+$'
# No descriptor that says 0 experts is taken for one that says nothing of experts.
python3 - <<'PY'
import json, struct
M = (1 << 64) - 1
P = [0x9e3779b185ebca87, 0xc2b2ae3d27d4eb4f, 0x165667b19e3779f9, 0x85ebca77c2b2ae63, 0x27d4eb2f165667c5]
rot = lambda x, r: (x << r | x >> (64 - r)) & M
mix = lambda a, l: rot((a + l * P[1]) & M, 31) * P[0] & M
def xxh64(b, seed=0):
    i, n = 0, len(b)
    if n >= 32:
        a = [(seed + P[0] + P[1]) & M, (seed + P[1]) & M, seed, (seed - P[0]) & M]
        while i + 32 <= n:
            for k in range(4): a[k] = mix(a[k], struct.unpack_from("<Q", b, i + 8 * k)[0])
            i += 32
        h = sum(rot(x, r) for x, r in zip(a, (1, 7, 12, 18))) & M
        for x in a: h = ((h ^ mix(0, x)) * P[0] + P[3]) & M
    else: h = (seed + P[4]) & M
    h = (h + n) & M
    while i + 8 <= n: h = (rot(h ^ mix(0, struct.unpack_from("<Q", b, i)[0]), 27) * P[0] + P[3]) & M; i += 8
    if i + 4 <= n: h = (rot(h ^ struct.unpack_from("<I", b, i)[0] * P[0] & M, 23) * P[1] + P[2]) & M; i += 4
    for c in b[i:]: h = rot(h ^ c * P[4] & M, 11) * P[0] & M
    h = (h ^ h >> 33) * P[1] & M
    h = (h ^ h >> 29) * P[2] & M
    return h ^ h >> 32
raw = open("packed.safetensors", "rb").read()
n = 8 + int.from_bytes(raw[:8], "little")
header = json.loads(raw[8:n])
begin, end = header["experts.weight.mxdnn_desc"]["data_offsets"]
blob = bytearray(raw[n + begin:n + end])
assert xxh64(bytes(blob[:-8])) == int.from_bytes(blob[-8:], "little")
struct.pack_into("<Q", blob, 64, 0) # packed_size
struct.pack_into("<Q", blob, 80, 0) # experts
blob[-8:] = struct.pack("<Q", xxh64(bytes(blob[:-8])))
# The seed of packed bytes is that of the blob without its optional fields, which end the blob before the checksum.
core = bytearray(blob[:80 + 3 * 8])
struct.pack_into("<I", core, 12, len(core) + 8)
core += struct.pack("<Q", xxh64(bytes(core)))
sum_ = "%016x" % xxh64(b"", xxh64(bytes(core)))
h = json.dumps({"__metadata__": {"w.mxdnn_checksum": sum_},
    "w.mxdnn_packed": {"dtype": "U8", "shape": [0], "data_offsets": [0, 0]},
    "w.mxdnn_desc": {"dtype": "U8", "shape": [len(blob)], "data_offsets": [0, len(blob)]}}).encode()
h += b" " * (-(8 + len(h)) % 64)
open("none.in", "wb").write(struct.pack("<Q", len(h)) + h + blob)
PY
bounded "$pack" list none.in || fail "0 experts are not listed"
bounded "$pack" unpack none.in never > out.txt || fail "0 experts are not unpacked: $(cat out.txt)"
python3 -c "
import json; b = open('never', 'rb').read(); n = 8 + int.from_bytes(b[:8], 'little')
assert json.loads(b[8:n])['w']['shape'] == [0, 32, 64] and len(b) == n, b"
rm never

# Paths: the input itself by any name, what is no file, what is full.
cp plain.safetensors in.safetensors
ln in.safetensors hard && ln -s in.safetensors soft && mkdir folder && mkfifo pipe pipe.gguf
for out in in.safetensors ./in.safetensors hard soft; do
    refuses "is the input itself" "$pack" pack in.safetensors $out
done
refuses "is the input itself" "$pack" unpack packed.safetensors packed.safetensors
for out in pipe /dev/null /dev/full; do refuses "no regular file" "$pack" pack in.safetensors $out; done
cmp plain.safetensors in.safetensors || fail "the input has changed"
for command in "list pipe" "unpack pipe never" "pack pipe never" "list /dev/zero" "pack pipe.gguf never"; do
    refuses "not a regular file" timeout 10 "$pack" $command
done
refuses "has neither model.safetensors.index.json nor model.safetensors" timeout 10 "$pack" list folder
refuses "cannot create a file beside" "$pack" pack in.safetensors absent/never
# ThreadSanitizer writes a larger file of its own when a program begins.
if (ulimit -f 8 && "$pack" --help >/dev/null 2>&1); then
    (ulimit -f 8 && refuses "cannot write never: File too large" "$pack" pack in.safetensors never)
fi
[ ! -e never ] || fail "a refused command left a file"
if "$pack" list packed.safetensors > /dev/full 2> out.txt; then fail "a list that was not written"; fi
grep -q "cannot write to standard output" out.txt || fail "a list that was not written"
ls -A | grep '\.tmp$' && fail "a temporary file is left"

refuses "there is no command 'repack'; possible are pack unpack list verify diff" "$pack" repack plain.safetensors
refuses "mxdnn-pack: option '--fromat' is not known; mxdnn-pack pack --help says more" \
    "$pack" pack plain.safetensors never --fromat mxfp4
refuses "mxdnn-pack: 'more' is one argument too many" "$pack" list plain.safetensors more
"$pack" --version | grep -qE '^mxdnn-pack [0-9]+\.[0-9]+\.[0-9]+, commit' || fail "no version"
# What is no weight in high precision stays what it is, whatever --include says, and that is said.
python3 - <<'PY'
import json, struct
header, at = {}, 0
for name, dtype, shape, size in [("a.weight", "F32", [64, 64], 16384), ("i.weight", "I64", [8, 8], 512),
                                 ("c.weight", "F32", [2, 2, 8, 8], 1024), ("s.weight", "F32", [64], 256),
                                 ("z.weight", "F32", [0, 64], 0)]:
    header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + size]}
    at += size
text = json.dumps(header).encode()
open("kinds.safetensors", "wb").write(struct.pack("<Q", len(text)) + text + bytes(at))
PY
"$pack" pack kinds.safetensors kinds-packed.safetensors --include weight > out.txt
for line in "1 tensors packed" "of another type than F32, BF16 and F16: 1, such as 'i.weight'" \
    "of more than three dims: 1, such as 'c.weight'" "vector or scalar: 1, such as 's.weight'" \
    "without elements: 1, such as 'z.weight'"; do
    grep -qF -- "$line" out.txt || { cat out.txt; fail "'$line' is not said"; }
done
refuses "no codes: 1, such as 'a.weight'" "$pack" pack kinds.safetensors never.safetensors --codes-only
refuses "packed already: 1, such as 'a.weight'" "$pack" pack kinds-packed.safetensors never.safetensors

echo "mxdnn-pack: all passed"
