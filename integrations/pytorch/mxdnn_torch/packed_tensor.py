# SPDX-License-Identifier: Apache-2.0
"""`PackedTensor`: quantised weights in the layout of mxdnn's kernels, as a tensor of torch."""

import dataclasses
from typing import NamedTuple

import torch
from torch.utils._python_dispatch import return_and_correct_aliasing

from . import ops
from .blob import Description, describe
from .formats import TORCH_TYPES, WORDS, Format, get_format

aten = torch.ops.aten


class Codes(NamedTuple):
    """Plain codes [.., N, bytes of a row] and scales [.., N, blocks]; `from_codes` takes them back."""

    codes: torch.Tensor
    scales: torch.Tensor
    zero_points: "torch.Tensor | None"
    global_scale: "torch.Tensor | None"


class PackedTensor(torch.Tensor):
    """Weights [N, K], or experts [E, N, K], quantised and packed. Its dtype is that before quantisation.

    `packed` is its bytes, `blob` their descriptor in base64. Neither is ever written to: tensors that are cut from this
    one may share its bytes. It can be the weight of `torch.nn.functional.linear`, be cut along N and experts, be moved
    and saved. `dequantize()` gives a plain tensor for everything else.
    """

    packed: torch.Tensor
    blob: str
    transposed: bool

    @staticmethod
    def __new__(cls, packed: torch.Tensor, blob: str, transposed: bool = False) -> "PackedTensor":
        d = describe(blob)
        if packed.dtype != torch.uint8 or packed.shape != (d.size,):
            raise ValueError(
                f"packed has dtype {packed.dtype} and shape {list(packed.shape)}, but its blob describes "
                f"{d.size} bytes of uint8"
            )
        shape = (*d.shape[:-2], d.shape[-1], d.shape[-2]) if transposed else d.shape
        strides = _strides(d.shape)
        if transposed:
            strides = (*strides[:-2], strides[-1], strides[-2])
        return torch.Tensor._make_wrapper_subclass(
            cls, shape, strides=strides, dtype=d.dtype, device=packed.device, requires_grad=False
        )

    def __init__(self, packed: torch.Tensor, blob: str, transposed: bool = False) -> None:
        self.packed = packed
        self.blob = blob
        self.transposed = transposed

    # ---- Making and reading ----

    @classmethod
    def from_float(
        cls,
        weight: torch.Tensor,
        format: "str | Format",
        *,
        rounding: str = "rceil",
        global_scale: "torch.Tensor | None" = None,
        recipe: str = "",
        target: "str | None" = None,
    ) -> "PackedTensor":
        """Quantises weights [.., N, K]. `rounding` is the rule for e8m0 scales. A global scale is computed unless it is
        given. `recipe` says how `linear` quantises its input. `target` is where the weights will run, by default
        where they are."""
        weight = weight.detach()
        blob = ops.packed_blob(
            weight.shape, get_format(format), target or _family(weight.device), weight.dtype, recipe
        )
        return cls(torch.ops.mxdnn.quantize_pack(weight, blob, rounding, global_scale), blob)

    @classmethod
    def from_codes(
        cls,
        codes: torch.Tensor,
        scales: torch.Tensor,
        format: "str | Format",
        zero_points: "torch.Tensor | None" = None,
        global_scale: "torch.Tensor | None" = None,
        *,
        columns: "int | None" = None,
        dtype: torch.dtype = torch.bfloat16,
        recipe: str = "",
        swizzled: bool = False,
        dense: bool = False,
        target: "str | None" = None,
    ) -> "PackedTensor":
        """Packs codes and scales as they are. `columns` is K where it does not follow from the codes: 4-bit codes of an
        odd K. `swizzled`: scales are in the 128x4 order. `dense`: four 6-bit codes are in three bytes."""
        f = get_format(format)
        f = dataclasses.replace(f, global_scale=global_scale is not None)
        if f.element in ("s4", "u4"):
            f = dataclasses.replace(
                f,
                scale=_word(scales, "scales"),
                zero_point="none" if zero_points is None else _word(zero_points, "zero_points"),
            )
        codes, scales = _as_bytes(codes), _as_bytes(scales)
        if columns is None:
            columns = codes.shape[-1] * codes.shape[-1] // max(f.row_bytes(codes.shape[-1], dense), 1)
        blob = ops.packed_blob(
            (*codes.shape[:-1], columns), f, target or _family(codes.device), dtype, recipe
        )
        if global_scale is not None:
            global_scale = global_scale.reshape(-1).float()
        return cls(
            torch.ops.mxdnn.pack_codes(codes, scales, zero_points, global_scale, blob, swizzled, dense), blob
        )

    def to_codes(self, *, swizzled: bool = False, dense: bool = False) -> Codes:
        """Codes and scales as `from_codes` takes them, bit for bit."""
        f = self.format
        codes, scales, zero_points, global_scale = torch.ops.mxdnn.unpack_codes(
            self.packed, self.blob, swizzled, dense
        )
        return Codes(
            codes.view(f.code_dtype()),
            scales.view(TORCH_TYPES[f.scale]),
            zero_points if f.zero_point != "none" else None,
            global_scale if f.global_scale else None,
        )

    def dequantize(self, dtype: "torch.dtype | None" = None) -> torch.Tensor:
        """The values as a plain tensor, of this tensor's dtype unless another is named."""
        weight = torch.ops.mxdnn.unpack(self.packed, self.blob, dtype or self.dtype)
        return weight.transpose(-1, -2) if self.transposed else weight

    @property
    def description(self) -> Description:
        """What the blob says."""
        return describe(self.blob)

    @property
    def format(self) -> Format:
        """Element type, scale type, block, zero points and global scale."""
        return self.description.format

    @property
    def recipe(self) -> str:
        """How `linear` quantises its input; "" for not at all."""
        return self.description.recipe

    def __repr__(self, *, tensor_contents: object = None) -> str:
        d = self.description
        return (
            f"PackedTensor({d.format.name}, shape={list(self.shape)}, dtype={self.dtype}, device={self.device}, "
            f"layout={d.family}:{d.layout}, bytes={d.size}"
            + (f", recipe={d.recipe!r}" if d.recipe else "")
            + ")"
        )

    # ---- What torch asks of a subclass ----

    def __tensor_flatten__(self):
        return ["packed"], (self.blob, self.transposed)

    @classmethod
    def __tensor_unflatten__(cls, tensors, context, outer_size, outer_stride):
        return cls(tensors["packed"], *context)

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        handler = _FUNCTIONS.get(func)
        if handler is not None:
            return handler(*args, **(kwargs or {}))
        with torch._C.DisableTorchFunctionSubclass():
            return func(*args, **(kwargs or {}))

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        handler = _OPERATIONS.get(func)
        if handler is None:
            raise NotImplementedError(
                f"PackedTensor has no {func}; it can be multiplied (linear, mm, addmm), transposed, cut, moved and "
                f"copied, and dequantize() gives a plain tensor"
            )
        return handler(func, args, kwargs or {})


