# SPDX-License-Identifier: Apache-2.0
"""Writes what moe_route, moe_permute and moe_unpermute have to give, from their pages in doc/reference alone.
The library is not involved.

    cases.txt    a line per case (kind, name, key=value ...), then a line per array (name, type, shape, offset, bytes)
    cases.bin    the arrays, little-endian

    python3 -m venv venv && venv/bin/pip install numpy && venv/bin/python make_golden.py [--check]

With --check nothing is written, and the exit status says whether the files are what they would be. Random numbers
come from a generator defined here. Weights and sums are computed in f64 and stored in f32. Scores that are compared
are either equal because they are made of the same numbers, or further apart than f32 arithmetic could confuse; the
script stops where a case breaks that.
"""
import pathlib
import sys

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE.parent / "golden"))
from case_files import CaseFiles, Random, stored  # noqa: E402

GAP = 1e-4  # least distance of selection scores that differ


# ---- route ----


def sigmoid(x):
    with np.errstate(over="ignore"):
        return 1 / (1 + np.exp(-x))


def softmax(x):
    """NaN where an element is NaN, where one is +Inf, and where all are -Inf."""
    if np.isnan(x).any() or np.max(x) in (np.inf, -np.inf):
        return np.full(len(x), np.nan)
    e = np.exp(x - np.max(x))
    return e / e.sum()


def ranked(scores, same):
    """Indices by falling score; equal ones and NaN (after all numbers) by rising index. `same[i]` says what score i
    is made of: scores made alike are equal, others have to be well apart."""
    order = sorted(range(len(scores)), key=lambda i: (np.isnan(scores[i]), 0 if np.isnan(scores[i]) else -scores[i], i))
    for a, b in zip(order, order[1:]):
        x, y = scores[a], scores[b]
        if same[a] == same[b] or np.isnan(x) or np.isnan(y) or np.isinf(x) or np.isinf(y):
            continue
        assert x - y > GAP, (x, y)
    return order


def route_token(x, bias, k, scoring, renormalize, groups, topk_groups, group_max, factor):
    E = len(x)
    score = {"softmax_topk": softmax, "topk_softmax": np.array, "sigmoid": sigmoid}[scoring](x)
    made_of = [(float(x[i]), float(bias[i]) if bias is not None else 0.0) for i in range(E)]
    choice = x if bias is None else score + bias
    open_experts = list(range(E))
    if topk_groups < groups:
        n = E // groups
        judged = score if bias is None else score + bias
        value, same = [], []
        for g in range(groups):
            best = ranked(judged[g * n : (g + 1) * n], made_of[g * n : (g + 1) * n])[: 1 if group_max else 2]
            value.append(sum(judged[g * n + i] for i in best))
            same.append(tuple(sorted(made_of[g * n + i] for i in best)))
        kept = sorted(ranked(np.array(value), same)[:topk_groups])
        open_experts = [g * n + i for g in kept for i in range(n)]
    order = ranked(np.array([choice[e] for e in open_experts]), [made_of[e] for e in open_experts])
    ids = [open_experts[i] for i in order[:k]]
    weights = np.array([score[e] for e in ids])
    if scoring == "topk_softmax":
        weights = softmax(weights)
    elif renormalize:
        weights = weights / (weights.sum() + (1e-20 if scoring == "sigmoid" else 0))
    return ids, weights * factor


