# SPDX-License-Identifier: Apache-2.0
"""The program's tokenizers next to those of the package tokenizers.

Files in the styles of known models are trained from a seed. LLM_TEST_STRINGS is the number of strings of each style; from
10000 on every code point is compared, below that a part of them.
"""
import json
import os
import random
import unicodedata

import pytest
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

from text_lines import ask

SEED = 20
STRINGS = int(os.environ.get("LLM_TEST_STRINGS", "1000"))
IS_WHOLE = STRINGS >= 10000

FIRST = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
TAIL = r"|\s*[\r\n]+|\s+(?!\S)|\s+"
CASED = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+@"
         r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*@")
PATTERNS = {
    "llama-3": FIRST + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*" + TAIL,
    "qwen2": FIRST + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*" + TAIL,
    "qwen3.5": FIRST + r"|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*" + TAIL,
    "o200k": CASED.replace("@", FIRST + "?") + r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*" + TAIL,
    "tekken": CASED.replace("@", "") + r"|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*" + TAIL,
}


# Numbers of Unicode 17, which Digits of the package knows and its patterns do not.
NEWER = {*range(0x11DE0, 0x11DEA), *range(0x16FF4, 0x16FF7)}


def byte_level(**options):
    return pre_tokenizers.ByteLevel(**{"add_prefix_space": False, **options})


def split(pattern, behavior="isolated", invert=False):
    return pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(pattern), behavior, invert),
                                    byte_level(use_regex=False)])


# Of each style: what cuts the text, and what else its files have.
STYLES = {
    "gpt-2": {"pre": byte_level()},
    "gpt-2 with a space before": {"pre": byte_level(add_prefix_space=True)},
    "gpt-2 with nothing but bytes": {"pre": byte_level(), "tokens": 256},
    "smollm": {"pre": pre_tokenizers.Sequence([pre_tokenizers.Digits(True), byte_level()])},
    "digits in a row": {"pre": pre_tokenizers.Sequence([pre_tokenizers.Digits(False), byte_level()])},
    "digits by three": {"pre": pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(r"\p{N}{1,3}"), "isolated"),
        pre_tokenizers.Split(Regex(PATTERNS["llama-3"]), "isolated"), byte_level(use_regex=False)])},
    "llama-3": {"pre": split(PATTERNS["llama-3"]), "ignore_merges": True, "begin": True},
    "removed, inverted": {"pre": split(PATTERNS["llama-3"], "removed", True)},
    "qwen2": {"pre": split(PATTERNS["qwen2"]), "nfc": True},
    "qwen3.5": {"pre": split(PATTERNS["qwen3.5"]), "nfc": True},
    "o200k": {"pre": split(PATTERNS["o200k"])},
    "tekken": {"pre": split(PATTERNS["tekken"]), "ignore_merges": True},
    "no initial alphabet": {"pre": byte_level(), "alphabet": False},
    "unknown bytes": {"pre": byte_level(), "alphabet": False, "unknown": True},
    "fused unknown bytes": {"pre": byte_level(), "alphabet": False, "unknown": True, "fuse": True},
}

WORDS = ("the of and to In THE for HTTPServer camelCase iPhone don't we'LL it's I'M they'Re naïve über ΑΒγδ "
         "Привет здравствуйте 你好 世界 日本語 テスト 한국어 עברית العربية ไทย हिन्दी ǅungla ʰx e\u0301a\u0308 "
         "K\u0323\u0307 \u1e9b\u0323 ﬁ ½ ⅷ ٣٤ 1 23 456 7890 3.14159 0x1F def return self.value += [i] {} () "
         "=> != // /* */ <b> &amp; https://a.b/c?d=e#f _x__ $1,000 50% 'quoted' \"d\" ... --- 🙂 👩‍👩‍👧 🇩🇪 ✅ ☃️ "
         "'ſ ’s \u200b \ufeff \u00ad").split()
SPACES = [" ", " ", " ", "  ", "   ", "\n", "\n\n", "\r\n", "\t", "\t\t", " \n", "\n ", " \t \n  ", "\u00a0", "\u3000",
          "\u2028", "\x0b", "\x0c", "\x85", "", "", ""]
ADDED = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<left>", "<right>", "<both>", "<norm>", "<|im_", "    ",
         "\u0386<norm>"]


def text(rng, with_added=True):
    kind = rng.random()
    if kind < 0.15:  # any code points
        ranges = [(0, 0x80), (0, 0x100), (0, 0x3000), (0x300, 0x370), (0x3000, 0xD800), (0xE000, 0x11000),
                  (0x11000, 0x20000), (0x1F000, 0x20000), (0, 0xD800)]
        lo, hi = rng.choice(ranges)
        return "".join(chr(rng.randrange(lo, hi)) for _ in range(rng.randrange(30)))
    if kind < 0.25:  # one character many times
        return rng.choice(WORDS)[0] * rng.randrange(200) + rng.choice(SPACES) * rng.randrange(9) + rng.choice(WORDS)
    parts = []
    for _ in range(rng.randrange(20)):
        parts.append(rng.choice(WORDS))
        if rng.random() < 0.3:
            parts[-1] = parts[-1].swapcase()
        parts.append(rng.choice(SPACES))
        if with_added and rng.random() < 0.05:
            parts.append(rng.choice(ADDED))
    return "".join(parts)


