# SPDX-License-Identifier: Apache-2.0
"""What a blob says: shapes for fake tensors, formats for users."""

import functools
import math
import re
from dataclasses import dataclass

import torch
from torch.utils._python_dispatch import _disable_current_modes

from . import _library, formats

_library.load()


@dataclass(frozen=True)
class Description:
    """A packed descriptor."""

    shape: tuple[int, ...]  # [.., N, K]
    format: formats.Format
    family: str  # "cpu:x64" or "cuda"
    layout: str
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

    @property
    def panel_columns(self) -> int:
        """Rows of [N, K] that stand together: 16 in the layouts n16_*."""
        return int(re.match(r"n(\d+)_", self.layout)[1])


@functools.lru_cache(maxsize=4096)
def describe(blob: str) -> Description:
    """Reads a blob in base64 that describes packed weights. The library checks it."""
    try:
        with _disable_current_modes():  # a blob is a constant, also where tensors are fake
            text = torch.ops.mxdnn.describe_blob(blob)
    except RuntimeError as error:
        raise ValueError(f"this is no blob of packed weights: {str(error).splitlines()[0]}") from None
    lines, recipe = text.removesuffix("\n").split("\nrecipe ", 1)
    said = dict(line.split(" ", 1) for line in lines.split("\n"))
    return Description(
        shape=tuple(int(n) for n in said["shape"].split(",")),
        format=formats.format_of_types(
            said["element"], said["scale"], int(said["block"]), said["zero_point"], said["global_scale"] != "none"
        ),
        family=said["family"],
        layout=said["layout"],
        size=int(said["size"]),
        matrix_stride=int(said["matrix_stride"]),
        original_type=said["original_type"],
        recipe=recipe,
    )
