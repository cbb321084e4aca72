#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints golden.json: token ids and embeddings that this folder's C++ must reproduce.

    pip install numpy tokenizers        (in a virtual environment)
    python3 make_golden.py ../../.deps/minilm > golden.json

Nothing of the example is used: the tokens come from the `tokenizers` package, the embeddings from the NumPy code
below, in double precision.
"""
import json
import math
import struct
import sys

import numpy as np
from tokenizers.implementations import BertWordPieceTokenizer

TOKENS_ONLY = [
    "",
    " \t\n",
    "Hello, World!",
    "naïve café, Ångström, ÉCOLE, Straße, İstanbul, Ǆ",
    "ΑΘΗΝΑ και Ελλάδα; Москва́ — столица России…",
    "東京は日本の首都です。北京 and 서울",
    "e\u0301 and \u00e9 are the same; zero\u200bwidth, soft\u00adhyphen, nbsp\u00a0here",
    "it's 3.14159… $5.00 (50%) <tag> a_b a-b x^2 ~`|",
    "unaffable antidisestablishmentarianism supercalifragilisticexpialidocious",
    "x" * 100 + " " + "x" * 101,
    "🙂 emoji \U0001f680 and ™ © ½",
    "control\u0001char, replacement\ufffd, tab\tand\r\nnewline",
    "हिन्दी தமிழ் ไทย עִבְרִית العَرَبِيَّة",
]
WITH_EMBEDDING = [
    "This is a test.",
    "A sentence about cats, dogs and other animals that live in the house.",
    "Ünïcödé tëxt wíth accents — and 東京.",
    "one",
    "The quick brown fox jumps over the lazy dog while the slow red hen watches from the other side of the river.",
    "many words " * 150,
]


def read_safetensors(path):
    with open(path, "rb") as f:
        (n,) = struct.unpack("<Q", f.read(8))
        header = json.loads(f.read(n))
        data = f.read()
    kinds = {"F32": np.float32, "I64": np.int64}
    return {name: np.frombuffer(data[t["data_offsets"][0]:t["data_offsets"][1]], kinds[t["dtype"]])
            .reshape(t["shape"]).astype(np.float64)
            for name, t in header.items() if name != "__metadata__"}


class Bert:
    def __init__(self, directory):
        self.w = read_safetensors(directory + "/model.safetensors")
        with open(directory + "/config.json") as f:
            self.config = json.load(f)

    def linear(self, name, x):
        return x @ self.w[name + ".weight"].T + self.w[name + ".bias"]

    def norm(self, name, x):
        x = x - x.mean(-1, keepdims=True)
        x = x / np.sqrt((x * x).mean(-1, keepdims=True) + self.config["layer_norm_eps"])
        return x * self.w[name + ".weight"] + self.w[name + ".bias"]

    def embed(self, ids):
        w, heads = self.w, self.config["num_attention_heads"]
        x = (w["embeddings.word_embeddings.weight"][ids]
             + w["embeddings.position_embeddings.weight"][np.arange(len(ids))]
             + w["embeddings.token_type_embeddings.weight"][0])
        x = self.norm("embeddings.LayerNorm", x)
        for i in range(self.config["num_hidden_layers"]):
            at = f"encoder.layer.{i}."
            split = lambda m: m.reshape(len(ids), heads, -1).transpose(1, 0, 2)
            q, k, v = (split(self.linear(at + "attention.self." + n, x)) for n in ("query", "key", "value"))
            scores = q @ k.transpose(0, 2, 1) / math.sqrt(q.shape[-1])
            p = np.exp(scores - scores.max(-1, keepdims=True))
            context = (p / p.sum(-1, keepdims=True) @ v).transpose(1, 0, 2).reshape(len(ids), -1)
            x = self.norm(at + "attention.output.LayerNorm", x + self.linear(at + "attention.output.dense", context))
            y = self.linear(at + "intermediate.dense", x)
            y = y * 0.5 * (1 + np.vectorize(math.erf)(y / math.sqrt(2)))
            x = self.norm(at + "output.LayerNorm", x + self.linear(at + "output.dense", y))
        mean = x.mean(0)
        return mean / np.linalg.norm(mean)


def main(directory):
    tokenizer = BertWordPieceTokenizer(directory + "/vocab.txt", lowercase=True)
    tokenizer.enable_truncation(256)
    bert = Bert(directory)
    print('{"cases": [')
    for n, text in enumerate(TOKENS_ONLY + WITH_EMBEDDING):
        case = {"text": text, "tokens": tokenizer.encode(text).ids}
        if text in WITH_EMBEDDING:
            case["embedding"] = [float(f"{v:.7g}") for v in bert.embed(case["tokens"])]
        print((",\n" if n else "") + json.dumps(case), end="")
    print("\n]}")


main(sys.argv[1])
