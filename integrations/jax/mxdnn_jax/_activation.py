# SPDX-License-Identifier: Apache-2.0
"""Activations as functions of JAX, for gradients only: custom calls compute their own. The names are mxdnn's."""
from collections.abc import Callable

import jax
import jax.numpy as jnp

_ELTWISE = {
    "relu": jax.nn.relu,
    "relu2": lambda x: jnp.square(jax.nn.relu(x)),
    "tanh": jnp.tanh,
    "logistic": jax.nn.sigmoid,
    "swish": jax.nn.silu,
    "gelu_tanh": lambda x: jax.nn.gelu(x, approximate=True),
    "gelu_erf": lambda x: jax.nn.gelu(x, approximate=False),
}


def _swiglu_oai(gate: jax.Array, up: jax.Array) -> jax.Array:
    gate, up = jnp.minimum(gate, 7.0), jnp.clip(up, -7.0, 7.0)
    return gate * jax.nn.sigmoid(1.702 * gate) * (up + 1)


_GATED = {
    "silu": lambda gate, up: jax.nn.silu(gate) * up,
    "geglu_tanh": lambda gate, up: jax.nn.gelu(gate, approximate=True) * up,
    "geglu_erf": lambda gate, up: jax.nn.gelu(gate, approximate=False) * up,
    "swiglu_oai": _swiglu_oai,
}

NAMES = (*_ELTWISE, *_GATED)


def with_layout(activation: str | None, gate_layout: str) -> str:
    """The attribute of a custom call: a gated activation says where gate and up are; "" is none."""
    if activation is None:
        return ""
    return f"{activation}:{gate_layout}" if activation in _GATED else activation


def function_of(attribute: str) -> Callable[[jax.Array], jax.Array]:
    """The function of a row that an attribute of with_layout() stands for."""
    name, _, layout = attribute.partition(":")
    if not layout:
        return _ELTWISE[name]
    if layout == "interleaved":
        return lambda x: _GATED[name](x[..., 0::2], x[..., 1::2])
    return lambda x: _GATED[name](*jnp.split(x, 2, axis=-1))
