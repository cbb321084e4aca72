# SPDX-License-Identifier: Apache-2.0
"""The custom calls. Exported functions contain their names and attributes, so neither ever changes its meaning."""
import jax
import jax.export
import numpy as np

from . import _native

_NAMES = ("linear", "grouped_linear", "pack", "unpack")

for _name in _NAMES:
    for _platform, _suffix in (("cpu", "cpu"), ("CUDA", "cuda")):
        jax.ffi.register_ffi_target(
            f"mxdnn_{_name}", jax.ffi.pycapsule(getattr(_native.library, f"mxdnn_jax_{_name}_{_suffix}")),
            platform=_platform)


def call(name: str, result: jax.ShapeDtypeStruct, *operands, blob: bytes, **attributes) -> jax.Array:
    """A custom call. Batched, it is one call after the other; where there is a better rule, it stands above this."""
    return jax.ffi.ffi_call(f"mxdnn_{name}", result, vmap_method="sequential")(
        *operands, blob=np.frombuffer(blob, np.uint8), **attributes)


def export_checks() -> list[jax.export.DisabledSafetyCheck]:
    """What jax.export.export takes as `disabled_checks`, so that functions with these calls can be exported."""
    return [jax.export.DisabledSafetyCheck.custom_call(f"mxdnn_{name}") for name in _NAMES]