def train(name, style):
    rng = random.Random(f"{SEED} {name}")
    unknown = "<|endoftext|>" if style.get("unknown") else None
    t = Tokenizer(models.BPE(unk_token=unknown, fuse_unk=style.get("fuse", False),
                             ignore_merges=style.get("ignore_merges", False)))
    t.pre_tokenizer = style["pre"]
    t.decoder = decoders.ByteLevel()
    if style.get("nfc"):
        t.normalizer = normalizers.NFC()
    alphabet = pre_tokenizers.ByteLevel.alphabet() if style.get("alphabet", True) else ["a"]
    t.train_from_iterator((text(rng, with_added=False) for _ in range(2000)), trainers.BpeTrainer(
        vocab_size=style.get("tokens", 1500), initial_alphabet=alphabet, limit_alphabet=len(alphabet),
        special_tokens=ADDED[:3], show_progress=False))
    t.add_special_tokens([AddedToken("<left>", lstrip=True), AddedToken("<|im_"), AddedToken("<right>", rstrip=True)])
    t.add_tokens([AddedToken("<both>", lstrip=True, rstrip=True, normalized=False), AddedToken("<norm>"),
                  AddedToken("    ", normalized=False), AddedToken("\u0391\u0301<norm>")])
    if style.get("begin"):
        t.post_processor = processors.Sequence([
            processors.ByteLevel(), processors.TemplateProcessing(
                single="<|im_start|> $A <|im_end|>", special_tokens=[("<|im_start|>", 1), ("<|im_end|>", 2)])])
    return t


def encode(t, strings):
    """Some at once: what the package gives for a string takes much more memory than its ids."""
    return [e.ids for i in range(0, len(strings), 256) for e in t.encode_batch(strings[i:i + 256])]


@pytest.mark.parametrize("name", STYLES)
@pytest.mark.parametrize("merges", ["pairs", "strings"])
def test_same_ids_and_text(name, merges, tmp_path):
    t = train(name, STYLES[name])
    content = json.loads(t.to_str())
    if merges == "strings":
        content["model"]["merges"] = [" ".join(m) for m in content["model"]["merges"]]
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(content, ensure_ascii=merges == "pairs"))

    rng = random.Random(f"{SEED} {merges}")
    strings = [text(rng) for _ in range(STRINGS if merges == "pairs" else min(STRINGS, 500))]
    ids = encode(t, strings)
    for string, wanted, got in zip(strings, ids, ask(tmp_path, strings)):
        assert got == wanted, ascii(string)

    random_ids = [[rng.randrange(t.get_vocab_size()) for _ in range(rng.randrange(12))] for _ in strings[:500]]
    for question, got in zip(ids + random_ids, ask(tmp_path, ids + random_ids)):
        assert got == t.decode(question, skip_special_tokens=False), question


def code_points():
    """All; or where the category changes, and a few between."""
    points = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000 and c not in NEWER]
    if IS_WHOLE:
        return points
    kind = [unicodedata.category(chr(c)) for c in range(0x110000)]
    return [c for c in points if c < 0x600 or c % 97 == 0 or not kind[c - 1] == kind[c] == kind[min(c + 1, 0x10FFFF)]]


@pytest.mark.parametrize("name", ["gpt-2", "smollm", "llama-3", "qwen3.5", "o200k"])
def test_every_code_point(name, tmp_path):
    """Alone and between letters, so that its kind decides where the text is cut."""
    t = train(name, dict(STYLES[name], nfc=False))
    (tmp_path / "tokenizer.json").write_text(t.to_str())
    points = code_points()
    strings = ["".join(f"a{chr(c)}B {chr(c)}{chr(c)}c  {chr(c)}" for c in points[i:i + 64])
               for i in range(0, len(points), 64)]
    for i, (wanted, got) in enumerate(zip(encode(t, strings), ask(tmp_path, strings))):
        assert got == wanted, f"from U+{points[i * 64]:04X} on"


def test_normalisation(tmp_path):
    """Python's own NFC is newer than that of the package."""
    rng = random.Random(SEED)
    points = [chr(c) for c in range(0x110000) if unicodedata.category(chr(c)) not in ("Cn", "Cs", "Co")]
    marks = [c for c in points if unicodedata.combining(c)]
    parts = [c for c in points if unicodedata.decomposition(c)] + [chr(c) for c in range(0x1100, 0x1200)] + marks
    strings = ["".join(points[i:i + 64]) for i in range(0, len(points), 64)]
    strings += ["".join(rng.choice(rng.choice([points, marks, parts])) for _ in range(20)) for _ in range(STRINGS)]
    strings += [unicodedata.normalize("NFD", s) for s in strings]
    content = json.loads(train("normalisation", STYLES["gpt-2 with nothing but bytes"]).to_str())
    expected = []
    for normalizer, to in (None, lambda s: unicodedata.normalize("NFC", s)), ({"type": "NFC"}, lambda s: s):
        content["normalizer"] = normalizer
        (tmp_path / "tokenizer.json").write_text(json.dumps(content))
        answers = ask(tmp_path, [to(s) for s in strings])
        if normalizer:
            for string, wanted, got in zip(strings, expected, answers):
                assert got == wanted, ascii(string)
        expected = answers
