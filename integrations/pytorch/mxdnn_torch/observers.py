# SPDX-License-Identifier: Apache-2.0
"""What linear layers are given, observed for static scales of activations."""

import math
from collections.abc import Callable

import torch
from torch import nn

NVFP4_RANGE = 448 * 6  # the largest block scale times the largest element


class ActivationObserver:
    """Records the largest magnitude of each linear layer's input while it is active:

        with ActivationObserver(model) as observer:
            for batch in calibration: model(batch)
        quantize_(model, QuantizeConfig("nvfp4", "nvfp4:static"), observer=observer)
    """

    def __init__(
        self, model: nn.Module, filter_fn: "Callable[[nn.Module, str], bool] | None" = None
    ) -> None:
        chosen = filter_fn or (lambda module, name: isinstance(module, nn.Linear))
        self._modules = {name: m for name, m in model.named_modules() if chosen(m, name)}
        self._amax: dict[str, torch.Tensor] = {}
        self._hooks: list = []

    def __enter__(self) -> "ActivationObserver":
        for name, module in self._modules.items():
            self._hooks.append(module.register_forward_pre_hook(self._hook(name)))
        return self

    def __exit__(self, *exc: object) -> None:
        for hook in self._hooks:
            hook.remove()
        self._hooks.clear()

    def _hook(self, name: str):
        def record(module, args):
            x = args[0].detach()
            if x.numel() == 0:
                return
            amax = x.abs().amax().float()
            seen = self._amax.get(name)
            self._amax[name] = amax if seen is None else torch.maximum(seen, amax)

        return record

    def amax(self, name: str) -> float:
        """The largest magnitude that the layer was given. Inputs with NaN or Inf give no scale."""
        if name not in self._amax:
            raise ValueError(
                f"no input of layer {name!r} was observed; run calibration data through the model inside the observer"
            )
        value = self._amax[name].item()
        if not math.isfinite(value):
            raise ValueError(f"layer {name!r} was given NaN or Inf; leave such batches out of the calibration")
        return value

    def nvfp4_global_scale(self, name: str) -> float:
        """The global scale under which the largest magnitude is the largest NVFP4 value."""
        scale = float(torch.tensor(self.amax(name)) / NVFP4_RANGE)
        return scale if scale > 0 else 1.0  # a layer that saw zeros only
