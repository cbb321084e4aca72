# SPDX-License-Identifier: Apache-2.0
"""Asks the program llm_text_lines, whose path is in LLM_TEXT_LINES."""
import json
import os
import subprocess


def ask(model, questions):
    """Answers, in order, about the model in a folder or a GGUF file."""
    lines = "".join(json.dumps(q) + "\n" for q in questions)
    r = subprocess.run([os.environ["LLM_TEXT_LINES"], str(model)], input=lines, capture_output=True, text=True,
                       encoding="utf-8")
    assert r.returncode == 0, r.stderr
    return [json.loads(line) for line in r.stdout.split("\n")[:-1]]
