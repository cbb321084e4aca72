# SPDX-License-Identifier: Apache-2.0
"""Packed weights as a pytree: the bytes are a leaf, the blob that describes them is static."""
import dataclasses
import functools

import jax
import jax.export
import jax.numpy as jnp

from . import _calls, _native

FLOAT_DTYPES = ("float32", "bfloat16", "float16")


@functools.partial(jax.tree_util.register_dataclass, data_fields=["data"], meta_fields=["blob"])
@dataclasses.dataclass(frozen=True)
class Packed:
    """Packed weights [.., K, N].

    `data` are the bytes (uint8), `blob` says what they are: format, shape, layout and target. Stacks of weights with
    equal blobs are stacks of their data, so jax.vmap and jax.lax.scan go through them.
    """
    data: jax.Array
    blob: bytes

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the weights, [.., K, N]."""
        return _native.describe(self.blob).shape

    @property
    def original_dtype(self) -> str | None:
        """The name of the type before packing, None where the blob does not say it."""
        return _native.describe(self.blob).original_dtype

    def __repr__(self) -> str:
        return f"Packed({_native.describe(self.blob).text})"


# The blob travels with an exported function: its bytes, and nothing else.
jax.export.register_pytree_node_serialization(
    Packed, serialized_name="mxdnn_jax.Packed", serialize_auxdata=lambda auxdata: auxdata[0],
    deserialize_auxdata=lambda blob: (blob,))


def check_packed(packed: Packed, what: str) -> _native.Description:
    """What the blob says, once the bytes have been compared with it."""
    if not isinstance(packed, Packed):
        raise TypeError(f"{what}: the weights are a {type(packed).__name__}; mxdnn_jax.pack makes a Packed")
    description = _native.describe(packed.blob)
    if packed.data.dtype != jnp.uint8 or packed.data.shape != (description.size,):
        raise ValueError(f"{what}: packed.data is {packed.data.dtype}{list(packed.data.shape)}; its blob describes "
                         f"{description.text}, which is uint8[{description.size}]")
    return description


def check_float(dtype, what: str) -> jnp.dtype:
    """The dtype, once it is known to be one that matrices may have."""
    if jnp.dtype(dtype).name not in FLOAT_DTYPES:
        raise TypeError(f"{what} is {jnp.dtype(dtype).name}; it has to be one of {', '.join(FLOAT_DTYPES)}")
    return jnp.dtype(dtype)


def _target_of(array: jax.Array) -> str | None:
    """That of the device where an array is, or will be; None for the CPU."""
    if isinstance(array, jax.core.Tracer):
        device = jax.devices()[0]
    else:
        device = next(iter(array.devices()))
    return None if device.platform == "cpu" else _native.target_of_cuda_device(device.local_hardware_id)


def pack(array: jax.typing.ArrayLike, format: str, target: str | None = None, *, global_scale: bool = False,
         block: int | None = None, scale_rounding: str = "rceil") -> Packed:
    """Quantises and packs weights [.., K, N].

    format: mxfp8, mxfp8_e5m2, mxfp6, mxfp6_e3m2, mxfp4, mxint8, nvfp4, int4, int4_zp, int4_min or int8.
    target: what they are packed for, "cpu:x64:avx2" or "cuda:sm_90" for example; by default the array's device.
    global_scale: NVFP4 with an f32 scale for each matrix. block: elements along K that share a scale, for int4 and int8.
    scale_rounding: how MX scales are computed: floor, ceil, even or rceil.
    """
    array = jnp.asarray(array)
    dtype = check_float(array.dtype, "pack: the array")
    if array.ndim < 2:
        raise ValueError(f"pack: the array has {array.ndim} dimensions; weights are [.., K, N]")
    blob = _native.make_blob(format, array.shape, dtype.name, global_scale=global_scale, block=block,
                             target=_target_of(array) if target is None else target)
    result = jax.ShapeDtypeStruct((_native.describe(blob).size,), jnp.uint8)
    return Packed(_calls.call("pack", result, array, blob=blob, scale_rounding=scale_rounding), blob)


def unpack(packed: Packed, dtype: jax.typing.DTypeLike | None = None) -> jax.Array:
    """The values of packed weights, [.., K, N]; `dtype` is that of the array before packing, or float32."""
    description = check_packed(packed, "unpack")
    dtype = check_float(dtype or description.original_dtype or "float32", "unpack: the result")
    return _calls.call("unpack", jax.ShapeDtypeStruct(description.shape, dtype), packed.data, blob=packed.blob)
