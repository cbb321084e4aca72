# SPDX-License-Identifier: Apache-2.0
"""AOTInductor packages with packed weights: their descriptors and checksums travel in the metadata of the package."""

import os
from collections.abc import Sequence

import torch

from .packed_tensor import PackedTensor

# Keys of the metadata; `aoti/packed_package.cpp` reads them.
PREFIX = "mxdnn.packed."
TARGET = "mxdnn.target"

# target -> what Inductor generates its own C++ code for
MACHINES = {
    "cpu:x64:avx2": {"cpp.march": "x86-64-v3", "cpp.simdlen": 256},
    "cpu:x64:avx512_core": {"cpp.march": "x86-64-v4", "cpp.simdlen": 512},
    "cpu:x64:avx512_core_bf16": {"cpp.march": "cooperlake", "cpp.simdlen": 512},
    "cpu:x64:avx512_core_amx": {"cpp.march": "sapphirerapids", "cpp.simdlen": 512},
}


def code_options(target: str) -> dict[str, object]:
    """Options of Inductor for the C++ code of a package that runs on `target`."""
    if target.startswith("cuda:"):
        return {}
    if target not in MACHINES:
        raise ValueError(f"target is {target!r}; it must be one of {', '.join(MACHINES)}, or begin with cuda:")
    if hasattr(torch._inductor.config.cpp, "march"):
        return dict(MACHINES[target])
    here = torch.ops.mxdnn.cpu_target()
    if target != here:
        raise ValueError(f"torch {torch.__version__} makes code for the machine that compiles alone, {here}; "
                         f"for {target} compile there, or with a newer torch")  # fmt: skip
    return {}


class _Unpacked(torch.nn.Module):
    """A linear layer whose packed bytes are a buffer, as exported programs and AOTInductor keep constants."""

    def __init__(self, linear: torch.nn.Linear):
        super().__init__()
        self.blob = linear.weight.blob
        self.register_buffer("packed", linear.weight.packed)
        self.bias = linear.bias

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.ops.mxdnn.linear(x, self.packed, self.blob, self.bias)


def packed_constants(model: torch.nn.Module) -> dict[str, str]:
    """Metadata of a package: for each packed weight its blob in base64 and the checksum of its bytes."""
    return {
        f"{PREFIX}{name}.packed": f"{module.blob} {torch.ops.mxdnn.packed_checksum(module.packed.cpu(), module.blob)}"
        for name, module in model.named_modules()
        if isinstance(module, _Unpacked)
    }


def compile_and_package(
    model: torch.nn.Module,
    inputs: Sequence[torch.Tensor],
    path: "str | os.PathLike",
    *,
    target: "str | None" = None,
    dynamic_shapes: object = None,
) -> list[str]:
    """Exports a model, compiles it for `target`, by default this machine, and writes a .pt2 package.

    Linear layers with a PackedTensor as weight keep its bytes and its blob; packing is done before. The model itself
    stays as it is. Returns the names of the packed constants.
    """
    target = target or torch.ops.mxdnn.cpu_target()
    options = code_options(target)
    changed = [(n, m) for n, m in model.named_modules() if isinstance(getattr(m, "weight", None), PackedTensor)]
    try:
        for name, module in changed:
            if not isinstance(module, torch.nn.Linear):
                raise ValueError(f"{name} is a {type(module).__name__}; of packed weights only those of Linear compile")
            model.set_submodule(name, _Unpacked(module))
        metadata = packed_constants(model)
        if not metadata:
            raise ValueError("the model has no packed weights")
        program = torch.export.export(model, tuple(inputs), dynamic_shapes=dynamic_shapes)
    finally:
        for name, module in changed:
            model.set_submodule(name, module)
    options["aot_inductor.metadata"] = {TARGET: target, **metadata}
    torch._inductor.aoti_compile_and_package(program, package_path=os.fspath(path), inductor_configs=options)
    return [name.removeprefix(PREFIX) for name in metadata]
