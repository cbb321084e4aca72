# SPDX-License-Identifier: Apache-2.0
"""mxdnn-pack on checkpoints of every layout: test_imports.py MXDNN_PACK."""

import json
import os
import struct
import tempfile

import layouts
from layouts import Case, read, write
from running import refuses, run


def store(case: Case) -> None:
    write("in.safetensors", case.tensors, case.metadata)
    if os.path.exists("config.json"):
        os.unlink("config.json")
    if case.config:
        with open("config.json", "w") as f:
            json.dump(case.config, f)


def bits(values: list[float]) -> bytes:
    return struct.pack(f"<{len(values)}f", *values)


def check_kept(case: Case) -> None:
    """Codes and scales are those of the checkpoint, in pieces and as a whole."""
    store(case)
    for part in ("0", "16"):
        run(
            "pack",
            "in.safetensors",
            "out.safetensors",
            "--part-mib",
            part,
            "--threads",
            "2",
            "--codes-only",
            *case.options,
        )
        listed = run("list", "out.safetensors")
        assert f"{len(case.expected)} packed of" in listed, (case.name, listed)
        run("unpack", "out.safetensors", "back.safetensors")
        back, metadata = read("back.safetensors")
        for name, (shape, values) in case.expected.items():
            dtype, found, raw = back[name]
            assert (dtype, found) == ("F32", shape), (case.name, dtype, found, shape)
            if raw != bits(values):
                wrong = [
                    (i, a, b) for i, (a, b) in enumerate(zip(values, struct.unpack(f"<{len(values)}f", raw))) if a != b
                ]
                raise AssertionError((case.name, part, len(wrong), wrong[:5]))
        # What is packed is no tensor of torchao any more.
        if "tensor_names" in metadata:
            assert json.loads(metadata["tensor_names"]) == ["net.0.bias"] and "net.0.weight" not in metadata, metadata
    said = run("diff", "out.safetensors", "in.safetensors", *case.options)
    for name in case.expected:
        assert f"'{name}'  equal" in said, (case.name, said)


def check_lost(case: Case) -> None:
    """Refused, and with --requantise the bytes that the values have when they are packed."""
    store(case)
    refuses("--requantise", "pack", "in.safetensors", "out2.safetensors")
    refuses("codes that no format holds: 1", "pack", "in.safetensors", "out2.safetensors", "--codes-only")
    plain = {name: ("F32", shape, bits(values)) for name, (shape, values) in case.expected.items()}
    write("plain.safetensors", plain)
    for form in ("mxfp8", "nvfp4", "int4_zp"):
        run("pack", "in.safetensors", "out.safetensors", "--requantise", "--format", form, "--part-mib", "0")
        run("pack", "plain.safetensors", "due.safetensors", "--include", ".", "--format", form)
        out, due = read("out.safetensors")[0], read("due.safetensors")[0]
        for name in case.expected:
            assert out[name + ".mxdnn_packed"] == due[name + ".mxdnn_packed"], (case.name, form)
    said = run("diff", "out.safetensors", "in.safetensors")
    assert " dB" in said, said


