#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What mxdnn-pack needs beside its files: tensors much larger than the memory it may take, packed and unpacked whole
# and cut; and that a process that is ended, or whose input changes, leaves nothing. MXDNN_SLOW_TESTS=1 takes tensors of 2 GB.
set -euo pipefail
pack=$1
command -v python3 >/dev/null || { echo "python3 is not here"; exit 77; }
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

python3 - "$pack" "${MXDNN_SLOW_TESTS:-0}" <<'PY'
import json, os, signal, struct, subprocess, sys, time
pack, slow = sys.argv[1], sys.argv[2] == "1"
limit_mib = 64

# Every thread takes a part of a tensor, so the number of them is given.
threads = ["--threads", "2"]

# Sparse files of zeros, but for a value in each tensor.
def write(path, tensors):
    header, at = {}, 0
    for name, shape in tensors:
        size = 2
        for d in shape: size *= d
        header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [at, at + size]}
        at += size
    h = json.dumps(header).encode()
    h += b" " * (-(8 + len(h)) % 64)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(h)) + h)
        f.truncate(8 + len(h) + at)
        for t in header.values():
            f.seek(8 + len(h) + (t["data_offsets"][0] + t["data_offsets"][1]) // 4 * 2)
            f.write(struct.pack("<H", 0x3f80))
    return at

def run(*args):
    child = os.posix_spawn(pack, [pack, *args], os.environ)
    _, status, usage = os.wait4(child, 0)
    assert status == 0, (args, status)
    mib = usage.ru_maxrss / 1024
    print("%-60s %5.1f MiB" % (" ".join(args), mib))
    assert mib < limit_mib, "more than %d MiB of memory: %s" % (limit_mib, " ".join(args))

many = 8 if slow else 1
total = write("in.safetensors", [("experts.weight", [48 * many, 1408, 1024]), ("matrix.weight", [32768 * many, 1024]), ("copied", [1 << 25])])
print("%.2f GB of input" % (total / 1e9))
for format in ("mxfp4", "nvfp4"):
    run("pack", "in.safetensors", format, "--format", format, *threads)
    run("list", format)
    run("unpack", format, "out.safetensors", "--type", "bf16", *threads)
    with open("in.safetensors", "rb") as a, open("out.safetensors", "rb") as b:
        a.seek(-total, 2), b.seek(-total, 2)
        # The order of tensors may differ: sums of bytes do not.
        sums = [0, 0]
        for i, f in enumerate((a, b)):
            while part := f.read(1 << 22): sums[i] += len(part) - part.count(0)
        assert sums[0] == sums[1], sums

# Ended while it works: what was there stays, and nothing else is there.
before = sorted(os.listdir("."))
old = open("mxfp4", "rb").read(4096)
def nameless():
    try: os.close(os.open(".", os.O_TMPFILE | os.O_RDWR))
    except OSError: return False
    return True
def start(out, **kw): return subprocess.Popen([pack, "pack", "in.safetensors", out, "--format", "nvfp4"],
    stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, **kw)
def ended(child):
    said = child.communicate()[1].decode()
    print("%4d %s" % (child.returncode, said.strip()))
    return child.returncode
for sent in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL):
    for out in ("mxfp4", "new"):
        child = start(out)
        time.sleep(0.15)
        child.send_signal(sent)
        if ended(child) == 0: # it was faster than that
            os.replace(out, "mxfp4")
            old = open("mxfp4", "rb").read(4096)
            continue
        assert child.returncode == -sent
        if sent != signal.SIGKILL or nameless(): assert sorted(os.listdir(".")) == before, (sent, os.listdir("."))
        assert open("mxfp4", "rb").read(4096) == old
# An input that shrinks, or is written to, is refused with a sentence, and is no bus error.
size = os.path.getsize("in.safetensors")
for change in (lambda: os.truncate("in.safetensors", size // 8), lambda: os.utime("in.safetensors", (1, 1))):
    child = start("new")
    time.sleep(0.15)
    change()
    assert ended(child) in (0, 1)
    assert child.returncode == 0 or sorted(os.listdir(".")) == before, os.listdir(".")
    if child.returncode == 0: os.unlink("new")
    os.truncate("in.safetensors", size)
PY
echo "mxdnn-pack in little memory: all passed"
