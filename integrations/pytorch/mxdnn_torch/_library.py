# SPDX-License-Identifier: Apache-2.0
"""Loads the libraries behind the operators."""

from pathlib import Path

import torch


def load() -> None:
    """Loads libmxdnn of the package mxdnn, then the operators, which need it by name. Without that package the system's
    loader has to find it."""
    try:
        import mxdnn
    except ImportError:
        pass
    else:
        mxdnn.load_library()
    torch.ops.load_library(str(Path(__file__).parent / "libmxdnn_torch.so"))
