# SPDX-License-Identifier: Apache-2.0
"""mxdnn-llm generate and perplexity next to transformers, on a tiny Llama with made-up weights.

MXDNN_LLM is the path of mxdnn-llm.
"""
import os
import re
import subprocess

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from test_chat import TEMPLATES
from test_tokenizers import STYLES, train

TEXT = "The don't we'LL 3.14159 здравствуйте 世界 🙂\n\n  def return self.value += [i]"


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A folder with a model, and that model and its tokenizer in transformers."""
    torch.manual_seed(3)
    folder = tmp_path_factory.mktemp("model")
    # The range of the weights makes the likeliest tokens likelier than the next ones by far.
    m = LlamaForCausalLM(LlamaConfig(
        vocab_size=1520, hidden_size=64, intermediate_size=96, num_hidden_layers=3, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=512, initializer_range=0.5, eos_token_id=2)).eval()
    m.save_pretrained(folder)
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=train("commands", STYLES["llama-3"]),
                                        chat_template=TEMPLATES["ChatML"])
    tokenizer.save_pretrained(folder)
    return folder, m, tokenizer


def run(command, folder, *options):
    r = subprocess.run([os.environ["MXDNN_LLM"], command, str(folder), *options], capture_output=True)
    assert r.returncode == 0, r.stderr.decode()
    return r.stdout.decode()


def continued(model, ids, tokens):
    """The likeliest tokens one after the other, up to what ends the text."""
    _, m, tokenizer = model
    with torch.no_grad():
        out = m.generate(torch.tensor([ids]), max_new_tokens=tokens, do_sample=False, pad_token_id=0,
                         eos_token_id=[2])[0][len(ids):].tolist()
    return tokenizer.decode([i for i in out if i != 2], skip_special_tokens=True) + "\n"


def test_raw_text(model):
    folder, _, tokenizer = model
    got = run("generate", folder, TEXT, "--raw", "--encoding", "f32", "--tokens", "48")
    assert got == continued(model, tokenizer(TEXT)["input_ids"], 48)


def test_message(model):
    folder, _, tokenizer = model
    got = run("generate", folder, TEXT, "--system", "Be brief.", "--encoding", "f32", "--tokens", "48")
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": TEXT}]
    ids = tokenizer.apply_chat_template(messages, add_generation_prompt=True, return_dict=True)["input_ids"]
    assert got == continued(model, ids, 48)


def test_sampling_follows_the_seed(model):
    folder = model[0]
    draw = [run("generate", folder, TEXT, "--temperature", "3", "--top-p", "0.9", "--seed", seed, "--tokens", "24")
            for seed in ("1", "1", "2")]
    assert draw[0] == draw[1] != draw[2]


def test_perplexity(model, tmp_path):
    folder, m, tokenizer = model
    path = tmp_path / "text"
    path.write_text(TEXT * 20)
    ids = torch.tensor(tokenizer(TEXT * 20)["input_ids"])
    losses = []
    with torch.no_grad():
        for window in ids.split(100):
            losses += torch.nn.functional.cross_entropy(
                m(window[None]).logits[0, :-1].double(), window[1:], reduction="none").tolist()
    wanted = torch.tensor(losses).mean().exp().item()
    said = run("perplexity", folder, str(path), "--context", "100", "--encoding", "f32")
    value, count = re.match(r"perplexity ([\d.]+) of (\d+) tokens in windows of 100\n", said).groups()
    assert int(count) == len(losses)
    assert float(value) == pytest.approx(wanted, rel=1e-3)


@pytest.mark.parametrize("options, said", [
    ([], "either a text or --ids"),
    ([TEXT, "--temperature", "-1"], "temperature is -1"),
    ([TEXT, "--top-p", "0"], "top-p is 0"),
    (["--ids", "5000"], "5000"),
])
def test_refusals(model, options, said):
    r = subprocess.run([os.environ["MXDNN_LLM"], "generate", str(model[0]), *options], capture_output=True, text=True)
    assert r.returncode == 1 and said in r.stderr, r.stderr


def test_a_model_without_a_template(model, tmp_path):
    folder = model[0]
    for name in ("config.json", "tokenizer.json", "model.safetensors"):
        (tmp_path / name).symlink_to(folder / name)
    r = subprocess.run([os.environ["MXDNN_LLM"], "generate", str(tmp_path), "x"], capture_output=True, text=True)
    assert r.returncode == 1 and "has no chat template" in r.stderr and "--raw" in r.stderr
    assert run("generate", tmp_path, "x", "--raw", "--tokens", "3")
