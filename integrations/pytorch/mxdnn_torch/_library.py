# SPDX-License-Identifier: Apache-2.0
"""Loads the libraries behind the operators."""

import ctypes
from pathlib import Path

import torch

try:
    import mxdnn
except ImportError:  # libmxdnn is then one that the system's loader finds
    mxdnn = None


def load() -> None:
    """Loads libmxdnn, then the operators, which need it by name."""
    if mxdnn is not None:
        ctypes.CDLL(mxdnn.get_library(), mode=ctypes.RTLD_GLOBAL)
    torch.ops.load_library(str(Path(__file__).parent / "libmxdnn_torch.so"))
