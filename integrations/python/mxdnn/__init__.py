# SPDX-License-Identifier: Apache-2.0
"""Where the installed files of libmxdnn are, for builds and for packages that load the library.

There are no Python bindings of primitives here.
"""
import ctypes
import importlib.metadata
import pathlib

__all__ = ["get_cmake_dir", "get_include", "get_library", "get_pkgconfig_dir", "load_library"]

__version__ = importlib.metadata.version("mxdnn")

_root = pathlib.Path(__file__).resolve().parent


def _installed(path: str) -> str:
    file = _root / path
    if not file.exists():
        raise FileNotFoundError(f"{file} is not there: this folder is no installed wheel of mxdnn. Install one "
                                "(pip install mxdnn), and import it from outside the source tree")
    return str(file)


def get_include() -> str:
    """The folder that holds mxdnn/mxdnn.h and mxdnn/mxdnn.hpp."""
    return _installed("include")


def get_library() -> str:
    """The file of the shared library, for linkers and for ctypes."""
    return _installed("lib/libmxdnn.so.0")


def get_cmake_dir() -> str:
    """The folder of mxdnnConfig.cmake: the value of mxdnn_DIR for find_package(mxdnn)."""
    return _installed("lib/cmake/mxdnn")


def get_pkgconfig_dir() -> str:
    """The folder of mxdnn.pc: an entry of PKG_CONFIG_PATH."""
    return _installed("lib/pkgconfig")


def _tbb_library() -> str | None:
    """libtbb.so.12 of the installed package tbb, which may be in another environment than this package."""
    try:
        files = importlib.metadata.files("tbb") or []
    except importlib.metadata.PackageNotFoundError:
        return None
    return next((str(f.locate().resolve()) for f in files if f.name == "libtbb.so.12"), None)


def load_library() -> ctypes.CDLL:
    """Opens libmxdnn. What is loaded later and was linked with it finds it by name, without a search path."""
    tbb = _tbb_library()
    try:
        if tbb:
            ctypes.CDLL(tbb)
        return ctypes.CDLL(get_library())
    except OSError as error:
        raise OSError(f"libmxdnn cannot be opened ({error}); it needs libtbb.so.12 of the package tbb, 2021.13 or newer: "
                      "pip install tbb") from error
