# SPDX-License-Identifier: Apache-2.0
"""Formats of weights: element type, scale type, block and zero points, in the library's words."""

import dataclasses
from dataclasses import dataclass

import torch

# Types of a byte or more that torch has, by the library's word.
TORCH_TYPES = {
    "f32": torch.float32,
    "bf16": torch.bfloat16,
    "f16": torch.float16,
    "f8_e4m3": torch.float8_e4m3fn,
    "f8_e5m2": torch.float8_e5m2,
    "e8m0": torch.float8_e8m0fnu,
    "s8": torch.int8,
    "u8": torch.uint8,
}
WORDS = {dtype: word for word, dtype in TORCH_TYPES.items()}

# Bits of a code; codes of fewer than 8 bits are in uint8.
BITS = {
    "f8_e4m3": 8,
    "f8_e5m2": 8,
    "s8": 8,
    "f6_e2m3": 6,
    "f6_e3m2": 6,
    "f4_e2m1": 4,
    "s4": 4,
    "u4": 4,
}


MINIMUM = ":minimum"


@dataclass(frozen=True)
class Format:
    """A format of weights. `get_format` looks one up by name.

    `zero_point` is the type of zero points, followed by ":minimum" where they are the value of code 0."""

    name: str
    element: str
    scale: str
    block: int
    zero_point: str = "none"
    global_scale: bool = False

    @property
    def zero_point_type(self) -> str:
        """The type of the zero points."""
        return self.zero_point.removesuffix(MINIMUM)

    def code_dtype(self) -> torch.dtype:
        """The dtype of plain codes."""
        return TORCH_TYPES.get(self.element, torch.uint8)

    def row_bytes(self, columns: int, dense: bool = False) -> int:
        """Bytes of a row of plain codes. Codes of 6 bits have a byte each unless they are dense."""
        bits = BITS[self.element]
        if bits == 6 and not dense:
            bits = 8
        return (columns * bits + 7) // 8

    def scale_columns(self, columns: int) -> int:
        """Scales of a row."""
        return -(-columns // self.block)


FORMATS = {
    f.name: f
    for f in (
        Format("mxfp8", "f8_e4m3", "e8m0", 32),
        Format("mxfp8_e5m2", "f8_e5m2", "e8m0", 32),
        Format("mxfp6", "f6_e2m3", "e8m0", 32),
        Format("mxfp6_e3m2", "f6_e3m2", "e8m0", 32),
        Format("mxfp4", "f4_e2m1", "e8m0", 32),
        Format("mxint8", "s8", "e8m0", 32),
        Format("nvfp4", "f4_e2m1", "f8_e4m3", 16, global_scale=True),
        Format("int4", "s4", "bf16", 32),
        Format("int4_zp", "u4", "f16", 32, zero_point="u8"),
        Format("int4_min", "u4", "f16", 32, zero_point="f16" + MINIMUM),
        Format("int8", "s8", "f16", 32),
    )
}


def get_format(name: "str | Format", **changes: object) -> Format:
    """A format by name, with some of its fields changed: `get_format("int4", block=128, scale="f16")`.

    `nvfp4` has a global scale; `get_format("nvfp4", global_scale=False)` has none.
    """
    if isinstance(name, Format):
        return dataclasses.replace(name, **changes)
    if name not in FORMATS:
        raise ValueError(f"format is {name!r}; it must be one of {', '.join(FORMATS)}")
    return dataclasses.replace(FORMATS[name], **changes)


def format_of_types(element: str, scale: str, block: int, zero_point: str, global_scale: bool) -> Format:
    """The format with these types; it has the name of the one with the same elements."""
    floating = ("bf16", "f16", "f32")
    for f in FORMATS.values():
        same_scales = f.scale == scale or (f.scale in floating and scale in floating)
        same_zero_points = f.zero_point.endswith(MINIMUM) == zero_point.endswith(MINIMUM)
        if f.element == element and same_scales and same_zero_points:
            return dataclasses.replace(
                f, scale=scale, block=block, zero_point=zero_point, global_scale=global_scale
            )
    raise ValueError(f"no format has elements {element} and scales {scale}")
