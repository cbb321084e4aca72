# SPDX-License-Identifier: Apache-2.0
"""torchao's quantised tensors to packed weights, and back. Codes, scales and zero points keep their bits.

    torchao.quantization.quantize_(model, MXDynamicActivationMXWeightConfig(...))
    mxdnn_torch.torchao.convert_(model)

`convert_` packs every torchao weight of a model; `from_torchao` and `to_torchao` are for single tensors.
"""
from collections.abc import Callable

import torch
from torchao.prototype.mx_formats.config import ScaleCalculationMode
from torchao.prototype.mx_formats.mx_tensor import MXTensor, QuantizeTensorToMXKwargs
from torchao.prototype.mx_formats.nvfp4_tensor import NVFP4Tensor, QuantizeTensorToNVFP4Kwargs
from torchao.quantization import Int4Tensor, IntxUnpackedToInt8Tensor
from torchao.quantization.quantize_.common import KernelPreference
from torchao.utils import TorchAOBaseTensor

from .formats import Format, get_format
from .packed_tensor import PackedTensor

# torchao's element types under e8m0 scales of blocks of 32
MX_FORMATS = {
    torch.float8_e4m3fn: "mxfp8",
    torch.float8_e5m2: "mxfp8_e5m2",
    "fp6_e2m3": "mxfp6",
    "fp6_e3m2": "mxfp6_e3m2",
    torch.float4_e2m1fn_x2: "mxfp4",
}
MX_ELEMENTS = {name: element for element, name in MX_FORMATS.items()}
OFFSET = 8  # u4 has the codes 0..15 for torchao's -8..7


def convert_(model: torch.nn.Module, filter_fn: Callable[[torch.nn.Module, str], bool] | None = None) -> list[str]:
    """Replaces torchao's parameters by packed ones, in place; returns their names.

    filter_fn(module, name of the parameter) chooses; by default every parameter of a torchao class is converted, and
    one that no format can hold is an error.
    """
    converted = []
    for prefix, module in model.named_modules():
        for name, parameter in list(module.named_parameters(recurse=False)):
            full_name = f"{prefix}.{name}" if prefix else name
            if not isinstance(parameter, TorchAOBaseTensor):
                continue
            if filter_fn is None or filter_fn(module, full_name):
                packed = from_torchao(parameter.data)
                setattr(module, name, torch.nn.Parameter(packed, requires_grad=False))
                converted.append(full_name)
    return converted


def from_torchao(tensor: torch.Tensor) -> PackedTensor:
    """Packs a torchao tensor [.., out, in] without quantising anew."""
    for cls, convert in _FROM.items():
        if isinstance(tensor, cls):
            return convert(tensor)
    raise TypeError(
        f"{type(tensor).__name__} has no format that keeps its codes; possible are "
        f"{', '.join(cls.__name__ for cls in _FROM)}. "
        "PackedTensor.from_float(tensor.dequantize(), format) quantises anew"
    )


def to_torchao(packed: PackedTensor, cls: type | None = None, swizzled: bool = False) -> torch.Tensor:
    """The torchao tensor with the same codes, scales and zero points.

    cls: its class where several fit, Int4Tensor or IntxUnpackedToInt8Tensor; swizzled: scales in 128x4 tiles
    """
    format = packed.format
    choices = [c for c, (takes, _) in _TO.items() if takes(format)]
    if cls is None and choices:
        cls = choices[0]
    if cls not in choices:
        raise TypeError(
            f"torchao has no {cls.__name__ if cls else 'class'} for {format}; possible are "
            f"{', '.join(c.__name__ for c in choices) or 'none'}"
        )
    return _TO[cls][1](packed, swizzled)


# ---- The order of scales that tensor cores read ----


