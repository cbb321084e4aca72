#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints unicode_tables.inc: what the tokenizer must know of Unicode, from Python's own database.

    python3 make_unicode_tables.py > unicode_tables.inc

A fold is: canonical decomposition, nonspacing marks dropped, lower case. ASCII, Hangul syllables (both are done by
arithmetic), CJK compatibility ideographs and composed musical notes are left out.
"""
import unicodedata as u


def category(c):
    return u.category(chr(c))


def code_points():
    for c in range(0x80, 0x110000):
        hangul = 0xAC00 <= c < 0xD7A4
        compatibility = 0xF900 <= c < 0xFB00 or 0x2F800 <= c < 0x2FA20
        notes = 0x1D15E <= c < 0x1D1C1
        if not hangul and not compatibility and not notes and category(c) not in ("Cs", "Mn"):
            yield c


def fold(c):
    return "".join(x for x in u.normalize("NFD", chr(c)) if u.category(x) != "Mn").lower()


def runs(pairs):
    """[(from, to)...] as (first, count, step of from, to of first, step of to), greedily."""
    i = 0
    while i < len(pairs):
        best = (0, 1, 0)
        for step in (1, 2):
            for to_step in (0, 1, 2):
                n = 1
                while i + n < len(pairs) and pairs[i + n] == (pairs[i][0] + n * step, pairs[i][1] + n * to_step):
                    n += 1
                best = max(best, (n, step, to_step), key=lambda b: b[0])
        n, step, to_step = best
        yield pairs[i][0], n, step, pairs[i][1], to_step
        i += n


def ranges(test):
    first = None
    for c in range(0x110001):
        inside = c < 0x110000 and test(c)
        if inside and first is None:
            first = c
        elif not inside and first is not None:
            yield first, c - 1
            first = None


def table(comment, declaration, rows):
    print(f"\n// {comment}\nconstexpr {declaration}[] = {{")
    line = "   "
    for row in rows:
        cell = " {" + ", ".join(hex(v) if v > 9 else str(v) for v in row) + "},"
        if len(line) + len(cell) > 108:
            print(line)
            line = "   "
        line += cell
    print(line.rstrip(",") + "\n};")


folded = {c: [ord(x) for x in fold(c)] for c in code_points() if fold(c) != chr(c)}
assert all(1 <= len(f) <= 2 for f in folded.values())
print("// SPDX-License-Identifier: Apache-2.0")
print(f"// Made by make_unicode_tables.py from Unicode {u.unidata_version}; every table is sorted.")
print("// clang-format off")
table("first, count, step, what the first folds to, step of that", "fold_run_t fold_runs",
      runs([(c, f[0]) for c, f in folded.items() if len(f) == 1]))
table("a code point and the two it folds to", "fold_pair_t fold_pairs",
      ((c, *f) for c, f in folded.items() if len(f) == 2))
table("nonspacing marks", "range_t marks", ranges(lambda c: category(c) == "Mn"))
table("punctuation, with the ASCII symbols", "range_t punctuation",
      ranges(lambda c: category(c)[0] == "P" or (c < 0x80 and chr(c) in "$+<=>^`|~")))
table("control, format and private use", "range_t controls", ranges(lambda c: category(c) in ("Cc", "Cf", "Co")))
table("spaces, with the three controls that count as such", "range_t spaces",
      ranges(lambda c: category(c)[0] == "Z" or chr(c) in "\t\n\r"))
print("// clang-format on")
