# SPDX-License-Identifier: Apache-2.0
"""`quantize_`: the weights of a model's linear layers become PackedTensors."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import nn

from .formats import Format
from .observers import ActivationObserver
from .packed_tensor import PackedTensor

STATIC_NVFP4 = "nvfp4:static"


@dataclass(frozen=True)
class QuantizeConfig:
    """How a layer is quantised.

    `format` is that of the weights: a name or a Format. `activation` says how the input is quantised: "" not at all
    (weights only); "int8_row", "fp8_row", "mxint8", "mxfp8", "mxfp6", "mxfp4", "nvfp4", "nvfp4:dynamic" in each call;
    "nvfp4:static" with the global scale that an observer saw. `rounding` is the rule for e8m0 scales of weights.
    """

    format: "str | Format" = "mxfp8"
    activation: str = ""
    rounding: str = "rceil"


Configs = Mapping[str, "QuantizeConfig | None"]


def is_linear(module: nn.Module, name: str) -> bool:
    """The layers that are quantised unless a filter says otherwise."""
    return isinstance(module, nn.Linear)


@torch.no_grad()
def quantize_(
    model: nn.Module,
    config: "QuantizeConfig | Configs",
    filter_fn: "Callable[[nn.Module, str], bool] | None" = None,
    *,
    device: "torch.device | str | None" = None,
    observer: "ActivationObserver | None" = None,
) -> nn.Module:
    """Quantises and packs the weights of the layers that `filter_fn(module, name)` picks, in place.

    `config` is one for all, or a mapping from names of layers: a name, "re:" and a regular expression that matches the
    whole name, or "_default". The first that fits counts, names before expressions; None leaves a layer as it is.
    `device`: weights are moved there first, one layer at a time. Returns the model.
    """
    chosen = [(n, m) for n, m in model.named_modules() if (filter_fn or is_linear)(m, n)]
    if isinstance(config, Mapping):
        unknown = set(config) - {n for n, _ in chosen} - {"_default"}
        unknown = sorted(n for n in unknown if not n.startswith("re:"))
        if unknown:
            raise ValueError(f"no layer that the filter picks is called {', '.join(unknown)}")
    # Everything that can be refused by name is refused before the first layer changes.
    plan = [(n, m, c) for n, m in chosen if (c := config_for(n, config)) is not None]
    for name, module, _ in plan:
        weight = getattr(module, "weight", None)
        if not isinstance(weight, torch.Tensor) or weight.dim() != 2:
            raise ValueError(f"layer {name!r} of type {type(module).__name__} has no weight [out, in] to quantise")
    recipes = [recipe_for(n, c, observer) for n, _, c in plan]
    for (name, module, c), recipe in zip(plan, recipes):
        if isinstance(module.weight, PackedTensor):
            continue
        weight = module.weight.to(device) if device is not None else module.weight
        packed = PackedTensor.from_float(weight, c.format, rounding=c.rounding, recipe=recipe)
        module.weight = nn.Parameter(packed, requires_grad=False)
        if device is not None:
            module.to(device)
    return model


def config_for(name: str, config: "QuantizeConfig | Configs") -> "QuantizeConfig | None":
    """The configuration of a layer."""
    if not isinstance(config, Mapping):
        return config
    if name in config:
        return config[name]
    for pattern, c in config.items():
        if pattern.startswith("re:") and re.fullmatch(pattern[3:], name):
            return c
    return config.get("_default")


def recipe_for(name: str, config: QuantizeConfig, observer: "ActivationObserver | None") -> str:
    """The recipe of activations that goes with the weights of a layer."""
    if config.activation != STATIC_NVFP4:
        return config.activation
    if observer is None:
        raise ValueError(f"{STATIC_NVFP4} needs an observer that has seen calibration data")
    return f"nvfp4:{observer.nvfp4_global_scale(name)!r}"