def _strides(shape):
    strides, stride = [], 1
    for n in reversed(shape):
        strides.append(stride)
        stride *= max(n, 1)
    return tuple(reversed(strides))


def _family(device: torch.device) -> str:
    return "cuda" if device.type == "cuda" else "cpu"


def _as_bytes(t: torch.Tensor) -> torch.Tensor:
    return t.view(torch.uint8) if t.dtype.itemsize == 1 else t


def _word(t: torch.Tensor, name: str) -> str:
    if t.dtype not in WORDS:
        raise ValueError(f"{name} has dtype {t.dtype}; it must be bfloat16, float16, float32 or uint8")
    return WORDS[t.dtype]


# ---- Products ----


def linear(x, weight, bias=None, activation: str = "none") -> torch.Tensor:
    """`activation(x @ weight.T + bias)` for a PackedTensor [N, K]."""
    if not isinstance(weight, PackedTensor) or isinstance(x, PackedTensor):
        raise NotImplementedError("a PackedTensor can only be the weight of a linear, not its input or bias")
    if weight.transposed:
        raise NotImplementedError(
            f"the weight {list(weight.shape)} is transposed; linear takes it as [N, K], as it was packed"
        )
    return ops.linear(x, weight.packed, weight.blob, bias, activation)


def matmul(x, weight) -> torch.Tensor:
    """`x @ weight` for a PackedTensor that was transposed to [K, N]."""
    if not isinstance(weight, PackedTensor) or isinstance(x, PackedTensor):
        raise NotImplementedError("a PackedTensor can only be the right operand of a product")
    if not weight.transposed:
        raise NotImplementedError(
            f"weights {list(weight.shape)} are packed for sums over their last dimension; multiply by their transpose"
        )
    return ops.linear(x, weight.packed, weight.blob)


