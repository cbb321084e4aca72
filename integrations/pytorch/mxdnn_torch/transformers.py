# SPDX-License-Identifier: Apache-2.0
"""A quantiser for transformers: models are packed while they are loaded, shard by shard.

    from mxdnn_torch.transformers import MxdnnConfig
    model = AutoModelForCausalLM.from_pretrained(DIR, quantization_config=MxdnnConfig("mxfp4"))
    model.save_pretrained(PACKED)         # a container; from_pretrained(PACKED) needs no more than the import

The weights in DIR may be floating, packed, or those of another quantiser, whose codes and scales are then kept
(`CHECKPOINTS`). Linear layers multiply by packed weights through `PackedTensor`; experts do so through the function
that this module registers with transformers' interface of experts.
"""
import base64
import copy
import functools
import json
import os
import re
import types
from collections.abc import Callable
from typing import Any

import torch
from safetensors import safe_open
from transformers.core_model_loading import ConversionOps, WeightConverter
from transformers.integrations.moe import ALL_EXPERTS_FUNCTIONS
from transformers.quantizers import auto
from transformers.quantizers.base import HfQuantizer
from transformers.quantizers.quantizers_utils import get_module_from_name, should_convert_module
from transformers.utils.quantization_config import QuantizationConfigMixin

from . import container
from .formats import get_format
from .packed_tensor import PackedTensor

METHOD = "mxdnn"
EXPERT_WEIGHTS = ("gate_up_proj", "up_proj", "down_proj")
ROUTERS = ("router", "gate", "gating")
LEAST_SIZE = 32  # a smaller weight is not worth packing

Tensors = dict[str, torch.Tensor]


@auto.register_quantization_config(METHOD)
class MxdnnConfig(QuantizationConfigMixin):
    """How the weights of linear layers and experts are packed.

    format: of weights that are floating in the checkpoint, a name of doc/reference/formats.md
    rules: {regular expression: format, or None to leave a weight as it is}; the first that a name contains counts
    requantize: weights whose scales no format can hold are decoded and quantised to `format`, instead of refused
    modules_to_not_convert: modules that stay as they are; None leaves out what transformers leaves out
    """

    def __init__(
        self,
        format: str = "mxfp4",
        rules: dict[str, str | None] | None = None,
        requantize: bool = False,
        modules_to_not_convert: list[str] | None = None,
        **kwargs: Any,
    ):
        for word in (format, *(rules or {}).values()):
            if word is not None:
                get_format(word)  # refuses what is no format
        self.quant_method = METHOD
        self.format = format
        self.rules = dict(rules or {})
        self.requantize = requantize
        self.modules_to_not_convert = modules_to_not_convert
        # the quantization_config of a checkpoint that another quantiser wrote; says how to read it, and is not stored
        self.checkpoint: dict[str, Any] | None = None

    def to_dict(self) -> dict[str, Any]:
        """What config.json keeps."""
        return {key: value for key, value in super().to_dict().items() if key != "checkpoint"}

    def format_of(self, name: str) -> str | None:
        """The format for a floating weight; None where it stays as it is."""
        for pattern, format in self.rules.items():
            if re.search(pattern, name):
                return format
        return self.format


# ---- reading checkpoints ---------------------------------------------------------------------------------------------


def _e8m0_bytes(scales: torch.Tensor) -> torch.Tensor | None:
    """Scales as bytes of e8m0, None if one of them is not a power of two that e8m0 has."""
    if scales.dtype == torch.uint8:
        return scales
    if scales.dtype == torch.float8_e8m0fnu:
        return scales.view(torch.uint8)
    bits = scales.float().contiguous().view(torch.int32)
    exact = (bits & 0x807FFFFF == 0) & (bits > 0) & (bits < 0x7F800000)
    return (bits >> 23).to(torch.uint8) if bool(exact.all()) else None


