# SPDX-License-Identifier: Apache-2.0
"""Exact results in float64 over the values of packed weights, and the errors that doc/concepts/accuracy.md allows."""
import math
import zlib

import jax
import jax.numpy as jnp
import mxdnn_jax
import numpy as np

FORMATS = ("mxfp8", "mxfp8_e5m2", "mxfp6", "mxfp6_e3m2", "mxfp4", "mxint8", "nvfp4", "int4", "int4_zp",
           "int4_min", "int8")
DTYPES = ("float32", "bfloat16", "float16")

_U = 2.0**-24
_TINY = 2.0**-149
# Half an ulp relative to the smallest number of a binade, the least subnormal step, the largest number.
_TYPES = {"float32": (2.0**-24, 2.0**-149, 3.4e38), "bfloat16": (2.0**-8, 2.0**-133, 3.38e38),
          "float16": (2.0**-11, 2.0**-24, 65504.0)}


def random(name: str, *shape: int, dtype="float32", scale: float = 1.0) -> jax.Array:
    """Normally distributed values; the name is the seed, which a failing test shows."""
    rng = np.random.default_rng(zlib.crc32(f"{name}{shape}".encode()))
    return jnp.asarray(rng.standard_normal(shape, np.float32) * scale, dtype)


def f64(array) -> np.ndarray:
    return np.asarray(jnp.asarray(array).astype(jnp.float32)).astype(np.float64)


def _sigmoid(x):
    return 0.5 * (1 + np.tanh(x / 2))


def _gelu_tanh(x):
    return x / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def _gelu_erf(x):
    return x / 2 * (1 + np.vectorize(math.erf, otypes=[np.float64])(x / np.sqrt(2)))


def _swish(x):
    return x * _sigmoid(x)


# Function and the largest slope, of any argument that the tests have.
ELTWISE = {
    "relu": (lambda x: np.maximum(x, 0), 1.0),
    "tanh": (np.tanh, 1.0),
    "logistic": (_sigmoid, 0.25),
    "swish": (_swish, 1.1),
    "gelu_tanh": (_gelu_tanh, 1.13),
    "gelu_erf": (_gelu_erf, 1.13),
}
# f of the gate, h of up, and their largest slopes.
GATED = {
    "silu": (_swish, lambda u: u, 1.1),
    "geglu_tanh": (_gelu_tanh, lambda u: u, 1.13),
    "geglu_erf": (_gelu_erf, lambda u: u, 1.13),
    "swiglu_oai": (lambda g: np.minimum(g, 7) * _sigmoid(1.702 * np.minimum(g, 7)),
                         lambda u: np.clip(u, -7, 7) + 1, 1.1),
}


def _activate(z, e, activation, gate_layout):
    """An exact value and its error, through an activation."""
    if activation is None:
        return z, e
    if activation == "relu2":
        v = np.maximum(z, 0)**2
        return v, 2 * (abs(z) + e) * e + _U * v
    if activation in ELTWISE:
        f, slope = ELTWISE[activation]
        v = f(z)
        return v, slope * e + 32 * _U * abs(v) * (1 + np.minimum(abs(z), 104)) + _U * abs(v)
    f, h, slope = GATED[activation]
    if gate_layout == "halves":
        (g, u), (eg, eu) = np.split(z, 2, axis=-1), np.split(e, 2, axis=-1)
    else:
        g, u, eg, eu = z[..., 0::2], z[..., 1::2], e[..., 0::2], e[..., 1::2]
    v = f(g) * h(u)
    return v, (slope * eg * (abs(h(u)) + eu) + abs(f(g)) * eu + 32 * _U * abs(v) * (1 + 2 * abs(g)) + 4 * _U * abs(v))


def product(x, packed, bias=None, expert=None):
    """x @ weights + bias in float64, and its error; of one expert where there are several."""
    x_dtype = jnp.asarray(x).dtype.name
    x, w = f64(x), f64(mxdnn_jax.unpack(packed, "float32"))
    if expert is not None:
        w, bias = w[expert], None if bias is None else bias[expert]
    k = w.shape[-2]
    z, s = x @ w, abs(x) @ abs(w)
    relative = (k + 16) * _U / (1 - (k + 16) * _U)
    said = repr(packed)
    if said.startswith(("Packed(s4", "Packed(u4", "Packed(s8")) and "e8m0" not in said:
        # Zero points may be multiplied apart from codes. (code + zp) * scale is at most 30 scales, and a group spans at
        # least 14 of 15 of them: it is at most 5 times the largest weight of the column.
        s = s + abs(x).sum(axis=-1, keepdims=True) * 5 * abs(w).max(axis=-2, keepdims=True, initial=0)
        if x_dtype != "float32":
            relative += 2.0**-8
    e = relative * s + (k + 1) * _TINY + k * 2.0**-126 * (1 + abs(x).max(initial=0))
    if bias is not None:
        z = z + f64(bias)
        e = e + _U * abs(z)
    return z, e


def check(y, x, packed, bias=None, activation=None, gate_layout="halves", expert=None):
    """Fails unless every value of y is within its bound."""
    y_type = _TYPES[y.dtype.name]
    v, e = _activate(*product(x, packed, bias, expert), activation, gate_layout)
    e = e + y_type[0] * (abs(v) + e) + y_type[1]
    assert y.shape == v.shape
    got = f64(y)
    worst = np.max(abs(got - v) / e, initial=0)
    assert np.all(abs(got - v) <= e), f"error is {worst} times the bound for {packed!r}"
