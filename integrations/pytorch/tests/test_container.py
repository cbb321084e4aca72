# SPDX-License-Identifier: Apache-2.0
"""safetensors in and out: containers that mxdnn-pack verifies, plain files that stay plain."""

import os
import shutil
import subprocess

import pytest
import torch
from safetensors.torch import load_file as plain_load_file

from mxdnn_torch import FORMATS, PackedTensor, container


def state():
    torch.manual_seed(13)
    tensors = {f"{f}.weight": PackedTensor.from_float(torch.randn(48, 96), f) for f in FORMATS}
    tensors["experts"] = PackedTensor.from_float(torch.randn(3, 33, 64), "nvfp4", recipe="nvfp4:0.5")
    return tensors | {"norm": torch.randn(7, dtype=torch.bfloat16), "ids": torch.arange(5), "empty": torch.zeros(0, 3)}


def test_out_and_in(tmp_path):
    file, before = tmp_path / "model.safetensors", state()
    container.save_file(before, file, {"note": "é"})
    after = container.load_file(file)
    assert after.keys() == before.keys()
    for name, t in before.items():
        if isinstance(t, PackedTensor):
            assert after[name].blob == t.blob and torch.equal(after[name].packed, t.packed)
        else:
            assert after[name].dtype == t.dtype and torch.equal(after[name], t)
    raw = plain_load_file(file)
    assert raw["mxfp8.weight.mxdnn_packed"].numel() % 64 == 0
    assert os.listdir(tmp_path) == ["model.safetensors"]


def test_mxdnn_pack_finds_them_whole(tmp_path):
    program = os.environ.get("MXDNN_PACK") or shutil.which("mxdnn-pack")
    if program is None:
        pytest.skip("mxdnn-pack is not installed")
    file = tmp_path / "model.safetensors"
    container.save_file(state(), file)
    done = subprocess.run([program, "list", str(file)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "mxfp4.weight" in done.stdout


def test_damage(tmp_path):
    tensors, metadata = container.to_tensors(state())
    name = "mxfp4.weight"
    for i in (0, 100, tensors[name + ".mxdnn_packed"].numel() - 1):
        damaged = dict(tensors)
        damaged[name + ".mxdnn_packed"] = tensors[name + ".mxdnn_packed"].clone()
        damaged[name + ".mxdnn_packed"][i] ^= 1
        with pytest.raises(ValueError, match="are damaged"):
            container.from_tensors(damaged, metadata)
    with pytest.raises(ValueError, match="have no descriptor"):
        container.from_tensors({k: v for k, v in tensors.items() if k != name + ".mxdnn_desc"}, metadata)
    longer = torch.nn.functional.pad(tensors[name + ".mxdnn_packed"], (0, 64))
    for other in (torch.zeros(64, dtype=torch.uint8), longer):
        with pytest.raises(ValueError, match="bytes, but their descriptor describes"):
            container.from_tensors({**tensors, name + ".mxdnn_packed": other}, metadata)
    with pytest.raises(ValueError, match="this is no blob"):
        container.from_tensors({**tensors, name + ".mxdnn_desc": torch.zeros(104, dtype=torch.uint8)}, metadata)
    with pytest.raises(ValueError, match="is transposed"):
        container.save_file({"w": state()[name].t()}, tmp_path / "x")
    assert os.listdir(tmp_path) == []
