# SPDX-License-Identifier: Apache-2.0
"""mxdnn for torch: weights of 4, 6 and 8 bits, packed once and multiplied as they are."""

from . import container, ops
from .formats import FORMATS, Format, get_format
from .observers import ActivationObserver
from .packed_tensor import Codes, PackedTensor, linear
from .quantize import QuantizeConfig, quantize_
from .shapes import bench_lines, print_bench_lines

__all__ = [
    "FORMATS",
    "ActivationObserver",
    "Codes",
    "Format",
    "PackedTensor",
    "QuantizeConfig",
    "bench_lines",
    "container",
    "get_format",
    "linear",
    "ops",
    "print_bench_lines",
    "quantize_",
]