def check_refusals() -> None:
    """Companions that do not fit, one change at a time: a sentence, and no output."""

    def changed(
        case: Case,
        name: str,
        dtype: str | None = None,
        shape: list[int] | None = None,
        raw: bytes | None = None,
        absent: bool = False,
    ) -> None:
        old = case.tensors[name]
        store(case)
        tensors = {k: v for k, v in case.tensors.items() if not (absent and k == name)}
        if not absent:
            tensors[name] = (dtype or old[0], old[1] if shape is None else shape, old[2] if raw is None else raw)
        write("in.safetensors", tensors, case.metadata)

    cases = {c.name: c for c in layouts.all_cases()}
    gptq, awq, ct = cases["GPTQ, zero points"], cases["AWQ"], cases["pack-quantized, zero points"]
    mx, nv, hqq = cases["torchao, mxfp4"], cases["compressed-tensors nvfp4"], cases["HQQ, 4 bits, axis 1"]
    args = ("pack", "in.safetensors", "never")

    def pack_refused(words: str) -> None:
        refuses(words, *args)

    shuffled = struct.pack("<192i", *((k * 5) % 192 // 64 for k in range(192)))
    changed(gptq, "m.q_proj.g_idx", raw=shuffled)
    pack_refused("desc_act")
    changed(gptq, "m.q_proj.g_idx", shape=[96, 2])
    pack_refused("must have the shape [192]")
    changed(gptq, "m.q_proj.scales", absent=True)
    pack_refused("there is no tensor 'm.q_proj.scales'")
    changed(gptq, "m.q_proj.qzeros", absent=True)
    pack_refused("there is no tensor 'm.q_proj.qzeros'")
    changed(gptq, "m.q_proj.qzeros", raw=b"\xff" * len(gptq.tensors["m.q_proj.qzeros"][2]))
    pack_refused("zero point 15")
    changed(gptq, "m.q_proj.qzeros", raw=b"\x88" * len(gptq.tensors["m.q_proj.qzeros"][2]))
    pack_refused("--gptq-zeros")
    changed(gptq, "m.q_proj.qzeros", shape=[17, 3])
    pack_refused("do not belong together")
    changed(gptq, "m.q_proj.qweight", shape=[136, 24])
    pack_refused("do not belong together")
    changed(gptq, "m.q_proj.scales", shape=[136, 3])
    pack_refused("do not belong together")
    changed(gptq, "m.q_proj.scales", dtype="I16")
    pack_refused("must be F16 or BF16 or F32")
    changed(awq, "m.up.qzeros", shape=[17, 2])
    pack_refused("must have the shape [2, 17]")
    changed(ct, "l.weight_shape", raw=struct.pack("<2q", 150, 264))
    pack_refused("only codes of four bits")
    changed(ct, "l.weight_shape", raw=struct.pack("<2q", -150, 256))
    pack_refused("only codes of four bits")
    changed(ct, "l.weight_shape", raw=struct.pack("<2q", 1 << 62, 1 << 62))
    pack_refused("only codes of four bits")
    changed(ct, "l.weight_shape", absent=True)
    pack_refused("there is no tensor 'l.weight_shape'")
    changed(ct, "l.weight_scale", shape=[2, 150])
    pack_refused("must have the shape [.., out, groups]")
    changed(ct, "l.weight_zero_point", shape=[2, 19])
    pack_refused("must have the shape [19, 2]")
    changed(nv, "l.weight_scale", shape=[6, 150])
    pack_refused("do not belong together")
    changed(nv, "l.weight_scale", shape=[900])
    pack_refused("must have the shape [out, in / block]")
    for bad in (0.0, -1.0, float("inf"), float("nan"), 1e-39):  # the last has no inverse
        changed(nv, "l.weight_global_scale", raw=struct.pack("<f", bad))
        pack_refused("finite and above zero")
    changed(nv, "l.weight_global_scale", shape=[2], raw=struct.pack("<2f", 1, 1))
    pack_refused("must have one number")
    changed(hqq, "h.nbits", shape=[2], raw=struct.pack("<2i", 4, 4))
    pack_refused("must have at most 1 numbers")
    changed(mx, "net.0._weight_scale", shape=[5, 150])
    pack_refused("must have the shape [150, 5]")
    for text, words in (
        ('{"_type": "MXTensor"}', "no block_size"),
        ("{", "is not JSON"),
        ("[" * 100 + "]" * 100, "nested more than"),
        ('{"_type": "AQTTensor", "_data": {}}', "its class is 'AQTTensor'"),
        ('{"a": 1, "a": 2}', "the name 'a' twice"),
        ('{"_type": "MXTensor", "_data": {"block_size": 32, "elem_dtype": {"_data": 7}}}', "is no MX element"),
        ('{"_type": "MXTensor", "_data": {"block_size": 16, "elem_dtype": "fp6_e2m3"}}', "MX has 32"),
        (
            '{"_type": "MXTensor", "_data": {"block_size": 32, "is_swizzled_scales": true, '
            '"elem_dtype": {"_data": "float4_e2m1fn_x2"}}}',
            "128x4 order",
        ),
    ):
        store(mx)
        write("in.safetensors", mx.tensors, {**mx.metadata, "net.0.weight": text})
        pack_refused(words)
    # A length of groups that no sum holds.
    int4 = cases["torchao, int4"]
    attributes = {"_type": "Int4Tensor", "_data": {"block_size": [1, (1 << 63) - 1]}}
    write("in.safetensors", int4.tensors, {**int4.metadata, "net.0.weight": json.dumps(attributes)})
    pack_refused("must have the shape [1, 70]")
    write("in.safetensors", mx.tensors)
    pack_refused("has no metadata 'net.0.weight'")
    # What is refused can be left out.
    changed(gptq, "m.q_proj.g_idx", raw=shuffled)
    tensors = {**read("in.safetensors")[0], "other.weight": ("F32", [32, 32], bytes(4096))}
    write("in.safetensors", tensors)
    run("pack", "in.safetensors", "out.safetensors", "--exclude", "q_proj")
    assert read("out.safetensors")[0]["m.q_proj.g_idx"][2] == shuffled


def check_other_names() -> None:
    """Tensors beside a scale that are no codes, and names that only look like codes, are copied."""
    codes = ("U8", [32, 32], bytes(range(256)) * 4)
    others = {
        "i.weight": ("I32", [4, 4], bytes(64)),
        "i.weight_scale": ("U8", [4, 4], bytes(16)),
        "u.weight": codes,
        "u.weight_scale": ("F32", [1], bits([1])),
        "v.weight": ("F8_E4M3", [32], bytes(32)),
        "v.weight_scale": ("F32", [1], bits([1])),
        "w_qdata": codes,
        "w.x_qdata": codes,
        "w._qdata": codes,
    }
    write("in.safetensors", {"l.weight": ("F32", [32, 32], bytes(4096)), **others})
    run("pack", "in.safetensors", "out.safetensors")
    out = read("out.safetensors")[0]
    assert {name: out.get(name) for name in others} == others, out
    # Two names for one layer.
    scales = ("U8", [32, 1], bytes([127] * 32))
    blocks = ("U8", [32, 1, 16], bytes(512))
    write("in.safetensors", {"x_blocks": blocks, "x_scales": scales, "x.blocks": blocks, "x.scales": scales})
    refuses("would be packed as 'x', as others would", "pack", "in.safetensors", "never")


def check_transposed() -> None:
    """Weights [in, out] have the bytes that the same weights [out, in] have."""
    rows, cols = 96, 150
    for dtype in ("F32", "BF16", "F16"):
        for experts in (0, 2):
            n = max(experts, 1)
            tables = [[[layouts.draw_scale("BF16") for _ in range(cols)] for _ in range(rows)] for _ in range(n)]
            lead = [experts] if experts else []
            given = b"".join(layouts.numbers(dtype, layouts.flat(t)) for t in tables)
            turned = b"".join(layouts.numbers(dtype, layouts.flat(layouts.transposed(t))) for t in tables)
            write(
                "in.safetensors",
                {
                    "h.0.attn.c_attn.weight": (dtype, lead + [rows, cols], given),
                    "h.0.attn.c_attn.bias": (
                        dtype,
                        lead + [cols],
                        given[: 2 * cols * n * (2 if dtype == "F32" else 1)],
                    ),
                },
            )
            write("turned.safetensors", {"h.0.attn.c_attn.weight": (dtype, lead + [cols, rows], turned)})
            for form in ("mxfp4", "nvfp4", "int4"):
                run(
                    "pack",
                    "in.safetensors",
                    "out.safetensors",
                    "--transposed",
                    "c_attn",
                    "--format",
                    form,
                    "--part-mib",
                    "0",
                )
                run("pack", "turned.safetensors", "due.safetensors", "--include", ".", "--format", form)
                name = "h.0.attn.c_attn.weight.mxdnn_packed"
                assert read("out.safetensors")[0][name] == read("due.safetensors")[0][name], (dtype, experts, form)
                assert "h.0.attn.c_attn.bias" in read("out.safetensors")[0]
            assert " dB" in run("diff", "out.safetensors", "in.safetensors", "--transposed", "c_attn")
            refuses("--transposed says", "diff", "out.safetensors", "in.safetensors")


def main() -> None:
    folder = tempfile.TemporaryDirectory()
    os.chdir(folder.name)
    for case in layouts.all_cases():
        (check_lost if case.loss else check_kept)(case)
        print(case.name)
    check_refusals()
    check_other_names()
    check_transposed()
    print("mxdnn-pack on layouts: all passed")


main()
