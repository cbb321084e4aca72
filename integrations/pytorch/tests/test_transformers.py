# SPDX-License-Identifier: Apache-2.0
"""transformers loads floating, packed and otherwise quantised directories as packed models, and saves containers.

The models are tiny and made from configurations; nothing is downloaded."""

import json
import logging
import subprocess
import sys

import pytest
import torch

transformers = pytest.importorskip("transformers", reason="transformers is not installed")
pytest.importorskip("accelerate", reason="accelerate is not installed")

from safetensors import safe_open  # noqa: E402
from safetensors.torch import load_file, save_file  # noqa: E402
from transformers import AutoModelForCausalLM, FineGrainedFP8Config, Mxfp4Config  # noqa: E402
from transformers.quantizers.quantizer_finegrained_fp8 import FineGrainedFP8HfQuantizer  # noqa: E402

from mxdnn_torch import FORMATS, PackedTensor, container  # noqa: E402
from mxdnn_torch.transformers import MxdnnConfig  # noqa: E402

SMALL = dict(vocab_size=256, hidden_size=64, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
             head_dim=16, max_position_embeddings=4096)  # fmt: skip
CONFIGS = {
    "llama": lambda: transformers.LlamaConfig(**SMALL, intermediate_size=128),
    "gpt_oss": lambda: transformers.GptOssConfig(
        **SMALL, intermediate_size=96, num_local_experts=4, num_experts_per_tok=2, sliding_window=16
    ),
    "qwen3_moe": lambda: transformers.Qwen3MoeConfig(
        **SMALL, intermediate_size=64, moe_intermediate_size=96, num_experts=4, num_experts_per_tok=2
    ),
}
IDS = torch.arange(24).view(2, 12)
EXPERTS = ("gate_up_proj", "down_proj")


@pytest.fixture(scope="module")
def directories(tmp_path_factory):
    """Directories with floating weights, of which Llama's are in several files."""
    made = {}
    for name, config in CONFIGS.items():
        torch.manual_seed(1)
        made[name] = tmp_path_factory.mktemp(name)
        model = AutoModelForCausalLM.from_config(config(), dtype=torch.bfloat16)
        for parameter in model.parameters():
            parameter.data.mul_(5)  # activations large enough to matter
        model.save_pretrained(made[name], max_shard_size="60KB" if name == "llama" else "1GB")
    return made


def load(directory, config=None, dtype=torch.float32):
    quantization = {} if config is None else {"quantization_config": config}
    return AutoModelForCausalLM.from_pretrained(directory, dtype=dtype, **quantization)


def packed(model) -> dict[str, PackedTensor]:
    return {name: p for name, p in model.state_dict().items() if isinstance(p, PackedTensor)}


def logits(model):
    with torch.inference_mode():
        return model(IDS).logits


def with_weights_of(plain, model):
    """`plain` with the values that the packed weights of `model` stand for."""
    for name, weight in packed(model).items():
        values = weight.dequantize(torch.float32)
        plain.get_parameter(name).data = orient(plain, name, values)
    return plain


def orient(plain, name, values):
    module = plain.get_submodule(name.rpartition(".")[0])
    return values.transpose(-2, -1).contiguous() if getattr(module, "is_transposed", False) else values


def assert_as_near_as_f32(model, plain):
    """The packed model in f32 is as near to f64 as the plain one in f32, with the same weights and other sums."""
    if hasattr(plain, "set_experts_implementation") and plain.config._experts_implementation:
        plain.set_experts_implementation("eager")  # the one that knows f64
    ours, theirs = logits(model).double(), logits(plain).double()
    exact = logits(plain.double())
    scale = exact.abs().max() * torch.finfo(torch.float32).eps
    assert (ours - exact).abs().max() <= 4 * max((theirs - exact).abs().max(), scale)


@pytest.mark.parametrize("format", ["mxfp4", "mxfp8", "nvfp4", "int4"])
@pytest.mark.parametrize("name", CONFIGS)
def test_floating_weights_are_packed_on_load(directories, name, format):
    model = load(directories[name], MxdnnConfig(format))
    weights = packed(model)
    assert len(weights) == {"llama": 14, "gpt_oss": 12, "qwen3_moe": 12}[name]
    assert {w.format.name for w in weights.values()} == {format}
    plain = load(directories[name])
    for key, weight in weights.items():
        original = orient(plain, key, plain.get_parameter(key).data)
        assert torch.equal(weight.packed, PackedTensor.from_float(original.contiguous(), format).packed), key
    assert_as_near_as_f32(model, with_weights_of(plain, model))
    tokens = model.generate(IDS[:1], max_new_tokens=3, do_sample=False)
    assert tokens.shape == (1, 15)


