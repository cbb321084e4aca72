# SPDX-License-Identifier: Apache-2.0
"""What is saved is loaded with the same bits, by a process that imports mxdnn_torch and nothing else."""

import copy
import io
import pickle
import subprocess
import sys

import pytest
import torch

from mxdnn_torch import FORMATS, PackedTensor
from mxdnn_torch.packed_tensor import rebuild

# Of a linear from 32 to 128: plain bytes of codes, scales, zero points and global scale, and packed bytes.
SIZES = {
    "mxfp8": (4096 + 128, 4608),
    "mxfp8_e5m2": (4096 + 128, 4608),
    "mxfp6": (3072 + 128, 3584),
    "mxfp6_e3m2": (3072 + 128, 3584),
    "mxfp4": (2048 + 128, 2560),
    "mxint8": (4096 + 128, 4608),
    "nvfp4": (2048 + 256 + 4, 2624),
    "int4": (2048 + 256, 2560),
    "int4_zp": (2048 + 256 + 128, 2560),
    "int4_min": (2048 + 256 + 256, 2560),
    "int8": (4096 + 256, 4608),
}

LOAD = """
import sys, torch, mxdnn_torch
loaded = torch.load(sys.argv[1], weights_only=True)
weight = loaded["weight"]
bits = weight.packed.numpy().tobytes().hex()
print(weight.format, weight.dtype, weight.recipe, list(weight.shape), weight.blob, bits)
"""


def saved(t) -> bytes:
    file = io.BytesIO()
    torch.save(t, file)
    return file.getvalue()


@pytest.mark.parametrize("format", FORMATS)
def test_fresh_process(format, tmp_path):
    torch.manual_seed(4)
    linear = torch.nn.Linear(32, 128, bias=False)
    weight = PackedTensor.from_float(linear.weight, format, recipe="mxfp8" if format == "mxfp8" else "")
    linear.weight = torch.nn.Parameter(weight, requires_grad=False)
    file = tmp_path / "model.pt"
    torch.save(linear.state_dict(), file)
    got = subprocess.run(
        [sys.executable, "-c", LOAD, str(file)], capture_output=True, text=True, check=True
    ).stdout
    bits = weight.packed.numpy().tobytes().hex()
    assert got.strip() == f"{weight.format} {weight.dtype} {weight.recipe} [128, 32] {weight.blob} {bits}"


@pytest.mark.parametrize("format", FORMATS)
def test_sizes(format):
    """A file is the payload and some kilobytes of names, zip entries and their alignment."""
    weight = PackedTensor.from_float(torch.randn(128, 32), format)
    plain, packed = SIZES[format]
    parts = [t for t in weight.to_codes(dense=True) if t is not None]
    assert sum(t.numel() * t.itemsize for t in parts) == plain
    assert weight.packed.numel() == packed
    small = len(saved(weight)) - plain
    weight = PackedTensor.from_float(torch.randn(1024, 320), format)
    large = len(saved(weight)) - sum(t.numel() * t.itemsize for t in weight.to_codes(dense=True) if t is not None)
    assert 0 < small < 4096 and 0 < large < 4096, (small, large)


def test_parts_save_their_own_bytes():
    whole = PackedTensor.from_float(torch.randn(1024, 64), "mxfp8")
    assert len(saved(whole[:16])) < 8192
    assert torch.equal(torch.load(io.BytesIO(saved(whole[:16]))).packed, whole[:16].packed)


def test_copies():
    whole = PackedTensor.from_float(torch.randn(3, 40, 64), "nvfp4", recipe="nvfp4:0.25")
    for copied in (copy.deepcopy(whole), copy.copy(whole), pickle.loads(pickle.dumps(whole))):
        assert copied.blob == whole.blob and torch.equal(copied.packed, whole.packed)
    assert copy.deepcopy(whole).packed.data_ptr() != whole.packed.data_ptr()
    assert torch.load(io.BytesIO(saved(whole.mT))).shape == (3, 64, 40)
    module = torch.nn.Linear(64, 40)
    module.weight = torch.nn.Parameter(whole[0], requires_grad=False)
    for again in (copy.deepcopy(module), torch.load(io.BytesIO(saved(module)), weights_only=False)):
        assert isinstance(again.weight, torch.nn.Parameter) and isinstance(again.weight, PackedTensor)
        assert torch.equal(again.weight.packed, module.weight.packed)
    meta = copy.deepcopy(module).to("meta")
    assert meta.weight.device.type == "meta"
    meta.load_state_dict(module.state_dict(), assign=True)
    assert torch.equal(meta.weight.packed, module.weight.packed)
    empty = copy.deepcopy(module).to("meta").to_empty(device="cpu")
    empty.load_state_dict(module.state_dict())
    assert torch.equal(empty.weight.packed, module.weight.packed)


def arguments():
    _, args = PackedTensor.from_float(torch.randn(128, 32), "nvfp4").__reduce_ex__(2)
    return list(args)


HOSTILE = [
    ("element", "f5"), ("element", "s8"), ("element", 3), ("scale", "e8m0"), ("scale", "u4"), ("block", 0),
    ("block", -16), ("block", 2**62), ("block", 16.0), ("zero_point", "u8"), ("global_scale", False),
    ("columns", 2**62), ("columns", -32), ("columns", 0), ("columns", "32"), ("dtype", "bfloat16"),
    ("recipe", "x" * 2000), ("recipe", None), ("recipe", "a\0b"), ("extra", 1),
]  # fmt: skip


@pytest.mark.parametrize("name,value", HOSTILE)
def test_hostile_metadata(name, value):
    args = arguments()
    args[4] = {**args[4], name: value}
    with pytest.raises((ValueError, RuntimeError, TypeError)):
        rebuild(*args)


def test_hostile_parts():
    for i, part in [
        (0, torch.zeros(128, 15, dtype=torch.uint8)), (0, torch.zeros(0, dtype=torch.uint8)),
        (0, torch.zeros(128, 16)), (1, torch.zeros(128, 3, dtype=torch.uint8)), (1, torch.zeros(128, 2)),
        (2, torch.zeros(128, 2, dtype=torch.uint8)), (3, torch.zeros(7)), (3, torch.zeros(0)), (0, None), (1, "scales"),
        (4, {}), (4, []), (4, {1: 2}),
    ]:  # fmt: skip
        args = arguments()
        args[i] = part
        with pytest.raises((ValueError, RuntimeError, TypeError, AttributeError)):
            rebuild(*args)
