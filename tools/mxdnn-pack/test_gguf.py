# SPDX-License-Identifier: Apache-2.0
"""mxdnn-pack on GGUF files: test_gguf.py MXDNN_PACK BLOCKS_GGUF.

BLOCKS_GGUF has every type of blocks that is read, and beside each tensor X what it is worth as X.values, written by
another implementation (tests/gtests/golden_gguf).
"""

import json
import os
import struct
import sys
import tempfile

from layouts import read
from running import refuses, run

BLOCKS = os.path.abspath(sys.argv[2])
KEPT = ["Q4_0", "Q4_1", "Q5_0", "Q8_0", "MXFP4", "NVFP4"]
LOST = ["Q5_1", "Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K"]


def text(s: str) -> bytes:
    return struct.pack("<Q", len(s.encode())) + s.encode()


def write(path: str, tensors: list[tuple[str, int, list[int], bytes]], keys: bytes = b"", key_count: int = 0) -> None:
    """A GGUF file of tensors (name, type, dims from the outermost on, bytes)."""
    infos, data = b"", b""
    for name, kind, dims, raw in tensors:
        infos += text(name) + struct.pack("<I", len(dims)) + struct.pack(f"<{len(dims)}Q", *reversed(dims))
        infos += struct.pack("<IQ", kind, len(data))
        data += raw + bytes(-len(raw) % 32)
    header = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), key_count) + keys + infos
    with open(path, "wb") as f:
        f.write(header + bytes(-len(header) % 32) + data)


def floats(tensor: tuple[str, list[int], bytes]) -> list[float]:
    return [x[0] for x in struct.iter_unpack("<f", tensor[2])]


def check_values() -> None:
    """Packed and unpacked, or left and written as F32: every tensor is worth what it was worth."""
    for part in ("0", "4"):
        run("pack", BLOCKS, "out.safetensors", "--codes-only", "--part-mib", part, "--threads", "2")
        packed, metadata = read("out.safetensors")
        for name in [f"{k}{end}.weight" for k in [*KEPT, "scaled"] for end in ("", "_exps")]:
            assert name + ".mxdnn_packed" in packed and name not in packed, name
        assert "scaled.scale" not in packed and "scaled_exps.scale" not in packed
        run("unpack", "out.safetensors", "back.safetensors")
        back, _ = read("back.safetensors")
        compared = 0
        for name, tensor in back.items():
            values = back.get(name + ".values")
            if values:
                assert tensor[:2] == values[:2] and floats(tensor) == floats(values), name
                compared += 1
        assert compared == 2 * len(KEPT + LOST) + 2, compared
        assert back["integers"] == ("I32", [7], struct.pack("<7i", *range(-3, 4)))
        assert back["half.weight"][0] == "F16" and back["bfloat.weight"][0] == "BF16"
    assert json.loads(metadata["gguf.general.architecture"]) == "golden"
    assert json.loads(metadata["gguf.a.strings"]) == ["a", "", "Ġthe"]
    assert json.loads(metadata["gguf.a.u64"]) == 2**63 + 1 and json.loads(metadata["gguf.a.i64"]) == -(2**63)
    assert json.loads(metadata["gguf.a.floats"]) == [0.5, -2.0] and json.loads(metadata["gguf.a.bool"]) is True
    said = run("list", "out.safetensors")
    assert f"{2 * len(KEPT) + 2} packed of" in said, said
    run("verify", "out.safetensors")
    said = run("diff", "out.safetensors", BLOCKS)
    assert said.count("  equal\n") == 2 * len(KEPT) + 2 and "0 changed, 0 not in" in said, said


def check_requantised() -> None:
    """Blocks that no format holds: refused, or quantised again with the error of each."""
    refuses("--requantise", "pack", BLOCKS, "never.safetensors", "--include", "_K")
    said = run("pack", BLOCKS, "out.safetensors", "--requantise", "--include", r"^Q.*weight$", "--format", "nvfp4")
    for kind in LOST:
        assert f"'{kind}.weight'  {kind} -> nvfp4, quantised again: " in said, (kind, said)
    assert "'Q4_0.weight'" not in said, said
    plain = run("pack", BLOCKS, "plain.safetensors", "--include", r"^Q.*weight\.values$", "--format", "nvfp4")
    assert "quantised again" not in plain, plain
    out, due = read("out.safetensors")[0], read("plain.safetensors")[0]
    for kind in LOST:
        assert out[f"{kind}.weight.mxdnn_packed"] == due[f"{kind}.weight.values.mxdnn_packed"], kind
    said = run("diff", "out.safetensors", BLOCKS)
    assert said.count(" dB\n") == 2 * len(LOST), said
    # What is left out is written as what it is worth.
    said = run("pack", BLOCKS, "out.safetensors", "--include", "weight$", "--exclude", "Q[2-8]|half|bfl")
    assert "in --exclude" in said, said
    out, _ = read("out.safetensors")
    assert floats(out["Q6_K.weight"]) == floats(out["Q6_K.weight.values"])
    said = run("pack", BLOCKS, "--dry-run", "--codes-only")
    assert "'Q4_0.weight'  Q4_0 -> s4 f16:32, unchanged  432 -> " in said, said
    assert "'Q8_0.weight'  Q8_0 -> int8, unchanged" in said and "'Q4_1.weight'  Q4_1 -> int4_min, unch" in said, said
    # Where no format is asked for, the nearest: Q4_K keeps its codes.
    said = run("pack", BLOCKS, "out.safetensors", "--requantise", "--include", "Q[2-8].*weight$")
    for kind in LOST:
        due = "int4_min" if kind == "Q4_K" else "int8"
        assert f"'{kind}.weight'  {kind} -> {due}, quantised again: " in said, (kind, said)


