# SPDX-License-Identifier: Apache-2.0
"""What the tests of mxdnn-pack share: running the program that the first argument names, and what it refuses."""

import os
import subprocess
import sys

PACK = os.path.abspath(sys.argv[1])


def run(*args: str) -> str:
    done = subprocess.run([PACK, *args], capture_output=True, text=True)
    assert done.returncode == 0, (args, done.returncode, done.stdout, done.stderr)
    return done.stdout


def everything() -> list[str]:
    """All files and folders below this one."""
    return sorted(os.path.join(at, name) for at, folders, files in os.walk(".") for name in folders + files)


def refuses(words: str, *args: str, status: int = 1, **popen: object) -> None:
    """The program ends with this status, says these words, and leaves no file behind."""
    before = everything()
    done = subprocess.run([PACK, *args], capture_output=True, text=True, timeout=60, **popen)
    said = done.stdout + done.stderr
    assert done.returncode == status and words in said, (words, args, done.returncode, said)
    assert everything() == before, (args, "left a file")
