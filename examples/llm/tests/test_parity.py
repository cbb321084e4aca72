# SPDX-License-Identifier: Apache-2.0
"""Logits of mxdnn-llm next to those of transformers. MXDNN_LLM names the program; the seed is printed. A table of the
errors comes last."""

import glob
import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Callable

import pytest
import to_gguf
import torch
from tiny_models import Case, make

PROGRAM = os.environ.get("MXDNN_LLM", str(Path(__file__).parents[3] / "build/examples/llm/mxdnn-llm"))
SEED = int(os.environ.get("MXDNN_TEST_SEED", "1"))
TIGHT, LOOSE = 1e-4, 1e-2
Check = Callable[[str, str, float, float], None]


def gpt_oss(**changes: object) -> dict:
    sizes = dict(hidden_size=96, intermediate_size=64, num_hidden_layers=2, num_attention_heads=8,
                 num_key_value_heads=2, head_dim=16, vocab_size=131, num_local_experts=8, num_experts_per_tok=2,
                 sliding_window=8, max_position_embeddings=1024)
    return {**sizes, **changes}


def llama(**changes: object) -> dict:
    sizes = dict(hidden_size=96, intermediate_size=160, num_hidden_layers=2, num_attention_heads=6,
                 num_key_value_heads=2, vocab_size=131, max_position_embeddings=256)
    return {**sizes, **changes}


def yarn(**changes: object) -> dict:
    return {"rope_type": "yarn", "rope_theta": 150000.0, "factor": 32.0, "beta_fast": 32.0, "beta_slow": 1.0,
            "truncate": False, "original_max_position_embeddings": 4096, **changes}


LLAMA3 = {"rope_type": "llama3", "rope_theta": 500000.0, "factor": 8.0, "low_freq_factor": 1.0,
          "high_freq_factor": 4.0, "original_max_position_embeddings": 32}
CASES = [
    Case("llama", "llama", llama(tie_word_embeddings=True), [40]),
    Case("llama-odd", "llama", llama(hidden_size=100, intermediate_size=171, num_attention_heads=5, head_dim=22,
                                     num_key_value_heads=1, vocab_size=57), [37, 1, 18]),
    Case("llama-biases", "llama", llama(attention_bias=True, mlp_bias=True, rope_parameters=LLAMA3), [33, 70], shards=3),
    Case("gpt-oss", "gpt_oss", gpt_oss(), [24, 3, 60]),
    Case("gpt-oss-window", "gpt_oss", gpt_oss(sliding_window=200), [40]),
    Case("gpt-oss-top1", "gpt_oss", gpt_oss(num_local_experts=4, num_experts_per_tok=1, hidden_size=160), [30]),
    Case("gpt-oss-top8", "gpt_oss", gpt_oss(num_local_experts=32, num_experts_per_tok=8, intermediate_size=96,
                                            head_dim=10, num_key_value_heads=8), [50], shards=2),
    Case("gpt-oss-top5", "gpt_oss", gpt_oss(num_local_experts=16, num_experts_per_tok=5, sliding_window=31),
         [31, 32, 7]),
    Case("gpt-oss-all", "gpt_oss", gpt_oss(num_local_experts=4, num_experts_per_tok=4, sliding_window=1), [20]),
    Case("gpt-oss-yarn", "gpt_oss", gpt_oss(rope_parameters=yarn(original_max_position_embeddings=16, factor=4.0),
                                            max_position_embeddings=64), [64]),
    Case("gpt-oss-original", "gpt_oss", gpt_oss(num_hidden_layers=3, num_experts_per_tok=3), [45, 20], original=True),
    Case("gpt-oss-truncated", "gpt_oss", gpt_oss(rope_parameters=yarn(original_max_position_embeddings=32, factor=8.0,
                                                                     truncate=True)), [48]),
    Case("gpt-oss-odd", "gpt_oss", gpt_oss(hidden_size=90, intermediate_size=77, num_attention_heads=9,
                                           num_key_value_heads=3, head_dim=14, vocab_size=57), [29, 1, 13],
         has_codes=False),
]


