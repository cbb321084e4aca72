# SPDX-License-Identifier: Apache-2.0
"""Writes golden/, tiny models with the logits that transformers computes: make_golden.py [FOLDER]."""

import json
import os
import sys

from tiny_models import Case, make

SIZES = dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, vocab_size=41, max_position_embeddings=256)
GPT_OSS = dict(SIZES, intermediate_size=32, num_key_value_heads=2, head_dim=8, num_local_experts=6,
               num_experts_per_tok=2, sliding_window=5)
CASES = [
    Case("llama", "llama", dict(SIZES, intermediate_size=43, num_key_value_heads=1, head_dim=10), [21, 4]),
    Case("gpt-oss", "gpt_oss", GPT_OSS, [19, 2]),
    Case("gpt-oss-original", "gpt_oss", dict(GPT_OSS, num_experts_per_tok=6, sliding_window=64), [17], original=True),
]


# Lower-case letters and what the template of ChatML needs, for pages that show a text.
PIECES = [*"abcdefghijklmnopqrstuvwxyz", "Ġ", "Ċ", ".", "?"]
MERGES = [("t", "h"), ("th", "e"), ("i", "n"), ("e", "r"), ("a", "n"), ("Ġ", "the"), ("Ġ", "a"), ("o", "u"),
          ("o", "n")]
SPECIAL = ["<|im_start|>", "<|im_end|>"]
TEMPLATE = ("{% for message in messages %}{{'<|im_start|>' + message['role'] + '\\n' + message['content'] + "
            "'<|im_end|>' + '\\n'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}")


def write_tokenizer(folder: str) -> None:
    tokens = PIECES + ["".join(m) for m in MERGES]
    added = [{"id": len(tokens) + i, "content": s, "single_word": False, "lstrip": False, "rstrip": False,
              "normalized": False, "special": True} for i, s in enumerate(SPECIAL)]
    tokenizer = {
        "version": "1.0", "added_tokens": added, "normalizer": None,
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True},
        "post_processor": None,
        "decoder": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True},
        "model": {"type": "BPE", "vocab": {t: i for i, t in enumerate(tokens)}, "merges": MERGES},
    }
    for name, content in ("tokenizer", tokenizer), ("tokenizer_config", {"chat_template": TEMPLATE}):
        with open(f"{folder}/{name}.json", "w") as f:
            json.dump(content, f, ensure_ascii=False)
            f.write("\n")


def main() -> None:
    root = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(__file__), "golden")
    for seed, case in enumerate(CASES):
        folder = os.path.join(root, case.name)
        ids, logits = make(case, folder, seed)
        logits.numpy().tofile(os.path.join(folder, "logits.f32"))
        with open(os.path.join(folder, "ids.json"), "w") as f:
            json.dump(ids, f)
        generated = os.path.join(folder, "generation_config.json")
        if os.path.exists(generated):
            os.remove(generated)
    write_tokenizer(os.path.join(root, "gpt-oss"))


if __name__ == "__main__":
    main()
