# SPDX-License-Identifier: Apache-2.0
"""The custom calls themselves, with what no function of the package passes: each one is refused with a sentence."""
import ctypes

import exact
import jax
import jax.numpy as jnp
import mxdnn_jax
import numpy as np
import pytest
from mxdnn_jax import _native

K, N, E, M = 65, 34, 3, 4
PACKED = mxdnn_jax.pack(exact.random("w", K, N), "mxfp4")
EXPERTS = mxdnn_jax.pack(exact.random("w", E, K, N), "mxfp4")
X = exact.random("x", M, K)
ENDS, IDS = jnp.array([1, 2, 4], jnp.int32), jnp.arange(E, dtype=jnp.int32)


def raw(name, operands, result, **attributes):
    attributes = {k: np.frombuffer(v, np.uint8) if k == "blob" and isinstance(v, bytes) else v
                  for k, v in attributes.items()}
    return jax.block_until_ready(jax.ffi.ffi_call(f"mxdnn_{name}", result)(*operands, **attributes))


def struct(*shape, dtype="float32"):
    return jax.ShapeDtypeStruct(shape, dtype)


def linear(x=X, data=PACKED.data, *others, y=struct(M, N), blob=PACKED.blob, activation=""):
    return raw("linear", (x, data, *others), y, blob=blob, activation=activation)


def grouped(x=X, data=EXPERTS.data, ends=ENDS, ids=IDS, *others, y=struct(M, N), blob=EXPERTS.blob, activation=""):
    return raw("grouped_linear", (x, data, ends, ids, *others), y, blob=blob, activation=activation)


def refused(words, call, *arguments, **attributes):
    with pytest.raises(Exception, match=words):
        call(*arguments, **attributes)


def test_what_is_right_is_accepted():
    exact.check(linear(), X, PACKED)
    exact.check(linear(X, PACKED.data, jnp.ones(N)), X, PACKED, jnp.ones(N))
    exact.check(grouped()[2:], X[2:], EXPERTS, expert=2)


def strided_blob():
    """A blob of a descriptor that is not packed."""
    lib = ctypes.CDLL("libmxdnn.so.0")
    dims, md = (ctypes.c_int64 * 2)(K, N), ctypes.c_void_p()
    assert lib.mxdnn_memory_desc_create_with_tag(ctypes.byref(md), 2, dims, 3, 3) == 0
    size = ctypes.c_size_t(4096)
    blob = ctypes.create_string_buffer(4096)
    assert lib.mxdnn_memory_desc_get_blob(blob, ctypes.byref(size), md) == 0
    lib.mxdnn_memory_desc_destroy(md)
    return blob.raw[:size.value]


@pytest.mark.parametrize("call,good", [(linear, PACKED), (grouped, EXPERTS)])
def test_blobs(call, good):
    refused("blob", call, blob=b"\0")
    refused("blob", call, blob=good.blob[:-1])
    refused("blob", call, blob=good.blob[:16])
    refused("blob", call, blob=good.blob + b"\0")
    refused("blob", call, blob=good.blob * 100)
    refused("blob", call, blob=bytes(len(good.blob)))
    rng = np.random.default_rng(1)
    for i in range(len(good.blob)):
        changed = bytearray(good.blob)
        changed[i] ^= int(rng.integers(1, 256))
        refused("blob", call, blob=bytes(changed))
    refused("has to describe packed weights", call, blob=strided_blob())
    refused("packed for", call, blob=mxdnn_jax.pack(jnp.ones((K, N)), "mxfp4", "cuda:sm_80").blob)
    refused("attribute|type|array", call, blob="text")
    refused("attribute|type|array", call, blob=np.frombuffer(good.blob, np.int8))
    refused("attribute|type|array", call, blob=np.int64(3))


def test_a_blob_of_other_weights():
    for packed in (mxdnn_jax.pack(jnp.ones((K, N + 16)), "mxfp4"), mxdnn_jax.pack(jnp.ones((K + 1, N)), "mxfp4"),
                   mxdnn_jax.pack(jnp.ones((K, N)), "mxint8"), mxdnn_jax.pack(jnp.ones((2**20, 2**19 + 0)[:1] + (1,)),
                                                                                "mxfp4")):
        refused("packed is U8|x is F32|y is F32", linear, blob=packed.blob)
    refused("linear multiplies one matrix", linear, blob=EXPERTS.blob)
    refused(r"multiplies matrices of experts", grouped, blob=PACKED.blob)


def test_huge_dimensions_in_a_blob():
    for dims in ((2**40, 1), (1, 2**36), (2**24, 2**12)):
        try:
            blob = _native.make_blob("mxfp4", dims, "float32", global_scale=False, block=None, target=None)
        except ValueError:
            continue
        refused("x is F32|packed is U8|y is F32|no implementation", linear, blob=blob)
        refused("weights is F32", raw, "pack", (jnp.ones((K, N)),), struct(64, dtype="uint8"), blob=blob,
                scale_rounding="floor")
        refused("weights is F32", raw, "unpack", (PACKED.data,), struct(K, N), blob=blob)


