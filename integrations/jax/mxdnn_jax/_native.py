# SPDX-License-Identifier: Apache-2.0
"""libmxdnn_jax through ctypes: questions to blobs, formats and activations. Custom calls are in _calls.py."""
import ctypes
import dataclasses
import functools
import pathlib

_MAX_NDIMS = 12
_MAX_BLOB = 4096
# Engine kind and data types of mxdnn_types.h.
_CUDA = 2
_TYPES = {"float16": 1, "bfloat16": 2, "float32": 3}


class _Description(ctypes.Structure):  # mxdnn_jax_description_t
    _fields_ = [("size", ctypes.c_int64), ("dims", ctypes.c_int64 * _MAX_NDIMS), ("ndims", ctypes.c_int32),
                ("original_type", ctypes.c_int32), ("text", ctypes.c_char * 256)]


def _load() -> ctypes.CDLL:
    try:
        import mxdnn
    except ImportError:  # then libmxdnn is where it was when this package was built
        pass
    else:
        mxdnn.load_library()
    lib = ctypes.CDLL(str(pathlib.Path(__file__).with_name("libmxdnn_jax.so")))
    lib.mxdnn_jax_error.restype = ctypes.c_char_p
    lib.mxdnn_jax_describe.argtypes = [ctypes.c_char_p, ctypes.c_size_t, ctypes.POINTER(_Description)]
    lib.mxdnn_jax_make_blob.argtypes = [
        ctypes.c_char_p, ctypes.c_int, ctypes.c_int64, ctypes.c_char_p, ctypes.c_int, ctypes.POINTER(ctypes.c_int64),
        ctypes.c_int, ctypes.c_char_p, ctypes.POINTER(ctypes.c_size_t)]
    lib.mxdnn_jax_target_of_device.argtypes = [ctypes.c_int, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t]
    lib.mxdnn_jax_columns.argtypes = [ctypes.c_char_p, ctypes.c_int64, ctypes.POINTER(ctypes.c_int64)]
    return lib


library = _load()


def _check(status: int) -> None:
    if status != 0:
        raise ValueError(library.mxdnn_jax_error().decode())


@dataclasses.dataclass(frozen=True)
class Description:
    """What a blob says."""
    size: int
    shape: tuple[int, ...]
    original_dtype: str | None
    text: str


@functools.lru_cache(maxsize=4096)
def describe(blob: bytes) -> Description:
    """What a blob of packed weights says; ValueError where it is none."""
    d = _Description()
    _check(library.mxdnn_jax_describe(blob, len(blob), ctypes.byref(d)))
    names = {number: name for name, number in _TYPES.items()}
    return Description(d.size, tuple(d.dims[:d.ndims]), names.get(d.original_type), d.text.decode())


def make_blob(format: str, shape: tuple[int, ...], dtype: str, *, global_scale: bool, block: int | None,
              target: str | None) -> bytes:
    """The blob of weights of a named format, packed for a target."""
    if len(shape) > _MAX_NDIMS:
        raise ValueError(f"weights have at most {_MAX_NDIMS} dimensions, not {len(shape)}")
    blob, size = ctypes.create_string_buffer(_MAX_BLOB), ctypes.c_size_t(_MAX_BLOB)
    _check(library.mxdnn_jax_make_blob(
        format.encode(), global_scale, block or 0, None if target is None else target.encode(), len(shape),
        (ctypes.c_int64 * len(shape))(*shape), _TYPES[dtype], blob, ctypes.byref(size)))
    return blob.raw[:size.value]


def target_of_cuda_device(index: int) -> str:
    """The target of a CUDA device of this machine."""
    name = ctypes.create_string_buffer(64)
    _check(library.mxdnn_jax_target_of_device(_CUDA, index, name, len(name)))
    return name.value.decode()


@functools.lru_cache(maxsize=4096)
def columns(activation: str, n: int) -> int:
    """Columns that are left of n behind an activation; ValueError where there is no such activation."""
    left = ctypes.c_int64()
    _check(library.mxdnn_jax_columns(activation.encode(), n, ctypes.byref(left)))
    return left.value
