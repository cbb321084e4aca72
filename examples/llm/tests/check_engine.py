# SPDX-License-Identifier: Apache-2.0
"""An engine next to transformers' logits of golden/ and next to the CPU: check_engine.py MXDNN_LLM ENGINE."""

import array
import concurrent.futures
import itertools
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable

LLM, ENGINE = os.path.abspath(sys.argv[1]), sys.argv[2]
GOLDEN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "golden")
numbers = itertools.count()
pool = concurrent.futures.ThreadPoolExecutor(8)
checks: list[concurrent.futures.Future[bool]] = []


def program(*args: str) -> str:
    done = subprocess.run([LLM, *args], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, (args, done.returncode, done.stderr)
    return done.stdout


def logits(model: str, ids: list[list[int]], engine: str, *options: str) -> array.array:
    args = [word for i in ids for word in ("--ids", ",".join(map(str, i)))]
    path = f"logits{next(numbers)}.f32"
    program("logits", model, *args, "--engine", engine, "--output", path, *options)
    values = array.array("f")
    with open(path, "rb") as f:
        values.frombytes(f.read())
    os.remove(path)
    return values


def error(got: array.array, want: array.array) -> float:
    return math.dist(got, want) / math.hypot(*want)


def report(what: str, most: float, value: Callable[[], float]) -> None:
    """Computes the value beside others, and prints whether it is at most as large."""

    def check() -> bool:
        got = value()
        is_good = got <= most
        print(f"{'ok    ' if is_good else 'FAILED'} {what}: {got:.3g}, at most {most:g}", flush=True)
        return is_good

    checks.append(pool.submit(check))


def golden(name: str) -> None:
    folder = os.path.join(GOLDEN, name)
    with open(f"{folder}/ids.json") as f:
        ids = json.load(f)
    want = array.array("f")
    with open(f"{folder}/logits.f32", "rb") as f:
        want.frombytes(f.read())

    def next_to_bf16(*options: str) -> float:
        return error(logits(folder, ids, ENGINE, *options), logits(folder, ids, ENGINE, "--encoding", "bf16"))

    def is_generated_otherwise() -> float:
        args = ["generate", folder, "--ids", ",".join(map(str, ids[0])), "--encoding", "f32", "--tokens", "12"]
        return float(program(*args, "--engine", ENGINE) != program(*args))

    for options in ([], ["--at-once", "1"], ["--chunk", "4"]):
        report(f"{name}, f32 {' '.join(options)}", 1e-4,
               lambda options=options: error(logits(folder, ids, ENGINE, "--encoding", "f32", *options), want))
    report(f"{name}, stored next to bf16", 1e-2, next_to_bf16)
    report(f"{name}, token by token", 1e-2, lambda: next_to_bf16("--at-once", "1"))
    report(f"{name}, generated tokens are others", 0, is_generated_otherwise)


def shape(name: str, tokens: int, vocabulary: int) -> None:
    """Heads of 64 and 128, whose kernels the models of golden/ do not reach."""
    model, ids = f"shape:{name}", [[i * 7919 % vocabulary for i in range(tokens)], [5, 6, 7], list(range(20))]
    # A rounding may give a token another expert, and then it has other logits: experts are those of the CPU.
    same = ["--routes", f"routes{next(numbers)}.s32"] if name.startswith("gpt-oss") else []
    want = pool.submit(logits, model, ids, "cpu", *same)

    def next_to_cpu(*options: str) -> float:
        expected = want.result()
        return error(logits(model, ids, ENGINE, *same, *options), expected)

    for options in ([], ["--chunk", "96"], ["--at-once", "7"], ["--at-once", "1"]):
        report(f"{name}, {tokens} tokens {' '.join(options)}", 1e-2, lambda options=options: next_to_cpu(*options))


def changed(tensor: str, at: int, value: bytes) -> str:
    """A folder with a gpt-oss, one of whose bf16 numbers is another one."""
    folder = f"changed{next(numbers)}"
    shutil.copytree(os.path.join(GOLDEN, "gpt-oss"), folder)
    with open(f"{folder}/model.safetensors", "r+b") as f:
        size = int.from_bytes(f.read(8), "little")
        header = json.loads(f.read(size))
        f.seek(8 + size + header[tensor]["data_offsets"][0] + 2 * at)
        f.write(value)
    return folder


def logits_that_are_none() -> None:
    """Of a prompt, and of a token that only the decoder has seen: each is refused with a sentence."""
    def generate(folder: str) -> subprocess.CompletedProcess:
        args = [LLM, "generate", folder, "--ids", "3,1,4", "--tokens", "6", "--engine", ENGINE]
        return subprocess.run(args, capture_output=True, text=True, timeout=600)

    def is_accepted(tensor: str, at: int, value: bytes, position: int) -> float:
        done = generate(changed(tensor, at, value))
        words = f"the logits that follow position {position} of sequence 0, one is NaN or infinite"
        return float(done.returncode != 1 or words not in done.stderr)

    def is_accepted_later() -> float:
        first = int(generate(os.path.join(GOLDEN, "gpt-oss")).stdout.split(",")[0])
        return is_accepted("model.embed_tokens.weight", 32 * first, nan, 3)

    nan, infinity = b"\xc0\x7f", b"\x80\x7f"
    for name, value in (("NaN", nan), ("infinite", infinity)):
        report(f"{name} logits of a prompt are accepted", 0,
               lambda value=value: is_accepted("model.norm.weight", 3, value, 2))
    report("NaN logits of a decoded token are accepted", 0, is_accepted_later)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        shape("gpt-oss-20b:1", 40, 201088)  # takes longest
        # Windows of 128 positions: shorter and longer than prompts, and keys that several blocks share.
        shape("gpt-oss-tiny", 700, 1000)
        shape("gpt-oss-tiny", 100, 1000)
        shape("smollm2-135m:2", 150, 49152)
        shape("llama-3.2-3b:1", 40, 128256)
        for name in sorted(os.listdir(GOLDEN)):
            golden(name)
        logits_that_are_none()
        failed = sum(not check.result() for check in checks)
    print(f"{failed} of {len(checks)} failed")
    sys.exit(failed > 0)


main()
