# SPDX-License-Identifier: Apache-2.0
"""Packed MX, NVFP4 and int4 weights for JAX.

Importing this registers the custom calls, also for functions that were exported elsewhere.
"""
from ._calls import export_checks
from ._grouped_linear import grouped_linear
from ._linear import linear
from ._packed import Packed, pack, unpack

__all__ = ["Packed", "export_checks", "grouped_linear", "linear", "pack", "unpack"]
