# SPDX-License-Identifier: Apache-2.0
"""`PackedTensor`: quantised weights in the layout of mxdnn's kernels, as a tensor of torch."""

import dataclasses
from typing import NamedTuple

import torch
from torch.utils._python_dispatch import return_and_correct_aliasing

from . import ops
from .blob import Description, describe
from .formats import BITS, MINIMUM, TORCH_TYPES, WORDS, Format, get_format

aten = torch.ops.aten

GLOBAL_PREFIX = 64  # bytes before a packed matrix with a global scale


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
        if f.element in ("s4", "u4") or (f.element == "s8" and f.scale != "e8m0"):
            minimum = MINIMUM if f.zero_point.endswith(MINIMUM) else ""
            f = dataclasses.replace(
                f,
                scale=_word(scales, "scales"),
                zero_point="none" if zero_points is None else _word(zero_points, "zero_points") + minimum,
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

    def _stable_hash_for_caching(self) -> str:
        return f"{self.blob}:{self.transposed}"

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        handler = _FUNCTIONS.get(func)
        if handler is not None:
            return handler(*args, **kwargs) if kwargs else handler(*args)
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


def _functional_linear(input, weight, bias=None):
    # The plain case first: this is what a model calls.
    if type(input) is torch.Tensor and type(weight) is PackedTensor and not weight.transposed:
        return ops.linear(input, weight.packed, weight.blob, bias)
    return linear(input, weight, bias)


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
    product = alpha * matmul(x, weight)
    return product if beta == 0 else beta * addend + product  # with beta 0 torch does not read the addend


# With torch's own names of arguments.
_FUNCTIONS = {
    torch.nn.functional.linear: _functional_linear,
    torch.matmul: lambda input, other: matmul(input, other),
    torch.Tensor.matmul: lambda input, other: matmul(input, other),
    torch.Tensor.__matmul__: lambda input, other: matmul(input, other),
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


def _swapped(func, args, kwargs, dims=(0, 1)):
    """A transpose of the last two dimensions."""
    t = args[0]
    n = t.dim()
    if sorted(d % n for d in dims) != [n - 2, n - 1]:
        raise NotImplementedError("only the last two dimensions of a PackedTensor can be transposed")
    if func is aten.permute.default and list(args[1][:-2]) != list(range(n - 2)):
        raise NotImplementedError("only the last two dimensions of a PackedTensor can be transposed")
    if list(d % n for d in dims) == [n - 2, n - 1] and func is aten.permute.default:
        return _with(t, t.packed)
    return return_and_correct_aliasing(func, args, kwargs, _transpose(t))


def _detach(func, args, kwargs):
    return return_and_correct_aliasing(func, args, kwargs, _with(args[0], args[0].packed.detach()))


def _clone(func, args, kwargs):
    return _with(args[0], args[0].packed.clone())


def _empty_like(func, args, kwargs):
    t = args[0]
    if kwargs.get("dtype") not in (None, t.dtype):
        raise NotImplementedError("an empty PackedTensor has the dtype of the one that it is like")
    device = torch.device(kwargs.get("device") or t.device)
    d = t.description
    blob = t.blob
    if device.type != "meta" and _family(device) != d.family.split(":")[0]:
        blob = ops.packed_blob(d.shape, d.format, _family(device), t.dtype, d.recipe)
    # Zeros are codes, scales and padding that may be read; what the allocator has may not be.
    packed = torch.zeros(describe(blob).size, dtype=torch.uint8, device=device)
    return PackedTensor(packed, blob, t.transposed)


def _copy_(func, args, kwargs):
    to, source = args[:2]
    if not (isinstance(to, PackedTensor) and isinstance(source, PackedTensor)):
        raise NotImplementedError(
            "a PackedTensor and a plain tensor cannot be copied into each other; use PackedTensor.from_float or "
            "dequantize"
        )
    mine, other = to.description, source.description
    if (mine.shape, mine.format, to.transposed) != (other.shape, other.format, source.transposed):
        raise ValueError(f"{source} cannot be copied into {to}: shape and format must be equal")
    if mine.family != other.family:
        source = source.to(to.device)
    to.packed.copy_(source.packed)
    return to


# ---- Cuts ----


def _slice(func, args, kwargs):
    t, dim, begin, end, step = (*args, *(0, None, None, 1)[len(args) - 1 :])
    dim %= t.dim()
    size = t.shape[dim]
    if step != 1:
        raise NotImplementedError(f"a PackedTensor is cut in steps of 1, not of {step}")
    begin, end, _ = slice(begin, end).indices(size)
    return cut(t, dim, begin, max(begin, end))


def _select(func, args, kwargs):
    t, dim, index = args
    if t.dim() != 3 or dim % 3 != 0:
        raise NotImplementedError("only an expert of a PackedTensor [E, N, K] can be selected: tensor[index]")
    size = t.shape[0]
    if not -size <= index < size:
        raise IndexError(f"expert {index} is out of range; there are {size}")
    one = cut(t, 0, index % size, index % size + 1)
    d = one.description
    blob = ops.packed_blob(d.shape[1:], d.format, d.family, t.dtype, d.recipe)
    return PackedTensor(one.packed, blob, t.transposed)


def _split(func, args, kwargs):
    t, size = args[:2]
    dim = args[2] if len(args) > 2 else 0
    total = t.shape[dim]
    if isinstance(size, int):
        if size <= 0:
            raise ValueError(f"a PackedTensor was to be split in parts of {size}; a part has at least 1")
        size = [min(size, total - i) for i in range(0, total, size)]
    if sum(size) != total or min(size, default=0) < 0:
        raise ValueError(f"parts of {list(size)} do not make up {total}, the size of dimension {dim}")
    ends = [sum(size[: i + 1]) for i in range(len(size))]
    return [cut(t, dim % t.dim(), end - n, end) for n, end in zip(size, ends)]


def cut(t: PackedTensor, dim: int, begin: int, end: int) -> PackedTensor:
    """Rows, experts or columns from `begin` up to `end`. Experts, and rows between two panels of the layout, are bytes
    of this tensor; others are packed anew from the same codes. Columns are cut between blocks only."""
    if (begin, end) == (0, t.shape[dim]):
        return _with(t, t.packed)
    d = t.description
    n_dim, k_dim = t.dim() - 2, t.dim() - 1
    if t.transposed and dim >= n_dim:
        dim = n_dim + k_dim - dim
    shape = list(d.shape)
    shape[dim] = end - begin
    blob = ops.packed_blob(shape, d.format, d.family, t.dtype, d.recipe)
    packed = _cut_bytes(t.packed, d, dim, begin, end)
    if packed is None:
        if dim == k_dim and (begin % d.format.block or (end % d.format.block and end != d.shape[-1])):
            raise NotImplementedError(
                f"columns {begin} to {end} cut a block of {d.format.block} that shares a scale; cut between blocks"
            )
        packed = _pack_parts([_cut_part(p, i, d, dim, begin, end) for i, p in enumerate(_parts(t))], blob)
    return PackedTensor(packed, blob, t.transposed)


def _cut_bytes(packed: torch.Tensor, d: Description, dim: int, begin: int, end: int) -> "torch.Tensor | None":
    """Bytes of a part that stands in one piece, else None."""
    if dim == 0 and len(d.shape) == 3:
        return packed[begin * d.matrix_stride : end * d.matrix_stride]
    panels = d.panel_columns
    if len(d.shape) != 2 or dim != 0 or begin % panels or (end % panels and end != d.shape[0]):
        return None
    prefix = GLOBAL_PREFIX if d.format.global_scale else 0
    panel = (d.matrix_stride - prefix) // -(-d.shape[0] // panels)
    part = packed[prefix + begin // panels * panel : prefix + -(-end // panels) * panel]
    return torch.cat([packed[:prefix], part]) if prefix else part


def _parts(t: PackedTensor):
    return torch.ops.mxdnn.unpack_codes(t.packed, t.blob)


def _cut_part(part: torch.Tensor, i: int, d: Description, dim: int, begin: int, end: int) -> torch.Tensor:
    """The part of codes (0), scales (1), zero points (2) or global scales (3) that a cut keeps."""
    if part.numel() == 0:
        return part
    if i == 3:
        return part[begin:end] if dim == 0 and len(d.shape) == 3 else part
    if dim == len(d.shape) - 1:
        columns = d.format.row_bytes if i == 0 else d.format.scale_columns
        begin, end = columns(begin), columns(end)
    return part.narrow(dim, begin, end - begin).contiguous()


_OPERATIONS = {
    aten.detach.default: _detach,
    aten.alias.default: _detach,
    aten.clone.default: _clone,
    aten._to_copy.default: _to_copy,
    aten.empty_like.default: _empty_like,
    aten.copy_.default: _copy_,
    aten.t.default: lambda func, args, kwargs: _swapped(func, args, kwargs),
    aten.transpose.int: lambda func, args, kwargs: _swapped(func, args, kwargs, args[1:]),
    aten.permute.default: lambda func, args, kwargs: _swapped(func, args, kwargs, args[1][-2:]),
    aten.slice.Tensor: _slice,
    aten.select.int: _select,
    aten.split.Tensor: _split,
    aten.split_with_sizes.default: _split,
    aten.mm.default: lambda func, args, kwargs: matmul(*args),
    aten.addmm.default: lambda func, args, kwargs: _addmm(*args, **kwargs),
}


# ---- Saving: plain codes, so that a file fits every machine. Loading packs them for where they are loaded to. ----


def _deepcopy(t: PackedTensor, memo) -> PackedTensor:
    if id(t) not in memo:
        copy = _with(t, t.packed.clone())
        if getattr(t, "_is_param", False):
            copy._is_param = True
        memo[id(t)] = copy
    return memo[id(t)]


def _reduce(t: PackedTensor, protocol) -> tuple:
    d = t.description
    # As bytes: files of plain pickle cannot hold dtypes of 8-bit floats.
    codes = [None if part is None else _as_bytes(part).clone() for part in t.to_codes(dense=True)]
    metadata = {**dataclasses.asdict(d.format), "columns": d.shape[-1], "dtype": t.dtype, "recipe": d.recipe}
    if t.transposed:
        metadata["transposed"] = True
    if getattr(t, "_is_param", False):
        metadata["is_parameter"] = True
    return rebuild, (*codes, metadata)


def rebuild(codes, scales, zero_points, global_scale, metadata: dict) -> PackedTensor:
    """A PackedTensor of what a file has. The library checks every part."""
    if not isinstance(metadata, dict) or not all(isinstance(key, str) for key in metadata):
        raise ValueError("the metadata of a PackedTensor must be a dict with names as keys")
    values = dict(metadata)
    transposed = bool(values.pop("transposed", False))
    is_parameter = bool(values.pop("is_parameter", False))
    columns, dtype, recipe = (values.pop(key, None) for key in ("columns", "dtype", "recipe"))
    fields = {f.name: f.type for f in dataclasses.fields(Format)}
    if set(values) != set(fields):
        raise ValueError(f"the metadata of a PackedTensor has {sorted(values)}; it must have {sorted(fields)}")
    for name, value in values.items():
        if type(value) is not fields[name]:
            wanted = fields[name].__name__
            raise ValueError(f"{name} in the metadata of a PackedTensor is {value!r}; it must be {wanted}")
    if type(columns) is not int or not isinstance(dtype, torch.dtype) or type(recipe) is not str:
        raise ValueError("columns, dtype and recipe of a PackedTensor must be an int, a dtype and a str")
    if values["element"] not in BITS:
        raise ValueError(f"element in the metadata of a PackedTensor is {values['element']!r}")
    if (global_scale is not None) != values["global_scale"]:
        raise ValueError("the metadata of a PackedTensor does not agree with its global scale")
    t = PackedTensor.from_codes(
        codes, scales, Format(**values), zero_points, global_scale,
        columns=columns, dtype=dtype, recipe=recipe, dense=True,
    )  # fmt: skip
    if transposed:
        t = _transpose(t)
    if is_parameter:
        t._is_param = True
    return t


def _requires_grad_(t: PackedTensor, requires_grad: bool = True) -> PackedTensor:
    if requires_grad:
        raise NotImplementedError("a PackedTensor has no gradient; make parameters of it with requires_grad=False")
    return t


def _share_memory_(t: PackedTensor) -> PackedTensor:
    t.packed.share_memory_()
    return t


def _set_data(t: PackedTensor, data: torch.Tensor) -> None:
    raise NotImplementedError("the data of a PackedTensor cannot be replaced; assign a new parameter, or use copy_")


def _dlpack(t: PackedTensor, **kwargs: object) -> None:
    raise NotImplementedError("a PackedTensor cannot be handed to others as it is; dequantize() gives a plain tensor")


_FUNCTIONS |= {
    torch.Tensor.share_memory_: _share_memory_,
    torch.Tensor.data.__set__: _set_data,
    torch.Tensor.__dlpack__: _dlpack,
    torch.Tensor.__deepcopy__: _deepcopy,
    torch.Tensor.__reduce_ex__: _reduce,
    torch.Tensor.requires_grad_: _requires_grad_,
}

torch.serialization.add_safe_globals([rebuild])
