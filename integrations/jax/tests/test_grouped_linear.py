# SPDX-License-Identifier: Apache-2.0
import exact
import jax
import jax.numpy as jnp
import mxdnn_jax
import numpy as np
import pytest

E, K, N = 4, 65, 34
SIZES = ([3, 0, 5, 5], [0, 0, 0, 0], [0, 0, 13, 0], [1, 1, 1, 1])


def experts(format="mxfp4", name="w"):
    return mxdnn_jax.pack(exact.random(name, E, K, N), format)


def s32(sizes):
    return jnp.array(sizes, jnp.int32)


def check(y, x, packed, sizes, bias=None, activation=None, gate_layout="halves"):
    """Each group with the weights of its expert; rows behind them are 0."""
    first = 0
    for i, size in enumerate(sizes):
        rows = slice(first, first + size)
        exact.check(y[rows], x[rows], packed, bias, activation, gate_layout, expert=i)
        first += size
    np.testing.assert_array_equal(exact.f64(y[first:]), 0)


@pytest.mark.everywhere
@pytest.mark.parametrize("dtype", exact.DTYPES)
@pytest.mark.parametrize("format", exact.FORMATS)
def test_formats(format, dtype):
    packed, x, bias = experts(format), exact.random("x", 13, K, dtype=dtype), exact.random("b", E, N)
    for sizes in SIZES:
        check(mxdnn_jax.grouped_linear(x, packed, s32(sizes)), x, packed, sizes)
        check(mxdnn_jax.grouped_linear(x, packed, s32(sizes), bias), x, packed, sizes, bias)


@pytest.mark.everywhere
@pytest.mark.parametrize("activation", [*exact.ELTWISE, "relu2", *exact.GATED])
def test_activations(activation):
    packed, x, bias = experts(), exact.random("x", 13, K, dtype="bfloat16"), exact.random("b", E, N)
    for layout in ("halves", "interleaved") if activation in exact.GATED else ("halves",):
        y = mxdnn_jax.grouped_linear(x, packed, s32([3, 0, 5, 4]), bias, activation=activation, gate_layout=layout,
                                     out_dtype="float32")
        check(y, x, packed, [3, 0, 5, 4], bias, activation, layout)


@pytest.mark.everywhere
def test_rows_behind_the_last_group_are_zero():
    # Memory that was NaN before: nothing of it may remain.
    x, packed = exact.random("x", 64, K), experts()
    poison = jnp.full((64, N), jnp.nan).block_until_ready()
    del poison
    y = jax.jit(lambda x, sizes: mxdnn_jax.grouped_linear(x, packed, sizes))(x, s32([1, 0, 0, 1]))
    check(y, x, packed, [1, 0, 0, 1])


@pytest.mark.everywhere
def test_no_rows_and_no_experts():
    assert mxdnn_jax.grouped_linear(jnp.ones((0, K)), experts(), s32([0] * E)).shape == (0, N)
    none = mxdnn_jax.pack(jnp.ones((0, K, N)), "mxfp8")
    np.testing.assert_array_equal(mxdnn_jax.grouped_linear(jnp.ones((3, K)), none, s32([])), np.zeros((3, N)))


@pytest.mark.everywhere
def test_vmap_is_one_call():
    x, packed, bias = exact.random("x", 3, 13, K), experts(), exact.random("b", E, N)
    sizes = s32([SIZES[0], SIZES[2], SIZES[3]])
    function = jax.vmap(lambda x, sizes: mxdnn_jax.grouped_linear(x, packed, sizes, bias))
    y = function(x, sizes)
    for i in range(3):
        check(y[i], x[i], packed, sizes[i].tolist(), bias)
    assert jax.jit(function).lower(x, sizes).as_text().count("mxdnn_grouped_linear") == 1
    same_sizes = jax.vmap(lambda x: mxdnn_jax.grouped_linear(x, packed, sizes[0]))(x)
    check(same_sizes[2], x[2], packed, SIZES[0])
    same_rows = jax.vmap(lambda sizes: mxdnn_jax.grouped_linear(x[0], packed, sizes))(sizes)
    check(same_rows[1], x[0], packed, SIZES[2])
    twice = jax.vmap(jax.vmap(lambda x, sizes: mxdnn_jax.grouped_linear(x, packed, sizes)))
    check(twice(x[None], sizes[None])[0, 1], x[1], packed, SIZES[2])


@pytest.mark.everywhere
def test_vmap_over_weights():
    x, layers = exact.random("x", 13, K), [experts(name="v"), experts(name="w")]
    stacked = jax.tree.map(lambda *data: jnp.stack(data), *layers)
    y = jax.jit(jax.vmap(lambda p: mxdnn_jax.grouped_linear(x, p, s32(SIZES[0]))))(stacked)
    for i, packed in enumerate(layers):
        np.testing.assert_array_equal(y[i], mxdnn_jax.grouped_linear(x, packed, s32(SIZES[0])))


@pytest.mark.everywhere
@pytest.mark.parametrize("activation", [None, "relu2", "swiglu_oai"])
def test_gradients(activation):
    x, packed, bias, sizes = exact.random("x", 13, K), experts("mxfp8"), exact.random("b", E, N), s32([3, 0, 5, 4])
    values = mxdnn_jax.unpack(packed, "float32")

    def loss(x, bias):
        y = mxdnn_jax.grouped_linear(x, packed, sizes, bias, activation=activation, gate_layout="interleaved")
        return jnp.sum(jnp.sin(y))

    def loss_of_rows(x, bias):  # the same, one linear for each group
        total, first = 0.0, 0
        for i, size in enumerate([3, 0, 5, 4]):
            one = mxdnn_jax.pack(values[i], "mxfp8")
            y = mxdnn_jax.linear(x[first:first + size], one, bias[i], activation=activation, gate_layout="interleaved")
            total, first = total + jnp.sum(jnp.sin(y)), first + size
        return total

    for a, b in zip(jax.grad(loss, (0, 1))(x, bias), jax.grad(loss_of_rows, (0, 1))(x, bias)):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-3 * float(jnp.max(abs(b))))
    assert not jax.grad(loss)(x, bias)[12].any()


def test_refused():
    x, packed, sizes = jnp.ones((13, K)), experts(), s32([3, 0, 5, 5])
    for call, words in [
            (lambda: mxdnn_jax.grouped_linear(x[:, 1:], packed, sizes), r"x is \[13, 64\]; .* has to be \[rows, 65\]"),
            (lambda: mxdnn_jax.grouped_linear(x[None], packed, sizes), r"x is \[1, 13, 65\]"),
            (lambda: mxdnn_jax.grouped_linear(x, packed, sizes[1:]), r"int32\[3\]; for 4 experts"),
            (lambda: mxdnn_jax.grouped_linear(x, packed, sizes.astype(float)), "group_sizes is float32"),
            (lambda: mxdnn_jax.grouped_linear(x, packed, sizes, jnp.ones(N)), r"the bias is \[34\]; .* \[4, 34\]"),
            (lambda: mxdnn_jax.grouped_linear(x, mxdnn_jax.pack(jnp.ones((K, N)), "mxfp4"), sizes),
             r"have to be \[experts, K, N\]")]:
        with pytest.raises(ValueError, match=words):
            call()
    for sizes in ([3, 0, 5, 6], [-1, 2, 3, 4], [14, 0, 0, 0], [2**31 - 1, 2**31 - 1, 3, 1]):
        with pytest.raises(Exception, match="GROUP_OFFSETS"):
            jax.block_until_ready(mxdnn_jax.grouped_linear(x, packed, s32(sizes)))
