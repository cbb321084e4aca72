# SPDX-License-Identifier: Apache-2.0
"""The page of the documentation: its programs are run, and what they print is compared with what it shows."""
import pathlib
import subprocess
import sys

import jax
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]


def test_page(tmp_path):
    try:
        import mxdnn
    except ImportError:
        pytest.skip("the package mxdnn is not installed")
    assert jax.default_backend() == "cpu"
    done = subprocess.run(
        [sys.executable, ROOT / "tests/docs/run_page.py", ROOT / "doc/integrations/jax.md",
         pathlib.Path(mxdnn.__file__).parent, tmp_path / "page", "--environment", sys.prefix],
        capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
