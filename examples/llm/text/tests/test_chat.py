# SPDX-License-Identifier: Apache-2.0
"""Conversations next to transformers' apply_chat_template.

The templates here are the formats in few words. CHAT_TEMPLATES may name a folder with the templates of models
themselves, *.jinja.
"""
import os
import pathlib

import pytest
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from text_lines import ask

CHATML = ("{% for message in messages %}@{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>'"
          " + '\n'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}")
LLAMA3 = r"""{{- bos_token }}{%- set date = @ %}
{{- "<|start_header_id|>system<|end_header_id|>\n\nCutting Knowledge Date: December 2023\nToday Date: " }}
{{- date + "\n\n" }}
{%- if messages[0].role == 'system' %}{{- messages[0].content | trim }}{%- set messages = messages[1:] %}{%- endif %}
{{- "<|eot_id|>" }}
{%- for message in messages %}
{{- '<|start_header_id|>' + message['role'] + '<|end_header_id|>\n\n'+ message['content'] | trim + '<|eot_id|>' }}
{%- endfor %}
{{- '<|start_header_id|>assistant<|end_header_id|>\n\n' }}"""
TEMPLATES = {
    "ChatML": CHATML.replace("@", ""),
    "SmolLM2": CHATML.replace("@", "{% if loop.first and message['role'] != 'system' %}{{ '<|im_start|>system\\n"
                              "You are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\\n' }}"
                              "{% endif %}"),
    "Llama 3": "{% for message in messages %}{% set content = '<|start_header_id|>' + message['role'] + "
               "'<|end_header_id|>\n\n'+ message['content'] | trim + '<|eot_id|>' %}"
               "{% if loop.first %}{{ bos_token }}{% endif %}{{ content }}{% endfor %}"
               "{{ '<|start_header_id|>assistant<|end_header_id|>\n\n' }}",
    "Llama 3.1": LLAMA3.replace("@", '"26 Jul 2024"'),
    "Llama 3.2": LLAMA3.replace("@", 'strftime_now("%d %b %Y")'),
    "harmony": r"""
{{- "<|start|>system<|message|>You are ChatGPT, a large language model trained by OpenAI.\nKnowledge cutoff: 2024-06" }}
{{- "\nCurrent date: " + strftime_now("%Y-%m-%d") + "\n\nReasoning: medium\n\n" }}
{{- "# Valid channels: analysis, commentary, final. Channel must be included for every message.<|end|>" }}
{%- if messages[0].role == "system" %}
    {%- if messages[0].content %}
        {{- "<|start|>developer<|message|># Instructions\n\n" + messages[0].content + "\n\n<|end|>" }}
    {%- endif %}
    {%- set messages = messages[1:] %}
{%- endif %}
{%- for m in messages %}
    {{- "<|start|>" + m.role + ("<|channel|>final" if m.role == "assistant" else "") + "<|message|>" }}
    {{- m.content + "<|end|>" }}
{%- endfor %}
{{- "<|start|>assistant" }}""",
}
# Of the models' own files, those of a known format.
FILES = ["openai-gpt-oss-120b", "meta-llama-Llama-3.1-8B-Instruct", "meta-llama-Llama-3.2-3B-Instruct",
         "meta-llama-Llama-3.3-70B-Instruct"]
UNKNOWN = ["", "{{ messages }}", "<|im_start|>", "Qwen3-Coder", "HuggingFaceTB-SmolLM3-3B", "google-gemma-2-2b-it"]

TURNS = [("user", "What is 6 x 7?"), ("assistant", "42."), ("user", "  And\n7 x 8? <b>ü</b> 🙂 {{ x }} \u3000\x1f")]
CONVERSATIONS = [[{"role": r, "content": c} for r, c in turns] for turns in (
    TURNS[:1], TURNS, [("system", "Be brief. ")] + TURNS, [("system", "")] + TURNS[:1], [("user", "")])]


def folder(name):
    return pathlib.Path(os.environ["CHAT_TEMPLATES"]) / f"{name}.jinja"


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A folder with a tokenizer, and that tokenizer in transformers."""
    t = Tokenizer(models.BPE({c: i for i, c in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}, []))
    t.pre_tokenizer, t.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    path = tmp_path_factory.mktemp("model")
    t.save(str(path / "tokenizer.json"))
    return path, PreTrainedTokenizerFast(tokenizer_object=t, bos_token="<|begin_of_text|>")


def check(model, template):
    path, reference = model
    wanted = [reference.apply_chat_template(c, chat_template=template, tokenize=False, add_generation_prompt=True)
              for c in CONVERSATIONS]
    assert ask(path, [{"template": template, "messages": c} for c in CONVERSATIONS]) == wanted


@pytest.mark.parametrize("name", TEMPLATES)
def test_formats(model, name):
    check(model, TEMPLATES[name])


@pytest.mark.skipif("CHAT_TEMPLATES" not in os.environ, reason="CHAT_TEMPLATES names no folder")
@pytest.mark.parametrize("name", FILES)
def test_templates_of_models(model, name):
    check(model, folder(name).read_text())


@pytest.mark.parametrize("name", UNKNOWN)
def test_unknown(model, name):
    if "CHAT_TEMPLATES" in os.environ and folder(name).exists():
        name = folder(name).read_text()
    with pytest.raises(AssertionError, match="chat template.*known are those of .*--raw"):
        ask(model[0], [{"template": name, "messages": CONVERSATIONS[0]}])