def check_refusals() -> None:
    """Files that are wrong, or that say what mxdnn does not have: a sentence, and no output."""
    args = ("pack", "in.gguf", "never.safetensors")
    row = bytes(17)
    write("in.gguf", [("w.weight", 39, [32, 32], row * 32)])
    run("pack", "in.gguf", "ok.safetensors")
    write("in.gguf", [("w.weight", 39, [32, 32], row * 31 + b"\xff" + row[1:])])
    refuses("scale code 255", *args)
    write("in.gguf", [("w.weight", 40, [32, 64], bytes(36 * 31) + b"\x00\x00\x7f" + bytes(33))])
    refuses("scale code 127", *args)
    for scale in (0.0, -1.0, float("nan"), float("inf")):
        scales = [("w.weight", 40, [32, 64], bytes(36 * 32)), ("w.scale", 0, [1], struct.pack("<f", scale))]
        write("in.gguf", scales)
        refuses("global scales are finite and above zero", *args)
    write("in.gguf", [("w.weight", 40, [32, 64], bytes(36 * 32)), ("w.scale", 0, [2], bytes(8))])
    refuses("must have one number", *args)
    write("in.gguf", [("w.weight", 16, [32, 256], bytes(66 * 32))])
    refuses("is of type IQ2_XXS, which is not read", *args)
    write("in.gguf", [("w.mxdnn_packed", 0, [4], bytes(16))])
    refuses("has the name of a packed one", *args)
    write("in.gguf", [("w.weight", 39, [32, 32], row * 32)], text("split.count") + struct.pack("<IH", 2, 3), 1)
    refuses("its name must end with -00001-of-00003.gguf", *args)
    write("in.gguf", [("v", 0, [4], bytes(16))])
    refuses("no weights to pack", *args)
    refuses("no packed weights", "unpack", "in.gguf", "never.safetensors")
    refuses("no checksums", "verify", "in.gguf")
    whole = open(BLOCKS, "rb").read()
    for size in (0, 3, 24, 100, 3000, len(whole) // 2, len(whole) - 40):
        with open("in.gguf", "wb") as f:
            f.write(whole[:size])
        refuses("in.gguf", *args, "--codes-only")
    # Without the name of one, by its first bytes.
    os.rename("in.gguf", "cut.bin")
    refuses("cut.bin", "pack", "cut.bin", "never.safetensors")
    refuses("is the input itself", "pack", BLOCKS, BLOCKS)


def check_parts() -> None:
    """A file of three parts is one checkpoint; all parts have to be there and to say the same."""

    def part(i: int, number: int, count: int = 3, tensors: int = 3) -> None:
        keys = text("split.no") + struct.pack("<IH", 2, number) + text("split.count") + struct.pack("<IH", 2, count)
        keys += text("split.tensors.count") + struct.pack("<Ii", 5, tensors)
        raw = bytes([128 + i, *range(16)]) * 32
        write(f"p-0000{i + 1}-of-00003.gguf", [(f"w{i}.weight", 39, [32, 32], raw)], keys, 3)

    for i in range(3):
        part(i, i)
    given = "p-00002-of-00003.gguf"
    run("pack", given, "one.safetensors")
    run("pack", given, "several")
    assert sorted(os.listdir("several")) == ["model.safetensors.index.json"] + [
        f"p-0000{i}-of-00003.safetensors" for i in (1, 2, 3)
    ]
    assert read("one.safetensors")[1].keys() == {f"w{i}.weight.mxdnn_checksum" for i in range(3)}
    for packed in ("one.safetensors", "several"):
        assert run("diff", packed, given).count("  equal\n") == 3
        assert "3 packed of 3" in run("list", packed)
    part(0, 0, tensors=4)
    refuses("says that all parts have 4 tensors; they have 3", "pack", given, "never")
    part(0, 1)
    refuses("says that it is part 2 of 3", "pack", given, "never")
    part(0, 0, count=2)
    refuses("says that it is part 1 of 2", "pack", given, "never")
    os.unlink("p-00001-of-00003.gguf")
    refuses("p-00001-of-00003.gguf", "pack", given, "never")


def check_folder() -> None:
    """In a folder the file has the name of what it is."""
    os.mkdir("folder")
    run("pack", BLOCKS, "folder/", "--codes-only")
    assert os.listdir("folder") == ["blocks.safetensors"], os.listdir("folder")


with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    check_values()
    check_requantised()
    check_refusals()
    check_folder()
    check_parts()
print("passed")