@pytest.mark.parametrize("name", CONFIGS)
def test_a_saved_model_is_a_container_and_loads_again(directories, name, tmp_path):
    model = load(directories[name], MxdnnConfig("mxfp4", rules={"q_proj": "mxfp8", "k_proj": None}))
    assert {w.format.name for n, w in packed(model).items() if "q_proj" in n} == {"mxfp8"}
    assert not any("k_proj" in n for n in packed(model))
    model.save_pretrained(tmp_path, max_shard_size="80KB")
    files = sorted(tmp_path.glob("*.safetensors"))
    assert len(files) > 1
    listed = json.loads((tmp_path / "model.safetensors.index.json").read_text())["weight_map"]
    found = {}
    for file in files:
        with safe_open(file, "pt") as f:
            assert {n: file.name for n in f.keys()}.items() <= listed.items()
        found |= container.load_file(file)
    for key, weight in packed(model).items():
        assert torch.equal(found[key].packed, weight.packed) and found[key].blob == weight.blob
    again = load(tmp_path)
    assert torch.equal(logits(again), logits(model))
    again.save_pretrained(tmp_path / "again")
    assert torch.equal(logits(load(tmp_path / "again")), logits(model))


def test_a_fresh_process_loads_with_the_import_alone(directories, tmp_path):
    model = load(directories["llama"], MxdnnConfig("nvfp4"))
    model.save_pretrained(tmp_path)
    code = (
        "import sys, torch, mxdnn_torch.transformers\n"
        "from transformers import AutoModelForCausalLM\n"
        "model = AutoModelForCausalLM.from_pretrained(sys.argv[1], dtype=torch.float32)\n"
        "with torch.inference_mode(): torch.save(model(torch.arange(24).view(2, 12)).logits, sys.argv[2])\n"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path), str(tmp_path / "logits.pt")], check=True)
    assert torch.equal(torch.load(tmp_path / "logits.pt"), logits(model))


def write_gpt_oss_mxfp4(source, target):
    """A directory as gpt-oss is published: experts as blocks and scales, everything else floating."""
    tensors = load_file(source / "model.safetensors")
    for name in [n for n in tensors if n.endswith(EXPERTS)]:
        codes = PackedTensor.from_float(tensors.pop(name).transpose(1, 2).float().contiguous(), "mxfp4").to_codes()
        tensors[name + "_blocks"] = codes.codes.unflatten(-1, (-1, 16)).contiguous()
        tensors[name + "_scales"] = codes.scales.view(torch.uint8)
    save_file(tensors, target / "model.safetensors", {"format": "pt"})
    config = json.loads((source / "config.json").read_text())
    config["quantization_config"] = {
        "quant_method": "mxfp4",
        "modules_to_not_convert": ["model.layers.*.self_attn", "model.layers.*.mlp.router", "lm_head"],
    }
    (target / "config.json").write_text(json.dumps(config))
    return tensors


def test_mxfp4_experts_of_gpt_oss_are_used_as_they_are(directories, tmp_path):
    tensors = write_gpt_oss_mxfp4(directories["gpt_oss"], tmp_path)
    model = load(tmp_path, MxdnnConfig())
    assert len(packed(model)) == 4
    for name, weight in packed(model).items():
        codes = weight.to_codes()
        assert torch.equal(codes.codes, tensors[name + "_blocks"].flatten(-2))
        assert torch.equal(codes.scales.view(torch.uint8), tensors[name + "_scales"])
    plain = load(tmp_path, Mxfp4Config(dequantize=True))
    for name, weight in packed(model).items():
        assert torch.equal(weight.dequantize(torch.float32).transpose(1, 2), plain.get_parameter(name).data)
    assert_as_near_as_f32(model, plain)


def write_fp8(monkeypatch, source, target, **config):
    """What transformers' own quantiser writes. It asks for a GPU, which quantising does not need."""
    with monkeypatch.context() as patch:
        patch.setattr(FineGrainedFP8HfQuantizer, "validate_environment", lambda *args, **kwargs: None)
        load(source, FineGrainedFP8Config(**config), torch.bfloat16).save_pretrained(target)


FP8 = {
    "mxfp8": dict(weight_block_size=(1, 32), scale_fmt="ue8m0", quant_method="mxfp8"),
    "powers of two": dict(weight_block_size=(32, 32), scale_fmt="ue8m0"),
}


