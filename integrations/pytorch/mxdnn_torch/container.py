# SPDX-License-Identifier: Apache-2.0
"""Containers: safetensors files with packed weights, as mxdnn-pack writes and reads them."""

import base64
import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

import torch

from .blob import describe
from .packed_tensor import PackedTensor

PACKED, DESCRIPTOR, CHECKSUM = ".mxdnn_packed", ".mxdnn_desc", ".mxdnn_checksum"
ALIGNMENT = 64

_NAMES = {
    torch.float64: "F64", torch.float32: "F32", torch.bfloat16: "BF16", torch.float16: "F16", torch.int64: "I64",
    torch.int32: "I32", torch.int16: "I16", torch.int8: "I8", torch.uint8: "U8", torch.bool: "BOOL",
    torch.float8_e4m3fn: "F8_E4M3", torch.float8_e5m2: "F8_E5M2", torch.float8_e8m0fnu: "F8_E8M0",
}  # fmt: skip


def to_tensors(state: Mapping[str, torch.Tensor]) -> tuple[dict[str, torch.Tensor], dict[str, str]]:
    """Plain tensors for a container and their metadata: packed weights `NAME` become two tensors and a checksum."""
    tensors, metadata = {}, {}
    for name, t in state.items():
        if not isinstance(t, PackedTensor):
            tensors[name] = t
            continue
        if t.transposed:
            raise ValueError(f"{name} is transposed; a container has weights as they were packed")
        packed = t.packed.cpu()
        metadata[name + CHECKSUM] = torch.ops.mxdnn.packed_checksum(packed, t.blob)
        tensors[name + PACKED] = packed
        tensors[name + DESCRIPTOR] = torch.frombuffer(bytearray(base64.b64decode(t.blob)), dtype=torch.uint8)
    return tensors, metadata


def from_tensors(
    tensors: Mapping[str, torch.Tensor], metadata: "Mapping[str, str] | None" = None
) -> dict[str, torch.Tensor]:
    """The opposite of to_tensors. Checksums that there are must be right."""
    state, metadata = {}, metadata or {}
    for name, t in tensors.items():
        if name.endswith(DESCRIPTOR) and name.removesuffix(DESCRIPTOR) + PACKED in tensors:
            continue
        if not name.endswith(PACKED):
            state[name] = t
            continue
        name = name.removesuffix(PACKED)
        if name + DESCRIPTOR not in tensors:
            raise ValueError(f"packed weights {name} have no descriptor {name + DESCRIPTOR}")
        blob = base64.b64encode(tensors[name + DESCRIPTOR].cpu().numpy().tobytes()).decode()
        size = describe(blob).size
        if t.dtype != torch.uint8 or t.dim() != 1 or t.numel() != size:
            raise ValueError(f"packed weights {name} have {t.numel()} bytes, but their descriptor describes {size}")
        # Kernels need the bytes at a multiple of 16.
        packed = t if t.data_ptr() % 16 == 0 else t.clone()
        if name + CHECKSUM in metadata:
            found = torch.ops.mxdnn.packed_checksum(packed.cpu(), blob)
            if found != metadata[name + CHECKSUM]:
                raise ValueError(f"packed weights {name} are damaged: their checksum is not the stored one")
        state[name] = PackedTensor(packed, blob)
    return state


def save_file(
    state: Mapping[str, torch.Tensor], path: "str | os.PathLike", metadata: "Mapping[str, str] | None" = None
) -> None:
    """Writes a container. The file appears as a whole or not at all."""
    tensors, checksums = to_tensors(state)
    # Packed bytes first, then the widest types: each tensor is aligned for its type.
    order = sorted(tensors, key=lambda n: (not n.endswith(PACKED), -tensors[n].dtype.itemsize))
    header: dict[str, object] = {"__metadata__": {"format": "pt", **(metadata or {}), **checksums}}
    offset = 0
    for name in order:
        t = tensors[name]
        if t.dtype not in _NAMES:
            raise ValueError(f"{name} has dtype {t.dtype}, which safetensors has no name for here")
        end = offset + t.numel() * t.dtype.itemsize
        header[name] = {"dtype": _NAMES[t.dtype], "shape": list(t.shape), "data_offsets": [offset, end]}
        offset = end
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-(8 + len(text)) % ALIGNMENT)
    path = Path(path)
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as file:
        try:
            file.write(len(text).to_bytes(8, "little") + text)
            for name in order:
                file.write(tensors[name].detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy())
            file.flush()
            os.chmod(file.name, 0o666 & ~_umask())
            os.replace(file.name, path)
        except BaseException:
            os.unlink(file.name)
            raise


def load_file(path: "str | os.PathLike", device: str = "cpu") -> dict[str, torch.Tensor]:
    """Reads a container, or a safetensors file without packed weights. Weights that were packed for another kind of
    device than `device` are packed anew."""
    from safetensors import safe_open

    with safe_open(path, framework="pt") as file:
        metadata = file.metadata() or {}
        state = from_tensors({name: file.get_tensor(name) for name in file.keys()}, metadata)
    return {name: t if device == "cpu" else t.to(device) for name, t in state.items()}


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
