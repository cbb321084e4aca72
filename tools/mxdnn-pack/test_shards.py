# SPDX-License-Identifier: Apache-2.0
"""mxdnn-pack on checkpoints of several files, and its other commands and options: test_shards.py MXDNN_PACK."""

import json
import math
import os
import random
import re
import resource
import shutil
import signal
import struct
import subprocess
import tempfile
import time

import layouts
from layouts import read, write
from running import PACK, everything, refuses, run

R = random.Random(4)
INDEX = "model.safetensors.index.json"


def values(rows: int, cols: int, scale: float = 1.0) -> tuple[str, list[int], bytes]:
    return "F32", [rows, cols], struct.pack(f"<{rows * cols}f", *(R.gauss(0, scale) for _ in range(rows * cols)))


def write_index(folder: str, files: dict[str, dict], extra: dict | None = None) -> None:
    """The index of files, by their tensors."""
    names = {name: file for file, tensors in files.items() for name in tensors}
    with open(f"{folder}/{INDEX}", "w") as f:
        json.dump({"metadata": {"total_size": 1}, "weight_map": {**names, **(extra or {})}}, f)


def write_checkpoint(folder: str) -> dict[str, dict]:
    """Three files; a GPTQ layer is in two of them."""
    os.makedirs(folder)
    gptq = {c.name: c for c in layouts.all_cases()}["GPTQ, zero points"].tensors
    files = {
        "model-00001-of-00003.safetensors": {
            "model.embed_tokens.weight": values(64, 96),
            "l.0.up_proj.weight": values(150, 96),
            "m.q_proj.qweight": gptq["m.q_proj.qweight"],
            "m.q_proj.g_idx": gptq["m.q_proj.g_idx"],
        },
        "model-00002-of-00003.safetensors": {
            "l.0.down_proj.weight": values(96, 160, 0.1),
            "m.q_proj.qzeros": gptq["m.q_proj.qzeros"],
            "m.q_proj.scales": gptq["m.q_proj.scales"],
        },
        "model-00003-of-00003.safetensors": {
            "norm.weight": ("F32", [96], bytes(384)),
            "l.1.up_proj.weight": values(64, 64),
        },
    }
    for name, tensors in files.items():
        write(f"{folder}/{name}", tensors, {"format": "pt"})
    write_index(folder, files)
    return files


def check_round_trip() -> None:
    files = write_checkpoint("in")
    run("pack", "in", "out")
    packed = {name: read(f"out/{name}")[0] for name in files}
    index = json.load(open(f"out/{INDEX}"))
    assert index["weight_map"] == {t: name for name, tensors in packed.items() for t in tensors}
    assert sorted(os.listdir("out")) == sorted([*files, INDEX])
    # What is made of tensors in several files is where its codes were.
    assert "m.q_proj.weight.mxdnn_packed" in packed["model-00001-of-00003.safetensors"]
    assert read("out/model-00003-of-00003.safetensors")[1]["format"] == "pt"
    for given in ("out", f"out/{INDEX}"):
        assert "4 packed of 6 tensors, 6 checked" in run("list", given)
        assert "4 packed of 6 tensors, 6 checked" in run("verify", given)
    # One file, and any number of threads: the same bytes.
    for threads in ("1", "3"):
        run("pack", f"in/{INDEX}", "one.safetensors", "--threads", threads, "--part-mib", "0")
        one = read("one.safetensors")[0]
        assert one == {k: v for tensors in packed.values() for k, v in tensors.items()}, threads
    # And back.
    run("unpack", "out", "back")
    run("unpack", "one.safetensors", "back.safetensors")
    back = {k: v for name in files for k, v in read(f"back/{name}")[0].items()}
    assert back == read("back.safetensors")[0]
    assert json.load(open(f"back/{INDEX}"))["weight_map"]["m.q_proj.weight"] == "model-00001-of-00003.safetensors"
    # A file of its own into a folder.
    os.mkdir("single")
    run("pack", "in/model-00003-of-00003.safetensors", "single")
    assert os.listdir("single") == ["model-00003-of-00003.safetensors"]


