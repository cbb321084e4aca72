# SPDX-License-Identifier: Apache-2.0
"""PackedTensor: codes stay what they are, and products are those of the dequantised weights."""

import pytest
import torch
import torch.nn.functional as F

import mxdnn_torch
from mxdnn_torch import FORMATS, PackedTensor

SHAPES = [(128, 32), (48, 100), (17, 64)]


def product_bound(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """Largest error of f32 sums in any order, then of the result's rounding: |x| |w| (K + 1) u + one rounding."""
    k = x.shape[-1]
    magnitude = x.double().abs() @ weight.double().abs().T
    unit = torch.finfo(torch.float32).eps / 2
    result = torch.finfo(x.dtype).eps / 2
    return magnitude * ((k + 2) * unit + result * (1 + (k + 2) * unit)) + torch.finfo(x.dtype).tiny


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("format", FORMATS)
def test_linear_is_the_product_of_dequantised_weights(format, shape, dtype):
    torch.manual_seed(7)
    weight = PackedTensor.from_float(torch.randn(shape), format)
    x, bias = torch.randn(5, shape[1], dtype=dtype), torch.randn(shape[0], dtype=dtype)
    plain = weight.dequantize(torch.float32).double()
    exact = x.double() @ plain.T
    assert ((F.linear(x, weight).double() - exact).abs() <= product_bound(x, plain)).all()
    # The bias is one addend more.
    wide = torch.cat([x, torch.ones(5, 1, dtype=dtype)], 1), torch.cat([plain, bias.double()[:, None]], 1)
    error = (F.linear(x, weight, bias).double() - (exact + bias.double())).abs()
    assert (error <= product_bound(*wide)).all()


@pytest.mark.parametrize("format", FORMATS)
def test_codes_go_in_and_out_unchanged(format):
    torch.manual_seed(8)
    weight = PackedTensor.from_float(torch.randn(40, 96), format)
    codes = weight.to_codes()
    again = PackedTensor.from_codes(
        codes.codes, codes.scales, weight.format, codes.zero_points, codes.global_scale, dtype=weight.dtype
    )
    assert again.blob == weight.blob
    assert torch.equal(again.packed, weight.packed)


def test_everything_else_is_a_clear_error():
    weight = PackedTensor.from_float(torch.randn(32, 64), "mxfp4")
    with pytest.raises(NotImplementedError, match="PackedTensor has no aten.add"):
        weight + 1
    with pytest.raises(RuntimeError, match="its last dimension must be 64, the K of the weights"):
        F.linear(torch.randn(2, 32), weight)
    with pytest.raises(RuntimeError, match="x has dtype float64; it must be float32, bfloat16 or float16"):
        F.linear(torch.randn(2, 64, dtype=torch.float64), weight)
    with pytest.raises(ValueError, match="format is 'mxfp5'; it must be one of mxfp8"):
        mxdnn_torch.PackedTensor.from_float(torch.randn(32, 64), "mxfp5")


def test_moves_and_transposes():
    weight = PackedTensor.from_float(torch.randn(32, 64), "mxfp4")
    x = torch.randn(3, 64)
    expected = F.linear(x, weight)
    assert torch.equal(x @ weight.t(), expected)
    assert torch.equal(torch.addmm(torch.zeros(32), x, weight.t()), expected)
    assert torch.equal(F.linear(x, weight.clone()), expected)
    half = weight.to(torch.float16)
    assert half.dtype == torch.float16 and torch.equal(half.packed, weight.packed)
    assert weight.to("meta").device.type == "meta"
    module = torch.nn.Linear(64, 32, bias=False)
    module.weight = torch.nn.Parameter(weight, requires_grad=False)
    assert torch.equal(module(x), expected)
