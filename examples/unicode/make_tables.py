#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints tables.inc: what tokenizers must know of Unicode, from the database of the package unicodedata2.

    pip install unicodedata2==16.0.0
    python3 make_tables.py > tables.inc

A fold is: canonical decomposition, nonspacing marks dropped, lower case. ASCII, Hangul syllables (both are done by
arithmetic), CJK compatibility ideographs, composed musical notes and vowels of Kirat Rai are left out.
"""
import unicodedata2 as u


def category(c):
    return u.category(chr(c))


def code_points():
    for c in range(0x80, 0x110000):
        hangul = 0xAC00 <= c < 0xD7A4
        compatibility = 0xF900 <= c < 0xFB00 or 0x2F800 <= c < 0x2FA20
        notes = 0x1D15E <= c < 0x1D1C1
        kirat_rai = 0x16D63 <= c < 0x16D6B
        if not (hangul or compatibility or notes or kirat_rai) and category(c) not in ("Cs", "Mn"):
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


KINDS = {"Lu": "upper", "Lt": "upper", "Ll": "lower", "Lm": "letter", "Lo": "letter", "M": "mark", "N": "number"}


def kind(c):
    cat = category(c)
    return KINDS.get(cat) or KINDS.get(cat[0], "other")


def kinds():
    """(first, kind) where the kind changes; upper and lower case in turns are one row."""
    k = [kind(c) for c in range(0x110000)] + ["end"]
    c = 0
    while c < 0x110000:
        n = 1
        if k[c] in ("upper", "lower"):
            while k[c + n] in ("upper", "lower") and k[c + n] != k[c + n - 1]:
                n += 1
        if n > 2:
            yield c, "even_upper" if (k[c] == "upper") == (c % 2 == 0) else "even_lower"
        else:
            n = 1
            while k[c + n] == k[c]:
                n += 1
            yield c, k[c]
        c += n


def combining():
    """(first, last, class) of code points whose canonical combining class is not 0."""
    first, was = None, 0
    for c in range(0x110001):
        ccc = u.combining(chr(c)) if c < 0x110000 else 0
        if first is not None and ccc != was:
            yield first, c - 1, was
            first = None
        if ccc and first is None:
            first, was = c, ccc


def decompositions():
    """(code point, first, second or 0): canonical, one step; without Hangul."""
    for c in range(0x110000):
        d = u.decomposition(chr(c))
        if d and d[0] != "<":
            a, b = ([int(x, 16) for x in d.split()] + [0])[:2]
            yield c, a, b


def compositions():
    """(first, second, composed): pairs that NFC composes."""
    return sorted((a, b, c) for c, a, b in decompositions() if b and u.normalize("NFC", chr(a) + chr(b)) == chr(c))


def cell(row):
    return " {" + ", ".join(v if isinstance(v, str) else hex(v) if v > 9 else str(v) for v in row) + "},"


def table(comment, declaration, rows):
    print(f"\n// {comment}\nconstexpr {declaration}[] = {{")
    line = "   "
    for row in rows:
        if len(line) + len(cell(row)) > 108:
            print(line)
            line = "   "
        line += cell(row)
    print(line.rstrip(",") + "\n};")


folded = {c: [ord(x) for x in fold(c)] for c in code_points() if fold(c) != chr(c)}
assert all(1 <= len(f) <= 2 for f in folded.values())
print("// SPDX-License-Identifier: Apache-2.0")
print(f"// Made by make_tables.py from Unicode {u.unidata_version}; every table is sorted.")
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
table("from where on it is what; in even_upper even code points are upper case and odd ones lower case",
      "kind_row_t kinds", kinds())
table("canonical combining classes", "combining_t combining_classes", combining())
table("canonical decompositions, one step", "decomposition_t decompositions", decompositions())
table("what two code points compose to", "composition_t compositions", compositions())
print("// clang-format on")