@pytest.fixture(scope="module", params=CASES, ids=lambda c: c.name)
def model(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple:
    folder = str(tmp_path_factory.mktemp(request.param.name))
    print(f"MXDNN_TEST_SEED={SEED}")
    ids, logits = make(request.param, folder, SEED)
    return request.param, folder, ids, logits


def run(model: str, ids: list[list[int]], *options: str) -> torch.Tensor:
    output = f"{model if os.path.isdir(model) else os.path.dirname(model)}/logits.f32"
    args = [word for i in ids for word in ("--ids", ",".join(map(str, i)))]
    done = subprocess.run([PROGRAM, "logits", model, *args, "--output", output, "--threads", "2", *options],
                          capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    with open(output, "rb") as f:
        return torch.frombuffer(bytearray(f.read()), dtype=torch.float32).reshape(sum(map(len, ids)), -1)


def error(got: torch.Tensor, want: torch.Tensor) -> float:
    assert got.shape == want.shape
    return float((got - want).norm() / want.norm())


def error_of_rows(got: torch.Tensor, want: torch.Tensor) -> float:
    """The largest of all rows."""
    assert got.shape == want.shape
    return float(((got - want).norm(dim=1) / want.norm(dim=1)).max())


def same_experts(case: Case, folder: str) -> list[str]:
    """Options by which runs give tokens the experts that the first run chose: a rounding may choose others, and then
    a token has other logits."""
    return ["--routes", f"{folder}/routes.s32"] if case.family == "gpt_oss" else []


WAYS = {"prefill": [], "token by token": ["--at-once", "1"], "by five": ["--at-once", "5"], "chunks": ["--chunk", "16"]}


@pytest.mark.parametrize("way", WAYS)
def test_f32_is_transformers(model: tuple, way: str, check: Check) -> None:
    case, folder, ids, logits = model
    check(case.name, f"f32, {way}", error(run(folder, ids, "--encoding", "f32", *WAYS[way]), logits), TIGHT)


def test_batches_are_their_sequences(model: tuple, check: Check) -> None:
    case, folder, ids, _ = model
    together = run(folder, ids, "--encoding", "f32")
    alone = torch.cat([run(folder, [i], "--encoding", "f32") for i in ids])
    check(case.name, "f32, batch to alone", error(together, alone), TIGHT)


def test_packed_is_bf16(model: tuple, tmp_path: Path, check: Check) -> None:
    """What has no codes is packed to MXFP4 first."""
    case, folder, ids, _ = model
    if not case.has_codes:
        pack = shutil.which("mxdnn-pack") or str(Path(PROGRAM).parents[2] / "tools/mxdnn-pack/mxdnn-pack")
        subprocess.run([pack, "pack", "--include", "experts.*proj$", "--transposed", "experts.*proj$", "--format",
                        "mxfp4", f"{folder}/model.safetensors", str(tmp_path / "model.safetensors")],
                       check=True, capture_output=True, timeout=120)
        shutil.copy(f"{folder}/config.json", tmp_path)
        folder = str(tmp_path)
    same = same_experts(case, str(tmp_path))
    baseline = run(folder, ids, "--encoding", "bf16", *same)
    for way, options in ("", []), (", token by token", ["--at-once", "1"]):
        packed = run(folder, ids, *same, *options)
        check(case.name, f"stored to bf16{way}", error_of_rows(packed, baseline), LOOSE)


def test_bf16_is_near_f32(model: tuple, tmp_path: Path, check: Check) -> None:
    """The cache and, on some machines, activations are rounded to bf16."""
    case, folder, ids, _ = model
    same = same_experts(case, str(tmp_path))
    exact = run(folder, ids, "--encoding", "f32", *same)
    check(case.name, "stored to f32", error(run(folder, ids, *same), exact), LOOSE)


def test_gguf_is_the_checkpoint(model: tuple, tmp_path: Path) -> None:
    case, folder, ids, _ = model
    config = json.loads(Path(folder, "config.json").read_text())
    if case.family != "gpt_oss" or case.original or not case.has_codes or config["rope_parameters"]["truncate"]:
        pytest.skip("a file has MXFP4, names of Hugging Face, and ramps whose ends are no whole numbers")
    tensors = {}
    for file in glob.glob(f"{folder}/*.safetensors"):
        tensors |= to_gguf.read_tensors(file)
    path = str(tmp_path / "model.gguf")
    to_gguf.write(path, to_gguf.keys(config), list(to_gguf.tensors(tensors)))
    for options in ([], ["--encoding", "f32"]):
        assert torch.equal(run(path, ids, *options), run(folder, ids, *options))
