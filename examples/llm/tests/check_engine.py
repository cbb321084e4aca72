# SPDX-License-Identifier: Apache-2.0
"""An engine next to transformers' logits of golden/ and next to the CPU: check_engine.py MXDNN_LLM ENGINE."""

import array
import json
import math
import os
import subprocess
import sys
import tempfile

LLM, ENGINE = os.path.abspath(sys.argv[1]), sys.argv[2]
GOLDEN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "golden")
failed = 0


def program(*args: str) -> str:
    done = subprocess.run([LLM, *args], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, (args, done.returncode, done.stderr)
    return done.stdout


def logits(model: str, ids: list[list[int]], engine: str, *options: str) -> array.array:
    args = [word for i in ids for word in ("--ids", ",".join(map(str, i)))]
    program("logits", model, *args, "--engine", engine, "--output", "logits.f32", *options)
    values = array.array("f")
    with open("logits.f32", "rb") as f:
        values.frombytes(f.read())
    return values


def error(got: array.array, want: array.array) -> float:
    return math.sqrt(sum((a - b) ** 2 for a, b in zip(got, want)) / sum(b * b for b in want))


def median_error(got: array.array, want: array.array, rows: int) -> float:
    """Of rows: a rounding may give a token another expert, and that token only other logits."""
    n = len(want) // rows
    return sorted(error(got[i * n : (i + 1) * n], want[i * n : (i + 1) * n]) for i in range(rows))[rows // 2]


def report(what: str, value: float, most: float) -> None:
    global failed
    is_good = value <= most
    failed += not is_good
    print(f"{'ok    ' if is_good else 'FAILED'} {what}: {value:.3g}, at most {most:g}", flush=True)


def golden(name: str) -> None:
    folder = os.path.join(GOLDEN, name)
    with open(f"{folder}/ids.json") as f:
        ids = json.load(f)
    want = array.array("f")
    with open(f"{folder}/logits.f32", "rb") as f:
        want.frombytes(f.read())
    for options in ([], ["--at-once", "1"], ["--chunk", "4"]):
        got = logits(folder, ids, ENGINE, "--encoding", "f32", *options)
        report(f"{name}, f32 {' '.join(options)}", error(got, want), 1e-4)
    baseline = logits(folder, ids, ENGINE, "--encoding", "bf16")
    report(f"{name}, stored next to bf16", error(logits(folder, ids, ENGINE), baseline), 1e-2)
    report(f"{name}, token by token", error(logits(folder, ids, ENGINE, "--at-once", "1"), baseline), 1e-2)
    args = ["generate", folder, "--ids", ",".join(map(str, ids[0])), "--encoding", "f32", "--tokens", "12"]
    report(f"{name}, generated tokens are others", float(program(*args, "--engine", ENGINE) != program(*args)), 0)


def shape(name: str, tokens: int, vocabulary: int) -> None:
    """Heads of 64, whose kernels the models of golden/ do not reach."""
    model, ids = f"shape:{name}", [[i * 7919 % vocabulary for i in range(tokens)], [5, 6, 7]]
    rows = tokens + 3
    want = logits(model, ids, "cpu")
    for options in ([], ["--chunk", "96"], ["--at-once", "1"]):
        got = logits(model, ids, ENGINE, *options)
        report(f"{name} {' '.join(options)}", median_error(got, want, rows), 3e-2)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for name in sorted(os.listdir(GOLDEN)):
            golden(name)
        shape("gpt-oss-tiny", 300, 1000)
        shape("smollm2-135m:2", 150, 49152)
        shape("gpt-oss-20b:1", 40, 201088)
    print(f"{failed} failed")
    sys.exit(failed > 0)


main()
