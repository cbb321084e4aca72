# SPDX-License-Identifier: Apache-2.0
"""Every block of the page does what the page says."""

import os
import pathlib
import subprocess
import sys

import pytest

SOURCES = pathlib.Path(__file__).resolve().parents[3]


def prefix() -> pathlib.Path:
    """Where libmxdnn is installed: the package mxdnn, or what MXDNN_PREFIX names."""
    if "MXDNN_PREFIX" in os.environ:
        return pathlib.Path(os.environ["MXDNN_PREFIX"])
    mxdnn = pytest.importorskip("mxdnn")
    return pathlib.Path(mxdnn.get_include()).parent


@pytest.mark.parametrize("page", ["pytorch", "torchao", "transformers", "aotinductor"])
def test_page(page, tmp_path):
    done = subprocess.run(
        [
            sys.executable, SOURCES / "tests" / "docs" / "run_page.py", SOURCES / "doc" / "integrations" / f"{page}.md",
            prefix(), tmp_path / "work", "--environment", sys.prefix,
        ],
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