def small_files() -> None:
    """For a child: no file becomes larger than this."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192))


def check_nothing_is_replaced() -> None:
    for name in ("model-00002-of-00003.safetensors", INDEX):
        os.mkdir("kept")
        with open(f"kept/{name}", "w") as f:
            f.write("mine")
        # Before anything is written.
        refuses("is there already", "pack", "in", "kept", preexec_fn=small_files)
        assert open(f"kept/{name}").read() == "mine"
        shutil.rmtree("kept")
    refuses("is there already", "pack", "in", "in")
    for name in ("model-00001-of-00003.safetensors", INDEX):
        refuses("is the input itself", "pack", "in", f"in/{name}")
    refuses("cannot make the folder", "pack", "in", "absent/never")
    refuses("File too large", "pack", "in", "never", preexec_fn=small_files)


def check_interruption() -> None:
    """A folder that is not finished leaves nothing; sparse files keep this quick.

    A signal may also come when the folder is finished and the program is not: then all of it is there."""
    os.mkdir("large")
    files = {}
    for i in range(3):
        name = f"model-{i + 1:05}-of-00003.safetensors"
        header = json.dumps(
            {f"l.{i}.up.weight": {"dtype": "F32", "shape": [8192, 2048], "data_offsets": [0, 1 << 26]}}
        ).encode()
        with open(f"large/{name}", "wb") as f:
            f.write(struct.pack("<Q", len(header)) + header)
            f.truncate(8 + len(header) + (1 << 26))
        files[name] = [f"l.{i}.up.weight"]
    write_index("large", files)
    before = everything()
    ended = 0
    for sent in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        for wait in (0.02, 0.1):
            child = subprocess.Popen(
                [PACK, "pack", "large", "packed"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            )
            time.sleep(wait)
            child.send_signal(sent)
            if child.wait() == 0:  # it was faster than that
                shutil.rmtree("packed")
                continue
            ended += 1
            assert child.returncode == -sent, (child.returncode, sent)
            if os.path.exists("packed"):
                run("verify", "packed")
                shutil.rmtree("packed")
            assert everything() == before, everything()
    print(f"{ended} of 6 runs were ended by a signal")
    # A file that is cut short while nobody looks is no bus error.
    os.truncate("large/model-00002-of-00003.safetensors", 1 << 20)
    refuses("model-00002-of-00003.safetensors", "pack", "large", "packed")
    shutil.rmtree("large")


def check_hostile_indices() -> None:
    os.mkdir("bad")
    a = {"a.weight": values(32, 32)}
    write("bad/a.safetensors", a)
    write("secret.safetensors", {"b.weight": values(32, 32)})

    def refused(words: str, index: object = None, text: str | None = None) -> None:
        with open(f"bad/{INDEX}", "w") as f:
            f.write(json.dumps(index) if text is None else text)
        for args in (("pack", "bad", "never"), ("verify", "bad"), ("diff", "bad", "bad"), ("unpack", "bad", "never")):
            refuses(words, *args)

    where = {"a.weight": "a.safetensors"}
    refused("is not JSON", text="{")
    refused("is not JSON", text="")
    refused("33554433 bytes; at most 33554432 are read", text=" " * 33554433)
    refused("nested more than", text="[" * 100000)
    refused(
        "the name 'a.weight' twice", text='{"weight_map": {"a.weight": "a.safetensors", "a.weight": "a.safetensors"}}'
    )
    for index in (None, [], {}, {"weight_map": []}, {"weight_map": "a"}):
        refused('no object "weight_map"', index)
    refused("it names no tensors", {"weight_map": {}})
    refused("is not a string", {"weight_map": {"a.weight": 1}})
    for name in ("../secret.safetensors", "/etc/passwd", "sub/a.safetensors", "..", ".", "", "a\0b", "..\\secret"):
        refused("does not name a file in the same folder", {"weight_map": {**where, "b.weight": name}})
    refused("absent.safetensors", {"weight_map": {**where, "b.weight": "absent.safetensors"}})
    refused("does not have it", {"weight_map": {**where, "b.weight": "a.safetensors"}})
    refused("does not have it", {"weight_map": {"b.weight": "a.safetensors"}})
    refused("names more than 10000 files", {"weight_map": {f"t{i}": f"f{i}" for i in range(10001)}})
    # The same tensor in two files, and one in another than the index says.
    write("bad/b.safetensors", a)
    refused("is in bad/a.safetensors and in bad/b.safetensors", {"weight_map": {**where, "b.weight": "b.safetensors"}})
    write("bad/b.safetensors", {"b.weight": values(32, 32), "c.weight": values(32, 32)})
    refused(
        "has it in 'b.safetensors'",
        {"weight_map": {"a.weight": "b.safetensors", "b.weight": "a.safetensors", "c.weight": "b.safetensors"}},
    )
    refused("does not have it", {"weight_map": {**where, "b.weight": "b.safetensors"}})
    # Files that are no safetensors, or cut.
    whole = {"weight_map": {**where, "b.weight": "b.safetensors", "c.weight": "b.safetensors"}}
    raw = open("bad/b.safetensors", "rb").read()
    for size in (0, 7, 8, 100, len(raw) - 1):
        with open("bad/b.safetensors", "wb") as f:
            f.write(raw[:size])
        refused("b.safetensors", whole)
    os.unlink("bad/b.safetensors")
    os.mkfifo("bad/b.safetensors")
    refused("not a regular file", whole)
    os.unlink(f"bad/{INDEX}")
    os.mkfifo(f"bad/{INDEX}")
    refuses("not a regular file", "pack", "bad", "never")
    os.unlink(f"bad/{INDEX}")
    refuses("has neither", "pack", "bad", "never")
    shutil.rmtree("bad")


def check_rules() -> None:
    run(
        "pack",
        "in",
        "r.safetensors",
        "--rule",
        "down_proj=mxfp8",
        "--rule",
        "l.1=keep",
        "--rule",
        "up=nvfp4",
        "--rule",
        "up=int4",
    )
    listed = run("list", "r.safetensors")
    assert re.search("'l.0.down_proj.weight'  f8_e4m3", listed) and re.search(
        "'l.0.up_proj.weight'  f4_e2m1.*global", listed
    ), listed
    assert "l.1.up_proj.weight" in read("r.safetensors")[0]
    # Codes keep their format, whatever the rules say.
    assert "'m.q_proj.weight'  u4" in listed, listed
    for rule, words in (
        ("x", "takes REGEX=FORMAT"),
        ("=mxfp4", "takes REGEX=FORMAT"),
        ("(=mxfp4", "a '(' without ')'"),
        ("x=mxfp5", "there is no format 'mxfp5'"),
        ("a{9999}=mxfp4", "a count above"),
        ("[b-a]=mxfp4", "does not ascend"),
    ):
        refuses(words, "pack", "in", "never", "--rule", rule)
    refuses("--transposed takes a regular expression", "pack", "in", "never", "--transposed", "(")


def check_dry_run() -> None:
    before = everything()
    said = run("pack", "in", "--dry-run", "--rule", "down_proj=mxfp8")
    assert "'l.0.down_proj.weight'  F32 -> mxfp8  61440 -> " in said, said
    assert "'m.q_proj.weight'  int4 codes of GPTQ -> u4 f16:64 u8, unchanged  " in said, said
    assert "4 tensors would be packed" in said and "embedding: 1" in said, said
    run("pack", "in", "never", "--dry-run")
    assert everything() == before
    sizes = {m[0]: int(m[1]) for m in re.findall(r"'(\S+)'  .* -> (\d+) bytes", said)}
    run("pack", "in", "d.safetensors", "--rule", "down_proj=mxfp8")
    listed = {m[0]: int(m[1]) for m in re.findall(r"'(\S+)'  \S+  (\d+) bytes", run("list", "d.safetensors"))}
    assert sizes == listed, (sizes, listed)
    refuses("output is required", "pack", "in", status=2)


def check_verify() -> None:
    refuses("has no checksums", "verify", "in")
    tensors, _ = read("d.safetensors")
    raw = open("d.safetensors", "rb").read()
    header = 8 + struct.unpack("<Q", raw[:8])[0]
    offsets = json.loads(raw[8:header])
    for name in ("l.0.up_proj.weight", "norm.weight"):
        stored = name if name in tensors else name + ".mxdnn_packed"
        changed = bytearray(raw)
        changed[header + offsets[stored]["data_offsets"][0] + 5] ^= 4
        with open("damaged.safetensors", "wb") as f:
            f.write(changed)
        refuses(f"'{name}'  REFUSED", "verify", "damaged.safetensors")
        refuses("damaged", "pack", "damaged.safetensors", "never", "--include", "norm", "--codes-only")
    # Whatever the target is.
    run("pack", "in", "cuda.safetensors", "--target", "cuda:sm_90")
    run("verify", "cuda.safetensors")


def sqnr(a: bytes, b: bytes) -> float:
    n = len(a) // 4
    pairs = list(zip(struct.unpack(f"<{n}f", a), struct.unpack(f"<{n}f", b)))
    return 10 * math.log10(sum(x * x for x, _ in pairs) / sum((x - y) ** 2 for x, y in pairs))


def check_diff() -> None:
    said = run("diff", "d.safetensors", "in", "--part-mib", "0", "--threads", "2")
    run("unpack", "d.safetensors", "d-back.safetensors")
    back = read("d-back.safetensors")[0]
    given = {k: v for name in os.listdir("in") if name != INDEX for k, v in read(f"in/{name}")[0].items()}
    found = re.findall(r"'(\S+)'  (\S+) dB", said)
    due = {name: sqnr(given[name][2], back[name][2]) for name, _ in found}
    assert len(found) == 3 and [name for name, _ in found] == sorted(due, key=lambda n: due[n]), (said, due)
    for name, text in found:
        assert abs(float(text) - due[name]) < 0.006, (name, text, due[name])
    assert "'m.q_proj.weight'  equal" in said and "2 copied ones equal, 0 changed, 0 not in" in said, said
    # Weights of another model.
    other = {**read("in/model-00003-of-00003.safetensors")[0], "l.1.up_proj.weight": values(64, 32)}
    write("other.safetensors", other)
    refuses("and the original is 64 x 32", "diff", "d.safetensors", "other.safetensors")
    other = {"l.1.up_proj.weight": given["l.1.up_proj.weight"], "norm.weight": ("F32", [96], b"\1" * 384)}
    write("other.safetensors", other)
    said = run("diff", "d.safetensors", "other.safetensors")
    assert (
        "'norm.weight'  copied, and other bytes" in said and "'l.0.up_proj.weight'  not in the original" in said
    ), said
    # The same bytes as another type, of other dims, and fewer of them.
    norm = given["norm.weight"][2]
    for dtype, dims in (("I32", [96]), ("F32", [4, 24]), ("F32", [48])):
        write("other.safetensors", {"norm.weight": (dtype, dims, norm[: 4 * math.prod(dims)])})
        said = run("diff", "d.safetensors", "other.safetensors")
        assert "'norm.weight'  copied, and other bytes" in said, (dtype, dims, said)
    nan = struct.pack("<f", math.nan)
    write("other.safetensors", {"l.1.up_proj.weight": ("F32", [64, 64], given["l.1.up_proj.weight"][2][:-4] + nan)})
    assert "'l.1.up_proj.weight'  1 weights that are not finite on one side" in run(
        "diff", "d.safetensors", "other.safetensors"
    )


def main() -> None:
    folder = tempfile.TemporaryDirectory()
    os.chdir(folder.name)
    for check in (
        check_round_trip,
        check_nothing_is_replaced,
        check_interruption,
        check_hostile_indices,
        check_rules,
        check_dry_run,
        check_verify,
        check_diff,
    ):
        check()
        print(check.__name__)
    print("mxdnn-pack on shards: all passed")


main()
