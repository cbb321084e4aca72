# SPDX-License-Identifier: Apache-2.0
"""linear: rows times one matrix of packed weights."""
import functools

import jax
import jax.numpy as jnp

from . import _activation, _calls, _native
from ._matmul import Static, check_bias, cotangent_of_product
from ._packed import Packed, check_float, check_packed, unpack


def linear(x: jax.Array, packed: Packed, bias: jax.Array | None = None, *, activation: str | None = None,
           gate_layout: str = "halves", out_dtype: jax.typing.DTypeLike | None = None) -> jax.Array:
    """activation(x @ weights + bias), of x [.., K], weights [K, N] and bias [N].

    x and bias are float32, bfloat16 or float16, sums are f32. The result has out_dtype, by default that of x.
    activation: relu, relu2, tanh, logistic, swish, gelu_tanh, gelu_erf. A gated one makes one column of two: silu,
    geglu_tanh, geglu_erf, swiglu_oai; gate_layout says where gate and up are, in the two "halves" of the columns or
    "interleaved". There are gradients for x and bias.
    """
    x = jnp.asarray(x)
    description = check_packed(packed, "linear")
    if len(description.shape) != 2:
        raise ValueError(f"linear: the weights are {list(description.shape)}, of several matrices; grouped_linear "
                         "takes those of experts, jax.vmap a stack of packed.data")
    k, n = description.shape
    check_float(x.dtype, "linear: x")
    if x.ndim == 0 or x.shape[-1] != k:
        raise ValueError(f"linear: x is {list(x.shape)}; for weights [{k}, {n}] its last dimension has to be {k}")
    if bias is not None:
        bias = jnp.asarray(bias)
        check_float(bias.dtype, "linear: bias")
    check_bias(bias, (n,), "linear")
    attribute = _activation.with_layout(activation, gate_layout)
    out_dtype = check_float(x.dtype if out_dtype is None else out_dtype, "linear: out_dtype")
    return _linear(Static(packed.blob, attribute, _native.columns(attribute, n), out_dtype.name), x, packed.data, bias)


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def _linear(static: Static, x: jax.Array, data: jax.Array, bias: jax.Array | None) -> jax.Array:
    return _batched(static)(x, data, *([] if bias is None else [bias]))


@functools.lru_cache(maxsize=1024)
def _batched(static: Static):
    """The call with its batching rule."""

    def call(x, *others):
        result = jax.ShapeDtypeStruct((*x.shape[:-1], static.columns), static.out_dtype)
        return _calls.call("linear", result, x, *others, blob=static.blob, activation=static.activation)

    batched_call = jax.custom_batching.custom_vmap(call)

    @batched_call.def_vmap
    def _(axis_size, batched, x, *others):
        if any(batched[1:]):
            return jax.vmap(call, in_axes=[0 if b else None for b in batched])(x, *others), True
        return batched_call(x, *others), True  # a leading dimension of x is more rows

    return batched_call


def _forward(static, x, data, bias):
    return _linear(static, x, data, bias), (x, data, bias)


def _backward(static, residuals, dy):
    x, data, bias = residuals
    packed = Packed(data, static.blob)
    product = functools.partial(_linear, static.without_activation(packed.shape[1]), x, data, bias)
    dz = cotangent_of_product(static, dy, product)
    weights = unpack(packed, jnp.float32)
    dx = jnp.einsum("...n,kn->...k", dz, weights, precision=jax.lax.Precision.HIGHEST)
    dbias = None if bias is None else jnp.sum(dz, axis=tuple(range(dz.ndim - 1))).astype(bias.dtype)
    return dx.astype(x.dtype), None, dbias


_linear.defvjp(_forward, _backward)
