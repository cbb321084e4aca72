# SPDX-License-Identifier: Apache-2.0
"""The first steps of examples/train_moe.py: it learns, in MXFP8 as in bf16, and draws what it says."""

import pathlib
import re
import subprocess
import sys
from xml.etree import ElementTree

import pytest

pytest.importorskip("torchao.prototype.mx_formats")

SCRIPT = pathlib.Path(__file__).resolve().parents[1] / "examples" / "train_moe.py"


def run(*arguments):
    return subprocess.run([sys.executable, SCRIPT, *map(str, arguments)], capture_output=True, text=True, timeout=300)


def test_mxfp8_follows_bf16(tmp_path):
    svg = tmp_path / "loss.svg"
    done = run("--steps", 20, "--ranks", 2, "--svg", svg)
    assert done.returncode == 0, done.stdout + done.stderr
    number = r"([-+]?\d+\.\d+)"
    losses = re.findall(rf"^(?:bf16|mxfp8) +last steps {number}, kept text {number}", done.stdout, re.MULTILINE)
    differences = re.findall(rf"^mxfp8 of bf16, .*: {number} %", done.stdout, re.MULTILINE)
    assert len(losses) == 2 and len(differences) == 2, done.stdout
    # The first step begins at ln 256 = 5.5 nats.
    assert all(1 < float(loss) < 5 for pair in losses for loss in pair), done.stdout
    assert all(abs(float(difference)) <= 1 for difference in differences), done.stdout
    curves = ElementTree.parse(svg).findall("{http://www.w3.org/2000/svg}polyline")
    assert [len(curve.get("points").split()) for curve in curves] == [20, 20]


def test_no_steps_are_refused():
    done = run("--steps", 0)
    assert done.returncode == 2 and "--steps is 0; it must be at least 1" in done.stderr
