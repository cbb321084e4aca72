# SPDX-License-Identifier: Apache-2.0
"""mxdnn for torch: weights of 4, 6 and 8 bits, packed once and multiplied as they are."""

from . import ops
from .formats import FORMATS, Format, get_format
from .packed_tensor import Codes, PackedTensor, linear

__all__ = ["FORMATS", "Codes", "Format", "PackedTensor", "get_format", "linear", "ops"]
