# SPDX-License-Identifier: Apache-2.0
"""jit, vmap, grad and scan."""
import exact
import jax
import jax.numpy as jnp
import mxdnn_jax
import numpy as np
import pytest
from mxdnn_jax import _activation

pytestmark = pytest.mark.everywhere

K, N = 65, 34


def stack(*packed):
    return jax.tree.map(lambda *data: jnp.stack(data), *packed)


def weights(*names):
    return [mxdnn_jax.pack(exact.random(name, K, N), "mxfp8") for name in names]


def close(a, b, scale=1.0):
    # Sums in two orders: far less than any fault, far more than any rounding.
    np.testing.assert_allclose(np.asarray(a, np.float64), np.asarray(b, np.float64), rtol=1e-4, atol=1e-4 * scale)


def test_vmap_over_rows_is_one_call():
    x, bias, (packed,) = exact.random("x", 4, 3, K), exact.random("b", N), weights("w")
    function = jax.vmap(lambda x: mxdnn_jax.linear(x, packed, bias))
    np.testing.assert_array_equal(function(x), mxdnn_jax.linear(x, packed, bias))
    assert jax.jit(function).lower(x).as_text().count("mxdnn_linear") == 1
    moved = jax.vmap(lambda x: mxdnn_jax.linear(x, packed, bias), in_axes=1, out_axes=1)
    np.testing.assert_array_equal(moved(x), mxdnn_jax.linear(x, packed, bias))
    twice = jax.vmap(jax.vmap(lambda x: mxdnn_jax.linear(x, packed)))
    np.testing.assert_array_equal(twice(x), mxdnn_jax.linear(x, packed))
    assert jax.jit(twice).lower(x).as_text().count("mxdnn_linear") == 1


def test_vmap_over_weights_and_bias():
    x, bias, layers = exact.random("x", 3, K), exact.random("b", 2, N), weights("v", "w")
    expected = jnp.stack([mxdnn_jax.linear(x, p, b) for p, b in zip(layers, bias)])
    np.testing.assert_array_equal(
        jax.vmap(mxdnn_jax.linear, in_axes=(None, 0, 0))(x, stack(*layers), bias), expected)
    np.testing.assert_array_equal(
        jax.vmap(mxdnn_jax.linear, in_axes=(None, None, 0))(x, layers[0], bias)[1],
        mxdnn_jax.linear(x, layers[0], bias[1]))
    np.testing.assert_array_equal(
        jax.jit(jax.vmap(mxdnn_jax.linear))(jnp.stack([x, x + 1]), stack(*layers), bias)[1],
        mxdnn_jax.linear(x + 1, layers[1], bias[1]))
    np.testing.assert_array_equal(jax.vmap(mxdnn_jax.unpack)(stack(*layers))[1], mxdnn_jax.unpack(layers[1]))
    none = mxdnn_jax.Packed(jnp.zeros((0, layers[0].data.size), jnp.uint8), layers[0].blob)
    assert jax.vmap(mxdnn_jax.linear)(jnp.ones((0, 3, K)), none).shape == (0, 3, N)


def test_vmap_over_pack():
    w = exact.random("w", 3, K, N)
    packed = jax.vmap(lambda w: mxdnn_jax.pack(w, "mxfp4"))(w)
    np.testing.assert_array_equal(packed.data[2], mxdnn_jax.pack(w[2], "mxfp4").data)


def test_scan_over_layers():
    square = [mxdnn_jax.pack(exact.random(name, K, K, scale=0.1), "mxfp8") for name in "abc"]
    x = exact.random("x", 3, K)
    last, _ = jax.lax.scan(lambda x, p: (mxdnn_jax.linear(x, p, activation="relu"), None), x, stack(*square))
    for packed in square:
        x = mxdnn_jax.linear(x, packed, activation="relu")
    np.testing.assert_array_equal(last, x)


def test_a_new_batch_size_needs_no_new_weights():
    (packed,) = weights("w")
    function = jax.jit(mxdnn_jax.linear)
    for rows in (1, 7, 0, 130):
        x = exact.random("x", rows, K)
        exact.check(function(x, packed), x, packed)


@pytest.mark.parametrize("activation", [None, *_activation.NAMES])
@pytest.mark.parametrize("gate_layout", ["halves", "interleaved"])
def test_gradients(activation, gate_layout):
    if gate_layout == "interleaved" and activation not in exact.GATED:
        pytest.skip("has no gate")
    x, bias, (packed,) = exact.random("x", 2, 3, K), exact.random("b", N), weights("w")
    values = mxdnn_jax.unpack(packed, "float32")

    def loss(x, bias):
        y = mxdnn_jax.linear(x, packed, bias, activation=activation, gate_layout=gate_layout)
        return jnp.sum(jnp.sin(y))

    def loss_of_jax(x, bias):
        z = jnp.matmul(x, values, precision="highest") + bias
        attribute = _activation.with_layout(activation, gate_layout)
        return jnp.sum(jnp.sin(_activation.function_of(attribute)(z) if activation else z))

    got, expected = jax.grad(loss, (0, 1))(x, bias), jax.grad(loss_of_jax, (0, 1))(x, bias)
    for a, b in zip(got, expected):
        assert a.shape == b.shape
        close(a, b, scale=float(jnp.max(abs(b))) * 10)
    close(jax.jit(jax.grad(loss))(x, bias), got[0], 10)


def test_gradients_under_vmap_and_types():
    x, layers = exact.random("x", 2, 3, K, dtype="bfloat16"), weights("v", "w")

    def grad(x, packed):
        return jax.grad(lambda x: mxdnn_jax.linear(x, packed, activation="gelu_erf").astype("float32").sum())(x)

    batched = jax.vmap(grad)(x, stack(*layers))
    assert batched.dtype == jnp.bfloat16 and batched.shape == x.shape
    for i, packed in enumerate(layers):
        np.testing.assert_allclose(np.float32(batched[i]), np.float32(grad(x[i], packed)), rtol=2e-2, atol=2e-2)
    per_example = jax.vmap(lambda x: grad(x, layers[0]))(x)
    np.testing.assert_allclose(np.float32(per_example[1]), np.float32(grad(x[1], layers[0])), rtol=2e-2, atol=2e-2)


def test_weights_have_no_gradient():
    x, (packed,) = exact.random("x", 3, K), weights("w")
    g = jax.grad(lambda p: mxdnn_jax.linear(x, p).sum(), allow_int=True)(packed)
    assert g.data.dtype == jax.dtypes.float0
