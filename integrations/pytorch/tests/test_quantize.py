# SPDX-License-Identifier: Apache-2.0
"""quantize_, the observer, and the lines for mxdnn-bench."""

import os
import shutil
import subprocess

import pytest
import torch
from torch import nn

from mxdnn_torch import (
    FORMATS,
    ActivationObserver,
    PackedTensor,
    QuantizeConfig,
    bench_lines,
    get_format,
    quantize_,
)


def model() -> nn.Sequential:
    torch.manual_seed(5)
    layers = nn.Linear(64, 96), nn.GELU(), nn.Linear(96, 32, bias=False), nn.LayerNorm(32), nn.Linear(32, 8)
    return nn.Sequential(*layers)


@pytest.mark.parametrize("format", FORMATS)
def test_every_format(format):
    plain, packed = model(), quantize_(model(), QuantizeConfig(format))
    assert [type(m.weight) for m in packed if isinstance(m, nn.Linear)] == [PackedTensor] * 3
    for mine, old in zip(packed, plain):
        if isinstance(mine, nn.Linear):
            assert not mine.weight.requires_grad and mine.weight.format == get_format(format)
            old.weight = nn.Parameter(mine.weight.dequantize())
    x = torch.randn(5, 64)
    torch.testing.assert_close(packed(x), plain(x), rtol=1e-4, atol=1e-5)


ACTIVATIONS = ["int8_row", "fp8_row", "mxint8", "mxfp8", "mxfp6", "mxfp4", "nvfp4", "nvfp4:dynamic"]


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_dynamic_activations(activation):
    m = quantize_(model(), QuantizeConfig("mxfp4", activation))
    assert m[0].weight.recipe == activation
    assert torch.isfinite(m(torch.randn(5, 64))).all()


def test_static_nvfp4_activations():
    m = model()
    batches = [torch.randn(5, 64), 3 * torch.randn(2, 64)]
    with ActivationObserver(m) as observer:
        for x in batches:
            m(x)
    largest = max(x.abs().max().item() for x in batches)
    assert observer.amax("0") == pytest.approx(largest)
    config = QuantizeConfig("nvfp4", "nvfp4:static")
    with pytest.raises(ValueError, match="needs an observer that has seen calibration data"):
        quantize_(model(), config)
    quantize_(m, config, observer=observer)
    assert float(m[0].weight.recipe.split(":")[1]) == pytest.approx(largest / 2688)
    x = batches[1]
    scale = torch.tensor([float(m[0].weight.recipe.split(":")[1])])
    rows = PackedTensor.from_float(x, "nvfp4", global_scale=scale).dequantize(torch.float32)
    expected = rows @ m[0].weight.dequantize(torch.float32).T + m[0].bias
    torch.testing.assert_close(m[0](x), expected, rtol=1e-5, atol=1e-5)
    with pytest.raises(ValueError, match="no input of layer '4' was observed"):
        ActivationObserver(m).amax("4")


def test_filter_and_layers():
    m = quantize_(model(), QuantizeConfig("mxfp8"), lambda module, name: name == "2")
    assert [isinstance(x.weight, PackedTensor) for x in (m[0], m[2], m[4])] == [False, True, False]
    int4 = QuantizeConfig(get_format("int4", block=64, scale="f16"))
    m = quantize_(model(), {"0": int4, "re:[24]": QuantizeConfig("mxfp6"), "4": None, "_default": None})
    assert m[0].weight.format.block == 64 and m[2].weight.format.name == "mxfp6" and type(m[4].weight) is nn.Parameter
    with pytest.raises(ValueError, match="no layer that the filter picks is called 7"):
        quantize_(model(), {"7": int4})
    with pytest.raises(ValueError, match=r"layer '3' of type LayerNorm has no weight \[out, in\] to quantise"):
        quantize_(model(), QuantizeConfig(), lambda module, name: name == "3")
    with pytest.raises(RuntimeError, match="the activation recipe is 'int3'; it must begin with one of int8_row"):
        quantize_(model(), QuantizeConfig("mxfp8", "int3"))


def test_gradients_reach_the_input():
    m = quantize_(model(), QuantizeConfig("mxfp8"))
    x = torch.randn(5, 64, requires_grad=True)
    m(x).sum().backward()
    assert x.grad.abs().sum() > 0 and m[0].bias.grad is not None and m[0].weight.grad is None


def test_bench_takes_the_lines(tmp_path):
    m = quantize_(
        model(), {"0": QuantizeConfig("nvfp4"), "2": QuantizeConfig(get_format("int4_zp", block=64, scale="bf16"))}
    )
    m.experts = nn.Module()
    m.experts.weight = nn.Parameter(PackedTensor.from_float(torch.randn(4, 64, 96), "mxfp4"), requires_grad=False)
    lines = bench_lines(m, (1, 7))
    assert lines[0] == "# 1 x [96, 64] nvfp4, bias"
    assert lines[1] == "--mx_matmul --reset --dt=bf16:nvfp4:bf16 --attr-global-scale=wei --bia-dt=bf16 1x64:64x96"
    bench = os.environ.get("MXDNN_BENCH") or shutil.which("mxdnn-bench")
    if bench is None:
        pytest.skip("mxdnn-bench is not installed")
    file = tmp_path / "problems"
    file.write_text("\n".join(lines) + "\n")
    done = subprocess.run([bench, f"--batch={file}"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"tests:{len([x for x in lines if x[0] != '#'])} " in done.stdout
