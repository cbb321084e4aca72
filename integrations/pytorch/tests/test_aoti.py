# SPDX-License-Identifier: Apache-2.0
"""A package with packed weights runs in a program without Python, and damaged packages are refused.

MXDNN_AOTI_RUN names the program run_packed; without it, these tests build it where they can."""

import os
import pathlib
import shutil
import subprocess
import sys
import zipfile

import pytest
import torch

import mxdnn_torch
from mxdnn_torch import PackedTensor
from mxdnn_torch.aoti import compile_and_package

ROOT = pathlib.Path(__file__).resolve().parents[1]
LIBRARY = pathlib.Path(mxdnn_torch.__file__).parent / "libmxdnn_torch.so"
# Where torch makes code for the machine that compiles alone, that is the only target.
TARGET = "cpu:x64:avx2" if hasattr(torch._inductor.config.cpp, "march") else torch.ops.mxdnn.cpu_target()


class Model(torch.nn.Module):
    """Two packed layers and operations that Inductor generates itself."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(3)
        self.up, self.down = torch.nn.Linear(64, 96), torch.nn.Linear(96, 64)
        for layer, format in ((self.up, "mxfp4"), (self.down, "nvfp4")):
            packed = PackedTensor.from_float(layer.weight, format, target=TARGET)
            layer.weight = torch.nn.Parameter(packed, requires_grad=False)

    def forward(self, x):
        return self.down(torch.relu(self.up(x))) + x


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    if "MXDNN_AOTI_RUN" in os.environ:
        return os.environ["MXDNN_AOTI_RUN"]
    if shutil.which("cmake") is None or shutil.which("c++") is None:
        pytest.skip("run_packed needs CMake and a C++ compiler")
    build = tmp_path_factory.mktemp("run_packed")
    configure = ["cmake", "-S", str(ROOT / "aoti"), "-B", str(build), f"-DPython_EXECUTABLE={sys.executable}"]
    if subprocess.run(configure, capture_output=True).returncode != 0:
        pytest.skip("CMake found no mxdnn; CMAKE_PREFIX_PATH names where it is installed")
    subprocess.run(["cmake", "--build", str(build)], check=True, capture_output=True)
    return str(build / "run_packed")


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    """A package, its inputs, and what eager mode makes of them."""
    folder = tmp_path_factory.mktemp("package")
    model, x = Model(), torch.randn(5, 64)
    with torch.no_grad():
        expected = model(x)
        names = compile_and_package(
            model, (x,), folder / "model.pt2", target=TARGET, dynamic_shapes=({0: torch.export.Dim("rows", max=64)},)
        )
    assert names == ["up.packed", "down.packed"]
    assert isinstance(model.up.weight, PackedTensor)  # the model is as it was
    torch.save([x], folder / "inputs.pt")
    return folder, x, expected


def run(program, package, inputs, outputs, *options, **environment):
    command = [program, str(package), str(LIBRARY), str(inputs), str(outputs), *options]
    return subprocess.run(command, capture_output=True, text=True, env={**os.environ, **environment})


def rewrite(source, target, change):
    """A copy of a zip file whose parts went through `change(name, bytes)`; its own checksums are right again."""
    changed = False
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as new:
        for info in old.infolist():
            data = old.read(info)
            other = change(info.filename, data)
            changed |= other != data
            new.writestr(info.filename, other)
    assert changed


def eager(inputs, outputs, **environment):
    """What eager mode computes where the environment allows other kernels than here."""
    code = (
        "import sys, torch, test_aoti\n"
        "with torch.no_grad(): torch.save([test_aoti.Model()(*torch.load(sys.argv[1]))], sys.argv[2])"
    )
    command = [sys.executable, "-c", code, str(inputs), str(outputs)]
    folder = pathlib.Path(__file__).parent
    subprocess.run(command, check=True, cwd=folder, env={**os.environ, **environment})
    return torch.load(outputs)[0]


def test_the_program_computes_what_eager_mode_computes(program, package, tmp_path):
    folder, x, expected = package
    result = run(program, folder / "model.pt2", folder / "inputs.pt", tmp_path / "out.pt")
    assert result.returncode == 0, result.stderr
    # the same operators on the same bytes; the sum and the relu between them are exact operations of each element
    assert torch.equal(torch.load(tmp_path / "out.pt")[0], expected)


def test_the_program_runs_with_the_features_of_its_target(program, package, tmp_path):
    folder, _, _ = package
    cap = {"MXDNN_MAX_CPU_ISA": TARGET.rpartition(":")[2]}
    result = run(program, folder / "model.pt2", folder / "inputs.pt", tmp_path / "out.pt", **cap)
    assert result.returncode == 0, result.stderr
    assert f"2 packed weights, native on {TARGET}" in result.stdout
    # kernels of other features may add in another order, so eager mode gets these features, too
    expected = eager(folder / "inputs.pt", tmp_path / "expected.pt", **cap)
    assert torch.equal(torch.load(tmp_path / "out.pt")[0], expected)


def test_other_numbers_of_rows(program, package, tmp_path):
    folder, _, _ = package
    x = torch.randn(17, 64)
    torch.save([x], tmp_path / "inputs.pt")
    assert run(program, folder / "model.pt2", tmp_path / "inputs.pt", tmp_path / "out.pt").returncode == 0
    with torch.no_grad():
        assert torch.equal(torch.load(tmp_path / "out.pt")[0], Model()(x))


def test_a_modified_constant_is_refused(program, package, tmp_path):
    folder, _, _ = package
    packed = Model().up.weight.packed.numpy().tobytes()

    def flip(name, data):
        at = data.find(packed)
        return data if at < 0 else data[: at + 100] + bytes([data[at + 100] ^ 1]) + data[at + 101 :]

    rewrite(folder / "model.pt2", tmp_path / "bad.pt2", flip)
    result = run(program, tmp_path / "bad.pt2", folder / "inputs.pt", tmp_path / "out.pt")
    assert result.returncode == 1
    assert "the bytes of the constant up.packed are not those that were packed" in result.stderr


def test_code_for_a_machine_that_is_not_here_is_refused(program, package, tmp_path):
    folder, _, _ = package
    note = f'"mxdnn.target": "{TARGET}"'.encode()
    for target, sentence in (
        ("cpu:x64:avx512_core", "the code of the package is for cpu:x64:avx512_core"),
        ("cpu:arm", "the code of the package is for cpu:arm"),
    ):
        other = note.replace(TARGET.encode(), target.encode())
        rewrite(folder / "model.pt2", tmp_path / "bad.pt2", lambda n, d: d.replace(note, other))  # noqa: B023
        bad = tmp_path / "bad.pt2"
        result = run(program, bad, folder / "inputs.pt", tmp_path / "out.pt", MXDNN_MAX_CPU_ISA="avx2")
        assert result.returncode == 1 and sentence in result.stderr, result.stderr
    rewrite(folder / "model.pt2", tmp_path / "bad.pt2", lambda n, d: d.replace(b"mxdnn.target", b"mxdnn.nobody"))
    result = run(program, tmp_path / "bad.pt2", folder / "inputs.pt", tmp_path / "out.pt")
    assert result.returncode == 1 and "does not say what its code was compiled for" in result.stderr


@pytest.mark.parametrize("where", ["metadata", "program"])
def test_a_modified_blob_is_refused(program, package, tmp_path, where):
    folder, _, _ = package
    blob = Model().up.weight.blob.encode()
    bad = blob[:40] + (b"B" if blob[40:41] != b"B" else b"C") + blob[41:]

    def change(name, data):
        return data.replace(blob, bad) if name.endswith("_metadata.json") == (where == "metadata") else data

    rewrite(folder / "model.pt2", tmp_path / "bad.pt2", change)
    result = run(program, tmp_path / "bad.pt2", folder / "inputs.pt", tmp_path / "out.pt")
    assert result.returncode == 1
    assert "corrupt" in result.stderr or "checksum" in result.stderr, result.stderr


def test_without_metadata_nothing_runs(program, package, tmp_path):
    folder, _, _ = package
    rewrite(folder / "model.pt2", tmp_path / "bad.pt2", lambda n, d: d.replace(b"mxdnn.packed.", b"mxdnn.nothing"))
    result = run(program, tmp_path / "bad.pt2", folder / "inputs.pt", tmp_path / "out.pt")
    assert result.returncode == 1 and "lists no packed weights" in result.stderr


def test_weights_for_a_device_are_refused_on_a_cpu(program, package, tmp_path):
    folder, _, _ = package
    weight = PackedTensor.from_float(torch.randn(96, 64), "mxfp4", target="cuda:sm_90")
    digits = torch.ops.mxdnn.packed_checksum(weight.packed, weight.blob)
    up = Model().up.weight
    note = f"{up.blob} {torch.ops.mxdnn.packed_checksum(up.packed, up.blob)}".encode()
    other = f"{weight.blob} {digits}".encode()
    rewrite(folder / "model.pt2", tmp_path / "bad.pt2", lambda n, d: d.replace(note, other))
    result = run(program, tmp_path / "bad.pt2", folder / "inputs.pt", tmp_path / "out.pt")
    assert result.returncode == 1 and "up.packed is needs_reorder here" in result.stderr


def test_bytes_at_a_multiple_of_16_are_enough():
    weight = PackedTensor.from_float(torch.randn(96, 64), "mxfp4")
    room = torch.empty(weight.packed.numel() + 128, dtype=torch.uint8)
    for offset in (16, 32, 48):
        begin = -room.data_ptr() % 64 + offset
        moved = room[begin : begin + weight.packed.numel()].copy_(weight.packed)
        assert moved.data_ptr() % 64 == offset
        x = torch.randn(7, 64)
        expected = torch.ops.mxdnn.linear(x, weight.packed, weight.blob)
        assert torch.equal(torch.ops.mxdnn.linear(x, moved, weight.blob), expected)


def test_mistakes_are_sentences():
    with pytest.raises(ValueError, match="the model has no packed weights"):
        compile_and_package(torch.nn.Linear(4, 4), (torch.randn(1, 4),), "unused.pt2")
    with pytest.raises(ValueError, match="target is 'x86'; it must be one of cpu:x64:avx2"):
        compile_and_package(Model(), (torch.randn(1, 64),), "unused.pt2", target="x86")
