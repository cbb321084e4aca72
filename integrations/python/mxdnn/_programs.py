# SPDX-License-Identifier: Apache-2.0
"""The installed programs: each entry of pyproject.toml becomes the program of its name."""
import os
import pathlib
import sys

import mxdnn


def run() -> None:
    """Replaces this process by the program of the name that it was called by."""
    name = pathlib.Path(sys.argv[0]).name
    program = mxdnn._installed(f"bin/{name}")
    # As in load_library(): tbb may be in another environment.
    folders = os.environ.get("LD_LIBRARY_PATH", ""), os.path.dirname(mxdnn._tbb_library() or "")
    os.execve(program, [name, *sys.argv[1:]], os.environ | {"LD_LIBRARY_PATH": os.pathsep.join(filter(None, folders))})