def _spread(scales: torch.Tensor, rows: int, columns: int, block: tuple[int, int], unit: int) -> torch.Tensor:
    """One scale for every `unit` values of each row, from scales of whole blocks."""
    out = scales.repeat_interleave(block[0], -2)[..., :rows, :]
    return out.repeat_interleave(block[1] // unit, -1)[..., : -(-columns // unit)].contiguous()


def _load_mxfp4(tensors: Tensors, quantizer: "MxdnnHfQuantizer", name: str) -> torch.Tensor:
    """gpt-oss: blocks [experts, out, in / 32, 16] of two codes a byte, and e8m0 bytes [experts, out, in / 32]."""
    blocks, scales = tensors["_blocks"], tensors["_scales"]
    if blocks.ndim != 4 or blocks.shape[:-1] != scales.shape or blocks.shape[-1] != 16:
        raise ValueError(
            f"{name}: blocks {tuple(blocks.shape)} and scales {tuple(scales.shape)} do not belong together; MXFP4 has "
            "blocks [experts, out, in / 32, 16] and scales [experts, out, in / 32]"
        )
    return PackedTensor.from_codes(blocks.flatten(-2), scales, "mxfp4")


def _load_fp8(tensors: Tensors, quantizer: "MxdnnHfQuantizer", name: str) -> torch.Tensor:
    """FP8 with scales of blocks: MXFP8 where the scales are powers of two, at any size of block."""
    codes, scales = tensors[""], tensors.get("_scale_inv")
    if scales is None:
        if codes.dtype in (torch.float8_e4m3fn, torch.float8_e5m2):
            raise ValueError(f"{name}: it has FP8 codes, but the checkpoint has no scales for them")
        return codes
    pair = codes.dtype in (torch.int8, torch.uint8)  # two e2m1 codes a byte
    if not pair and codes.dtype != torch.float8_e4m3fn:  # the loader has cast it; each of these types holds e4m3
        codes = codes.to(torch.float8_e4m3fn)
    rows, columns = codes.shape[-2], codes.shape[-1] * (2 if pair else 1)
    if scales.ndim < 2:
        scales = scales.reshape(1, 1)
    block = (-(-rows // scales.shape[-2]), -(-columns // scales.shape[-1]))
    stated = quantizer.quantization_config.checkpoint.get("weight_block_size")
    if stated and not pair and tuple(-(-n // b) for n, b in zip((rows, columns), stated)) == tuple(scales.shape[-2:]):
        block = tuple(stated)
    exact = _e8m0_bytes(scales)
    if exact is not None and (block[1] % 32 == 0 or block[1] >= columns):
        block = (block[0], -(-block[1] // 32) * 32)
        spread = _spread(exact, rows, columns, block, 32)
        return PackedTensor.from_codes(codes.view(torch.uint8), spread, "mxfp4" if pair else "mxfp8")
    if not quantizer.quantization_config.requantize:
        raise ValueError(
            f"{name}: its scales are floating, one for each {block[0]}x{block[1]} values, and no format has such "
            "scales; MxdnnConfig(requantize=True) decodes the weight and quantises it to "
            f"{quantizer.quantization_config.format}"
        )
    decoded = codes.float() * _spread(scales.float(), rows, columns, block, 1)
    return PackedTensor.from_float(decoded.to(quantizer.dtype), quantizer.quantization_config.format)


def _load_packed(tensors: Tensors, quantizer: "MxdnnHfQuantizer", name: str) -> torch.Tensor:
    """Packed weights of a container: their bytes and their descriptor."""
    checksum = {name + container.CHECKSUM: quantizer.checksums[name]} if name in quantizer.checksums else {}
    device = tensors[container.PACKED].device
    weight = container.from_tensors({name + suffix: t.cpu() for suffix, t in tensors.items()}, checksum)[name]
    return weight.to(device) if device.type != "cpu" else weight


# quantisation method -> how it names what belongs to a weight: {parameter: suffixes in the checkpoint}, and the loader
CHECKPOINTS: dict[str, tuple[dict[str, tuple[str, ...]], Callable[..., torch.Tensor]]] = {
    METHOD: ({"": (container.PACKED, container.DESCRIPTOR)}, _load_packed),
    "mxfp4": ({"gate_up_proj": ("_blocks", "_scales"), "down_proj": ("_blocks", "_scales")}, _load_mxfp4),
    "fp8": ({name: ("", "_scale_inv") for name in ("weight", *EXPERT_WEIGHTS)}, _load_fp8),
    "mxfp8": ({name: ("", "_scale_inv") for name in ("weight", *EXPERT_WEIGHTS)}, _load_fp8),
}
IGNORED = ("activation_scale",)  # static scales of sources; sources stay floating


class _Load(ConversionOps):
    """Makes the packed parameter of the tensors that a checkpoint has for it.

    suffix_of: what each pattern of names stands for
    merge: what transformers does with the tensors of one kind, such as stacking those of the experts
    whole: patterns of tensors that are merged already
    """

    supports_many_to_many = True

    def __init__(self, hf_quantizer, suffix_of: dict[str, str], merge: tuple = (), whole: frozenset = frozenset()):
        self.hf_quantizer, self.suffix_of, self.merge, self.whole = hf_quantizer, suffix_of, merge, whole

    def __deepcopy__(self, memo: dict) -> "_Load":
        return self  # transformers copies a converter for every parameter

    def convert(self, input_dict: dict, full_layer_name: str | None = None, **kwargs: Any) -> dict:
        by_suffix: dict[str, dict] = {}
        for pattern, value in input_dict.items():
            by_suffix.setdefault(self.suffix_of[pattern], {})[pattern] = value
        if self.merge:
            self._expect_companions(by_suffix, full_layer_name)
        tensors = {}
        for suffix, values in by_suffix.items():
            if not self.whole & values.keys():
                for op in self.merge:
                    patterns = {**kwargs, "source_patterns": list(values), "full_layer_name": full_layer_name}
                    values = op.convert(values, **patterns)
            value = next(iter(values.values()))
            tensors[suffix] = value[0] if isinstance(value, list) else value
        return {full_layer_name: self.hf_quantizer.load(tensors, full_layer_name)}

    def _expect_companions(self, by_suffix: dict[str, dict], name: str | None) -> None:
        """Scales of some of the matrices would be taken for those of all."""
        counts = []
        for suffix, values in by_suffix.items():
            if not self.whole & values.keys():
                counts.append({p.removesuffix(suffix + "$"): len(value) for p, value in values.items()})
        if any(count != counts[0] for count in counts):
            raise ValueError(f"{name}: the checkpoint has codes and scales for different matrices of it")

    @property
    def reverse_op(self) -> "_Load":
        return self  # packed models are saved as they are, so it is never used


class _Quantize(ConversionOps):
    """Packs a parameter that the checkpoint has in a floating type."""

    def __init__(self, hf_quantizer: "MxdnnHfQuantizer"):
        self.hf_quantizer = hf_quantizer

    def convert(self, input_dict: dict, model: torch.nn.Module | None = None, **kwargs: Any) -> dict:
        out = {}
        for name, value in input_dict.items():
            weight = value[0] if isinstance(value, list) else value
            module, _ = get_module_from_name(model, name)
            if getattr(module, "is_transposed", False):
                weight = weight.transpose(-2, -1)
            format = self.hf_quantizer.quantization_config.format_of(name)
            packed = PackedTensor.from_float(weight.contiguous(), format)
            out[name] = torch.nn.Parameter(packed, requires_grad=False)
        return out


@auto.register_quantizer(METHOD)
class MxdnnHfQuantizer(HfQuantizer):
    """The hooks that transformers calls while it loads and saves a model."""

    requires_calibration = False
    quantization_config: MxdnnConfig

    def __init__(self, quantization_config: MxdnnConfig, **kwargs: Any):
        super().__init__(quantization_config, **kwargs)
        self.dtype = torch.float32
        self.checksums: dict[str, str] = {}
        self.modules_to_not_convert: list[str] = []
        method = (quantization_config.checkpoint or {}).get("quant_method", METHOD)
        if self.pre_quantized and method not in CHECKPOINTS:
            raise ValueError(
                f"the checkpoint was written by the quantiser '{method}'; MxdnnConfig loads {', '.join(CHECKPOINTS)} "
                "and floating checkpoints"
            )
        self.suffixes, self.loader = CHECKPOINTS[method]

    def update_dtype(self, dtype: torch.dtype) -> torch.dtype:
        self.dtype = dtype or torch.get_default_dtype()
        return dtype

    def param_needs_quantization(self, model, param_name: str, **kwargs: Any) -> bool:
        module, tensor_name = get_module_from_name(model, param_name)
        path = param_name.rpartition(".")[0]
        if not should_convert_module(path, self.modules_to_not_convert) or path.rpartition(".")[2] in ROUTERS:
            return False
        if isinstance(module, torch.nn.Linear):
            packs = tensor_name == "weight"
        else:
            packs = tensor_name in EXPERT_WEIGHTS and hasattr(module, "is_transposed")
        weight = getattr(module, tensor_name)
        if not packs or weight is None or min(weight.shape[-2:]) < LEAST_SIZE:
            return False
        return self.pre_quantized or self.quantization_config.format_of(param_name) is not None

    def _process_model_before_weight_loading(self, model, checkpoint_files=None, **kwargs: Any):
        skip = self.quantization_config.modules_to_not_convert
        self.modules_to_not_convert = self.get_modules_to_not_convert(model, skip, model._keep_in_fp32_modules)
        if any(hasattr(module, "is_transposed") for module in model.modules()):
            model.set_experts_implementation(METHOD)
        for file in checkpoint_files or ():
            if self.loader is _load_packed and os.fspath(file).endswith(".safetensors"):
                with safe_open(file, "pt") as f:
                    notes = f.metadata() or {}
                end = container.CHECKSUM
                self.checksums |= {k.removesuffix(end): v for k, v in notes.items() if k.endswith(end)}
        return model

    def _process_model_after_weight_loading(self, model, **kwargs: Any):
        model.save_pretrained = types.MethodType(save_pretrained, model)
        # a later load of the directory that is saved now reads a container
        self.quantization_config.checkpoint = None
        return model

    def get_state_dict_and_metadata(self, model) -> tuple[dict[str, torch.Tensor], dict[str, str]]:
        """The tensors of a container; `save_pretrained` brings them into its order."""
        state = model.state_dict()
        tensors, notes = container.to_tensors(state)
        for name, tensor in state.items():
            if isinstance(tensor, PackedTensor):  # a shard may end between two tensors, so only one stays a tensor
                del tensors[name + container.DESCRIPTOR]
                notes[name + container.DESCRIPTOR] = tensor.blob
        return tensors, notes

    def get_quantize_ops(self) -> ConversionOps:
        return _Quantize(self)

    def load(self, tensors: Tensors, name: str) -> torch.nn.Parameter:
        """A parameter of what the checkpoint has for it."""
        value = self.loader(tensors, self, name)
        if not isinstance(value, PackedTensor) and value.is_floating_point():
            value = value.to(self.dtype)
        return torch.nn.Parameter(value, requires_grad=False)

    def get_new_dtype(self, converter, param, dtype):
        """Codes and scales are loaded in the types that the checkpoint has."""
        return None if any(isinstance(op, _Load) for op in getattr(converter, "operations", ())) else dtype

    def update_weight_conversions(self, weight_conversions: list, model=None) -> list:
        """Adds a converter for every parameter that has companions, and teaches the model's own ones to merge those."""
        if not self.pre_quantized:
            return weight_conversions
        updated = []
        for converter in weight_conversions:
            sources = list(getattr(converter, "_original_source_patterns", ()))
            suffixes = self.suffixes.get("weight")
            if isinstance(converter, WeightConverter) and suffixes and all(s.endswith(".weight") for s in sources):
                # patterns end with the name, since some versions of transformers find them anywhere in it
                suffix_of = {source + suffix + "$": suffix for source in sources for suffix in suffixes}
                targets = list(converter._original_target_patterns)
                whole = {targets[0] + suffix + "$": suffix for suffix in suffixes if suffix}
                load = _Load(self, suffix_of | whole, tuple(converter.operations), frozenset(whole))
                scope = getattr(converter, "scope_prefix", None), getattr(converter, "base_model_prefix", None)
                converter = WeightConverter(list(load.suffix_of), targets, [load])
                if scope[0] is not None:
                    converter.scope_prefix, converter.base_model_prefix = scope
            updated.append(converter)
        for parameter, suffixes in self.suffixes.items():
            suffix_of = {re.escape(parameter + suffix) + "$": suffix for suffix in suffixes}
            updated.append(WeightConverter(list(suffix_of), parameter, [_Load(self, suffix_of)]))
        return updated

    def is_serializable(self) -> bool:
        return True

    @property
    def is_trainable(self) -> bool:
        return False

    @property
    def is_compileable(self) -> bool:
        return True


# ---- Saving ----------------------------------------------------------------------------------------------------------


def save_pretrained(model, save_directory: str | os.PathLike, **kwargs: Any) -> None:
    """transformers' `save_pretrained`, and then every file of weights in the order of containers."""
    kwargs["save_original_format"] = False  # packed weights cannot be split into what they were merged of
    type(model).save_pretrained(model, save_directory, **kwargs)
    for file in sorted(os.listdir(save_directory)):
        if file.endswith(".safetensors"):
            _finish_container(os.path.join(save_directory, file))
        elif file.endswith(".safetensors.index.json"):
            _finish_index(os.path.join(save_directory, file))


def _finish_container(path: str) -> None:
    """Makes a container of a file whose descriptors are in the metadata, beside notes on tensors of other files."""
    with safe_open(path, "pt") as file:
        tensors = {name: file.get_tensor(name) for name in file.keys()}
        notes = file.metadata() or {}
    own = {}
    for name in [n.removesuffix(container.PACKED) for n in tensors if n.endswith(container.PACKED)]:
        desc = base64.b64decode(notes[name + container.DESCRIPTOR])
        tensors[name + container.DESCRIPTOR] = torch.frombuffer(bytearray(desc), dtype=torch.uint8)
        own[name + container.CHECKSUM] = notes[name + container.CHECKSUM]
    others = {k: v for k, v in notes.items() if not k.endswith((container.CHECKSUM, container.DESCRIPTOR))}
    container.save_file(container.from_tensors(tensors, own), path, others)


def _finish_index(path: str) -> None:
    with open(path, encoding="utf-8") as file:
        index = json.load(file)
    files = index["weight_map"]
    for name in [n for n in files if n.endswith(container.PACKED)]:
        files[name.removesuffix(container.PACKED) + container.DESCRIPTOR] = files[name]
    with open(path, "w", encoding="utf-8") as file:
        file.write(json.dumps(index, indent=2, sort_keys=True) + "\n")


# ---- Experts ---------------------------------------------------------------------------------------------------------


def experts_forward(
    module: torch.nn.Module, hidden_states: torch.Tensor, top_k_index: torch.Tensor, top_k_weights: torch.Tensor
) -> torch.Tensor:
    """Experts with packed weights [experts, out, in]: rows are sorted by expert and multiplied group by group."""
    experts, (tokens, k) = module.num_experts, top_k_index.shape
    ids = top_k_index.reshape(-1)
    order = torch.argsort(ids, stable=True)
    ends = torch.cumsum(torch.nn.functional.one_hot(ids.clamp(max=experts), experts + 1).sum(0)[:experts], 0)
    ends = ends.to(torch.int32)

    def project(x: torch.Tensor, name: str) -> torch.Tensor:
        weight = getattr(module, name)
        bias = getattr(module, name + "_bias") if module.has_bias else None
        if isinstance(weight, PackedTensor):
            return torch.ops.mxdnn.grouped_linear(x, weight.packed, weight.blob, ends, bias)
        rows = []  # an expert's weight stays floating where a rule says so
        for e, (begin, end) in enumerate(zip([0, *ends.tolist()], ends.tolist())):
            y = x[begin:end] @ (weight[e] if module.is_transposed else weight[e].T)
            rows.append(y if bias is None else y + bias[e])
        return torch.cat([*rows, x.new_zeros(len(x) - int(ends[-1]), rows[0].shape[-1])])

    rows = hidden_states[order // k]
    if module.has_gate:
        inner = module._apply_gate(project(rows, "gate_up_proj"))
    else:
        inner = module.act_fn(project(rows, "up_proj"))
    out = project(inner.contiguous(), "down_proj")
    if getattr(module, "has_post_expert_norm", False):
        out = module.post_expert_norm(out)
    # rows of experts that are elsewhere come last and count as nothing
    weights = torch.where(ids < experts, top_k_weights.reshape(-1), 0)[order]
    weighted = torch.where(weights[:, None] != 0, out * weights[:, None], 0)
    back = torch.empty_like(order)
    back[order] = torch.arange(len(order), device=order.device)
    return weighted[back].view(tokens, k, -1).sum(1).to(hidden_states.dtype)


ALL_EXPERTS_FUNCTIONS.register(METHOD, experts_forward)

# ---- Checkpoints of other quantisers ---------------------------------------------------------------------------------


def _adopt(merge: Callable) -> Callable:
    """An MxdnnConfig from the caller may meet a checkpoint of another quantiser: it reads it."""

    @functools.wraps(merge)
    def merge_quantization_configs(quantization_config, quantization_config_from_args):
        if not isinstance(quantization_config_from_args, MxdnnConfig):
            return merge(quantization_config, quantization_config_from_args)
        written = quantization_config if isinstance(quantization_config, dict) else quantization_config.to_dict()
        config = copy.copy(quantization_config_from_args)
        config.checkpoint = dict(written)
        return config

    return merge_quantization_configs


auto.AutoHfQuantizer.merge_quantization_configs = staticmethod(_adopt(auto.AutoHfQuantizer.merge_quantization_configs))