ROUTE = [
    # name, T, E, k, type, scoring, flags, groups, kept groups, factor, logits
    ("gpt_oss", 7, 32, 4, "bf16", "topk_softmax", "", 1, 1, 1.0, "normal"),
    ("gpt_oss_128", 5, 128, 4, "bf16", "topk_softmax", "", 1, 1, 1.0, "normal"),
    ("mixtral", 6, 8, 2, "f32", "softmax_topk", "renormalize", 1, 1, 1.0, "normal"),
    ("softmax_plain", 6, 20, 3, "f16", "softmax_topk", "", 1, 1, 1.0, "normal"),
    ("softmax_bias", 6, 33, 5, "f32", "softmax_topk", "bias", 1, 1, 1.0, "normal"),
    ("softmax_bias_renormalize", 6, 33, 5, "f32", "softmax_topk", "renormalize+bias", 1, 1, 0.5, "normal"),
    ("softmax_groups_max", 6, 40, 3, "f32", "softmax_topk", "group_max", 8, 3, 16.0, "normal"),
    ("topk_softmax_bias", 6, 17, 4, "f32", "topk_softmax", "bias", 1, 1, 1.0, "normal"),
    ("topk_softmax_groups", 6, 24, 4, "f32", "topk_softmax", "", 4, 2, 1.0, "normal"),
    ("sigmoid_one", 9, 16, 1, "bf16", "sigmoid", "", 1, 1, 1.0, "normal"),
    ("deepseek_v3", 4, 256, 8, "f32", "sigmoid", "renormalize+bias", 8, 4, 2.5, "normal"),
    ("sigmoid_groups_no_bias", 5, 60, 6, "f32", "sigmoid", "renormalize", 6, 2, 1.0, "normal"),
    ("sigmoid_groups_of_one", 5, 12, 3, "f32", "sigmoid", "bias", 12, 5, 1.0, "normal"),
    ("sigmoid_groups_max", 5, 30, 4, "f16", "sigmoid", "bias+group_max", 5, 2, 1.0, "normal"),
    ("all_experts", 3, 9, 9, "f32", "softmax_topk", "renormalize", 1, 1, 1.0, "normal"),
    ("one_expert", 4, 1, 1, "f32", "softmax_topk", "", 1, 1, 1.0, "normal"),
    ("ties", 8, 19, 5, "f32", "softmax_topk", "renormalize", 1, 1, 1.0, "ties"),
    ("ties_topk_softmax", 8, 19, 5, "bf16", "topk_softmax", "", 1, 1, 1.0, "ties"),
    ("ties_sigmoid_bias", 8, 24, 6, "f32", "sigmoid", "renormalize+bias", 4, 2, 1.0, "ties"),
    ("special_softmax", 9, 18, 4, "f32", "softmax_topk", "", 1, 1, 1.0, "special"),
    ("special_topk_softmax", 9, 18, 4, "f32", "topk_softmax", "", 1, 1, 1.0, "special"),
    ("special_sigmoid", 9, 18, 4, "f32", "sigmoid", "renormalize", 1, 1, 1.0, "special"),
    ("special_sigmoid_bias", 9, 18, 4, "bf16", "sigmoid", "bias", 3, 2, 1.0, "special"),
    ("starts", 5, 10, 2, "f32", "topk_softmax", "", 1, 1, 1.0, "normal"),
    ("no_tokens", 0, 8, 2, "f32", "topk_softmax", "", 1, 1, 1.0, "normal"),
]


def logits_of(kind, T, E, rnd):
    if kind == "normal":
        # All distinct, and apart even after a softmax or a sigmoid and in 8 bits of mantissa.
        rows = [(rnd.shuffled(E) - E / 2) * (4.0 / max(E, 8)) for _ in range(T)]
        return np.array(rows).reshape(T, E)
    if kind == "ties":
        return (rnd.ints(4, T * E).reshape(T, E) - 1.5) * 0.75
    x = (rnd.shuffled(E) - E / 2.0)[None, :] * np.ones((T, 1)) * 0.25
    x[1, 3] = np.nan
    x[2, ::2] = np.nan
    x[3, :] = np.nan
    x[4, 5] = np.inf
    x[5, :] = -np.inf
    x[6, 1:] = -np.inf
    x[7, 2:4] = -0.0, 0.0
    x[8, :] = -200.0  # sigmoids that are 0 in f32
    return x


def bias_of(kind, E, rnd):
    if kind == "ties":
        return (rnd.ints(2, E) * 0.5).astype("<f4")
    return ((rnd.shuffled(E) - E / 3.0) * 0.0371).astype("<f4")


