# SPDX-License-Identifier: Apache-2.0
"""torchao's tensors become packed weights and come back with the same bits; products agree with torchao's own."""

import pytest
import torch
import torch.nn.functional as F

torchao = pytest.importorskip("torchao", reason="torchao is not installed")

from torchao.prototype.mx_formats.inference_workflow import MXDynamicActivationMXWeightConfig  # noqa: E402
from torchao.prototype.mx_formats.mx_tensor import (  # noqa: E402
    MXTensor,
    QuantizeTensorToMXKwargs,
    ScaleCalculationMode,
)
from torchao.prototype.mx_formats.nvfp4_tensor import (  # noqa: E402
    NVFP4Tensor,
    QuantizeTensorToNVFP4Kwargs,
    per_tensor_amax_to_scale,
)
from torchao.quantization import (  # noqa: E402
    Int4Tensor,
    IntxUnpackedToInt8Tensor,
    IntxWeightOnlyConfig,
    PerGroup,
    quantize_,
)
from torchao.quantization.quantize_.common.kernel_preference import KernelPreference  # noqa: E402

from mxdnn_torch import PackedTensor  # noqa: E402
from mxdnn_torch.torchao import MX_FORMATS, convert_, from_torchao, to_torchao  # noqa: E402

SHAPES = [(128, 128), (130, 96), (16, 32), (3, 128, 64)]


def weights(shape: tuple[int, ...]) -> torch.Tensor:
    """Normal values with blocks of zeros, and rows of very different sizes."""
    torch.manual_seed(21)
    w = torch.randn(shape)
    w[..., 0, :] *= 1e4
    w[..., 1, :] *= 1e-4
    w[..., 2, :32] = 0
    return w


def equal_bits(a: torch.Tensor, b: torch.Tensor) -> bool:
    bits = a.contiguous().view(torch.uint8), b.contiguous().view(torch.uint8)
    return a.dtype == b.dtype and a.shape == b.shape and torch.equal(*bits)


