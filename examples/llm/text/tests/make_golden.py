# SPDX-License-Identifier: Apache-2.0
"""Prints golden.json: a small vocabulary, ways to cut a text, and what the package tokenizers makes of texts.

    python3 make_golden.py > golden.json
"""
import json
import random

from test_tokenizers import STYLES, text, train

NAMES = ["gpt-2", "gpt-2 with a space before", "smollm", "digits by three", "llama-3", "qwen2", "qwen3.5", "o200k",
         "tekken"]

t = train("golden", {**STYLES["gpt-2"], "tokens": 330})
rng = random.Random(1)
texts = [s for s in (text(rng)[:60] for _ in range(40)) if s]
golden = {"tokenizer": json.loads(t.to_str()), "texts": texts, "styles": []}
for name in NAMES:
    style = STYLES[name]
    content = dict(golden["tokenizer"], pre_tokenizer=json.loads(style["pre"].__getstate__()),
                   normalizer={"type": "NFC"} if style.get("nfc") else None)
    other = type(t).from_str(json.dumps(content))
    golden["styles"].append({"name": name, "pre_tokenizer": content["pre_tokenizer"],
                             "normalizer": content["normalizer"], "ids": [e.ids for e in other.encode_batch(texts)]})
lines = json.dumps(golden, separators=(",", ":"))
# A style per line, so that a difference is seen in its place.
print(lines.replace('{"name"', '\n{"name"'))
