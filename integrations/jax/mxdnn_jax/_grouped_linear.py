# SPDX-License-Identifier: Apache-2.0
"""grouped_linear: the rows of each group times the packed weights of its expert."""
import functools

import jax
import jax.numpy as jnp

from . import _activation, _calls, _native
from ._matmul import Static, check_bias, cotangent_of_product
from ._packed import Packed, check_float, check_packed, unpack


def grouped_linear(x: jax.Array, packed: Packed, group_sizes: jax.Array, bias: jax.Array | None = None, *,
                   activation: str | None = None, gate_layout: str = "halves",
                   out_dtype: jax.typing.DTypeLike | None = None) -> jax.Array:
    """jax.lax.ragged_dot with packed weights, a bias and an activation.

    The first group_sizes[0] rows of x [R, K] are multiplied by expert 0 of the weights [E, K, N], the next
    group_sizes[1] rows by expert 1, and so on. bias is [E, N]. Rows behind the last group become 0. group_sizes is
    int32; on a CPU sizes below 0, or more rows than there are, are an error. Everything else is as in linear.
    """
    x, group_sizes = jnp.asarray(x), jnp.asarray(group_sizes)
    description = check_packed(packed, "grouped_linear")
    if len(description.shape) != 3:
        raise ValueError(f"grouped_linear: the weights are {list(description.shape)}; they have to be [experts, K, N]")
    e, k, n = description.shape
    check_float(x.dtype, "grouped_linear: x")
    if x.ndim != 2 or x.shape[-1] != k:
        raise ValueError(f"grouped_linear: x is {list(x.shape)}; for weights [{e}, {k}, {n}] it has to be [rows, {k}]")
    if group_sizes.dtype != jnp.int32 or group_sizes.shape != (e,):
        raise ValueError(f"grouped_linear: group_sizes is {group_sizes.dtype}{list(group_sizes.shape)}; for {e} "
                         f"experts it has to be int32[{e}]")
    if bias is not None:
        bias = jnp.asarray(bias)
        check_float(bias.dtype, "grouped_linear: bias")
    check_bias(bias, (e, n), "grouped_linear")
    attribute = _activation.with_layout(activation, gate_layout)
    out_dtype = check_float(x.dtype if out_dtype is None else out_dtype, "grouped_linear: out_dtype")
    return _grouped_linear(Static(packed.blob, attribute, _native.columns(attribute, n), out_dtype.name), x,
                           packed.data, group_sizes, bias)


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def _grouped_linear(static: Static, x: jax.Array, data: jax.Array, group_sizes: jax.Array,
                    bias: jax.Array | None) -> jax.Array:
    ends = jnp.cumsum(group_sizes, dtype=jnp.int32)
    experts = jnp.arange(group_sizes.shape[0], dtype=jnp.int32)
    y = _batched(static)(x, data, ends, experts, *([] if bias is None else [bias]))
    # The library leaves rows of no group alone.
    total = ends[-1] if group_sizes.shape[0] else 0
    return jnp.where(jnp.arange(x.shape[0])[:, None] < total, y, jnp.zeros((), y.dtype))


@functools.lru_cache(maxsize=1024)
def _batched(static: Static):
    """The call with its batching rule."""

    def call(x, data, ends, experts, *bias):
        result = jax.ShapeDtypeStruct((x.shape[0], static.columns), static.out_dtype)
        return _calls.call("grouped_linear", result, x, data, ends, experts, *bias, blob=static.blob,
                           activation=static.activation)

    batched_call = jax.custom_batching.custom_vmap(call)

    @batched_call.def_vmap
    def _(axis_size, batched, x, data, ends, experts, *bias):
        operands = (x, data, ends, experts, *bias)
        if batched[1] or any(batched[4:]):
            return jax.vmap(call, in_axes=[0 if b else None for b in batched])(*operands), True
        x, _, ends, experts = (o if b else jnp.broadcast_to(o, (axis_size, *o.shape))
                               for o, b in zip(operands[:4], batched))
        rows = x.shape[1]
        # All rows of all calls one after the other. Rows behind the last group of a call are a group of no expert.
        first = jnp.arange(axis_size, dtype=jnp.int32)[:, None] * rows
        ends = jnp.concatenate([ends + first, first + rows], axis=1).reshape(-1)
        experts = jnp.pad(experts, ((0, 0), (0, 1)), constant_values=-1).reshape(-1)
        y = batched_call(x.reshape(axis_size * rows, x.shape[2]), data, ends, experts, *bias)
        return y.reshape(axis_size, rows, static.columns), True

    return batched_call


def _forward(static, x, data, group_sizes, bias):
    return _grouped_linear(static, x, data, group_sizes, bias), (x, data, group_sizes, bias)


def _backward(static, residuals, dy):
    x, data, group_sizes, bias = residuals
    packed = Packed(data, static.blob)
    product = functools.partial(_grouped_linear, static.without_activation(packed.shape[2]), x, data, group_sizes, bias)
    dz = cotangent_of_product(static, dy, product)
    weights = jnp.swapaxes(unpack(packed, jnp.float32), 1, 2)
    dx = jax.lax.ragged_dot(dz, weights, group_sizes, precision=jax.lax.Precision.HIGHEST)
    dbias = None
    if bias is not None:
        expert_of_row = jnp.searchsorted(jnp.cumsum(group_sizes), jnp.arange(x.shape[0]), side="right")
        dbias = jax.ops.segment_sum(dz, expert_of_row, num_segments=bias.shape[0]).astype(bias.dtype)
    return dx.astype(x.dtype), None, None, dbias


_grouped_linear.defvjp(_forward, _backward)