def error_bound(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    """Of f32 sums of exact products in any order: K + 1 roundings of at most |x| |w|."""
    unit = torch.finfo(torch.float32).eps / 2
    return (x.shape[-1] + 1) * unit * (x.double().abs() @ w.double().abs().T)


@pytest.mark.parametrize("swizzled", [False, True], ids=["linear", "swizzled"])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("element", MX_FORMATS, ids=str)
def test_mx_tensors_keep_their_bits(element, shape, swizzled):
    if swizzled and len(shape) == 3 and shape[1] % 128:
        pytest.skip("torchao swizzles experts only if each has a multiple of 128 rows")
    tensor = MXTensor.to_mx(weights(shape), element, is_swizzled_scales=swizzled)
    packed = from_torchao(tensor)
    assert packed.shape == tensor.shape and packed.dtype == torch.float32
    assert packed.format.name == MX_FORMATS[element]
    back = to_torchao(packed, swizzled=swizzled)
    assert equal_bits(back.qdata, tensor.qdata)
    assert equal_bits(back.scale, tensor.scale)
    assert (back.elem_dtype, back.block_size, back.orig_dtype, back.is_swizzled_scales, back.act_quant_kwargs) == (
        element, 32, torch.float32, swizzled, None
    )  # fmt: skip
    if len(shape) == 2 and not swizzled:
        assert torch.equal(packed.dequantize(), tensor.dequantize())


@pytest.mark.parametrize("swizzled", [False, True], ids=["linear", "swizzled"])
@pytest.mark.parametrize("scaled", [False, True], ids=["without", "global"])
@pytest.mark.parametrize("shape", SHAPES)
def test_nvfp4_tensors_keep_their_bits(shape, scaled, swizzled):
    w = weights(shape)
    scale = None
    if scaled and len(shape) == 3 and torchao.__version__.startswith("0.17."):
        pytest.skip("torchao 0.17 has no global scale for each expert")
    if scaled:
        axes = (1, 2) if len(shape) == 3 else (0, 1)
        scale = per_tensor_amax_to_scale(w.abs().amax(axes))
        scale = scale.view(-1, 1, 1) if len(shape) == 3 else scale
    tensor = NVFP4Tensor.to_nvfp4(w, per_tensor_scale=scale, is_swizzled_scales=swizzled)
    packed = from_torchao(tensor)
    assert packed.format.global_scale is scaled
    back = to_torchao(packed, swizzled=swizzled)
    assert equal_bits(back.qdata, tensor.qdata)
    assert equal_bits(back.scale, tensor.scale)
    if scaled:
        assert torch.equal(back.per_tensor_scale, tensor.per_tensor_scale)
    else:
        assert back.per_tensor_scale is None
    assert torch.equal(packed.dequantize(), tensor.dequantize())


def int4_tensor(dtype: torch.dtype, group: int, zeros: bool) -> Int4Tensor:
    """Random codes: torchao has no quantiser for this class on a CPU."""
    torch.manual_seed(4)
    scale = torch.rand(256 // group, 48, dtype=dtype) + 0.5
    zero = torch.randn(256 // group, 48, dtype=dtype) if zeros else torch.zeros(256 // group, 48, dtype=dtype)
    codes = torch.randint(-128, 128, (48, 128), dtype=torch.int8)
    return Int4Tensor(codes, scale, zero, [1, group], torch.Size([48, 256]))


@pytest.mark.parametrize("zeros", [False, True])
@pytest.mark.parametrize("group", [32, 64, 128, 256])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
def test_int4_tensors_keep_their_bits(dtype, group, zeros):
    tensor = int4_tensor(dtype, group, zeros)
    packed = from_torchao(tensor)
    back = to_torchao(packed, Int4Tensor)
    assert equal_bits(back.qdata, tensor.qdata)
    assert equal_bits(back.scale, tensor.scale)
    assert equal_bits(back.zero_point, tensor.zero_point)
    assert (back.block_size, back.shape) == (tensor.block_size, tensor.shape)
    codes = torch.stack([tensor.qdata << 4 >> 4, tensor.qdata >> 4], -1).flatten(1).float()
    scale, zero = (t.float().t().repeat_interleave(group, 1) for t in (tensor.scale, tensor.zero_point))
    assert torch.equal(packed.dequantize(torch.float32), codes * scale + zero)


@pytest.mark.parametrize("asymmetric", [False, True])
@pytest.mark.parametrize("group", [32, 128])
def test_intx_tensors_keep_their_bits(group, asymmetric):
    torch.manual_seed(5)
    kind = torchao.quantization.MappingType.ASYMMETRIC if asymmetric else torchao.quantization.MappingType.SYMMETRIC
    model = torch.nn.Linear(256, 48, dtype=torch.float32)
    quantize_(model, IntxWeightOnlyConfig(torch.int4, PerGroup(group), mapping_type=kind))
    tensor = model.weight.data
    packed = from_torchao(tensor)
    assert packed.format.zero_point == ("u8" if asymmetric else "none")
    back = to_torchao(packed, IntxUnpackedToInt8Tensor)
    for name in ("qdata", "scale", "zero_point"):
        assert torch.equal(getattr(back, name), getattr(tensor, name)), name
    assert (tuple(back.block_size), back.dtype, back.target_dtype) == ((1, group), torch.float32, torch.int4)
    assert torch.equal(packed.dequantize(), tensor.dequantize())
    x = torch.randn(5, 256)
    exact = x.double() @ tensor.dequantize().double().T
    bound = error_bound(x, tensor.dequantize())
    assert ((F.linear(x, packed).double() - exact).abs() <= bound).all()
    assert ((F.linear(x, tensor).double() - exact).abs() <= bound).all()


@pytest.mark.parametrize("mode", ScaleCalculationMode, ids=lambda mode: mode.name)
@pytest.mark.parametrize("element", MX_FORMATS, ids=str)
def test_products_agree_with_torchao_emulation(element, mode):
    """Both products are within the bound of the exact one, of the codes that torchao makes of x."""
    w, x = weights((130, 96)), torch.randn(7, 96)
    kwargs = QuantizeTensorToMXKwargs(element, 32, mode, KernelPreference.EMULATED)
    tensor = MXTensor.to_mx(w, element, 32, mode, KernelPreference.EMULATED, kwargs)
    decoded_x = MXTensor.to_mx(x, element, 32, mode).dequantize()
    exact = decoded_x.double() @ tensor.dequantize().double().T
    bound = error_bound(decoded_x, tensor.dequantize())
    packed = from_torchao(tensor)
    assert ((F.linear(x, packed).double() - exact).abs() <= bound).all()
    quantised_x = MXTensor.to_mx(x, element, 32, mode, KernelPreference.EMULATED)
    assert ((torch.mm(quantised_x, tensor.t()).double() - exact).abs() <= bound).all()


@pytest.mark.parametrize("activation", ["none", "blocks", "static", "dynamic"])
def test_nvfp4_products_are_those_of_torchao_codes(activation):
    w, x = weights((128, 96)), torch.randn(7, 96)
    kwargs, scale, x_scale = None, None, None
    if activation != "none":
        kwargs = QuantizeTensorToNVFP4Kwargs(use_dynamic_per_tensor_scale=activation == "dynamic")
    if activation == "static":
        scale = x_scale = torch.tensor(0.003)
    if activation == "dynamic":
        x_scale = per_tensor_amax_to_scale(x.abs().max())
    tensor = NVFP4Tensor.to_nvfp4(
        w, per_tensor_scale=per_tensor_amax_to_scale(w.abs().max()), act_per_tensor_scale=scale, act_quant_kwargs=kwargs
    )
    decoded_x = x if kwargs is None else NVFP4Tensor.to_nvfp4(x, per_tensor_scale=x_scale).dequantize()
    exact = decoded_x.double() @ tensor.dequantize().double().T
    # a decoded value is rounded once or twice before the sums; 4 covers both operands
    bound = error_bound(decoded_x, tensor.dequantize()) * (1 + 4 / x.shape[-1])
    packed = from_torchao(tensor)
    assert ((F.linear(x, packed).double() - exact).abs() <= bound).all()
    back = to_torchao(packed)
    assert (back.act_quant_kwargs is None) == (kwargs is None)
    assert (back.act_per_tensor_scale is None) == (scale is None)
    if kwargs is not None:
        assert back.act_quant_kwargs.use_dynamic_per_tensor_scale is (activation == "dynamic")
    if scale is not None:
        assert back.act_per_tensor_scale == scale


def test_models_are_converted_in_place():
    model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 32)).to(torch.bfloat16)
    config = MXDynamicActivationMXWeightConfig(kernel_preference=KernelPreference.EMULATED)
    quantize_(model, config)
    assert convert_(model, lambda module, name: name == "2.weight") == ["2.weight"]
    assert isinstance(model[0].weight, MXTensor) and isinstance(model[2].weight, PackedTensor)
    assert convert_(model) == ["0.weight"]
    assert convert_(model) == []
    kept = to_torchao(model[0].weight, swizzled=True).act_quant_kwargs
    assert (kept.elem_dtype, kept.block_size, kept.scaling_mode) == (torch.float8_e4m3fn, 32, config.scaling_mode)


@pytest.mark.parametrize(
    "make, sentence",
    [
        (lambda: MXTensor.to_mx(torch.randn(32, 64), torch.float8_e4m3fn).t(), "is transposed"),
        (lambda: MXTensor.to_mx(torch.randn(32, 64), torch.float8_e4m3fn, 16), "MX formats have blocks of 32"),
        (lambda: int4_tensor(torch.bfloat16, 16, False), "g one of 32, 64, 128, 256"),
        (lambda: torch.randn(4, 4), "Tensor has no format that keeps its codes"),
    ],
)
def test_what_no_format_holds_is_a_clear_error(make, sentence):
    with pytest.raises((TypeError, ValueError), match=sentence):
        from_torchao(make())


def test_a_class_that_does_not_fit_is_a_clear_error():
    with pytest.raises(TypeError, match="torchao has no Int4Tensor for"):
        to_torchao(PackedTensor.from_float(torch.randn(32, 64), "mxfp4"), Int4Tensor)
    with pytest.raises(TypeError, match="torchao has no class for"):
        to_torchao(PackedTensor.from_float(torch.randn(32, 64), "mxint8"))
