# SPDX-License-Identifier: Apache-2.0
import exact
import jax
import jax.numpy as jnp
import mxdnn_jax
import numpy as np
import pytest

SHAPES = [(1, 1, 1), (3, 65, 33), (17, 129, 95), (2, 31, 16), (130, 64, 48)]


@pytest.mark.everywhere
@pytest.mark.parametrize("dtype", exact.DTYPES)
@pytest.mark.parametrize("format", exact.FORMATS)
def test_formats(format, dtype):
    for m, k, n in SHAPES:
        packed = mxdnn_jax.pack(exact.random("w", k, n), format)
        x, bias = exact.random("x", m, k, dtype=dtype), exact.random("b", n)
        exact.check(mxdnn_jax.linear(x, packed), x, packed)
        exact.check(mxdnn_jax.linear(x, packed, bias), x, packed, bias)


@pytest.mark.everywhere
@pytest.mark.parametrize("activation", [*exact.ELTWISE, "relu2", *exact.GATED])
def test_activations(activation):
    x, bias = exact.random("x", 5, 64, dtype="bfloat16"), exact.random("b", 34, dtype="bfloat16")
    packed = mxdnn_jax.pack(exact.random("w", 64, 34), "mxfp4")
    for layout in ("halves", "interleaved") if activation in exact.GATED else ("halves",):
        y = mxdnn_jax.linear(x, packed, bias, activation=activation, gate_layout=layout, out_dtype="float32")
        exact.check(y, x, packed, bias, activation, layout)


@pytest.mark.everywhere
@pytest.mark.parametrize("x_dtype", exact.DTYPES)
@pytest.mark.parametrize("bias_dtype", exact.DTYPES)
@pytest.mark.parametrize("out_dtype", exact.DTYPES)
def test_types(x_dtype, bias_dtype, out_dtype):
    x, bias = exact.random("x", 4, 40, dtype=x_dtype), exact.random("b", 24, dtype=bias_dtype)
    packed = mxdnn_jax.pack(exact.random("w", 40, 24), "mxfp8")
    y = mxdnn_jax.linear(x, packed, bias, out_dtype=out_dtype)
    assert y.dtype.name == out_dtype
    exact.check(y, x, packed, bias)


@pytest.mark.everywhere
@pytest.mark.parametrize("leading", [(), (0,), (2, 0), (1,), (2, 3), (2, 1, 2, 2)])
def test_leading_dimensions(leading):
    x, packed = exact.random("x", *leading, 65), mxdnn_jax.pack(exact.random("w", 65, 33), "nvfp4")
    y = mxdnn_jax.linear(x, packed)
    assert y.shape == (*leading, 33)
    exact.check(y, x, packed)


@pytest.mark.parametrize("format", exact.FORMATS)
def test_empty_weights(format):
    x, bias = jnp.zeros((3, 0)), exact.random("b", 5)
    packed = mxdnn_jax.pack(jnp.zeros((0, 5)), format)
    np.testing.assert_array_equal(mxdnn_jax.linear(x, packed), np.zeros((3, 5)))
    np.testing.assert_array_equal(mxdnn_jax.linear(x, packed, bias), np.broadcast_to(bias, (3, 5)))
    packed = mxdnn_jax.pack(jnp.zeros((5, 0)), format)
    assert mxdnn_jax.linear(jnp.ones((3, 5)), packed).shape == (3, 0)


def test_nan_and_inf_stay_in_their_rows():
    x = exact.random("x", 4, 64).at[1, 3].set(jnp.nan).at[2, 5].set(jnp.inf)
    packed = mxdnn_jax.pack(exact.random("w", 64, 17), "mxfp8")
    y = mxdnn_jax.linear(x, packed)
    assert np.isnan(y[1]).all() and not np.isfinite(y[2]).any()
    exact.check(y[jnp.array([0, 3])], x[jnp.array([0, 3])], packed)


def test_same_bits_in_jit_and_alone():
    x, packed = exact.random("x", 9, 200, dtype="bfloat16"), mxdnn_jax.pack(exact.random("w", 200, 77), "mxfp4")
    np.testing.assert_array_equal(mxdnn_jax.linear(x, packed), jax.jit(mxdnn_jax.linear)(x, packed))


def test_refused():
    x, packed = jnp.ones((3, 64)), mxdnn_jax.pack(exact.random("w", 64, 33), "mxfp4")
    experts = mxdnn_jax.pack(exact.random("w", 2, 64, 32), "mxfp4")
    with pytest.raises(ValueError, match=r"x is \[3, 63\]; for weights \[64, 33\] its last dimension has to be 64"):
        mxdnn_jax.linear(x[:, 1:], packed)
    with pytest.raises(ValueError, match=r"x is \[\]"):
        mxdnn_jax.linear(jnp.ones(()), packed)
    with pytest.raises(TypeError, match="x is int32; it has to be one of float32, bfloat16, float16"):
        mxdnn_jax.linear(x.astype(jnp.int32), packed)
    with pytest.raises(TypeError, match="out_dtype is int8"):
        mxdnn_jax.linear(x, packed, out_dtype="int8")
    with pytest.raises(TypeError, match="bias is int32"):
        mxdnn_jax.linear(x, packed, jnp.ones(33, jnp.int32))
    with pytest.raises(ValueError, match=r"the bias is \[32\]; for these weights it has to be \[33\]"):
        mxdnn_jax.linear(x, packed, jnp.ones(32))
    with pytest.raises(ValueError, match="there is no activation 'gelu'; known are relu, "):
        mxdnn_jax.linear(x, packed, activation="gelu")
    with pytest.raises(ValueError, match="halves the columns, of which there are 33"):
        mxdnn_jax.linear(x, packed, activation="silu")
    with pytest.raises(ValueError, match="ends in ':halves' or ':interleaved'"):
        mxdnn_jax.linear(x, packed, activation="silu", gate_layout="sideways")
    with pytest.raises(ValueError, match=r"\[2, 64, 32\], of several matrices; grouped_linear"):
        mxdnn_jax.linear(x, experts)
    with pytest.raises(TypeError, match="the weights are a ArrayImpl; mxdnn_jax.pack makes a Packed"):
        mxdnn_jax.linear(x, jnp.ones((64, 33)))
    with pytest.raises(ValueError, match=r"packed.data is uint8\[\d+\]; its blob describes f4_e2m1:packed:"):
        mxdnn_jax.linear(x, mxdnn_jax.Packed(packed.data[:-1], packed.blob))
    with pytest.raises(ValueError, match=r"packed.data is int8\[\d+\]"):
        mxdnn_jax.linear(x, mxdnn_jax.Packed(packed.data.astype(jnp.int8), packed.blob))