def test_buffers_of_linear():
    refused(r"x is F32\[4,64\]; its dimensions have to be \[4,65\]", linear, X[:, 1:])
    refused("x is F32.*dimension", linear, jnp.ones(()), y=struct())
    refused(r"x is S32", linear, X.astype(int))
    refused(r"y is S32", linear, y=struct(M, N, dtype="int32"))
    refused(r"y is F32\[4,33\]", linear, y=struct(M, N - 1))
    refused(r"y is F32\[3,34\]", linear, y=struct(M - 1, N))
    refused(r"y is F32\[2,2,34\]", linear, y=struct(2, 2, N))
    refused(r"y is F32\[\]", linear, y=struct())
    refused("packed is U8", linear, X, PACKED.data[:-1])
    refused("packed is U8", linear, X, PACKED.data[None])
    refused("packed is U8", linear, X, PACKED.data[:0])
    refused("packed is F32", linear, X, jnp.ones(PACKED.data.size))
    refused("packed is S8", linear, X, PACKED.data.astype(jnp.int8))
    refused(r"bias is F32\[33\]", linear, X, PACKED.data, jnp.ones(N - 1))
    refused(r"bias is F32\[1,34\]", linear, X, PACKED.data, jnp.ones((1, N)))
    refused(r"bias is S32", linear, X, PACKED.data, jnp.ones(N, int))
    refused("arguments", linear, X, PACKED.data, jnp.ones(N), jnp.ones(N))
    refused("arguments", raw, "linear", (X,), struct(M, N), blob=PACKED.blob, activation="")


def test_buffers_of_grouped_linear():
    refused(r"x is F32\[2,2,65\]", grouped, X.reshape(2, 2, K))
    refused("y is F32", grouped, y=struct(M + 1, N))
    refused("ends is F32", grouped, X, EXPERTS.data, ENDS.astype(float))
    refused(r"experts is S32\[2\]; its dimensions have to be \[3\]", grouped, X, EXPERTS.data, ENDS, IDS[1:])
    refused("experts is U32", grouped, X, EXPERTS.data, ENDS, IDS.astype(jnp.uint32))
    refused("ends is S32", grouped, X, EXPERTS.data, ENDS[None], IDS)
    refused("ends is S32", grouped, X, EXPERTS.data, ENDS[0], IDS)
    refused("GROUP_OFFSETS", grouped, X, EXPERTS.data, ENDS + 1)
    refused("GROUP_OFFSETS", grouped, X, EXPERTS.data, ENDS[::-1])
    refused("GROUP_OFFSETS", grouped, X, EXPERTS.data, -ENDS)
    refused("GROUP_EXPERT_IDS", grouped, X, EXPERTS.data, ENDS, IDS + 1)
    refused("GROUP_EXPERT_IDS", grouped, X, EXPERTS.data, ENDS, IDS - 2)
    refused("packed is U8", grouped, X, EXPERTS.data[:-1])
    refused(r"bias is F32\[34,3\]", grouped, X, EXPERTS.data, ENDS, IDS, jnp.ones((N, E)))


def test_attributes():
    for text in ("gelu", "relu:", "relu:halves", "silu", "silu:", "silu:half", ":", "\0", "a" * 9999,
                 "relu\0"):
        refused("activation", linear, activation=text)
    refused("attribute|activation", linear, activation=np.int64(3))
    refused("attribute|activation", raw, "linear", (X, PACKED.data), struct(M, N), blob=PACKED.blob)
    refused("gated|halves|columns", linear, data=mxdnn_jax.pack(jnp.ones((K, 33)), "mxfp4").data,
            blob=mxdnn_jax.pack(jnp.ones((K, 33)), "mxfp4").blob, y=struct(M, 16), activation="silu:halves")


def test_buffers_of_pack_and_unpack():
    w, size = jnp.ones((K, N)), PACKED.data.size
    refused("weights is F32", raw, "pack", (w.T,), struct(size, dtype="uint8"), blob=PACKED.blob, scale_rounding="floor")
    refused("weights is S32", raw, "pack", (w.astype(int),), struct(size, dtype="uint8"), blob=PACKED.blob,
            scale_rounding="floor")
    refused("packed is U8", raw, "pack", (w,), struct(size + 1, dtype="uint8"), blob=PACKED.blob, scale_rounding="floor")
    refused("packed is S8", raw, "pack", (w,), struct(size, dtype="int8"), blob=PACKED.blob, scale_rounding="floor")
    refused("rounding ''", raw, "pack", (w,), struct(size, dtype="uint8"), blob=PACKED.blob, scale_rounding="")
    refused("packed is U8", raw, "unpack", (PACKED.data[1:],), struct(K, N), blob=PACKED.blob)
    refused("weights is F32", raw, "unpack", (PACKED.data,), struct(N, K), blob=PACKED.blob)
    refused("weights is S32", raw, "unpack", (PACKED.data,), struct(K, N, dtype="int32"), blob=PACKED.blob)
    refused("has to describe packed weights", raw, "unpack", (PACKED.data,), struct(K, N), blob=strided_blob())


def test_blobs_in_python():
    for blob in (b"", b"\0" * 104, PACKED.blob[:-1], strided_blob()):
        with pytest.raises(ValueError, match="blob"):
            mxdnn_jax.Packed(PACKED.data, blob).shape  # noqa: B018
        with pytest.raises(ValueError, match="blob"):
            mxdnn_jax.linear(X, mxdnn_jax.Packed(PACKED.data, blob))


def test_a_failed_call_leaves_the_next_one_alone():
    before = linear()
    refused("blob", linear, blob=PACKED.blob[:-1])
    np.testing.assert_array_equal(linear(), before)
