# SPDX-License-Identifier: Apache-2.0
"""What a blob says, read in Python: shapes for fake tensors, formats for users.

The library checks a blob whenever an operator runs; here only what is read is checked."""

import base64
import binascii
import functools
import math
import struct
from dataclasses import dataclass

import torch

from . import formats

MAGIC = b"\x89mxdnn\r\n"
FAMILIES = {1: "cpu:x64", 2: "cuda"}
LAYOUTS = {
    (1, 1): "n16_b4",
    (1, 2): "n16_b6",
    (1, 3): "n16_b8",
    (2, 1): "n64_b4",
    (2, 2): "n64_b6",
    (2, 3): "n64_b8",
    (2, 4): "n64_i4",
}
PANEL_COLUMNS = {1: 16, 2: 64}  # columns of N that stand together, by family
TYPE_WORDS = {
    0: "none",
    1: "f16",
    2: "bf16",
    3: "f32",
    5: "s8",
    6: "u8",
    9: "f8_e5m2",
    10: "f8_e4m3",
    11: "s4",
    12: "u4",
    13: "e8m0",
    14: "f4_e2m1",
    0x100: "f6_e2m3",
    0x101: "f6_e3m2",
}


@dataclass(frozen=True)
class Description:
    """A packed descriptor."""

    shape: tuple[int, ...]  # [.., N, K]
    format: formats.Format
    family: str
    layout: str
    panel_columns: int
    size: int
    matrix_stride: int
    original_type: str
    recipe: str

    @property
    def experts(self) -> int:
        """Matrices in the tensor."""
        return math.prod(self.shape[:-2])

    @property
    def dtype(self) -> torch.dtype:
        """The dtype before quantisation, bfloat16 where it is not noted."""
        return formats.TORCH_TYPES.get(self.original_type, torch.bfloat16)


@functools.lru_cache(maxsize=4096)
def describe(blob: str) -> Description:
    """Reads a blob in base64 that describes packed weights."""
    try:
        return _read(base64.b64decode(blob, validate=True))
    except (binascii.Error, struct.error, KeyError, UnicodeError, ValueError, TypeError) as error:
        raise ValueError(f"this is no blob of packed weights: {error}") from None


def _read(data: bytes) -> Description:
    if data[:8] != MAGIC:
        raise ValueError("it does not begin as a blob")
    (kind, ndims, element) = struct.unpack_from("<HHI", data, 16)
    if kind != 3 or not 2 <= ndims <= 12:
        raise ValueError("it describes a tensor that is not packed")
    family, layout, version, scale, zero_point = struct.unpack_from("<5I", data, 24)
    (global_scale,) = struct.unpack_from("<B", data, 45)
    block, size, stride = struct.unpack_from("<3Q", data, 56)
    dims = struct.unpack_from(f"<{ndims}Q", data, 80)
    options = dict(_options(data, 80 + 8 * ndims))
    original = TYPE_WORDS.get(int.from_bytes(options.get(1, b""), "little"), "none")
    return Description(
        shape=(*dims[:-2], dims[-1], dims[-2]),
        format=formats.format_of_types(
            TYPE_WORDS[element], TYPE_WORDS[scale], block, TYPE_WORDS[zero_point], global_scale != 0
        ),
        family=FAMILIES[family],
        layout=f"{LAYOUTS[family, layout]}v{version}",
        panel_columns=PANEL_COLUMNS[family],
        size=size,
        matrix_stride=stride,
        original_type=original,
        recipe=options.get(2, b"").decode(),
    )


def _options(data: bytes, offset: int):
    end = len(data) - 8  # the checksum
    while offset < end:
        tag, length = struct.unpack_from("<HH", data, offset)
        yield tag, data[offset + 4 : offset + 4 + length]
        offset += 4 + length