def swizzle_128x4(scales: torch.Tensor) -> torch.Tensor:
    """Scales of one byte, [rows, columns], in tiles of 128 x 4; padded with zeros, flat."""
    rows, columns = scales.shape
    row_tiles, column_tiles = -(-rows // 128), -(-columns // 4)
    padded = torch.zeros(row_tiles * 128, column_tiles * 4, dtype=torch.uint8, device=scales.device)
    padded[:rows, :columns] = scales.view(torch.uint8)
    return padded.view(row_tiles, 4, 32, column_tiles, 4).permute(0, 3, 2, 1, 4).reshape(-1).view(scales.dtype)


def unswizzle_128x4(scales: torch.Tensor, rows: int, columns: int) -> torch.Tensor:
    """The inverse, without the padding."""
    row_tiles, column_tiles = -(-rows // 128), -(-columns // 4)
    tiles = scales.reshape(-1).view(torch.uint8)
    if tiles.numel() != row_tiles * column_tiles * 512:
        raise ValueError(
            f"{tiles.numel()} swizzled scales; {rows} rows of {columns} have {row_tiles * column_tiles * 512}"
        )
    tiles = tiles.view(row_tiles, column_tiles, 32, 4, 4).permute(0, 3, 2, 1, 4)
    return tiles.reshape(row_tiles * 128, column_tiles * 4)[:rows, :columns].contiguous().view(scales.dtype)


def _plain_scales(tensor: torch.Tensor, block: int) -> torch.Tensor:
    """The scales of an MXTensor or NVFP4Tensor, [.., out, in / block]."""
    *batch, rows, columns = tensor.shape
    shape = (*batch, rows, columns // block)
    if not tensor.is_swizzled_scales:
        return tensor.scale.reshape(shape)
    # torchao swizzles the rows of all experts as those of one matrix
    total = rows
    for size in batch:
        total *= size
    return unswizzle_128x4(tensor.scale, total, columns // block).reshape(shape)


def _scales_for(scales: torch.Tensor, swizzled: bool) -> torch.Tensor:
    """Scales [.., rows, columns] as torchao's constructors take them."""
    if not swizzled:
        return scales
    *batch, rows, columns = scales.shape
    flat = swizzle_128x4(scales.reshape(-1, columns))
    return flat.reshape(*batch, -(-rows // 128) * 32, -1)


def _row_major(tensor: torch.Tensor) -> None:
    if not tensor.qdata.is_contiguous():
        raise ValueError(
            f"this {type(tensor).__name__} of shape {list(tensor.shape)} is transposed; convert the weight "
            "[.., out, in] and transpose the result"
        )


def _group(tensor: torch.Tensor) -> int:
    *others, group = tensor.block_size
    if any(size != 1 for size in others) or group not in (32, 64, 128, 256):
        raise ValueError(f"groups are {list(tensor.block_size)}; they must be [1, g] with g one of 32, 64, 128, 256")
    return group


# ---- Recipes of activations ----


def _recipe(tensor: MXTensor | NVFP4Tensor) -> str:
    """How torchao quantises what is multiplied by this weight; "" where it does not."""
    kwargs = tensor.act_quant_kwargs
    if kwargs is None:
        return ""
    if isinstance(kwargs, QuantizeTensorToMXKwargs):
        rounding = "" if kwargs.scaling_mode == ScaleCalculationMode.RCEIL else f":{kwargs.scaling_mode.name.lower()}"
        return MX_FORMATS[kwargs.elem_dtype] + rounding
    if kwargs.use_dynamic_per_tensor_scale:
        return "nvfp4:dynamic"
    scale = tensor.act_per_tensor_scale
    return "nvfp4" if scale is None else f"nvfp4:{float(scale)!r}"


def _activation(packed: PackedTensor, swizzled: bool) -> QuantizeTensorToMXKwargs | QuantizeTensorToNVFP4Kwargs | None:
    """The inverse of `_recipe`."""
    format, _, rest = packed.recipe.partition(":")
    if not format:
        return None
    if format == "nvfp4":
        return QuantizeTensorToNVFP4Kwargs(
            is_swizzled_scales=swizzled, use_dynamic_per_tensor_scale=rest == "dynamic"
        )
    if format not in MX_ELEMENTS:
        raise TypeError(f"torchao has no class whose activations are quantised as {packed.recipe!r}")
    return QuantizeTensorToMXKwargs(
        elem_dtype=MX_ELEMENTS[format],
        block_size=32,
        scaling_mode=ScaleCalculationMode[(rest or "rceil").upper()],
        is_swizzled_scales=swizzled,
    )


def _activation_scale(packed: PackedTensor) -> torch.Tensor | None:
    format, _, rest = packed.recipe.partition(":")
    if format != "nvfp4" or rest in ("", "dynamic"):
        return None
    return torch.tensor(float(rest), device=packed.device)


# ---- From torchao ----


def _from_mx(tensor: MXTensor) -> PackedTensor:
    _row_major(tensor)
    if tensor.block_size != 32:
        raise ValueError(f"blocks are of {tensor.block_size}; MX formats have blocks of 32")
    return PackedTensor.from_codes(
        tensor.qdata,
        _plain_scales(tensor, 32),
        MX_FORMATS[tensor.elem_dtype],
        dtype=tensor.orig_dtype,
        recipe=_recipe(tensor),
    )


def _from_nvfp4(tensor: NVFP4Tensor) -> PackedTensor:
    _row_major(tensor)
    scale = tensor.per_tensor_scale
    return PackedTensor.from_codes(
        tensor.qdata,
        _plain_scales(tensor, 16),
        "nvfp4",
        global_scale=scale,
        dtype=tensor.orig_dtype,
        recipe=_recipe(tensor),
    )


def _from_int4(tensor: Int4Tensor) -> PackedTensor:
    """Two's complement codes q; value q * scale + zero. Scales and zeros are [.., in / group, out]."""
    _row_major(tensor)
    if tensor.act_pre_scale is not None:
        raise ValueError("this Int4Tensor scales its activations first (act_pre_scale), which no format does")
    group = _group(tensor)
    codes = tensor.qdata.view(torch.uint8)
    scales, zeros = (t.transpose(-2, -1).contiguous() for t in (tensor.scale, tensor.zero_point))
    if not bool(zeros.any()):
        return PackedTensor.from_codes(codes, scales, get_format("int4", block=group), dtype=tensor.dtype)
    return PackedTensor.from_codes(
        codes ^ 0x88,  # q + 8 in both halves
        scales,
        get_format("int4_zp", block=group),
        zero_points=zeros,
        dtype=tensor.dtype,
    )


def _from_intx(tensor: IntxUnpackedToInt8Tensor) -> PackedTensor:
    """A code q in each byte; value (q - zero) * scale."""
    _row_major(tensor)
    if tensor.target_dtype != torch.int4:
        raise ValueError(f"codes are {tensor.target_dtype}; of integers only int4 has a format")
    if tensor.activation_quantization is not None:
        raise ValueError("activations of int8 with zero points have no recipe; set activation_quantization to None")
    if tensor.qdata.shape[-1] % 2:
        raise ValueError(f"rows of {tensor.qdata.shape[-1]} codes; an even number is needed")
    group = _group(tensor)
    zeros = tensor.zero_point.float()
    if not bool(zeros.any()):
        nibbles = tensor.qdata.view(torch.uint8) & 0xF
        format, zero_points = get_format("int4", block=group), None
    else:
        shifted = zeros + OFFSET
        if not bool((shifted == shifted.round()).all() & (shifted >= 0).all() & (shifted <= 255).all()):
            raise ValueError("zero points are not whole numbers from -8 to 247, so their bits cannot be kept")
        nibbles = (tensor.qdata + OFFSET).view(torch.uint8)
        format = get_format("int4_zp", block=group)
        zero_points = shifted.to(torch.uint8)
    codes = nibbles[..., ::2] | nibbles[..., 1::2] << 4
    return PackedTensor.from_codes(codes, tensor.scale, format, zero_points, dtype=tensor.dtype)


_FROM: dict[type, Callable[..., PackedTensor]] = {
    MXTensor: _from_mx,
    NVFP4Tensor: _from_nvfp4,
    Int4Tensor: _from_int4,
    IntxUnpackedToInt8Tensor: _from_intx,
}


# ---- To torchao ----


def _to_mx(packed: PackedTensor, swizzled: bool) -> MXTensor:
    codes = packed.to_codes()
    return MXTensor(
        codes.codes,
        _scales_for(codes.scales, swizzled),
        MX_ELEMENTS[packed.format.name],
        32,
        packed.dtype,
        KernelPreference.EMULATED,
        _activation(packed, swizzled),
        swizzled,
    )


def _to_nvfp4(packed: PackedTensor, swizzled: bool) -> NVFP4Tensor:
    codes = packed.to_codes()
    scale = codes.global_scale
    if scale is not None:  # one, or one per expert
        scale = scale.reshape(()) if packed.dim() == 2 else scale.reshape(-1, 1, 1).expand(len(packed), 1, 1).clone()
    return NVFP4Tensor(
        codes.codes,
        _scales_for(codes.scales, swizzled),
        16,
        packed.dtype,
        per_tensor_scale=scale,
        act_per_tensor_scale=_activation_scale(packed),
        is_swizzled_scales=swizzled,
        act_quant_kwargs=_activation(packed, swizzled),
    )


def _to_int4(packed: PackedTensor, swizzled: bool) -> Int4Tensor:
    codes = packed.to_codes()
    symmetric = packed.format.element == "s4"
    scales = codes.scales.transpose(-2, -1).contiguous()
    zeros = torch.zeros_like(scales) if symmetric else codes.zero_points.transpose(-2, -1).contiguous()
    qdata = (codes.codes if symmetric else codes.codes ^ 0x88).view(torch.int8)
    return Int4Tensor(qdata, scales, zeros, [*[1] * (packed.dim() - 1), packed.format.block], packed.shape)


def _to_intx(packed: PackedTensor, swizzled: bool) -> IntxUnpackedToInt8Tensor:
    codes = packed.to_codes()
    offset = OFFSET if packed.format.element == "u4" else 0
    nibbles = torch.stack([codes.codes & 0xF, codes.codes >> 4], -1).flatten(-2)
    nibbles = nibbles[..., : packed.shape[-1]].view(torch.int8)
    signed = nibbles - offset if offset else (nibbles << 4) >> 4
    if codes.zero_points is None:
        zeros = torch.full(codes.scales.shape, 0, dtype=torch.int8, device=packed.device)
    else:
        zeros = codes.zero_points.to(torch.int16) - offset
        if bool((zeros > 127).any()):
            raise ValueError("a zero point is above 135, and torchao's int8 cannot hold it")
        zeros = zeros.to(torch.int8)
    block = [*[1] * (packed.dim() - 1), packed.format.block]
    return IntxUnpackedToInt8Tensor(signed, codes.scales, zeros, torch.int4, block, packed.dtype, None)


# class -> which formats it holds, and how it is made; the first that holds a format is the default
_TO: dict[type, tuple[Callable[[Format], bool], Callable[..., torch.Tensor]]] = {
    MXTensor: (lambda f: f.name in MX_ELEMENTS, _to_mx),
    NVFP4Tensor: (lambda f: f.name == "nvfp4", _to_nvfp4),
    Int4Tensor: (lambda f: f.element == "s4" or f.zero_point in ("bf16", "f16", "f32"), _to_int4),
    IntxUnpackedToInt8Tensor: (lambda f: f.element == "s4" or f.zero_point == "u8", _to_intx),
}