def decoded(directory) -> dict[str, torch.Tensor]:
    """What the FP8 tensors of a directory stand for; codes of experts are stacked as the model has them."""
    tensors = load_file(directory / "model.safetensors")
    scales = {n.removesuffix("_scale_inv"): t for n, t in tensors.items() if n.endswith("_scale_inv")}
    values = {}
    for name, scale in scales.items():
        if name.endswith(EXPERTS):
            stem, _, last = name.rpartition(".")
            parts = ("gate_proj", "up_proj") if last == "gate_up_proj" else ("down_proj",)
            codes = torch.stack([torch.cat([tensors[f"{stem}.{e}.{p}.weight"] for p in parts]) for e in range(4)])
        else:
            codes = tensors[name]
        for axis in (-2, -1):
            scale = scale.float().repeat_interleave(codes.shape[axis] // scale.shape[axis], axis)
        values[name] = codes.float() * scale
    return values


@pytest.mark.parametrize("kind", FP8)
@pytest.mark.parametrize("name", ["llama", "qwen3_moe"])
def test_fp8_with_scales_of_powers_of_two_is_mxfp8(directories, name, kind, tmp_path, monkeypatch):
    write_fp8(monkeypatch, directories[name], tmp_path, **FP8[kind])
    model, values = load(tmp_path, MxdnnConfig()), decoded(tmp_path)
    weights = packed(model)
    assert weights.keys() == values.keys()
    for key, weight in weights.items():
        assert weight.format.name == "mxfp8"
        assert torch.equal(weight.dequantize(torch.float32), values[key]), key
    assert_as_near_as_f32(model, with_weights_of(load(directories[name]), model))


def write_fp8_of_experts(source, target, without=None) -> dict[str, torch.Tensor]:
    """A directory as FP8 models are published: every matrix of every expert has scales of its own. No scales for names
    that contain `without`. Returns what the matrices stand for, those of experts stacked."""
    tensors = load_file(source / "model.safetensors")
    values, experts = {}, {}
    for name in [n for n in tensors if n.endswith("_proj.weight")]:
        blocks = tensors[name].float().unflatten(0, (-1, 32)).unflatten(2, (-1, 32))
        scales = torch.exp2(torch.ceil(torch.log2(blocks.abs().amax((1, 3), keepdim=True) / 448)))
        codes = (blocks / scales).to(torch.float8_e4m3fn)
        values[name] = (codes.float() * scales).reshape(tensors[name].shape)
        tensors[name] = codes.reshape(tensors[name].shape).contiguous()
        if without is None or without not in name:
            tensors[name + "_scale_inv"] = scales[:, 0, :, 0].contiguous()
    save_file(tensors, target / "model.safetensors", {"format": "pt"})
    config = json.loads((source / "config.json").read_text())
    config["quantization_config"] = {"quant_method": "fp8", "weight_block_size": [32, 32]}
    (target / "config.json").write_text(json.dumps(config))
    for name in [n for n in values if ".experts." in n]:
        stem, _, last = name.partition(".experts.")
        expert, part, _ = last.split(".")
        experts.setdefault(f"{stem}.experts", {}).setdefault(part, {})[int(expert)] = values.pop(name)
    for stem, parts in experts.items():
        stacked = {part: torch.stack([of[e] for e in range(4)]) for part, of in parts.items()}
        values[stem + ".gate_up_proj"] = torch.cat([stacked["gate_proj"], stacked["up_proj"]], 1)
        values[stem + ".down_proj"] = stacked["down_proj"]
    return values


def test_fp8_experts_with_scales_of_their_own(directories, tmp_path):
    values = write_fp8_of_experts(directories["qwen3_moe"], tmp_path)
    weights = packed(load(tmp_path, MxdnnConfig()))
    assert weights.keys() == values.keys()
    for key, weight in weights.items():
        assert torch.equal(weight.dequantize(torch.float32), values[key]), key


@pytest.mark.parametrize("without", ["q_proj", "down_proj", "gate_proj", "experts.2.down_proj"])
def test_fp8_without_scales_is_refused(directories, tmp_path, monkeypatch, caplog, without):
    monkeypatch.setattr(logging.getLogger("transformers"), "propagate", True)
    write_fp8_of_experts(directories["qwen3_moe"], tmp_path, without)
    with pytest.raises(RuntimeError, match="issues during automatic conversion"):
        load(tmp_path, MxdnnConfig())
    assert "no scales for them" in caplog.text or "for different matrices" in caplog.text


def test_fp8_with_floating_scales_is_quantised_anew_on_request_only(directories, tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(logging.getLogger("transformers"), "propagate", True)
    write_fp8(monkeypatch, directories["llama"], tmp_path, weight_block_size=(32, 32))
    with pytest.raises(RuntimeError, match="issues during automatic conversion"):
        load(tmp_path, MxdnnConfig())
    assert "no format has such scales; MxdnnConfig(requantize=True) decodes the weight" in caplog.text
    model, values = load(tmp_path, MxdnnConfig("mxint8", requantize=True)), decoded(tmp_path)
    for key, weight in packed(model).items():
        assert torch.equal(weight.packed, PackedTensor.from_float(values[key], "mxint8").packed), key


def test_damaged_bytes_are_refused(directories, tmp_path):
    load(directories["llama"], MxdnnConfig()).save_pretrained(tmp_path)
    file = tmp_path / "model.safetensors"
    data = bytearray(file.read_bytes())
    data[8 + int.from_bytes(data[:8], "little") + 5] ^= 1
    file.write_bytes(data)
    with pytest.raises(ValueError, match="damaged"):
        container.load_file(file)
    with pytest.raises(RuntimeError, match="issues during automatic conversion"):
        load(tmp_path)


def test_formats_are_checked():
    assert "mxfp4" in FORMATS
    with pytest.raises(ValueError, match="format is 'mxfp5'; it must be one of mxfp8"):
        MxdnnConfig("mxfp5")
    with pytest.raises(ValueError, match="format is 'fp3'"):
        MxdnnConfig(rules={"q_proj": "fp3"})
