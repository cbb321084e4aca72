# SPDX-License-Identifier: Apache-2.0
import exact
import jax
import jax.numpy as jnp
import ml_dtypes
import mxdnn_jax
import numpy as np
import pytest

# Element type, its largest exponent and largest value, for formats with e8m0 scales of 32 elements.
MX = {
    "mxfp8": (ml_dtypes.float8_e4m3fn, 8, 448),
    "mxfp8_e5m2": (ml_dtypes.float8_e5m2, 15, 57344),
    "mxfp6": (ml_dtypes.float6_e2m3fn, 2, 7.5),
    "mxfp6_e3m2": (ml_dtypes.float6_e3m2fn, 4, 28),
    "mxfp4": (ml_dtypes.float4_e2m1fn, 2, 6),
}


def mx_floor(w, element, emax, largest):
    """MX by the formula of its specification, with ml_dtypes: [K, N] in blocks of 32 along K."""
    out = np.empty_like(w)
    for first in range(0, w.shape[0], 32):
        block = w[first:first + 32]
        amax = abs(block).max(axis=0)
        scale = np.exp2(np.floor(np.log2(np.where(amax == 0, 1, amax))) - emax)
        codes = np.clip(block / scale, -largest, largest).astype(element).astype(np.float32)
        out[first:first + 32] = codes * scale
    return out


@pytest.mark.parametrize("k,n", [(64, 32), (65, 33), (1, 1), (31, 5)])
@pytest.mark.parametrize("format", MX)
def test_values_follow_the_mx_specification(format, k, n):
    w = exact.random("w", k, n)
    packed = mxdnn_jax.pack(w, format, scale_rounding="floor")
    np.testing.assert_array_equal(mxdnn_jax.unpack(packed), mx_floor(np.asarray(w), *MX[format]))


@pytest.mark.parametrize("format", exact.FORMATS)
def test_packing_values_again_keeps_them(format):
    packed = mxdnn_jax.pack(exact.random("w", 70, 19), format)
    once = mxdnn_jax.unpack(packed)
    assert packed.shape == (70, 19) and packed.original_dtype == "float32" and once.dtype == jnp.float32
    if not format.startswith("int"):  # its scales come from values that are lost
        np.testing.assert_array_equal(once, mxdnn_jax.unpack(mxdnn_jax.pack(once, format)))


@pytest.mark.parametrize("dtype", exact.DTYPES)
def test_unpacks_to_the_type_that_was_packed(dtype):
    packed = mxdnn_jax.pack(exact.random("w", 64, 8, dtype=dtype), "mxfp8")
    assert packed.original_dtype == dtype
    assert mxdnn_jax.unpack(packed).dtype.name == dtype
    values = exact.f64(mxdnn_jax.unpack(packed, "float32"))
    np.testing.assert_array_equal(exact.f64(mxdnn_jax.unpack(packed)), exact.f64(jnp.asarray(values, dtype)))


@pytest.mark.parametrize("format", exact.FORMATS)
def test_for_a_target_that_is_not_here(format):
    w = exact.random("w", 65, 33)
    here, there = mxdnn_jax.pack(w, format), mxdnn_jax.pack(w, format, "cuda:sm_90")
    assert ":cuda:" in repr(there) and ":cpu:" in repr(here)
    np.testing.assert_array_equal(mxdnn_jax.unpack(here), mxdnn_jax.unpack(there))


def test_every_cpu_target_has_the_same_bytes():
    w = exact.random("w", 65, 33)
    a, b = mxdnn_jax.pack(w, "mxfp6", "cpu:x64:avx2"), mxdnn_jax.pack(w, "mxfp6", "cpu:x64:avx512_core_amx")
    assert a.blob == b.blob
    np.testing.assert_array_equal(a.data, b.data)


def test_inside_jit():
    w = exact.random("w", 65, 33)
    inside = jax.jit(lambda w: mxdnn_jax.pack(w, "int4_zp"))(w)
    outside = mxdnn_jax.pack(w, "int4_zp")
    assert inside.blob == outside.blob
    np.testing.assert_array_equal(inside.data, outside.data)


def test_options():
    w = exact.random("w", 256, 9, scale=1e-6)
    plain, scaled = mxdnn_jax.pack(w, "nvfp4"), mxdnn_jax.pack(w, "nvfp4", global_scale=True)
    assert ":global:one:" in repr(scaled) and "global" not in repr(plain)
    # Without a global scale the least scale of a block is 2^-6, and these weights vanish.
    assert not mxdnn_jax.unpack(plain).any() and mxdnn_jax.unpack(scaled).any()
    small, large = mxdnn_jax.pack(w, "int4"), mxdnn_jax.pack(w, "int4", block=128)
    assert ":32x1:" in repr(small) and ":128x1:" in repr(large) and large.data.size < small.data.size
    error = {rounding: float(abs(mxdnn_jax.unpack(mxdnn_jax.pack(w, "mxfp8", scale_rounding=rounding)) - w).max())
             for rounding in ("floor", "rceil")}
    assert error["rceil"] < error["floor"]


@pytest.mark.parametrize("shape", [(0, 5), (5, 0), (0, 64, 32), (2, 0, 5), (3, 65, 33)])
def test_shapes(shape):
    packed = mxdnn_jax.pack(exact.random("w", *shape), "mxfp4")
    assert packed.shape == shape and mxdnn_jax.unpack(packed).shape == shape


def test_refused():
    w = exact.random("w", 64, 32)
    for call, error, words in [
            (lambda: mxdnn_jax.pack(w, "fp4"), ValueError, "no format 'fp4'; known are mxfp8, "),
            (lambda: mxdnn_jax.pack(w, ""), ValueError, "no format ''"),
            (lambda: mxdnn_jax.pack(w[0], "mxfp4"), ValueError, "has 1 dimensions"),
            (lambda: mxdnn_jax.pack(w.astype(int), "mxfp4"), TypeError, "the array is int32"),
            (lambda: mxdnn_jax.pack(w, "mxfp4", "cpu:arm64"), ValueError, "target 'cpu:arm64'; possible are"),
            (lambda: mxdnn_jax.pack(w, "mxfp4", ""), ValueError, "target ''; possible are"),
            (lambda: mxdnn_jax.pack(w, "mxfp4", global_scale=True), ValueError, "global"),
            (lambda: mxdnn_jax.pack(w, "mxfp4", block=48), ValueError, "48"),
            (lambda: mxdnn_jax.pack(w, "mxfp4", block=-32), ValueError, "-32"),
            (lambda: mxdnn_jax.pack(w, "mxfp4", scale_rounding="up"), Exception, "no rounding 'up'"),
            (lambda: mxdnn_jax.pack(jnp.ones((1,) * 13), "mxfp4"), ValueError, "at most 12 dimensions"),
            (lambda: mxdnn_jax.unpack(mxdnn_jax.pack(w, "mxfp4"), "int8"), TypeError, "the result is int8"),
            (lambda: mxdnn_jax.unpack(w), TypeError, "mxdnn_jax.pack makes a Packed")]:
        with pytest.raises(error, match=words):
            jax.block_until_ready(call())
