# SPDX-License-Identifier: Apache-2.0
"""Activations in the words of mxdnn-bench, in plain torch: what gradients need."""

import math
from typing import NamedTuple

import torch

Tensor = torch.Tensor

GATED = ("silu", "swiglu_oai", "geglu_erf", "geglu_tanh")

# Alpha where no number follows the word; 0 of all others.
_ALPHA = {"linear": 1.0, "swish": 1.0, "swiglu_oai": 1.702}


class Activation(NamedTuple):
    """A word taken apart: `swiglu_oai:1.702:7:interleaved`."""

    name: str
    alpha: float
    beta: float  # of gated ones the limit
    halves: bool


def parse(word: str) -> Activation:
    """Takes a word apart. The operators refuse words that do not exist."""
    name, *rest = word.split(":")
    halves = bool(rest) and rest[-1] == "halves"
    if rest and rest[-1] in ("halves", "interleaved"):
        rest = rest[:-1]
    alpha = float(rest[0]) if rest else _ALPHA.get(name, 0.0)
    return Activation(name, alpha, float(rest[1]) if len(rest) > 1 else 0.0, halves)


def is_gated(word: str) -> bool:
    """Whether an activation makes one column of two."""
    return word.split(":")[0] in GATED


def _swish(x: Tensor, alpha: float) -> tuple[Tensor, Tensor]:
    s = torch.sigmoid(alpha * x)
    return x * s, s + alpha * x * s * (1 - s)


def _gelu_erf(x: Tensor) -> tuple[Tensor, Tensor]:
    phi = 0.5 * (1 + torch.erf(x / math.sqrt(2)))
    return x * phi, phi + x * torch.exp(-0.5 * x * x) / math.sqrt(2 * math.pi)


def _gelu_tanh(x: Tensor) -> tuple[Tensor, Tensor]:
    c = math.sqrt(2 / math.pi)
    t = torch.tanh(c * (x + 0.044715 * x**3))
    return 0.5 * x * (1 + t), 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * c * (1 + 3 * 0.044715 * x * x)


def _value_and_slope(a: Activation, x: Tensor) -> tuple[Tensor, Tensor]:
    match a.name:
        case "relu":
            slope = torch.where(x > 0, 1.0, a.alpha)
            return x * slope, slope
        case "tanh":
            t = torch.tanh(x)
            return t, 1 - t * t
        case "square":
            return x * x, 2 * x
        case "linear":
            return a.alpha * x + a.beta, torch.full_like(x, a.alpha)
        case "logistic":
            s = torch.sigmoid(x)
            return s, s * (1 - s)
        case "gelu_erf":
            return _gelu_erf(x)
        case "gelu_tanh":
            return _gelu_tanh(x)
        case "swish":
            return _swish(x, a.alpha)
        case "clip":
            return x.clamp(a.alpha, a.beta), ((x > a.alpha) & (x < a.beta)).to(x.dtype)
        case "relu2":
            r = x.clamp(min=0)
            return r * r, 2 * r
    raise ValueError(f"activation {a.name!r} is not known")


def _split(a: Activation, z: Tensor) -> tuple[Tensor, Tensor]:
    if a.halves:
        return z.chunk(2, -1)
    return z[..., 0::2], z[..., 1::2]


def _join(a: Activation, gate: Tensor, up: Tensor) -> Tensor:
    if a.halves:
        return torch.cat([gate, up], -1)
    return torch.stack([gate, up], -1).flatten(-2)


def _gate(a: Activation, g: Tensor) -> tuple[Tensor, Tensor]:
    match a.name:
        case "silu":
            return _swish(g, 1.0)
        case "swiglu_oai":
            return _swish(g, a.alpha)
        case "geglu_erf":
            return _gelu_erf(g)
    return _gelu_tanh(g)


def apply(word: str, z: Tensor) -> Tensor:
    """The activation of z."""
    if word in ("", "none"):
        return z
    a = parse(word)
    if a.name not in GATED:
        return _value_and_slope(a, z)[0]
    gate, up = _limited(a, *_split(a, z))
    return _gate(a, gate)[0] * (up + (1 if a.name == "swiglu_oai" else 0))


def gradient(word: str, z: Tensor, grad: Tensor) -> Tensor:
    """The gradient of z, of that of its activation."""
    if word in ("", "none"):
        return grad
    a = parse(word)
    if a.name not in GATED:
        return grad * _value_and_slope(a, z)[1]
    free_gate, free_up = _split(a, z)
    gate, up = _limited(a, free_gate, free_up)
    value, slope = _gate(a, gate)
    grad_gate = grad * slope * (up + (1 if a.name == "swiglu_oai" else 0)) * (gate == free_gate)
    grad_up = grad * value * (up == free_up)
    return _join(a, grad_gate, grad_up)


def _limited(a: Activation, gate: Tensor, up: Tensor) -> tuple[Tensor, Tensor]:
    if not (a.beta > 0 and math.isfinite(a.beta)):
        return gate, up
    return gate.clamp(max=a.beta), up.clamp(-a.beta, a.beta)