def _addmm(addend, x, weight, beta=1, alpha=1):
    if addend.dim() == 1 and alpha == 1 and beta == 1 and isinstance(weight, PackedTensor) and weight.transposed:
        return ops.linear(x, weight.packed, weight.blob, addend)
    return beta * addend + alpha * matmul(x, weight)


_FUNCTIONS = {
    torch.nn.functional.linear: linear,
    torch.matmul: matmul,
    torch.Tensor.matmul: matmul,
    torch.Tensor.__matmul__: matmul,
}


# ---- Copies and moves ----


def _with(t: PackedTensor, packed: torch.Tensor) -> PackedTensor:
    return PackedTensor(packed, t.blob, t.transposed)


def _to_copy(func, args, kwargs):
    (t,) = args
    device = torch.device(kwargs.get("device") or t.device)
    dtype = kwargs.get("dtype") or t.dtype
    d = t.description
    packed, blob = t.packed, t.blob
    if dtype != t.dtype:
        if WORDS.get(dtype) not in ("f32", "bf16", "f16"):
            raise NotImplementedError(f"PackedTensor has no dtype {dtype}; use float32, bfloat16 or float16")
        blob = ops.packed_blob(d.shape, d.format, d.family, dtype, d.recipe)
    if device.type != "meta" and _family(device) != d.family.split(":")[0]:
        packed, blob = _repack(PackedTensor(packed.cpu(), blob), _family(device))
    return PackedTensor(
        packed.to(device, non_blocking=kwargs.get("non_blocking", False), copy=True), blob, t.transposed
    )


def _repack(t: PackedTensor, target: str) -> tuple[torch.Tensor, str]:
    """The same codes, packed for another target on the host."""
    d = t.description
    blob = ops.packed_blob(d.shape, d.format, target, t.dtype, d.recipe)
    codes = torch.ops.mxdnn.unpack_codes(t.packed, t.blob)
    return _pack_parts(codes, blob), blob


def _pack_parts(parts, blob: str) -> torch.Tensor:
    f = describe(blob).format
    codes, scales, zero_points, global_scale = parts
    return torch.ops.mxdnn.pack_codes(
        codes,
        scales,
        zero_points if f.zero_point != "none" else None,
        global_scale if f.global_scale else None,
        blob,
    )


def _transpose(t: PackedTensor) -> PackedTensor:
    return PackedTensor(t.packed, t.blob, not t.transposed)


def _detach(func, args, kwargs):
    return return_and_correct_aliasing(func, args, kwargs, _with(args[0], args[0].packed.detach()))


def _clone(func, args, kwargs):
    return _with(args[0], args[0].packed.clone())


_OPERATIONS = {
    aten.detach.default: _detach,
    aten.alias.default: _detach,
    aten.clone.default: _clone,
    aten._to_copy.default: _to_copy,
    aten.t.default: lambda func, args, kwargs: return_and_correct_aliasing(
        func, args, kwargs, _transpose(args[0])
    ),
    aten.mm.default: lambda func, args, kwargs: matmul(*args),
    aten.addmm.default: lambda func, args, kwargs: _addmm(*args, **kwargs),
}