def route_case(put, begin, row, seed):
    name, T, E, k, dt, scoring, flags, groups, kept, factor, kind = row
    rnd = Random(seed)
    for _ in range(200):  # logits whose scores are too close are drawn again
        bits, x = stored(dt, logits_of(kind, T, E, rnd))
        x = x.astype(np.float64)
        bias = bias_of(kind, E, rnd) if "bias" in flags else None
        try:
            tokens = [
                route_token(x[t], None if bias is None else bias.astype(np.float64), k, scoring, "renormalize" in flags,
                            groups, kept, "group_max" in flags, factor)
                for t in range(T)
            ]
            break
        except AssertionError:
            continue
    else:
        sys.exit(f"{name}: no logits found whose scores are apart")
    ids = np.array([t[0] for t in tokens], "<i4").reshape(T, k)
    weights = np.array([t[1] for t in tokens]).reshape(T, k).astype("<f4")
    begin("route", name, T=T, E=E, k=k, type=dt, scoring=scoring, flags=flags or "none", groups=groups, kept=kept,
          factor=factor)
    put("logits", bits)
    if bias is not None:
        put("bias", bias)
    put("ids", ids)
    put("weights", weights)
    flat = ids.reshape(-1)
    order = np.array([i for e in range(E) for i in range(T * k) if flat[i] == e], "<i4")
    counts = np.array([(flat == e).sum() for e in range(E)], "<i4")
    put("counts", counts)
    put("ends", np.cumsum(counts).astype("<i4"))
    put("starts", np.concatenate([[0], np.cumsum(counts)]).astype("<i4"))
    put("order", order)
    put("tokens", (order // k).astype("<i4"))
    put("row_weights", weights.reshape(-1)[order])


# ---- permute and unpermute ----


def swizzle(scales, rows):
    """[rows, columns] bytes into tiles of 128 rows by 4 columns."""
    n = scales.shape[1]
    tiles_down, tiles_across = -(-rows // 128), -(-n // 4)
    out = np.zeros(tiles_down * tiles_across * 512, np.uint8)
    for r in range(scales.shape[0]):
        for c in range(n):
            tile = (r // 128) * tiles_across + c // 4
            out[tile * 512 + (r % 32) * 16 + (r % 128) // 32 * 4 + c % 4] = scales[r, c]
    return out


BITS = {"f32": 32, "bf16": 16, "f16": 16, "f8_e4m3": 8, "f8_e5m2": 8, "f4_e2m1": 4, "f6_e2m3": 6, "s8": 8}


def row_bytes(dt, D, dense=False):
    bits = BITS[dt]
    return D if bits == 6 and not dense else -(-D * bits // 8)


PERMUTE = [
    # name, type, scale type, block, columns, counts [ranks][experts], alignment, spare rows of src and dst
    ("one_rank", "bf16", "none", 0, 5, [[3, 1, 4]], 1, 0, 0),
    ("ranks", "bf16", "none", 0, 7, [[2, 0, 1, 3], [1, 0, 0, 2], [0, 0, 5, 1]], 4, 0, 3),
    ("empty_experts", "f32", "none", 0, 3, [[0, 0, 0], [0, 0, 0]], 8, 2, 1),
    ("exact", "f16", "none", 0, 4, [[8, 16], [8, 0]], 16, 1, 0),
    ("mxfp8", "f8_e4m3", "e8m0", 32, 70, [[5, 0, 2], [30, 0, 1]], 32, 0, 5),
    ("mxfp8_128", "f8_e5m2", "e8m0", 32, 161, [[5, 0], [126, 1]], 128, 3, 40),
    ("mxfp4", "f4_e2m1", "e8m0", 32, 37, [[2, 3], [4, 1]], 4, 0, 0),
    ("nvfp4", "f4_e2m1", "f8_e4m3", 16, 48, [[2, 3], [0, 1]], 128, 0, 0),
    ("mxfp6", "f6_e2m3", "e8m0", 32, 33, [[1, 2], [2, 0]], 2, 1, 1),
    ("mxint8", "s8", "e8m0", 32, 32, [[4], [3]], 8, 0, 0),
    ("s8_per_row", "s8", "f32", 19, 19, [[2, 0], [1, 3]], 4, 1, 2),
]


def permute_case(put, begin, row, seed):
    name, dt, scale_dt, block, D, counts, align, spare_src, spare_dst = row
    rnd = Random(seed)
    counts = np.array(counts, "<i4")
    ranks, experts = counts.shape
    rows = int(counts.sum()) + spare_src
    width = row_bytes(dt, D)
    src = rnd.ints(256, rows * width).reshape(rows, width).astype(np.uint8)
    if BITS[dt] == 4 and D % 2:
        src[:, -1] &= 15
    if BITS[dt] == 6:
        src &= 63
    blocks = -(-D // block) if block else 0
    if scale_dt == "f32":
        blocks *= 4  # bytes
    scales = rnd.ints(255, rows * blocks).reshape(rows, blocks).astype(np.uint8)

    where, ends = [], []
    first = np.concatenate([[0], np.cumsum(counts.reshape(-1))])[:-1].reshape(ranks, experts)
    for e in range(experts):
        own = [int(first[r, e]) + i for r in range(ranks) for i in range(counts[r, e])]
        padded = max(-(-len(own) // align) * align, align)
        where += own + [-1] * (padded - len(own))
        ends.append(len(where))
    used = len(where)
    dst = np.array([src[i] if i >= 0 else np.zeros(width, np.uint8) for i in where], np.uint8).reshape(used, width)
    dst_scales = np.array([scales[i] if i >= 0 else np.zeros(blocks, np.uint8) for i in where], np.uint8)
    dst_scales = dst_scales.reshape(used, blocks)
    begin("permute", name, type=dt, scale=scale_dt, block=block, D=D, ranks=ranks, experts=experts, align=align,
          src_rows=rows, dst_rows=used + spare_dst, used=used)
    put("counts", counts)
    put("src", src)
    put("dst", dst)
    put("ends", np.array(ends, "<i4"))
    put("starts", np.array([0] + ends, "<i4"))
    put("idx", np.array(where + [-1] * spare_dst, "<i4"))
    # The way back: rows that the permutation left out come back as zeros.
    back = np.zeros_like(src)
    back_scales = np.zeros_like(scales)
    for i, w in enumerate(where):
        if w >= 0:
            back[w] = dst[i]
            back_scales[w] = dst_scales[i]
    put("back", back)
    if blocks:
        put("scales", scales)
        put("dst_scales", dst_scales)
        put("back_scales", back_scales)
    if blocks and scale_dt != "f32":
        put("scales_128x4", swizzle(scales, rows))
        put("back_scales_128x4", swizzle(back_scales, rows))
        if align % 128 == 0:
            put("dst_scales_128x4", swizzle(dst_scales, used))


COMBINE = [
    # name, source type, destination type, tokens, choices, columns, spare rows, share of choices without a row, weights
    ("top4", "bf16", "bf16", 5, 4, 33, 3, 0, "softmax"),
    ("top2_f32", "f32", "f32", 4, 2, 600, 0, 0, "softmax"),
    ("top3_f16", "f16", "f32", 4, 3, 17, 2, 0, "softmax"),
    ("dropped", "bf16", "f32", 6, 4, 21, 5, 3, "signed"),
    ("to_f16", "f32", "f16", 3, 2, 9, 1, 0, "signed"),
    ("none", "bf16", "bf16", 7, 1, 12, 4, 3, "none"),
    ("none_convert", "bf16", "f32", 7, 1, 12, 0, 0, "none"),
    ("one_choice", "f32", "bf16", 6, 1, 40, 1, 4, "signed"),
]


def combine_case(put, begin, row, seed):
    name, src_dt, dst_dt, T, k, D, spare, drop, kind = row
    rnd = Random(seed)
    entries = rnd.shuffled(T * k)
    if drop:
        entries = entries[rnd.ints(drop, T * k) != 0]
    idx = np.concatenate([entries, np.full(spare, -1)])[rnd.shuffled(len(entries) + spare)].astype("<i4")
    rows = len(idx)
    bits, x = stored(src_dt, (rnd.ints(4096, rows * D).reshape(rows, D) - 2048) / 517.0)
    x = x.astype(np.float64)
    # Rows that go nowhere must not matter.
    nowhere = np.flatnonzero(idx < 0)
    nan_bits, _ = stored(src_dt, np.full(1, np.nan))
    bits[nowhere] = nan_bits[0]
    w = (rnd.ints(1000, T * k).reshape(T, k) + 1) / 1000.0
    if kind == "softmax":
        w = w / w.sum(axis=1, keepdims=True)
    if kind == "signed":
        w = w - 0.5
    if kind == "none":
        w = np.ones((T, k))
    w = w.astype("<f4")
    total, size = np.zeros((T, D)), np.zeros((T, D))
    for r, entry in enumerate(idx):
        if entry >= 0:
            term = float(w[entry // k, entry % k]) * x[r]
            total[entry // k] += term
            size[entry // k] += np.abs(term)
    begin("combine", name, src=src_dt, dst=dst_dt, T=T, k=k, D=D, rows=rows, weights=int(kind != "none"))
    put("src", bits)
    put("idx", idx)
    put("weights", w)
    put("sum", total.astype("<f4"))
    put("size", np.nextafter(size.astype("<f4"), np.float32(np.inf)).astype("<f4"))


def main():
    files = CaseFiles()

    def begin(kind, name, **words):
        files.describe(f"case {kind} {name} " + " ".join(f"{k}={v}" for k, v in words.items()))

    for i, row in enumerate(ROUTE):
        route_case(files.put, begin, row, 100 + i)
    for i, row in enumerate(PERMUTE):
        permute_case(files.put, begin, row, 300 + i)
    for i, row in enumerate(COMBINE):
        combine_case(files.put, begin, row, 500 + i)

    return files.finish(HERE)


if __name__ == "__main__":
    sys.exit(main())
