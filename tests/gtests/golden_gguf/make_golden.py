# SPDX-License-Identifier: Apache-2.0
"""Writes blocks.gguf: a tensor NAME of every type of blocks that is read, and what it is worth as NAME.values in F32,
after the package `gguf`, which also writes the file. mxdnn is not involved.

    python3 -m venv venv && venv/bin/pip install gguf==0.19.0 && venv/bin/python make_golden.py [--check]

With --check nothing is written, and the exit status says whether the file is what it would be. Random numbers
come from case_files.py. Scales are finite, and those of MX and NVFP4 are ones that both formats know.
"""

import pathlib
import sys
import tempfile

import numpy as np
from gguf import GGMLQuantizationType as Type
from gguf import GGUFValueType, GGUFWriter, quants
from gguf.constants import GGML_QUANT_SIZES

HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE.parent / "golden"))
from case_files import Random  # noqa: E402

RANDOM = Random(22)

# Where blocks have scales in f16.
HALVES = {
    Type.Q4_0: [0],
    Type.Q4_1: [0, 2],
    Type.Q5_0: [0],
    Type.Q5_1: [0, 2],
    Type.Q8_0: [0],
    Type.Q2_K: [80, 82],
    Type.Q3_K: [108],
    Type.Q4_K: [0, 2],
    Type.Q5_K: [0, 2],
    Type.Q6_K: [208],
    Type.MXFP4: [],
    Type.NVFP4: [],
}
# Scale codes that blocks begin with: how many, the least and the largest that is drawn.
CODES = {Type.MXFP4: (1, 0, 254), Type.NVFP4: (4, 0, 126)}


def random_bytes(count: int) -> np.ndarray:
    return RANDOM.ints(256, count).astype(np.uint8)


def blocks(kind: Type, shape: tuple[int, ...]) -> np.ndarray:
    """Random blocks of a tensor of that shape."""
    size, stored = GGML_QUANT_SIZES[kind]
    count = int(np.prod(shape)) // size
    raw = random_bytes(count * stored).reshape(count, stored)
    for at in HALVES[kind]:
        raw[:, at + 1] &= 0xBF  # no Inf and no NaN
    if kind in CODES:
        codes, least, largest = CODES[kind]
        raw[:, :codes] = least + raw[:, :codes] % (largest - least + 1)
        raw[0, :codes], raw[-1, :codes] = least, largest
    return raw.reshape(*shape[:-1], shape[-1] // size * stored)


def add(writer: GGUFWriter, name: str, kind: Type, shape: tuple[int, ...], scale: np.ndarray | None = None) -> None:
    raw = blocks(kind, shape)
    with np.errstate(over="ignore"):
        values = quants.dequantize(raw, kind).reshape(shape)
    writer.add_tensor(name, raw, raw_dtype=kind)
    if scale is not None:
        writer.add_tensor(name.replace(".weight", ".scale"), scale)
        with np.errstate(over="ignore"):
            values = (values * scale.reshape(-1, *[1] * (len(shape) - 1))).reshape(shape)
    writer.add_tensor(name + ".values", values.astype(np.float32))


def make(path: str) -> None:
    w = GGUFWriter(path, "golden")
    w.add_uint8("a.u8", 200)
    w.add_int8("a.i8", -100)
    w.add_uint16("a.u16", 60000)
    w.add_int16("a.i16", -30000)
    w.add_uint32("a.u32", 4000000000)
    w.add_int32("a.i32", -2000000000)
    w.add_float32("a.f32", 0.1)
    w.add_uint64("a.u64", 2**63 + 1)
    w.add_int64("a.i64", -(2**63))
    w.add_float64("a.f64", 0.1)
    w.add_bool("a.bool", True)
    w.add_string("a.string", "Grüße")
    w.add_array("a.strings", ["a", "", "Ġthe"])
    w.add_array("a.floats", [0.5, -2.0])
    w.add_key_value("a.integers", [1, 2, 3], GGUFValueType.ARRAY, GGUFValueType.INT32)
    for kind in HALVES:
        add(w, f"{kind.name}.weight", kind, (3, 256))
        add(w, f"{kind.name}_exps.weight", kind, (2, 2, 256))
    # Powers of two, so that no product is rounded.
    add(w, "scaled.weight", Type.NVFP4, (3, 64), np.array([0.25], dtype=np.float32))
    add(w, "scaled_exps.weight", Type.NVFP4, (2, 3, 64), np.array([0.5, 4], dtype=np.float32))
    plain = RANDOM.ints(1 << 16, 2 * 64).astype(np.uint16).reshape(2, 64) & 0xBFFF
    w.add_tensor("half.weight", plain.view(np.float16))
    w.add_tensor("bfloat.weight", (plain & 0xBF7F).view(np.uint8), raw_dtype=Type.BF16)
    w.add_tensor("integers", np.arange(-3, 4, dtype=np.int32))
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "blocks.gguf"
        make(str(path))
        made, kept = path.read_bytes(), HERE / "blocks.gguf"
        if "--check" in sys.argv:
            return 0 if kept.read_bytes() == made else 1
        kept.write_bytes(made)
    return 0


if __name__ == "__main__":
    sys.exit(main())
